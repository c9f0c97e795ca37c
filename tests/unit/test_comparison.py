"""What a new memory is to an old one: each verdict, the traps, and the bands."""

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from memplane.adapters.policy_files import shipped_policies
from memplane.adapters.policy_files.document import parse
from memplane.adapters.policy_files.merge import read_merge
from memplane.adapters.policy_files.report import Report
from memplane.adapters.policy_files.value import Value
from memplane.domain.comparison import ANY_MODEL, Bands, MergeRules, Statement, Verdict, compare
from memplane.domain.comparison_thesaurus import Relation, relation
from memplane.domain.errors import PolicyError

BANDS = Bands(auto=0.6, update=0.25, check=0.2, fallback=0.1, link_min=0.3, shared_min=0.1)


def verdict(old: str, new: str, similarity: float = 0.9) -> Verdict:
    return compare(Statement.of(old), Statement.of(new), similarity, BANDS)


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
    ("The user plays golf on Mondays.", "The user plays golf on Thursdays."),
]
CASES = [
    (expected, *pair)
    for expected, pairs in (
        (Verdict.SAME, SAME),
        (Verdict.UPDATED, UPDATED),
        (Verdict.CONTRADICTED, CONTRADICTED),
        (Verdict.RETRACTED, RETRACTED),
        (Verdict.RELATED, RELATED),
    )
    for pair in pairs
]


@pytest.mark.parametrize(("expected", "old", "new"), CASES)
def test_words_decide(expected: Verdict, old: str, new: str) -> None:
    assert verdict(old, new) is expected


MECHANISMS = {
    "synonym": (
        Verdict.SAME,
        ("Dora purchased a lorry in Graz.", "Dora bought a truck in Graz."),
        ("Dora purchased a lorry in Graz.", "Dora purchased a bus in Graz."),
    ),
    "derivation": (
        Verdict.SAME,
        ("The printer jammed after an inspection.", "The printer jammed after it was inspected."),
        ("The printer jammed after an inspection.", "The printer jammed after it was repaired."),
    ),
    "abbreviation": (
        Verdict.SAME,
        ("The prod cert expires in November.", "The production certificate expires in November."),
        ("The prod cert expires in November.", "The staging certificate expires in November."),
    ),
    "initials": (
        Verdict.SAME,
        ("Rhea is the chief financial officer of Vega.", "Rhea is the CFO of Vega."),
        ("Rhea is the chief financial officer of Vega.", "Rhea is the CTO of Vega."),
    ),
    "compound": (
        Verdict.SAME,
        ("The user keeps the ladder in the tool shed.", "The user keeps the ladder in the toolshed."),
        ("The user keeps the ladder in the tool shed.", "The user keeps the ladder in the cow shed."),
    ),
    "support verb": (
        Verdict.SAME,
        ("Otto plays the oboe.", "Otto is an oboe player."),
        ("Otto plays the oboe.", "Otto is an oboe maker."),
    ),
    "passive": (
        Verdict.SAME,
        ("Lena wrote the appendix.", "The appendix was written by Lena."),
        ("Lena manages Otto.", "Lena is managed by Otto."),
    ),
    "owner": (
        Verdict.SAME,
        ("Lena reads Otto's drafts.", "Otto's drafts are read by Lena."),
        ("Lena reads Otto's drafts.", "Otto reads Lena's drafts."),
    ),
    "detail": (
        Verdict.SAME,
        ("The user has a boat in Split.", "In Split the user has a boat."),
        ("The user has a boat in Split.", "The user has a wooden boat in Split."),
    ),
    "quantifier": (
        Verdict.SAME,
        ("All invoices are archived.", "Invoices are archived."),
        ("All invoices are archived.", "Some invoices are archived."),
    ),
    "wish": (
        Verdict.SAME,
        ("The user plans to move to Pula.", "The user intends to move to Pula."),
        ("The user plans to move to Pula.", "The user might move to Pula."),
    ),
    "double denial": (
        Verdict.SAME,
        ("The user drinks no milk.", "The user doesn't drink milk."),
        ("The user drinks no milk.", "The user doesn't drink wine."),
    ),
    "other number": (
        Verdict.UPDATED,
        ("The hall seats 80 people.", "The hall now seats 120 people."),
        ("The hall rented 80 chairs.", "The hall rented 120 tables."),
    ),
    "implied measure": (
        Verdict.SAME,
        ("The attic is kept at 15 degrees.", "The temperature in the attic is 15 degrees."),
        ("The attic window costs 90 euros.", "The attic window weighs 90 kg."),
    ),
    "choice": (
        Verdict.SAME,
        ("Otto prefers ferries to planes on holidays.", "Otto prefers ferries over planes on holidays."),
        ("Otto prefers ferries to planes on holidays.", "Otto prefers ferries on holidays."),
    ),
    "written number": (
        Verdict.SAME,
        ("The reactor cost 3 million euros.", "The reactor cost €3,000,000."),
        ("The reactor cost 3 million euros.", "The reactor burnt 3 million litres."),
    ),
    "coordination": (
        Verdict.SAME,
        ("The user speaks Danish and Dutch.", "The user speaks Dutch and Danish."),
        ("The user speaks Danish with Ada and Dutch with Ida.", "The user speaks Dutch with Ada and Danish with Ida."),
    ),
    "what is replaced": (
        Verdict.UPDATED,
        ("Lena is the team lead.", "Otto has replaced Lena as team lead."),
        ("The user's bike is a Cube.", "The user replaced the bike bell."),
    ),
    "from and to": (
        Verdict.UPDATED,
        ("The choir rehearses on Monday evenings.", "The choir switched from Monday evenings to Friday evenings."),
        ("The choir rehearses on Monday evenings.", "The chess club switched to Friday evenings."),
    ),
    "something beside it": (
        Verdict.UPDATED,
        ("The user prefers tea.", "The user now prefers coffee."),
        ("The user likes tea.", "The user now also likes coffee."),
    ),
    "moving home": (
        Verdict.UPDATED,
        ("The user lives in Pula.", "The user relocated to Graz."),
        ("The user lives in Pula.", "The user's aunt relocated to Graz."),
    ),
    "general denial": (
        Verdict.CONTRADICTED,
        ("The user does not drink alcohol.", "The user drinks wine."),
        ("The user does not drink wine after 8 pm.", "The user drinks wine at lunch."),
    ),
    "incompatible states": (
        Verdict.CONTRADICTED,
        ("Otto is a vegetarian.", "Otto eats steak on Sundays."),
        ("Otto is a vegetarian.", "Lena eats steak on Sundays."),
    ),
    "opposite": (
        Verdict.CONTRADICTED,
        ("The training is mandatory.", "The training is optional."),
        ("Otto had an operation on the left knee.", "Otto had an operation on the right knee."),
    ),
    "retraction": (
        Verdict.RETRACTED,
        ("The user is on the tennis committee.", "The user has stepped down from the tennis committee."),
        ("The user likes tennis.", "The user has stepped down from the tennis committee."),
    ),
    "months and units": (
        Verdict.SAME,
        ("The lease ends in 03/2028.", "The lease ends in March 2028."),
        ("The cable is 2 m long.", "The cable is 2 km away."),
    ),
    "units after a number": (
        Verdict.SAME,
        ("The interval is 15 seconds.", "The interval is 15s."),
        ("The user's file A is 5 MB.", "The user's file B is 5 GB."),
    ),
    "amounts of money": (
        Verdict.SAME,
        ("The kayak cost $8,500.", "The kayak cost 8,500 dollars."),
        ("The kayak cost $8,500.", "The tent cost 8,500 dollars."),
    ),
    "times in words": (
        Verdict.SAME,
        ("The gym opens at half past six.", "The gym opens at 6:30."),
        ("The gym opens at half past six.", "The gym closes at half past six."),
    ),
    "places in a row": (
        Verdict.SAME,
        ("The studio is on the second floor.", "The studio is on floor two."),
        ("The studio is on the second floor.", "The studio has two floors."),
    ),
    "what a place is of": (
        Verdict.SAME,
        ("Otto is in the fourth room.", "Otto is in the 4th room."),
        ("The hall is on the fourth floor.", "The fourth hall is on the floor."),
    ),
    "names in short": (
        Verdict.SAME,
        ("The service is deployed on k8s.", "The service is deployed on Kubernetes."),
        ("The user likes Java.", "The user likes JavaScript."),
    ),
    "initials of a land": (
        Verdict.SAME,
        ("Otto lives in the US.", "Otto lives in the United States."),
        ("Otto likes the US team.", "Otto likes the United team."),
    ),
    "slips": (
        Verdict.SAME,
        ("The user's favourite instrment is the cello.", "The user's favourite instrument is the cello."),
        ("The user's passion is singing.", "The user's passport is singing."),
    ),
    "or newer": (
        Verdict.SAME,
        ("Builds need Node 18 or newer.", "Builds need Node 18 or later."),
        ("Builds need Node 18 or newer.", "Builds need Ruby 18 or newer."),
    ),
    "who employs": (
        Verdict.SAME,
        ("Bosch employs Miguel as an electrician.", "Miguel works for Bosch as an electrician."),
        ("Bosch employs Miguel.", "Miguel employs Bosch."),
    ),
    "who leads": (
        Verdict.SAME,
        ("Samir is Greta's boss.", "Greta reports to Samir."),
        ("Samir is Greta's boss.", "Samir reports to Greta."),
    ),
    "a new boss": (
        Verdict.UPDATED,
        ("The user's boss is Ruth.", "The user now reports to Karim."),
        ("Ben reports to Cleo.", "Dora reports to Emil."),
    ),
    "kin": (
        Verdict.SAME,
        ("Leila is Omar's sister.", "Omar has a sister, Leila."),
        ("Leila is Omar's sister.", "Omar is Leila's sister."),
    ),
    "birthplace": (
        Verdict.SAME,
        ("Yara was born in Tunis.", "Tunis is Yara's birthplace."),
        ("Yara was born in Tunis.", "Yara's sister was born in Tunis."),
    ),
    "expiry": (
        Verdict.SAME,
        ("The visa is valid until May 2027.", "The expiry date of the visa is 05/2027."),
        ("The lease runs from 03/2028.", "The lease runs until 03/2028."),
    ),
    "timeout": (
        Verdict.SAME,
        ("Requests time out after 5 seconds.", "The request timeout is 5 seconds."),
        ("Requests time out after 5 seconds.", "Retries start after 5 seconds."),
    ),
    "retention": (
        Verdict.SAME,
        ("Backups are deleted after 30 days.", "Backup retention is 30 days."),
        ("Logs are deleted after 90 days.", "Logs are archived after 90 days."),
    ),
    "favourites": (
        Verdict.SAME,
        ("Mango is the fruit the user likes most.", "The user's favourite fruit is mango."),
        ("The user's favourite fruit is mango.", "The user's favourite juice is mango."),
    ),
    "hobbies": (
        Verdict.SAME,
        ("Collecting stamps is a hobby of the user's.", "The user's hobby is collecting stamps."),
        ("Otto mends clocks as a hobby.", "Otto mends clocks for a living."),
    ),
    "what is behind": (
        Verdict.SAME,
        ("The dashboard is built with Vue.", "Vue is the framework behind the dashboard."),
        ("The app was built with Flutter.", "The app was tested with Flutter."),
    ),
    "what is installed": (
        Verdict.SAME,
        ("The laptop has 32 GB of RAM.", "32 GB of memory is installed in the laptop."),
        ("The laptop has 32 GB of RAM.", "The laptop has 32 GB of storage."),
    ),
    "what somebody does": (
        Verdict.SAME,
        ("What Nora reads is poetry.", "Nora reads poetry."),
        ("What Nora reads is poetry.", "What Nora writes is poetry."),
    ),
    "free of": (
        Verdict.SAME,
        ("The team does not hold meetings on Fridays.", "Fridays are meeting-free for the team."),
        ("The salad is nut-free.", "The salad is gluten-free."),
    ),
    "it contains it": (
        Verdict.CONTRADICTED,
        ("The soup contains gluten.", "The soup is gluten-free."),
        ("The soup is gluten-free.", "The bread contains gluten."),
    ),
    "without it": (
        Verdict.CONTRADICTED,
        ("The endpoint requires a token.", "The endpoint can be called without a token."),
        ("The endpoint requires a token.", "The endpoint can be called without a password."),
    ),
    "out of order": (
        Verdict.CONTRADICTED,
        ("The export works on Windows.", "The export is broken on Windows."),
        ("The export works on Windows.", "The import does not work on Windows."),
    ),
    "how it is found": (
        Verdict.CONTRADICTED,
        ("The user finds chess boring.", "The user finds chess exciting."),
        ("The user finds maths boring.", "The user finds history exciting."),
    ),
    "denied of some": (
        Verdict.CONTRADICTED,
        ("Karl eats fish.", "Karl does not eat fish."),
        ("Karl eats fish.", "Karl does not eat raw fish."),
    ),
    "given away": (
        Verdict.RETRACTED,
        ("The user has a Kindle.", "The user gave the Kindle away."),
        ("The user has a Kindle.", "The user gave the bike away."),
    ),
    "what is to be forgotten": (
        Verdict.RETRACTED,
        ("The user's niece lives in Oslo.", "Forget what I said about my niece living in Oslo."),
        ("The user's niece lives in Oslo.", "Forget what I said about my uncle living in Rome."),
    ),
    "a model and what it is": (
        Verdict.SAME,
        ("The user has a Pixel 8.", "The user has a Pixel 8 phone."),
        ("The user has a Pixel 8.", "The user has a Pixel 8 case."),
    ),
    "light nouns": (
        Verdict.SAME,
        ("Tarik got a degree at MIT.", "Tarik got his degree from MIT."),
        ("Tarik got a degree at MIT.", "Tarik got his job at MIT."),
    ),
    "who only": (
        Verdict.SAME,
        ("Only admins can delete users.", "Users can be deleted only by admins."),
        ("Only admins can delete users.", "Admins can delete only users."),
    ),
    "who acts upon whom": (
        Verdict.SAME,
        ("The nurse called the doctor.", "The doctor was called by the nurse."),
        ("The nurse called the doctor.", "The doctor called the nurse."),
    ),
    "done for whom": (
        Verdict.SAME,
        ("The mural was painted by Elif.", "Elif painted the mural."),
        ("Elif painted the mural.", "The mural was painted for Elif."),
    ),
    "owners of owners": (
        Verdict.SAME,
        ("The landlord's brother is Mr Kim.", "Mr Kim is the landlord's brother."),
        ("The user's landlord is Mr Kim's brother.", "Mr Kim is the user's landlord's brother."),
    ),
    "out and back": (
        Verdict.UPDATED,
        ("Nils lives in Oslo.", "Nils lives in Rome."),
        ("Nils flies from Oslo to Rome on 3 May.", "Nils flies from Rome to Oslo on 9 May."),
    ),
    "for another thing": (
        Verdict.UPDATED,
        ("The savings goal is 500 euros.", "The savings goal is 900 euros."),
        ("The user's savings goal for a car is 500 euros.", "The user's savings goal for a new bike is 900 euros."),
    ),
    "what is undergone": (
        Verdict.SAME,
        ("The user prefers to pay in cash.", "The user prefers paying in cash."),
        ("The user prefers to pay in cash.", "The user prefers to be paid in cash."),
    ),
    "bare and led to": (
        Verdict.SAME,
        ("Ana leads the Porto office.", "Ana heads the Porto office."),
        ("Ana heads the Porto office.", "Ana heads to the Porto office."),
    ),
    "who fears whom": (
        Verdict.SAME,
        ("The dog is afraid of the cat.", "The dog is scared of the cat."),
        ("The dog is afraid of the cat.", "The cat is afraid of the dog."),
    ),
    "how often and how long": (
        Verdict.SAME,
        ("The job runs every 2 hours.", "The job is run every two hours."),
        ("The job runs every 2 hours.", "The job runs for 2 hours."),
    ),
    "to whom and for whom": (
        Verdict.SAME,
        ("Otto wrote to Le Monde in 2019.", "In 2019 Otto wrote to Le Monde."),
        ("Otto wrote to Le Monde in 2019.", "Otto wrote for Le Monde in 2019."),
    ),
    "verbs that carry nothing": (
        Verdict.SAME,
        ("The docs are written in Markdown.", "The documentation is in Markdown."),
        ("Ida studies medicine.", "Ida takes medicine."),
    ),
    "due and done": (
        Verdict.SAME,
        ("The user must see Dr Lee.", "The user has to see Dr Lee."),
        ("The user has to see Dr Lee.", "The user has seen Dr Lee."),
    ),
    "a part of it": (
        Verdict.SAME,
        ("The user owns the Oslo firm.", "The Oslo firm belongs to the user."),
        ("The user owns the Oslo firm.", "The user owns a part of the Oslo firm."),
    ),
    "having and giving": (
        Verdict.SAME,
        ("Wendy will have surgery on June 8.", "Wendy's surgery is on 8 June."),
        ("Wendy will have surgery on June 8.", "Wendy performs surgery on June 8."),
    ),
    "one who does it": (
        Verdict.SAME,
        ("Ben plays guitar in a band.", "Ben is a guitarist in a band."),
        ("The user trains for a marathon.", "The user's trainer runs marathons."),
    ),
    "work in progress is no end": (
        Verdict.RETRACTED,
        ("The user rents a studio in Lyon.", "The user sold the studio in Lyon."),
        ("The user is renting a studio in Lyon.", "The user is selling a studio in Lyon."),
    ),
    "happened once": (
        Verdict.SAME,
        ("The user has finished the course.", "The user completed the course."),
        ("The user has finished the course.", "The user has started the course."),
    ),
    "place in a row after its noun": (
        Verdict.SAME,
        ("Otto's son is in fourth grade.", "Otto's son is in grade 4."),
        ("Otto's son is in fourth grade.", "Otto's son teaches fourth grade."),
    ),
    "left and joined": (
        Verdict.UPDATED,
        ("The user works at Bosch.", "The user left Bosch and joined Siemens."),
        ("The user works at Bosch.", "Otto left Bosch and joined Siemens."),
    ),
    "wont is no end": (
        Verdict.RETRACTED,
        ("Otto has a kiosk in Graz.", "Otto sold the kiosk in Graz."),
        ("Otto has a kiosk in Graz.", "Otto sells ice in Graz."),
    ),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_mechanism_holds_and_refuses(name: str) -> None:
    expected, held, refused = MECHANISMS[name]
    assert verdict(*held) is expected
    assert verdict(*refused) is Verdict.RELATED


def test_a_text_too_long_to_be_a_statement_is_never_decided_about() -> None:
    short, long = ("The user met " + ", ".join(f"Ann{one}" for one in range(size)) for size in (20, 40))
    assert verdict(short, short) is Verdict.SAME
    assert verdict(long, long) is Verdict.RELATED


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


def test_the_cosine_only_confirms() -> None:
    assert verdict("The user lives in Turin.", "The user resides in Turin.", 0.05) is Verdict.RELATED
    assert verdict("The user enjoys gardens.", "The user enjoys gadrens.", 0.9) is Verdict.SAME
    assert verdict("The user enjoys gardens.", "The user enjoys gadrens.", 0.5) is Verdict.RELATED
    assert verdict("The user lives in Turin.", "Mice eat cheese.", 0.05) is Verdict.UNRELATED
    assert verdict("The user lives in Turin.", "Mice eat cheese.", 0.99) is Verdict.RELATED


def test_what_supersedes() -> None:
    assert {one for one in Verdict if one.supersedes} == {Verdict.UPDATED, Verdict.CONTRADICTED, Verdict.RETRACTED}


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


@given(FRAMES, NAMES, NAMES, NUMBERS)
def test_texts_that_differ_in_a_name_are_never_the_same(frame: str, one: str, other: str, number: int) -> None:
    old, new = (frame.format(name=name, number=number, neg="") for name in (one, other))
    assert (verdict(old, new, 1.0) is Verdict.SAME) == (one == other)


@given(FRAMES, NAMES, NUMBERS, NUMBERS)
def test_texts_that_differ_in_a_number_are_never_the_same(frame: str, name: str, one: int, other: int) -> None:
    old, new = (frame.format(name=name, number=number, neg="") for number in (one, other))
    assert (verdict(old, new, 1.0) is Verdict.SAME) == (one == other)


@given(FRAMES, NAMES, NUMBERS, st.sampled_from([" not", " never", " no longer"]), st.booleans())
def test_texts_that_differ_in_a_negation_are_never_the_same(
    frame: str, name: str, number: int, negation: str, turned: bool
) -> None:
    old, new = (frame.format(name=name, number=number, neg=neg) for neg in ("", negation))
    assert verdict(*((new, old) if turned else (old, new)), 1.0) is not Verdict.SAME


@given(st.text(max_size=280), st.text(max_size=280), st.floats(-1, 1))
def test_any_text_gives_a_verdict(old: str, new: str, similarity: float) -> None:
    assert verdict(old, new, similarity) in Verdict


def test_rules_serve_unnamed_models_with_the_fallback() -> None:
    other = Bands(1, 1, 1, 1, 1, 1)
    rules = MergeRules({ANY_MODEL: other, "named": BANDS})
    assert rules.bands_for("named") is BANDS
    assert rules.bands_for("unnamed") is other


def read(text: str) -> tuple[MergeRules, list[str]]:
    report = Report()
    node = parse("merge.yaml", text.encode(), report)
    rules = read_merge(Value(report=report, file="merge.yaml", key="", line=1, node=node))
    try:
        report.raise_if_any()
    except PolicyError as error:
        return rules, error.detail.splitlines()
    return rules, []


GOOD = """bands:
  "*":
    auto: 0.9
    update: 0.5
    check: 0.4
    fallback: 0.2
    link_min: 0.3
    shared_min: 0.2
"""


def shipped() -> Path:
    return shipped_policies() / "merge.yaml"


def schema() -> Draft202012Validator:
    return Draft202012Validator(json.loads((shipped_policies() / "schema" / "merge.schema.json").read_text()))


def test_the_file_is_read() -> None:
    assert read(GOOD) == (MergeRules({ANY_MODEL: Bands(0.9, 0.5, 0.4, 0.2, 0.3, 0.2)}), [])


def test_the_shipped_file_is_right() -> None:
    text = shipped().read_text(encoding="utf-8")
    rules, problems = read(text)
    assert not problems
    assert {ANY_MODEL, "wordllama-256"} <= set(rules.bands)
    assert text.splitlines()[0] == "# yaml-language-server: $schema=./schema/merge.schema.json"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("update: 0.5", "update: 0.95", "merge.yaml:4: bands.*.update: 0.95 is more than auto, 0.9"),
        ("fallback: 0.2", "fallback: 0.41", "merge.yaml:6: bands.*.fallback: 0.41 is more than check, 0.4"),
        ("link_min: 0.3", "link_min: 1", "merge.yaml:7: bands.*.link_min: 1 is more than auto, 0.9"),
        ("check: 0.4", "chek: 0.4", "merge.yaml:5: bands.*.chek: unknown key"),
        ("    shared_min: 0.2\n", "", "shared_min: missing"),
        ("auto: 0.9", "auto: 1.1", "merge.yaml:3: bands.*.auto: expected a number from 0 to 1"),
        ('"*"', "wordllama-256", "merge.yaml:1: bands.*: missing"),
    ],
)
def test_a_mistake_is_told_with_its_place(old: str, new: str, told: str) -> None:
    assert GOOD.count(old) == 1
    _, problems = read(GOOD.replace(old, new))
    assert any(told in problem for problem in problems), problems


def test_the_schema_accepts_what_is_right() -> None:

    schema().check_schema(schema().schema)
    assert schema().is_valid(yaml.safe_load(GOOD))
    assert schema().is_valid(yaml.safe_load(shipped().read_text(encoding="utf-8")))
    assert not schema().is_valid(yaml.safe_load(GOOD.replace("check", "chek")))
