"""Personal data: what is found, what only looks like it, and what redaction leaves."""

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplane.domain.privacy.pii import Pii, find, kinds, redact

CASES = [
    # what is found, in «», and beside it what only looks like it
    ("email", "write to «anna.lee+x@example.co.uk» now", "ping @anna about pip@latest"),
    ("email", "«name (at) example (dot) com»", "look at example.com (nice)"),
    ("email", "«name at example dot com»", "arrive at noon and connect the dot with me"),
    ("email", "«name [at] example.com»", "an array [at] the end"),
    ("phone", "call «+49 30 1234567» now", "C++ 17 and +5 points"),
    ("phone", "«(415) 555-2671»", "(415) people"),
    ("phone", "«415-555-2671»", "order 415-555-2671"),
    ("phone", "«030 1234567» is hers", "12 345 678 people"),
    ("phone", "«0171/1234567»", "05/06/2024"),
    ("phone", "«06 12 34 56 78»", "01.02.2024 12:30"),
    ("phone", "«020 7946 0958»", "2024-05-01 12:30:45"),
    ("phone", "phone number is «5551234567»", "the number 5551234567"),
    ("phone", "call me at «555-1234»", "pages 555-1234"),
    ("phone", "dial «+1 415 555 2671»", "+1000000000 users"),
    ("address", "at «12 Baker Street»", "the 5 busy streets"),
    ("address", "«221B Baker Street, London NW1 6XE»", "in 2019 Main Street shops"),
    ("address", "«Hauptstrasse 5, 10115 Berlin»", "Spring 5 and Engineering 101"),
    ("address", "«1600 Pennsylvania Ave NW, Washington, DC 20500»", "5 Ways to Win"),
    ("address", "«12 rue de Rivoli, 75001 Paris»", "2 places to go"),
    ("address", "«Unter den Linden 5, 10117 Berlin»", "Windows 11, 10117 users"),
    ("address", "«Via Roma 5»", "Via mail 5"),
    ("address", "«P.O. Box 123»", "a box of 123"),
    ("address", "she lives at «12 baker street»", "she ate at 12 on baker day"),
    ("card", "«4111 1111 1111 1111» 12/27", "4111 1111 1111 1112"),
    ("card", "«378282246310005»", "1700000000000 ms"),
    ("iban", "«DE89 3704 0044 0532 0130 00» is it", "DE89 3704 0044 0532 0130 01"),
    ("iban", "«GB29NWBK60161331926819»", "GB29NWBK6016133192681"),
    ("id_number", "«123-45-6789»", "000-45-6789"),
    ("id_number", "passport number is «C01X00T47»", "passport renewed 2024"),
    ("id_number", "tax id «12 345 678 901»", "tax of 12 345 678"),
    ("ip", "host «192.168.10.1» up", "version 1.2.3.4"),
    ("ip", "host «10.0.0.1»", "999.1.1.1 and 1.2.3.4.5"),
    ("ip", "«fe80::1ff:fe23:4567:890a»", "12:30:45 std::vector"),
    ("ip", "«2001:db8:85a3:0:0:8a2e:370:7334»", "1:2:3:4:5:6:7"),
    ("birth_date", "born in Oslo, Norway, on «12 May 1990»", "born in 1990"),
    ("birth_date", "birthday is «May 12th»", "birthday party on 12 May 2025"),
    ("birth_date", "date of birth: «1990-05-12»", "date of issue: 1990-05-12"),
    ("secret", "password is «hunter2»", "password is required"),
    ("secret", "password: «swordfish», ok", "password: ****"),
    ("secret", "api_key = «abcdef1234567890»", "the key is small"),
    ("secret", "Bearer «abcdef123456»", "bearer of bad news"),
    ("secret", "use «sk-abcdefghijklmnopqrstuv»", "task-abcdefghijklmnopqrstuv"),
    ("secret", "postgres://«bob:pw@db.example.com»/x", "postgres://db.example.com/x"),
    ("secret", "«-----BEGIN PRIVATE KEY-----\nab\n-----END PRIVATE KEY-----» x", "-----BEGIN PUBLIC KEY-----"),
    ("secret", "«-----BEGIN RSA PRIVATE KEY-----\nab»", "the private key"),
    ("phone", "«＋４９ ３０ １２３４５６７»", "１２３"),  # noqa: RUF001 - full-width digits on purpose
    ("card", "«٤١١١ ١١١١ ١١١١ ١١١١»", "٤١١١ ١١١١ ١١١١ ١١١٢"),  # noqa: RUF001 - Arabic-Indic digits on purpose
    ("card", "«4111\u200b1111\u200b1111\u200b1111»", "4111\u200b1111"),
]


@pytest.mark.parametrize(("kind", "marked", "near_miss"), CASES, ids=[f"{c[0]}-{n}" for n, c in enumerate(CASES)])
def test_a_kind_is_found_and_its_near_miss_is_not(kind: str, marked: str, near_miss: str) -> None:
    start, end = marked.index("«"), marked.index("»") - 1
    text = marked.replace("«", "").replace("»", "")
    assert [(found.kind.value, found.start, found.end) for found in find(text)] == [(kind, start, end)]
    assert redact(text, list(Pii)) == f"{text[:start]}[{kind}]{text[end:]}"
    assert kinds(near_miss) == ()


def test_kinds_are_sorted_and_each_once() -> None:
    assert kinds("b@example.com, a@example.com, 10.0.0.1, 12 Baker Street") == ("address", "email", "ip")


def test_only_the_kinds_asked_for_are_redacted() -> None:
    assert redact("a@example.com on 10.0.0.1", {Pii.IP}) == "a@example.com on [ip]"


def test_the_longest_of_overlapping_finds_stands() -> None:
    assert [found.kind for found in find("password: anna@example.com!x9")] == [Pii.SECRET]


PIECES = st.sampled_from(
    [
        "4111 1111 1111 1111",
        "+49 30 1234567",
        "a@b.com",
        "(at)",
        "(dot)",
        " at ",
        " dot ",
        "password: ",
        "born on 12 May 1990",
        "12 Baker Street",
        "[email]",
        ", ",
        "1",
        "0",
        "7",
        ".",
        "-",
        " ",
        "/",
        "(",
        ")",
        ":",
        "10.0.0.1",
        "::1",
        "DE89 3704 0044 0532 0130 00",
        "phone ",
        "Aa",
        "Berlin",
        "10115",
        "sk-abcdefghijklmnopqrst",
        "\u200b",
        "٣",
        "İ",
        "key=",
        "bearer ",
        "passport ",
        "://",
        "@",
        "030 123456",
        "\n",
    ]
)


@given(st.lists(PIECES, max_size=14).map("".join) | st.text(max_size=60))
def test_spans_are_in_range_apart_and_redaction_leaves_nothing(text: str) -> None:
    found = find(text)
    assert all(0 <= one.start < one.end <= len(text) for one in found)
    assert all(left.end <= right.start for left, right in pairwise(found))
    assert find(redact(text, list(Pii))) == ()


HOSTILE = [
    "1",
    "1 ",
    "1.",
    "1-",
    "0 ",
    "01 ",
    "@",
    "a@",
    "a@b.",
    "A",
    "Aa ",
    "a.",
    "a at b dot ",
    "+1",
    "12:",
    "DE89 ",
    "12 Aa ",
]
HOSTILE += [
    "4111 ",
    "born in Oslo ",
    "password is ",
    "phone ",
    "-----BEGIN PRIVATE KEY-----",
    "://a:b",
    "\u200b1",
    "x_",
    "(",
    " ",
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_text_takes_linear_time(piece: str) -> None:
    started = time.process_time()
    redact((piece * 16_000)[:16_000], list(Pii))
    assert time.process_time() - started < 2
