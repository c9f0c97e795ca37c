"""Turns of phrase, and who does what to whom: each mechanism of the comparison, with what it must refuse."""

import pytest

from memplane.domain.language.comparison.comparison import ComparisonVerdict
from unit.verdicts import verdict

MECHANISMS = {
    "or newer": (
        ComparisonVerdict.SAME,
        ("Builds need Node 18 or newer.", "Builds need Node 18 or later."),
        ("Builds need Node 18 or newer.", "Builds need Ruby 18 or newer."),
    ),
    "who employs": (
        ComparisonVerdict.SAME,
        ("Bosch employs Miguel as an electrician.", "Miguel works for Bosch as an electrician."),
        ("Bosch employs Miguel.", "Miguel employs Bosch."),
    ),
    "who leads": (
        ComparisonVerdict.SAME,
        ("Samir is Greta's boss.", "Greta reports to Samir."),
        ("Samir is Greta's boss.", "Samir reports to Greta."),
    ),
    "a new boss": (
        ComparisonVerdict.UPDATED,
        ("The user's boss is Ruth.", "The user now reports to Karim."),
        ("Ben reports to Cleo.", "Dora reports to Emil."),
    ),
    "kin": (
        ComparisonVerdict.SAME,
        ("Leila is Omar's sister.", "Omar has a sister, Leila."),
        ("Leila is Omar's sister.", "Omar is Leila's sister."),
    ),
    "birthplace": (
        ComparisonVerdict.SAME,
        ("Yara was born in Tunis.", "Tunis is Yara's birthplace."),
        ("Yara was born in Tunis.", "Yara's sister was born in Tunis."),
    ),
    "expiry": (
        ComparisonVerdict.SAME,
        ("The visa is valid until May 2027.", "The expiry date of the visa is 05/2027."),
        ("The lease runs from 03/2028.", "The lease runs until 03/2028."),
    ),
    "timeout": (
        ComparisonVerdict.SAME,
        ("Requests time out after 5 seconds.", "The request timeout is 5 seconds."),
        ("Requests time out after 5 seconds.", "Retries start after 5 seconds."),
    ),
    "retention": (
        ComparisonVerdict.SAME,
        ("Backups are deleted after 30 days.", "Backup retention is 30 days."),
        ("Logs are deleted after 90 days.", "Logs are archived after 90 days."),
    ),
    "favourites": (
        ComparisonVerdict.SAME,
        ("Mango is the fruit the user likes most.", "The user's favourite fruit is mango."),
        ("The user's favourite fruit is mango.", "The user's favourite juice is mango."),
    ),
    "hobbies": (
        ComparisonVerdict.SAME,
        ("Collecting stamps is a hobby of the user's.", "The user's hobby is collecting stamps."),
        ("Otto mends clocks as a hobby.", "Otto mends clocks for a living."),
    ),
    "what is behind": (
        ComparisonVerdict.SAME,
        ("The dashboard is built with Vue.", "Vue is the framework behind the dashboard."),
        ("The app was built with Flutter.", "The app was tested with Flutter."),
    ),
    "what is installed": (
        ComparisonVerdict.SAME,
        ("The laptop has 32 GB of RAM.", "32 GB of memory is installed in the laptop."),
        ("The laptop has 32 GB of RAM.", "The laptop has 32 GB of storage."),
    ),
    "what somebody does": (
        ComparisonVerdict.SAME,
        ("What Nora reads is poetry.", "Nora reads poetry."),
        ("What Nora reads is poetry.", "What Nora writes is poetry."),
    ),
    "free of": (
        ComparisonVerdict.SAME,
        ("The team does not hold meetings on Fridays.", "Fridays are meeting-free for the team."),
        ("The salad is nut-free.", "The salad is gluten-free."),
    ),
    "it contains it": (
        ComparisonVerdict.CONTRADICTED,
        ("The soup contains gluten.", "The soup is gluten-free."),
        ("The soup is gluten-free.", "The bread contains gluten."),
    ),
    "without it": (
        ComparisonVerdict.CONTRADICTED,
        ("The endpoint requires a token.", "The endpoint can be called without a token."),
        ("The endpoint requires a token.", "The endpoint can be called without a password."),
    ),
    "out of order": (
        ComparisonVerdict.CONTRADICTED,
        ("The export works on Windows.", "The export is broken on Windows."),
        ("The export works on Windows.", "The import does not work on Windows."),
    ),
    "how it is found": (
        ComparisonVerdict.CONTRADICTED,
        ("The user finds chess boring.", "The user finds chess exciting."),
        ("The user finds maths boring.", "The user finds history exciting."),
    ),
    "denied of some": (
        ComparisonVerdict.CONTRADICTED,
        ("Karl eats fish.", "Karl does not eat fish."),
        ("Karl eats fish.", "Karl does not eat raw fish."),
    ),
    "given away": (
        ComparisonVerdict.RETRACTED,
        ("The user has a Kindle.", "The user gave the Kindle away."),
        ("The user has a Kindle.", "The user gave the bike away."),
    ),
    "what is to be forgotten": (
        ComparisonVerdict.RETRACTED,
        ("The user's niece lives in Oslo.", "Forget what I said about my niece living in Oslo."),
        ("The user's niece lives in Oslo.", "Forget what I said about my uncle living in Rome."),
    ),
    "a model and what it is": (
        ComparisonVerdict.SAME,
        ("The user has a Pixel 8.", "The user has a Pixel 8 phone."),
        ("The user has a Pixel 8.", "The user has a Pixel 8 case."),
    ),
    "light nouns": (
        ComparisonVerdict.SAME,
        ("Tarik got a degree at MIT.", "Tarik got his degree from MIT."),
        ("Tarik got a degree at MIT.", "Tarik got his job at MIT."),
    ),
    "who only": (
        ComparisonVerdict.SAME,
        ("Only admins can delete users.", "Users can be deleted only by admins."),
        ("Only admins can delete users.", "Admins can delete only users."),
    ),
    "who acts upon whom": (
        ComparisonVerdict.SAME,
        ("The nurse called the doctor.", "The doctor was called by the nurse."),
        ("The nurse called the doctor.", "The doctor called the nurse."),
    ),
    "done for whom": (
        ComparisonVerdict.SAME,
        ("The mural was painted by Elif.", "Elif painted the mural."),
        ("Elif painted the mural.", "The mural was painted for Elif."),
    ),
    "owners of owners": (
        ComparisonVerdict.SAME,
        ("The landlord's brother is Mr Kim.", "Mr Kim is the landlord's brother."),
        ("The user's landlord is Mr Kim's brother.", "Mr Kim is the user's landlord's brother."),
    ),
    "out and back": (
        ComparisonVerdict.UPDATED,
        ("Nils lives in Oslo.", "Nils lives in Rome."),
        ("Nils flies from Oslo to Rome on 3 May.", "Nils flies from Rome to Oslo on 9 May."),
    ),
    "for another thing": (
        ComparisonVerdict.UPDATED,
        ("The savings goal is 500 euros.", "The savings goal is 900 euros."),
        ("The user's savings goal for a car is 500 euros.", "The user's savings goal for a new bike is 900 euros."),
    ),
    "what is undergone": (
        ComparisonVerdict.SAME,
        ("The user prefers to pay in cash.", "The user prefers paying in cash."),
        ("The user prefers to pay in cash.", "The user prefers to be paid in cash."),
    ),
    "bare and led to": (
        ComparisonVerdict.SAME,
        ("Ana leads the Porto office.", "Ana heads the Porto office."),
        ("Ana heads the Porto office.", "Ana heads to the Porto office."),
    ),
    "who fears whom": (
        ComparisonVerdict.SAME,
        ("The dog is afraid of the cat.", "The dog is scared of the cat."),
        ("The dog is afraid of the cat.", "The cat is afraid of the dog."),
    ),
    "how often and how long": (
        ComparisonVerdict.SAME,
        ("The job runs every 2 hours.", "The job is run every two hours."),
        ("The job runs every 2 hours.", "The job runs for 2 hours."),
    ),
    "to whom and for whom": (
        ComparisonVerdict.SAME,
        ("Otto wrote to Le Monde in 2019.", "In 2019 Otto wrote to Le Monde."),
        ("Otto wrote to Le Monde in 2019.", "Otto wrote for Le Monde in 2019."),
    ),
    "verbs that carry nothing": (
        ComparisonVerdict.SAME,
        ("The docs are written in Markdown.", "The documentation is in Markdown."),
        ("Ida studies medicine.", "Ida takes medicine."),
    ),
    "due and done": (
        ComparisonVerdict.SAME,
        ("The user must see Dr Lee.", "The user has to see Dr Lee."),
        ("The user has to see Dr Lee.", "The user has seen Dr Lee."),
    ),
    "a part of it": (
        ComparisonVerdict.SAME,
        ("The user owns the Oslo firm.", "The Oslo firm belongs to the user."),
        ("The user owns the Oslo firm.", "The user owns a part of the Oslo firm."),
    ),
    "having and giving": (
        ComparisonVerdict.SAME,
        ("Wendy will have surgery on June 8.", "Wendy's surgery is on 8 June."),
        ("Wendy will have surgery on June 8.", "Wendy performs surgery on June 8."),
    ),
    "one who does it": (
        ComparisonVerdict.SAME,
        ("Ben plays guitar in a band.", "Ben is a guitarist in a band."),
        ("The user trains for a marathon.", "The user's trainer runs marathons."),
    ),
    "work in progress is no end": (
        ComparisonVerdict.RETRACTED,
        ("The user owns a studio in Lyon.", "The user sold the studio in Lyon."),
        ("The user is renting a studio in Lyon.", "The user is selling a studio in Lyon."),
    ),
    "happened once": (
        ComparisonVerdict.SAME,
        ("The user has finished the course.", "The user completed the course."),
        ("The user has finished the course.", "The user has started the course."),
    ),
    "place in a row after its noun": (
        ComparisonVerdict.SAME,
        ("Otto's son is in fourth grade.", "Otto's son is in grade 4."),
        ("Otto's son is in fourth grade.", "Otto's son teaches fourth grade."),
    ),
    "left and joined": (
        ComparisonVerdict.UPDATED,
        ("The user works at Bosch.", "The user left Bosch and joined Siemens."),
        ("The user works at Bosch.", "Otto left Bosch and joined Siemens."),
    ),
    "wont is no end": (
        ComparisonVerdict.RETRACTED,
        ("Otto has a kiosk in Graz.", "Otto sold the kiosk in Graz."),
        ("Otto has a kiosk in Graz.", "Otto sells ice in Graz."),
    ),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_mechanism_holds_and_refuses(name: str) -> None:
    expected, held, refused = MECHANISMS[name]
    assert verdict(*held) is expected
    assert verdict(*refused) is ComparisonVerdict.RELATED
