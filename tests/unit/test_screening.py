"""What the policy does about personal data before anything is stored."""

import pytest

from memplane.domain.errors import PersonalDataRefused
from memplane.domain.memory.memory import MemoryText
from memplane.domain.privacy.pii import Pii, find
from memplane.domain.privacy.screening import Screening, plain, screen_text, screened_values

TAG, REDACT, REFUSE = Screening
RULES = {Pii.EMAIL: REDACT, Pii.CARD: REFUSE, Pii.PHONE: TAG}
MAIL, CARD, PHONE = "ana@example.org", "4111 1111 1111 1111", "+49 30 1234567"


def test_every_part_of_a_memory_is_screened() -> None:
    said = f"Write to {MAIL}."
    whole = MemoryText(
        content=said, title=said, narrative=said, facts=(said,), steps=(said,), tags=(MAIL,), related_files=(MAIL,)
    )
    stored = screen_text(whole, RULES, find)
    marked = "Write to [email]."
    assert (stored.content, stored.title, stored.narrative) == (marked, marked, marked)
    assert (stored.facts, stored.steps) == ((marked,), (marked,))
    assert (stored.tags, stored.related_files) == (("[email]",), ("[email]",))
    assert MAIL not in stored.searchable()


@pytest.mark.parametrize("rules", [{}, {Pii.EMAIL: TAG}, {Pii.PHONE: REFUSE}])
def test_what_no_rule_names_stays(rules: dict[Pii, Screening]) -> None:
    text = MemoryText(content=f"Write to {MAIL}.")
    assert screen_text(text, rules, find) == text


@pytest.mark.parametrize("part", ["content", "title", "narrative"])
def test_what_is_refused_is_named_and_not_repeated(part: str) -> None:
    text = MemoryText(**({"content": "The user pays."} | {part: f"The card is {CARD}, mail {MAIL}."}))
    with pytest.raises(PersonalDataRefused) as refused:
        screen_text(text, RULES, find)
    assert refused.value.extra == {"field": part, "kinds": ["card"]}
    assert "1111" not in str(refused.value)


def test_free_attributes_are_screened_at_any_depth() -> None:
    given = {"of": [{"mail": MAIL, "at": 3}], MAIL: True, "call": PHONE}
    assert screened_values(given, RULES, find) == {"of": [{"mail": "[email]", "at": 3}], "[email]": True, "call": PHONE}
    assert screened_values(given, {}, find) == given
    with pytest.raises(PersonalDataRefused) as refused:
        screened_values({"a": {"b": [CARD]}}, RULES, find)
    assert refused.value.extra["field"] == "attributes.a.b[0]"


def test_a_turn_is_screened_as_one_text() -> None:
    assert plain(f"Call {PHONE} or write to {MAIL}.", RULES, "text", find) == f"Call {PHONE} or write to [email]."
    with pytest.raises(PersonalDataRefused):
        plain(CARD, RULES, "text", find)
