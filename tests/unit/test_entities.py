"""Entities: what a text mentions, of which kind and under which key."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplane.domain.language.entities import MAX_KEY_CHARS, MAX_MENTIONS, key_of, mentions, query_names

CASES = [
    ("My sister Anna lives in Oslo.", ["person:anna", "place:oslo"]),
    ("My sister lives in a city.", []),
    ("Dr. Lee works at Siemens.", ["person:lee", "organisation:siemens"]),
    ("The doctor works at home.", []),
    ("Zadie likes tea.", ["person:zadie"]),
    ("Coffee is great.", []),
    ("Yesterday Anna met Bob on Monday in May.", ["person:anna", "person:bob"]),
    ("Yesterday I met nobody on Monday.", []),
    ("The user speaks German and lives in Berlin.", ["place:berlin"]),
    ("The user speaks German.", []),
    ("I'm sure Acme, Inc hired Maria de la Cruz.", ["organisation:acme, inc", "person:maria de la cruz"]),
    ("University of Oslo and Deutsche Bank", ["organisation:university of oslo", "organisation:deutsche bank"]),
    ("Ask Kenji about American Airlines.", ["person:kenji", "organisation:american airlines"]),
    ("Ask American users.", []),
    ("What does Anna's brother Tom like?", ["person:anna", "person:tom"]),
    ("The Apollo project is late. Project Hermes too.", ["project:apollo", "project:project hermes"]),
    ("PostgreSQL is fast and IBM agrees.", ["name:postgresql", "name:ibm"]),
    ("The API is fast.", []),
    ("Meeting Anna tomorrow.", ["person:anna"]),
    ("Anna Lee's Toyota Corolla broke", ["person:anna lee", "name:toyota corolla"]),
    ("his friend, Zora, came", ["person:zora"]),
    ("She went to Springfield.", ["place:springfield"]),
    (
        "Read https://Example.COM/Path/X. Or (www.foo.org/bar).",
        ["url:https://example.com/path/x", "url:www.foo.org/bar"],
    ),
    ("see http:// and www.", []),
    ("mail anna@Example.com or @bob_s about #Launch", ["email:anna@example.com", "handle:@bob_s", "hashtag:#launch"]),
    ("issue #1 in colour #fff", []),
    ("on 2025-05-12 and 12.5.2025", ["date:2025-05-12"]),
    ("12 May 2025", ["date:2025-05-12"]),
    ("on May 12th", ["date:--05-12"]),
    ("in March 2024", ["date:2024-03"]),
    ("on 2025-13-12, and you may 5 people", []),
]


@pytest.mark.parametrize(("text", "expected"), CASES, ids=[case[0][:30] for case in CASES])
def test_what_a_text_mentions(text: str, expected: list[str]) -> None:
    found = mentions(text)
    assert [f"{one.kind}:{one.key}" for one in found] == expected
    assert query_names(text) == tuple(one.key for one in found)


def test_a_mention_keeps_the_name_as_written_and_a_url_its_path() -> None:
    assert [one.name for one in mentions("Dr. Lee wrote https://Example.COM/Path")] == [
        "Dr. Lee",
        "https://example.com/Path",
    ]


def test_a_kind_known_in_one_place_holds_everywhere() -> None:
    assert [(one.kind, one.key) for one in mentions("We like Zorg. He works at Zorg.")] == [("organisation", "zorg")]


@pytest.mark.parametrize(
    ("name", "key"),
    [("The  Beatles", "beatles"), ("Dr. Lee", "lee"), ("Anna's", "anna"), ("Straße", "strasse"), ("The", "the")],
)
def test_keys(name: str, key: str) -> None:
    assert key_of(name) == key


def test_at_most_twenty_mentions_with_keys_of_bounded_length() -> None:
    text = " ".join(f"#tag{n}" for n in range(40)) + " #" + "a" * 400
    assert len(mentions(text)) == MAX_MENTIONS
    assert len(mentions("#" + "a" * 400)[0].key) == MAX_KEY_CHARS


@given(
    st.lists(
        st.sampled_from(
            [
                "Anna",
                "Dr. ",
                "'s ",
                " of ",
                "May ",
                "12 ",
                "2024",
                "the ",
                "@a",
                "#b",
                "www.a.b",
                " ",
                ".",
                "İ",
                "ß",
                ", Inc",
                "A.",
                "&",
                "Monday",
            ]
        )
    ).map("".join)
)
def test_mentions_are_deterministic_distinct_and_bounded(text: str) -> None:
    found = mentions(text)
    assert found == mentions(text)
    assert len({(one.kind, one.key) for one in found}) == len(found) <= MAX_MENTIONS
    assert all(one.key and len(one.key) <= MAX_KEY_CHARS for one in found)


HOSTILE = [
    "1",
    "1.",
    "1-",
    "a@",
    "@",
    "A",
    "Aa ",
    "A.",
    "A. ",
    "Aa of ",
    "http://",
    "http://a)",
    ")",
    "#",
    "May 1 ",
    "A'",
    "A-",
    " ",
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_text_takes_linear_time(piece: str) -> None:
    started = time.process_time()
    mentions((piece * 16_000)[:16_000])
    mentions("http://a.b/" + (piece * 16_000)[:16_000])
    assert time.process_time() - started < 2
