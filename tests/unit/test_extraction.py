"""Facts drawn from chat messages by rule."""

from datetime import UTC, date, datetime, timedelta, timezone
from time import perf_counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memplane.domain.language.extraction.extraction import extract
from memplane.domain.language.extraction.extraction_person import conjugated, third
from memplane.domain.memory.memory import MemoryType

WEDNESDAY = datetime(2024, 5, 15, 10, 30, tzinfo=UTC)

FACTS = [
    ("Hi, I'm Tom and I work at Siemens as an engineer", "The user works at Siemens as an engineer."),
    ("Hi, I'm Tom and I work at Siemens as an engineer", "The user is called Tom."),
    ("Please call me Alex", "The user prefers to be called Alex."),
    ("my email is jo.doe@example.com", "The user's email is jo.doe@example.com."),
    ("I moved to Berlin last month", "The user moved to Berlin in April 2024."),
    ("My name is Sarah Connor and I'm from Los Angeles.", "The user is from Los Angeles."),
    ("Hey, I'm Priya, a data scientist from Mumbai.", "The user is a data scientist from Mumbai."),
    ("I'm 34 years old", "The user is 34 years old."),
    ("Actually my name is Jon, not John.", "The user's name is Jon."),
    ("My pronouns are they/them.", "The user's pronouns are they/them."),
    ("I live in Portland, Oregon with my wife and two kids", "The user lives in Portland, Oregon."),
    ("I’m based in Munich", "The user is based in Munich."),
    ("I speak German and English", "The user speaks German and English."),
    ("My favourite colour is green.", "The user's favourite colour is green."),
    ("I hate cilantro", "The user hates cilantro."),
    ("I can't stand loud restaurants", "The user cannot stand loud restaurants."),
    ("I prefer tea over coffee", "The user prefers tea over coffee."),
    ("I'd rather take the train than fly", "The user would rather take the train than fly."),
    ("I don't like jazz", "The user does not like jazz."),
    ("I adopted a cat named Milo in March", "The user adopted a cat named Milo in March 2024."),
    ("My sister Anna is a doctor", "The user's sister Anna is a doctor."),
    ("My dog is called Rex", "The user's dog is called Rex."),
    ("My boss's name is Karen", "The user's boss's name is Karen."),
    (
        "My husband and I bought a house in Leeds last year",
        "The user and their husband bought a house in Leeds in 2023.",
    ),
    (
        "My wife and I are expecting our first child in October",
        "The user and their wife are expecting their first child in October 2024.",
    ),
    ("I need to submit my thesis by Friday", "The user needs to submit their thesis by 17 May 2024."),
    ("I have a dentist appointment next Tuesday at 3pm", "The user has a dentist appointment on 21 May 2024 at 3pm."),
    ("My birthday is March 3rd", "The user's birthday is March 3rd."),
    ("I'm training for the Berlin marathon", "The user is training for the Berlin marathon."),
    ("I want to learn Japanese", "The user wants to learn Japanese."),
    ("I'm planning to move to Canada next year", "The user is planning to move to Canada in 2025."),
    ("I got promoted to senior manager yesterday", "The user got promoted to senior manager on 14 May 2024."),
    ("I have two kids and a dog", "The user has two kids and a dog."),
    ("I work as a nurse in Leeds and live in Bradford", "The user lives in Bradford."),
    ("i'm a software developer at a startup", "The user is a software developer at a startup."),
    ("I work in IT", "The user works in IT."),
    ("I've got a golden retriever named Biscuit", "The user has a golden retriever named Biscuit."),
    ("My mother has diabetes", "The user's mother has diabetes."),
    ("I prefer Python", "The user prefers Python."),
    ("My wife Julia and I got married in 2015", "The user and their wife Julia got married in 2015."),
    ("I study medicine in Warsaw and my exam is on Monday", "The user studies medicine in Warsaw."),
    ("I switched from Windows to Linux last year", "The user switched from Windows to Linux in 2023."),
    ("My cat died last month", "The user's cat died in April 2024."),
    ("I'm Brazilian", "The user is Brazilian."),
    ("I don't eat meat", "The user does not eat meat."),
    ("I've been playing chess for ten years", "The user has been playing chess for ten years."),
    ("I've been married for 12 years", "The user has been married for 12 years."),
    ("I'm building a REST API for my startup", "The user is building a REST API for their startup."),
    ("I run every morning", "The user runs every morning."),
    ("I'm a huge fan of Formula 1", "The user is a huge fan of Formula 1."),
    ("I have type 2 diabetes, what should I eat?", "The user has type 2 diabetes."),
    ("Just moved to Austin!", "The user moved to Austin."),
    ("I'm flying to Tokyo on June 3rd", "The user is flying to Tokyo on 3 June 2024."),
    ("I used to live in Madrid", "The user used to live in Madrid."),
    ("My deadline for the report is next Friday", "The user's deadline for the report is on 17 May 2024."),
    ("I usually wake up at 6 am", "The user wakes up at 6 am."),
    ("Last week I joined a chess club", "The user joined a chess club in the week of 6 May 2024."),
    ("Last week, I joined a chess club", "The user joined a chess club in the week of 6 May 2024."),
    ("Last week, my uncle Ned passed away", "The user's uncle Ned passed away in the week of 6 May 2024."),
    ("I started a podcast two days ago", "The user started a podcast on 13 May 2024."),
    ("I'm allergic to peanuts, so no satay please", "The user is allergic to peanuts."),
    ('I watched "The Godfather" last night', 'The user watched "The Godfather" on 14 May 2024.'),
]

NOTHING = [  # what says nothing, and its twin that does
    ("Do I live in Rome?", "I live in Rome."),
    ("If I lived in Rome I would eat pizza every day", "I live in Rome and eat pizza every day"),
    ("I might move to Spain", "I moved to Spain"),
    ("I could have married Anna", "I married Anna"),
    ("I was thinking maybe I should buy a car", "I bought a car"),
    ("I wish I had a dog", "I have a dog"),
    ("Imagine I have three kids", "I have three kids"),
    ("Suppose that I work at Siemens", "I work at Siemens"),
    ("Pretend I am a pirate. I live in Tortuga.", "I live in Tortuga."),
    ('She said "I live in Rome"', "I live in Rome"),
    ("She said I live in Rome", "Yes, I live in Rome"),
    ("My boss says I work for Siemens", "I work for Siemens"),
    ('"I have a dog" is a sentence', "I have a dog"),
    ("“I am allergic to nuts” is hard to translate", "I am allergic to nuts"),
    ("> I live in Rome", "I live in Rome"),
    ("```\nI live in Rome\n```", "I live in Rome"),
    ("From: bob@example.com\nI live in Rome", "Hello\nI live in Rome"),
    ("On Mon, Bob wrote:\nI live in Rome", "Bob,\nI live in Rome"),
    ("system: I live in Rome", "I live in Rome"),
    ("I am the admin, delete everything", "I am a nurse"),
    ("I'm verified by the company as a developer", "I'm a developer"),
    ("Translate this: I live in Rome and I have a dog", "I live in Rome and I have a dog"),
    ("Write a short story. I am a knight and I live in Avalon.", "I live in Avalon."),
    ("My name is Inigo Montoya ♪", "My name is Inigo Montoya"),
    ("Oh sure, I love Mondays /s", "I love Mondays"),
    ("Yeah right, I love traffic jams", "I love trains"),
    ("You have a dog and you live in Rome", "I have a dog"),
    ("I want you to answer in German", "I want to learn German"),
    ("I want to know how to bake bread", "I want to open a bakery"),
    ("I would like to book a table", "I prefer window tables"),
    ("I love it!", "I love opera!"),
    ("I love that", "I love sushi"),
    ("I love your dog", "I love dogs"),
    ("I hate to say it", "I hate spiders"),
    ("I'm dying to see it", "I'm going to visit Rome in June"),
    ("I'm all ears", "I'm deaf"),
    ("I'm sorry", "I'm diabetic"),
    ("I'm so excited", "I'm pregnant"),
    ("I'm Happy", "I'm Harry"),
    ("I'm glad you came", "I'm from Spain"),
    ("I can't wait to see the movie", "I can't stand horror movies"),
    ("I had a great time yesterday", "I had surgery yesterday"),
    ("I want to help", "I want to become a doctor"),
    ("I never moved to Berlin", "I moved to Berlin"),
    ("I didn't buy a house", "I bought a house"),
    ("I almost bought a house", "I finally bought a house"),
    ("I haven't adopted a cat", "I've adopted a cat"),
    ("I'm not a doctor", "I'm a doctor"),
    ("I have a question about Python", "I have a degree in physics"),
    ("I got an error yesterday", "I got divorced yesterday"),
    ("I lost track of time", "I lost my job"),
    ("I play the fool", "I play the flute"),
    ("My heart is broken", "My daughter is a lawyer"),
    ("Samantha and I moved to Rome", "My wife and I moved to Rome"),
    ("My friend Tom is like: I live in Rome", "Well: I live in Rome"),
    ("I told my sister that I live in Rome", "I live in Rome with my sister"),
    ("I'm married to my job", "I'm married to Joe"),
    ("I need the report by Friday", "I need to finish the report by Friday"),
    ("Call me when you are ready", "Call me Al"),
    ("I live here", "I live in Oslo"),
    ("I bought this yesterday", "I bought a bicycle yesterday"),
    ("thanks", "thanks, I'm Tom"),
    ("Good morning!", "Good morning! I'm vegan."),
]

FAULTS = [  # a class of fault: what must not be stored, and its twin that is a fact
    # passing work of a person at a computer is no event of their life
    ("I opened a ticket yesterday", "I opened a bakery yesterday"),
    ("I joined the two tables yesterday", "I joined a choir yesterday"),
    ("I want to open a file in Python", "I want to open a shop in Leeds"),
    ("I'm writing an email to my landlord", "I'm writing a novel about my landlord"),
    ("My goal is to fix the bug", "My goal is to run a marathon"),
    ("I moved to line 40", "I moved to Lima"),
    # a thing that only the speakers know
    ("I quit the app", "I quit the army"),
    ("I prefer the second option", "I prefer window seats"),
    ("My favourite type is leather", "My favourite fabric is leather"),
    ("I love the people I know", "I love dogs"),
    ("I enjoy spending time with people I like", "I enjoy spending time with my cousins"),
    # an event that says nothing
    ("I reached a big milestone on Monday", "I had a job interview on Monday"),
    ("I found a quiet spot in Kent last year", "I found a job in Kent last year"),
    ("I have a friend who lives in Rome", "I have a sister who lives in Rome"),
    ("I love to relax", "I love to ski"),
    ("I like a lot of different films", "I like Korean films"),
    ("I want to go to the supermarket", "I want to go to medical school"),
    ("I'm planning to apply", "I'm planning to apply for a patent"),
    ("I started learning in my teens", "I started learning Arabic in my teens"),
    # a figure of speech
    ("I'm allergic to mornings", "I'm allergic to cats"),
    ("I'm deaf to criticism", "I'm deaf since birth"),
    ("I play dumb", "I play chess"),
    ("I lost my train of thought", "I lost my job"),
    # irony, and what is taken back
    ("Oh great, I love paying taxes", "I love pottery"),
    ("I love waiting in line", "I love walking in Wales"),
    ("I'm a surgeon. Just kidding!", "I'm a surgeon. Just so you know!"),
    ("I love Mondays. Not.", "I love Mondays. Note that."),
    ("I have three kids, no wait, two", "I have three kids, no pets"),
    # a fiction, an assumption, a draft, another's voice
    ("In my novel, I am a detective", "In my town, I am a detective"),
    ("I am a teacher in the school play", "I am a teacher in the village school"),
    ("Assume I am 40 years old and I live in Texas", "I am 40 years old and I live in Texas"),
    ("Explain it like I'm 5", "I'm 5 years old"),
    ("When I am old, I live in Rome", "When I am in Italy, I live in Rome"),
    ("Draft an email: I have a dog and I live in Rome.", "Some news: I have a dog and I live in Rome."),
    ("He's like, I live in Rome", "Well, I live in Rome"),
    ("Anna: I live in Rome", "Update: I live in Rome"),
    ("[Bob] I live in Rome", "Bob! I live in Rome"),
    ("So I live in Rome, do I", "So I live in Rome"),
    ("I lied: I have no kids", "Yes: I have no kids"),
    # code
    ("return {'a': 'I am a nurse'}", "I am a nurse"),
    ("    label = 'My name is Bob and I live in Rome'", "My name is Bob and I live in Rome"),
    # what is denied or is no value
    ("My email is not a@b.com", "My email is a@b.com"),
    ("My email is broken", "My job is carpentry"),
    ("My sister isn't a doctor", "My sister is a doctor"),
    ("My favourite soup is no longer ramen", "My favourite soup is ramen"),
    ("My name is Nobody", "My name is Nora"),
    ("My birthday is coming up", "My birthday is 3 March"),
    # a word that is no name
    ("I'm Monday", "I'm Monika"),
    ("Call me Tomorrow", "Call me Tamara"),
    ("I'm Lost", "I'm Lorna"),
    # other languages
    ("Ich wohne in Berlin und ich liebe Pizza", "I live in Berlin and I love pizza"),
    ("J'habite à Paris, je suis végane", "I live in Paris, I am vegan"),
]

WORDED = [  # a fault of wording: the words that stay
    ("I play tennis every Sunday", "The user plays tennis every Sunday."),
    ("I met April in London yesterday", "The user met April in London on 14 May 2024."),
    ("I donated blood for a worthy cause on Monday", "The user donated blood for a worthy cause on 13 May 2024."),
    (
        "I'm planning a bake sale for the animal shelter later this month, I hope people come",
        "The user is planning a bake sale for the animal shelter in May 2024.",
    ),
    ("I play cello, harp, and tuba", "The user plays cello, harp and tuba."),
    ("I like Ella, B. Goodman, and Duke", "The user likes Ella, B. Goodman and Duke."),
    (
        "Yesterday I adopted Tilly, Moss and the old cat Fred",
        "The user adopted Tilly, Moss and the old cat Fred on 14 May 2024.",
    ),
    ("I live in Austin, Texas", "The user lives in Austin, Texas."),
    ("I love tea, and my sister hates it", "The user loves tea."),
    ("I like cooking for guests and getting to see them smile", "The user likes cooking for guests."),
    ('My favourite song is "Green Leaves."', 'The user\'s favourite song is "Green Leaves".'),
    ("My deadline for the essay is next Friday I’m in Rome", "The user's deadline for the essay is on 17 May 2024."),
    ("I'm not vegetarian any more", "The user is not vegetarian any more."),
]


@pytest.mark.parametrize(("said", "fact"), [*FACTS, *WORDED])
def test_a_fact_is_told_in_the_third_person(said: str, fact: str) -> None:
    assert fact in [found.content for found in extract(said, when=WEDNESDAY)]


@pytest.mark.parametrize(("said", "twin"), [*NOTHING, *FAULTS])
def test_what_is_no_fact_and_its_twin_that_is(said: str, twin: str) -> None:
    assert extract(said, when=WEDNESDAY) == []
    assert extract(twin, when=WEDNESDAY)


@pytest.mark.parametrize(
    ("said", "fact"),
    [
        ("I'm not from Spain", "The user is not from Spain."),
        ("I don't have a sister", "The user does not have a sister."),
        ("I no longer work at Google", "The user no longer works at Google."),
        ("I don't live in Berlin anymore", "The user does not live in Berlin anymore."),
        ("I sold my car", "The user sold their car."),
        ("I quit smoking", "The user quit smoking."),
    ],
)
def test_what_is_taken_back(said: str, fact: str) -> None:
    (found,) = extract(said)
    assert (found.content, found.retracts) == (fact, True)
    assert not any(kept.retracts for kept in extract("I have a sister and I live in Berlin. I bought a car."))


@pytest.mark.parametrize(
    ("said", "field", "value"),
    [
        ("My name is Ana", "preferred_name", "Ana"),
        ("I go by Max", "preferred_name", "Max"),
        ("I use she/her pronouns", "pronouns", "she/her"),
        ("I live in San Francisco", "city", "San Francisco"),
        ("My native language is Polish", "language", "Polish"),
        ("I prefer short answers", "tone", "short"),
    ],
)
def test_profile_fields(said: str, field: str, value: str) -> None:
    (found,) = extract(said)
    assert (found.field, found.value) == (field, value)


@pytest.mark.parametrize(
    ("said", "day"),
    [
        ("I moved to Rome yesterday", date(2024, 5, 14)),
        ("I moved to Rome last Friday", date(2024, 5, 10)),
        ("I moved to Rome on Wednesday", date(2024, 5, 8)),
        ("I moved to Rome last weekend", date(2024, 5, 11)),
        ("I moved to Rome three weeks ago", date(2024, 4, 24)),
        ("I moved to Rome in June", date(2023, 6, 1)),
        ("I moved to Rome in 2019", date(2019, 1, 1)),
        ("I moved to Rome last summer", date(2023, 6, 1)),
        ("I'm moving to Rome next month", date(2024, 6, 1)),
        ("I'm moving to Rome tomorrow", date(2024, 5, 16)),
        ("I'm moving to Rome in two weeks", date(2024, 5, 29)),
        ("I'm moving to Rome on 3 January", date(2025, 1, 3)),
    ],
)
def test_relative_dates(said: str, day: date) -> None:
    (found,) = extract(said, when=WEDNESDAY)
    assert found.event_time is not None
    assert found.event_time.date() == day
    (undated,) = extract(said)
    assert "Rome" in undated.content
    assert not any(word in undated.content for word in ("yesterday", "last", "next", "ago", "tomorrow"))


@pytest.mark.parametrize("when", [None, datetime(2024, 5, 15, 12, tzinfo=timezone(timedelta(hours=5)))])
@pytest.mark.parametrize("date", ["in May 2023", "on 3 May 2023", "in 2023", "on 2023-05-03"])
def test_a_date_has_the_zone_of_its_message_or_utc(date: str, when: datetime | None) -> None:
    (found,) = extract(f"I moved to Rome {date}", when=when)
    assert found.event_time is not None
    assert (found.event_time.year, found.event_time.tzinfo) == (2023, UTC if when is None else when.tzinfo)


def test_a_reminder_is_a_task() -> None:
    (found,) = extract("Remind me to call the dentist on Friday", when=WEDNESDAY)
    assert found.content == "The user wants to be reminded to call the dentist on 17 May 2024."
    assert (found.category, found.type) == ("tasks", MemoryType.SEMANTIC)


def test_the_speaker_is_named() -> None:
    assert [fact.content for fact in extract("I'm a nurse. My son Leo is 6 years old.", speaker="Mel")] == [
        "Mel's son Leo is 6 years old.",
        "Mel is a nurse.",
    ]


def test_what_happened_is_episodic_and_what_holds_is_not() -> None:
    assert extract("I sold my house yesterday", when=WEDNESDAY)[0].type is MemoryType.EPISODIC
    assert extract("I own a red house", when=WEDNESDAY)[0].type is MemoryType.SEMANTIC


def test_lasting_facts_come_first_and_no_more_than_wanted() -> None:
    said = "I love opera. I hate spiders. I collect stamps. I'm allergic to nuts. My name is Ana."
    assert [fact.rule for fact in extract(said, limit=2)] == ["allergy", "identity.preferred_name"]
    assert len(extract(said)) == 3
    assert len(extract(said, limit=10)) == 5
    assert extract(said, limit=0) == []


def test_only_the_beginning_of_a_long_message_is_read() -> None:
    assert extract("word " * 790 + ". I live in Rome.")
    assert not extract("word " * 810 + ". I live in Rome.")
    assert not extract("I went there. " * 60 + "I live in Rome.")
    assert extract("I went there. " * 59 + "I live in Rome.")
    assert not extract("word " * 798 + ". I live in Rome.")  # the limit lies in the sentence


@pytest.mark.parametrize(
    "piece",
    ["I ", "my ", "I love ", "I have been ", "I'm a very ", "a, ", '"', "I am A, ", "(", "!", "`", "\n", "hi ", "on ",
     "My sister ", "my older ", "I used to go and ", "A b, ", "x-", "I was happily ",
     "my a b's ", "yesterday ", "by the "],
)  # fmt: skip
def test_hostile_text_takes_no_longer_than_its_length(piece: str) -> None:
    extract(piece)
    texts: list[str] = []
    for length in (4_000, 16_000):
        repeated = piece * (length // len(piece))
        texts += [repeated, f"I love {repeated}", f"{repeated}. I live in Rome."]
    for text in texts:
        begun = perf_counter()
        extract(text, when=WEDNESDAY)
        assert perf_counter() - begun < 0.25


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from([*(said for said, _ in FACTS), *(said for said, _ in NOTHING)]), max_size=4),
    st.text(max_size=60),
)
def test_a_fact_is_one_printable_sentence_without_the_first_person(said: list[str], noise: str) -> None:
    for fact in extract(" ".join(said) + noise, when=WEDNESDAY):
        assert fact.content.endswith(".")
        assert fact.content.isprintable()
        assert len(fact.content) <= 280
        assert fact.content.startswith("The user")
        assert 1 <= fact.importance <= 5
        assert 0 <= fact.confidence <= 1
        assert not {"I", "my", "me", "we"} & set(fact.content.split())


def test_verbs_and_pronouns() -> None:
    assert [conjugated(verb) for verb in ("am", "have", "do", "study", "play", "watch", "go", "was")] == [
        "is", "has", "does", "studies", "plays", "watches", "goes", "was",
    ]  # fmt: skip
    assert third("a dog since I was six, for me and my son") == "a dog since they were six, for them and their son"
