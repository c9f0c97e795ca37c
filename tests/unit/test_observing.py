"""Runs of tools: what they are found by, and which of their words are secrets."""

import pytest

from memplane.domain.memory.tool_runs import HIDDEN, LONGEST, is_own, line, without_secrets


@pytest.mark.parametrize("tool", ["memory_query", "memory.query", "Memory-Remember", "memory:get"])
def test_a_memory_s_own_tools(tool: str) -> None:
    assert is_own(tool)


@pytest.mark.parametrize("tool", ["search", "memoryless", "read_memory_dump", "memory"])
def test_other_tools(tool: str) -> None:
    assert not is_own(tool)


@pytest.mark.parametrize(
    "name",
    [
        "password",
        "db_passwd",
        "API_KEY",
        "apiKey",
        "access_token",
        "Authorization",
        "clientSecret",
        "Cookie",
        "private-key",
    ],
)
def test_what_is_named_like_a_secret_is_hidden(name: str) -> None:
    assert without_secrets({name: "canary", "city": "Oslo"}) == {name: HIDDEN, "city": "Oslo"}
    assert without_secrets({"deep": [{name: 12345}]}) == {"deep": [{name: HIDDEN}]}
    assert without_secrets({name: {"user": "ana", "word": ["canary"]}}) == {name: HIDDEN}
    assert without_secrets({name: ["canary"]}) == {name: HIDDEN}


@pytest.mark.parametrize(
    "text",
    [
        "curl -H 'Authorization: Bearer canary.canary-canary'",
        "export KEY=sk-canarycanarycanary",
        "postgresql://app:canary@host/db",
        "ghp_canarycanarycanary was used",
        "mp_abc_canarycanarycanary",
    ],
)
def test_what_has_the_form_of_a_secret_is_hidden(text: str) -> None:
    hidden = str(without_secrets(text))
    assert "canary" not in hidden.replace("canary was", "")
    assert HIDDEN in hidden


@pytest.mark.parametrize(
    "value",
    ["The token ring is slow.", "https://example.org/a:b@c", {"author": "Ana", "tokens_used": True}, [1, None, 2.5]],
)
def test_other_words_stay(value: object) -> None:
    assert without_secrets(value) == value


def test_a_run_is_one_line() -> None:
    told = line(
        "search_flights", {"to": "Oslo", "seats": 2, "filters": {"direct": True}}, "Three were found. Details …"
    )
    assert told == "search_flights was run with to Oslo, seats 2: Three were found."
    assert line("ping", {}, "ok") == "ping was run: ok"
    long = line("read", {"path": "x" * 500}, "y " * 500)
    assert len(long) <= LONGEST
    assert "\n" not in line("read", {"path": "a\nb"}, "one\ntwo")
