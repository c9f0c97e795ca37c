"""Words, numbers and the build of a sentence: each mechanism of the comparison, with what it must refuse."""

import pytest

from memplane.domain.language.comparison.comparison import ComparisonVerdict
from memplane.domain.language.comparison.comparison_thesaurus import Relation, relation
from unit.verdicts import verdict

MECHANISMS = {
    "synonym": (
        ComparisonVerdict.SAME,
        ("Dora purchased a lorry in Graz.", "Dora bought a truck in Graz."),
        ("Dora purchased a lorry in Graz.", "Dora purchased a bus in Graz."),
    ),
    "derivation": (
        ComparisonVerdict.SAME,
        ("The printer jammed after an inspection.", "The printer jammed after it was inspected."),
        ("The printer jammed after an inspection.", "The printer jammed after it was repaired."),
    ),
    "abbreviation": (
        ComparisonVerdict.SAME,
        ("The prod cert expires in November.", "The production certificate expires in November."),
        ("The prod cert expires in November.", "The staging certificate expires in November."),
    ),
    "initials": (
        ComparisonVerdict.SAME,
        ("Rhea is the chief financial officer of Vega.", "Rhea is the CFO of Vega."),
        ("Rhea is the chief financial officer of Vega.", "Rhea is the CTO of Vega."),
    ),
    "compound": (
        ComparisonVerdict.SAME,
        ("The user keeps the ladder in the tool shed.", "The user keeps the ladder in the toolshed."),
        ("The user keeps the ladder in the tool shed.", "The user keeps the ladder in the cow shed."),
    ),
    "support verb": (
        ComparisonVerdict.SAME,
        ("Otto plays the oboe.", "Otto is an oboe player."),
        ("Otto plays the oboe.", "Otto is an oboe maker."),
    ),
    "passive": (
        ComparisonVerdict.SAME,
        ("Lena wrote the appendix.", "The appendix was written by Lena."),
        ("Lena manages Otto.", "Lena is managed by Otto."),
    ),
    "owner": (
        ComparisonVerdict.SAME,
        ("Lena reads Otto's drafts.", "Otto's drafts are read by Lena."),
        ("Lena reads Otto's drafts.", "Otto reads Lena's drafts."),
    ),
    "detail": (
        ComparisonVerdict.SAME,
        ("The user has a boat in Split.", "In Split the user has a boat."),
        ("The user has a boat in Split.", "The user has a wooden boat in Split."),
    ),
    "quantifier": (
        ComparisonVerdict.SAME,
        ("All invoices are archived.", "Invoices are archived."),
        ("All invoices are archived.", "Some invoices are archived."),
    ),
    "wish": (
        ComparisonVerdict.SAME,
        ("The user plans to move to Pula.", "The user intends to move to Pula."),
        ("The user plans to move to Pula.", "The user might move to Pula."),
    ),
    "double denial": (
        ComparisonVerdict.SAME,
        ("The user drinks no milk.", "The user doesn't drink milk."),
        ("The user drinks no milk.", "The user doesn't drink wine."),
    ),
    "other number": (
        ComparisonVerdict.UPDATED,
        ("The hall seats 80 people.", "The hall now seats 120 people."),
        ("The hall rented 80 chairs.", "The hall rented 120 tables."),
    ),
    "implied measure": (
        ComparisonVerdict.SAME,
        ("The attic is kept at 15 degrees.", "The temperature in the attic is 15 degrees."),
        ("The attic window costs 90 euros.", "The attic window weighs 90 kg."),
    ),
    "choice": (
        ComparisonVerdict.SAME,
        ("Otto prefers ferries to planes on holidays.", "Otto prefers ferries over planes on holidays."),
        ("Otto prefers ferries to planes on holidays.", "Otto prefers ferries on holidays."),
    ),
    "written number": (
        ComparisonVerdict.SAME,
        ("The reactor cost 3 million euros.", "The reactor cost €3,000,000."),
        ("The reactor cost 3 million euros.", "The reactor burnt 3 million litres."),
    ),
    "coordination": (
        ComparisonVerdict.SAME,
        ("The user speaks Danish and Dutch.", "The user speaks Dutch and Danish."),
        ("The user speaks Danish with Ada and Dutch with Ida.", "The user speaks Dutch with Ada and Danish with Ida."),
    ),
    "what is replaced": (
        ComparisonVerdict.UPDATED,
        ("Lena is the team lead.", "Otto has replaced Lena as team lead."),
        ("The user's bike is a Cube.", "The user replaced the bike bell."),
    ),
    "from and to": (
        ComparisonVerdict.UPDATED,
        ("The choir rehearses on Monday evenings.", "The choir switched from Monday evenings to Friday evenings."),
        ("The choir rehearses on Monday evenings.", "The chess club switched to Friday evenings."),
    ),
    "something beside it": (
        ComparisonVerdict.UPDATED,
        ("The user prefers tea.", "The user now prefers coffee."),
        ("The user likes tea.", "The user now also likes coffee."),
    ),
    "moving home": (
        ComparisonVerdict.UPDATED,
        ("The user lives in Pula.", "The user relocated to Graz."),
        ("The user lives in Pula.", "The user's aunt relocated to Graz."),
    ),
    "general denial": (
        ComparisonVerdict.CONTRADICTED,
        ("The user does not drink alcohol.", "The user drinks wine."),
        ("The user does not drink wine after 8 pm.", "The user drinks wine at lunch."),
    ),
    "incompatible states": (
        ComparisonVerdict.CONTRADICTED,
        ("Otto is a vegetarian.", "Otto eats steak."),
        ("Otto is a vegetarian.", "Lena eats steak."),
    ),
    "opposite": (
        ComparisonVerdict.CONTRADICTED,
        ("The training is mandatory.", "The training is optional."),
        ("Otto had an operation on the left knee.", "Otto had an operation on the right knee."),
    ),
    "retraction": (
        ComparisonVerdict.RETRACTED,
        ("The user is on the tennis committee.", "The user has stepped down from the tennis committee."),
        ("The user likes tennis.", "The user has stepped down from the tennis committee."),
    ),
    "months and units": (
        ComparisonVerdict.SAME,
        ("The lease ends in 03/2028.", "The lease ends in March 2028."),
        ("The cable is 2 m long.", "The cable is 2 km away."),
    ),
    "units after a number": (
        ComparisonVerdict.SAME,
        ("The interval is 15 seconds.", "The interval is 15s."),
        ("The user's file A is 5 MB.", "The user's file B is 5 GB."),
    ),
    "amounts of money": (
        ComparisonVerdict.SAME,
        ("The kayak cost $8,500.", "The kayak cost 8,500 dollars."),
        ("The kayak cost $8,500.", "The tent cost 8,500 dollars."),
    ),
    "times in words": (
        ComparisonVerdict.SAME,
        ("The gym opens at half past six.", "The gym opens at 6:30."),
        ("The gym opens at half past six.", "The gym closes at half past six."),
    ),
    "places in a row": (
        ComparisonVerdict.SAME,
        ("The studio is on the second floor.", "The studio is on floor two."),
        ("The studio is on the second floor.", "The studio has two floors."),
    ),
    "what a place is of": (
        ComparisonVerdict.SAME,
        ("Otto is in the fourth room.", "Otto is in the 4th room."),
        ("The hall is on the fourth floor.", "The fourth hall is on the floor."),
    ),
    "names in short": (
        ComparisonVerdict.SAME,
        ("The service is deployed on k8s.", "The service is deployed on Kubernetes."),
        ("The user likes Java.", "The user likes JavaScript."),
    ),
    "initials of a land": (
        ComparisonVerdict.SAME,
        ("Otto lives in the US.", "Otto lives in the United States."),
        ("Otto likes the US team.", "Otto likes the United team."),
    ),
    "slips": (
        ComparisonVerdict.SAME,
        ("The user's favourite instrment is the cello.", "The user's favourite instrument is the cello."),
        ("The user's passion is singing.", "The user's passport is singing."),
    ),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_mechanism_holds_and_refuses(name: str) -> None:
    expected, held, refused = MECHANISMS[name]
    assert verdict(*held) is expected
    assert verdict(*refused) is ComparisonVerdict.RELATED


def test_a_text_too_long_to_be_a_statement_is_never_decided_about() -> None:
    short, long = ("The user met " + ", ".join(f"Ann{one}" for one in range(size)) for size in (20, 40))
    assert verdict(short, short) is ComparisonVerdict.SAME
    assert verdict(long, long) is ComparisonVerdict.RELATED


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("injured", "injury", Relation.DERIVED),
        ("reachable", "reached", Relation.DERIVED),
        ("bicycle", "bike", Relation.EQUAL),
        ("tea", "coffee", Relation.SISTER),
        ("alcohol", "wine", Relation.BROADER),
        ("wine", "alcohol", Relation.NARROWER),
        ("high", "low", Relation.OPPOSITE),
        ("stateless", "stateful", Relation.OPPOSITE),
        ("brother", "sister", Relation.SISTER),
        ("gravel", "friday", Relation.NONE),
        ("", "x" * 5000, Relation.NONE),
    ],
)
def test_words_are_related(one: str, other: str, expected: Relation) -> None:
    assert relation(one, other) is expected
