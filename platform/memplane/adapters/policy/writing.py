"""``writing.yaml``: limits of all text, and the format of each memory type."""

from types import MappingProxyType

from memplane.adapters.policy.value import Value
from memplane.domain.memory.memory import MemoryType
from memplane.domain.policy.policy import TypeWriting, WritingRules
from memplane.domain.policy.quota_limits import Limits, QuotaLimits

MAX_TEXT_CHARS = 1_000_000
MAX_TITLE_CHARS = 10_000
MAX_LIST_ITEMS = 10_000
MAX_SENTENCES = 1_000
_FLAGS = (
    "refuse_pronoun_subjects", "numbered_steps", "third_person", "complete_sentences", "past_tense", "imperative_steps",
)  # fmt: skip
MAX_QUOTA = 10**15


def read_writing(root: Value) -> WritingRules:
    """Read the file; what is wrong goes to the root's report.

    A title or a type's content that may be longer than any text may be is wrong.
    """
    fields = root.fields(("limits", "types", "pronouns"), ("quotas",))
    limits = fields["limits"].fields(("max_text_chars", "max_title_chars", "max_list_items"))
    text_chars = limits["max_text_chars"].whole(1, MAX_TEXT_CHARS, fallback=MAX_TEXT_CHARS)
    types = fields["types"].fields((), tuple(MemoryType))
    return WritingRules(
        types=MappingProxyType({kind: _type(types[kind], text_chars) for kind in MemoryType if types[kind].present}),
        pronouns=frozenset(fields["pronouns"].distinct(_pronoun)),
        max_text_chars=text_chars,
        max_title_chars=_within(limits["max_title_chars"], MAX_TITLE_CHARS, text_chars),
        max_list_items=limits["max_list_items"].whole(1, MAX_LIST_ITEMS),
        quotas=_quotas(fields["quotas"]),
    )


def _quotas(value: Value) -> QuotaLimits:
    fields = value.fields((), ("tenant", "user")) if value.present else {}
    return QuotaLimits(**{name: _limits(limits) for name, limits in fields.items() if limits.present})


def _limits(value: Value) -> Limits:
    fields = value.fields((), ("memories", "bytes", "writes_per_day"))
    return Limits(**{name: most.whole(0, MAX_QUOTA) for name, most in fields.items() if most.present})


def _type(value: Value, text_chars: int) -> TypeWriting:
    fields = value.fields(("max_chars", "max_sentences"), _FLAGS)
    return TypeWriting(
        max_chars=_within(fields["max_chars"], MAX_TEXT_CHARS, text_chars),
        max_sentences=fields["max_sentences"].whole(1, MAX_SENTENCES),
        **{name: fields[name].flag() for name in _FLAGS},
    )


def _within(value: Value, high: int, text_chars: int) -> int:
    """A number of characters, no more than any text may have."""
    chars = value.whole(1, high)
    if chars > text_chars:
        value.fail(f"{chars} is more than limits.max_text_chars; accepted: at most {text_chars}")
    return chars


def _pronoun(item: Value) -> str:
    """One lower-case word; it is compared with the first word of a sentence, lower-cased."""
    word = item.text()
    if word != word.lower() or " " in word or "\u2019" in word:
        item.fail(f"'{word}' can match no first word; accepted: one lower-case word with straight apostrophes")
    return word
