"""What a new memory is to an old one: each verdict, the traps, and what holds for any two sentences."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplane.domain.language.comparison.comparison import ComparisonVerdict
from unit.verdicts import verdict

SAME = [
    ("The user lives in Turin.", "The user resides in Turin"),
    ("The user's trainer is Paula Dietz.", "Paula Dietz is the user's trainer."),
    ("The board approved the merger.", "The merger was approved by the board."),
    ("In July 2020 the user sailed to Corfu.", "The user sailed to Corfu in July 2020."),
    ("The user can't eat shellfish.", "The user cannot eat shellfish."),
    ("The exam is on 7 November.", "The exam is on November 7th."),
    ("The user runs two bakeries.", "The user runs 2 bakeries."),
    ("The user has a niece named Ada.", "The user's niece is called Ada."),
    ("The user enjoys swimming.", "The user enjoys swiming."),
]
UPDATED = [
    ("The user lives in Turin.", "The user has moved to Genoa."),
    ("The user is 41 years old.", "The user is 42 years old."),
    ("The user's favourite dish is paella.", "The user's favourite dish is ramen."),
    ("The review is on Tuesday.", "The review has been postponed to Friday."),
    ("The user works as a baker.", "The user works as a courier."),
    ("The user is single.", "The user is married to Ruth."),
    ("The user prefers trains to buses.", "The user prefers buses to trains."),
    ("The gate code is 5521.", "The gate code is 8830."),
]
CONTRADICTED = [
    ("The user likes opera.", "The user dislikes opera."),
    ("The user is a smoker.", "The user is not a smoker."),
    ("The lid is sealed.", "The lid is unsealed."),
    ("Comments are enabled on the blog.", "Comments are disabled on the blog."),
    ("The user isn't fond of snow.", "The user loves snow."),
    ("The user likes loud music.", "The user does not like music."),
]
RETRACTED = [
    ("The user has a sister called Ruth.", "The user does not have a sister."),
    ("The user owns a car.", "The user no longer owns a car."),
    ("The user smokes five cigars a day.", "The user has stopped smoking."),
    ("The user works at Nestle.", "The user has left Nestle."),
    ("The user drives a Fiat Panda.", "The user sold the Fiat Panda."),
    ("The user drinks rice milk.", "The user doesn't drink rice milk anymore."),
    ("The choir meets at 18:00.", "The choir has been discontinued."),
]
RELATED = [
    ("The user's sister Anna lives in Oslo.", "The user's brother Ben lives in Oslo."),
    ("The user is a vegan.", "The user moved the sofa to the attic."),
    ("The user lives with Anna.", "The user lives near Anna."),
    ("The user needs help with taxes.", "The user helps with taxes."),
    ("The user thinks Anna likes Ben.", "The user thinks Ben likes Anna."),
    ("The user likes plums.", "The user likes cherries."),
    ("Omar lent the user 50 euros.", "The user lent Omar 50 euros."),
    ("The user flew from Bonn to Nice.", "The user flew from Nice to Bonn."),
    ("The user likes dogs and hates cats.", "The user hates dogs and likes cats."),
    ("The user works in Bonn and lives in Ulm.", "The user works in Ulm and lives in Bonn."),
    ("The user has 3 apples and 4 pears.", "The user has 4 apples and 3 pears."),
    ("The user is a manager.", "The user has a manager."),
    ("The user works at Nestle.", "The user worked at Nestle."),
    ("The user likes tea with sugar.", "The user likes tea without sugar."),
    ("The user may travel in June.", "The user must travel in June."),
    ("The user owns a private pool.", "The user owns a public pool."),
    ("Ticket 11 is assigned to Kim.", "Ticket 12 is assigned to Kim."),
    ("The user visited Lyon in 2019.", "The user visited Lyon in 2021."),
    ("The user's cousin is a nurse.", "The user's cousin is a pilot."),
    ("The user has a friend called Tom.", "The user has a friend called Jim."),
    ("The user attended a talk by Ann.", "The user attended a talk by Anne."),
    ("The user likes cats.", "The user no longer has a cat."),
    ("The user wants a piano.", "The user no longer wants a boat."),
    ("The user wants to visit Rome.", "The user no longer wants a boat."),
    ("The user plans to buy a piano.", "The user no longer plans to buy a boat."),
    ("The user plays golf on Mondays.", "The user plays golf on Thursdays."),
]
CASES = [
    (expected, *pair)
    for expected, pairs in (
        (ComparisonVerdict.SAME, SAME),
        (ComparisonVerdict.UPDATED, UPDATED),
        (ComparisonVerdict.CONTRADICTED, CONTRADICTED),
        (ComparisonVerdict.RETRACTED, RETRACTED),
        (ComparisonVerdict.RELATED, RELATED),
    )
    for pair in pairs
]


@pytest.mark.parametrize(("expected", "old", "new"), CASES)
def test_words_decide(expected: ComparisonVerdict, old: str, new: str) -> None:
    assert verdict(old, new) is expected


def test_the_cosine_only_confirms() -> None:
    assert verdict("The user lives in Turin.", "The user resides in Turin.", 0.05) is ComparisonVerdict.RELATED
    assert verdict("The user enjoys gardens.", "The user enjoys gadrens.", 0.9) is ComparisonVerdict.SAME
    assert verdict("The user enjoys gardens.", "The user enjoys gadrens.", 0.5) is ComparisonVerdict.RELATED
    assert verdict("The user lives in Turin.", "Mice eat cheese.", 0.05) is ComparisonVerdict.UNRELATED
    assert verdict("The user lives in Turin.", "Mice eat cheese.", 0.99) is ComparisonVerdict.RELATED


def test_what_supersedes() -> None:
    assert {one for one in ComparisonVerdict if one.supersedes} == {
        ComparisonVerdict.UPDATED,
        ComparisonVerdict.CONTRADICTED,
        ComparisonVerdict.RETRACTED,
    }


FRAMES = st.sampled_from(
    [
        "The user{neg} lives in {name} with {number} cats.",
        "The user{neg} likes {name} and its {number} parks.",
        "{name} is{neg} the user's boss since {number}.",
        "The invoice {number} for {name} is{neg} ready.",
        "The user's friend {name} is{neg} {number} years old.",
        "The user met {name} {number} times and is{neg} satisfied.",
        "{name}{neg} moved to building {number}.",
        "The {name} project has {number} members and is{neg} finished.",
    ]
)
NAMES = st.sampled_from(
    [
        "Ann",
        "Anne",
        "Anna",
        "Anton",
        "Bert",
        "Berta",
        "Carlo",
        "Carla",
        "Jon",
        "Jones",
        "Oslo",
        "Hans",
        "Siemens",
        "Tom",
    ]
)
NUMBERS = st.integers(2, 5000)


@given(
    one=st.dates(), other=st.dates(), frame=st.sampled_from(["Call {}.", "The exam is on {}.", "{}: the lease ends."])
)
def test_texts_that_differ_in_a_date_are_never_the_same(one: date, other: date, frame: str) -> None:
    found = verdict(frame.format(one), frame.format(other))
    assert (found is ComparisonVerdict.SAME) == (one == other)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Call 2027-03-04.", "Call 2027-04-03."), ("The score was 3:1.", "The score was 1:3."),
        ("The ratio is 16/9.", "The ratio is 9/16."), ("Release 1.2.3 is out.", "Release 3.2.1 is out."),
    ],
)  # fmt: skip
def test_the_order_within_a_date_or_a_score_counts(old: str, new: str) -> None:
    assert verdict(old, new) is not ComparisonVerdict.SAME
    assert verdict(old, old.rstrip(".")) is ComparisonVerdict.SAME  # the control


@given(FRAMES, NAMES, NAMES, NUMBERS)
def test_texts_that_differ_in_a_name_are_never_the_same(frame: str, one: str, other: str, number: int) -> None:
    old, new = (frame.format(name=name, number=number, neg="") for name in (one, other))
    assert (verdict(old, new, 1.0) is ComparisonVerdict.SAME) == (one == other)


@given(FRAMES, NAMES, NUMBERS, NUMBERS)
def test_texts_that_differ_in_a_number_are_never_the_same(frame: str, name: str, one: int, other: int) -> None:
    old, new = (frame.format(name=name, number=number, neg="") for number in (one, other))
    assert (verdict(old, new, 1.0) is ComparisonVerdict.SAME) == (one == other)


@given(FRAMES, NAMES, NUMBERS, st.sampled_from([" not", " never", " no longer"]), st.booleans())
def test_texts_that_differ_in_a_negation_are_never_the_same(
    frame: str, name: str, number: int, negation: str, turned: bool
) -> None:
    old, new = (frame.format(name=name, number=number, neg=neg) for neg in ("", negation))
    assert verdict(*((new, old) if turned else (old, new)), 1.0) is not ComparisonVerdict.SAME


@given(st.text(max_size=280), st.text(max_size=280), st.floats(-1, 1))
def test_any_text_gives_a_verdict(old: str, new: str, similarity: float) -> None:
    assert verdict(old, new, similarity) in ComparisonVerdict
