"""What tests of the write gateway say and ask."""

from typing import Any

from support.callers import USER, Caller

Json = dict[str, Any]


def write(caller: Caller, content: str, category: str = "event", **fields: Any) -> Json:  # noqa: ANN401 - of the memory
    """Store a memory, whatever becomes of it."""
    response = caller.post("/v1/memories", {"user_id": USER, "category": category, "content": content} | fields)
    assert response.status_code in {200, 201}, response.text
    return dict(response.json())


def say(caller: Caller, memory: str, verb: str, **fields: Any) -> Json:  # noqa: ANN401 - of the verb
    """Say a verb of a memory, which must be right."""
    response = caller.post(f"/v1/memories/{memory}/{verb}", fields)
    assert response.status_code == 200, response.text
    return dict(response.json())


def texts(caller: Caller, **fields: Any) -> set[str]:  # noqa: ANN401 - of the question
    """The contents that a question brings."""
    return {item["text"].split("] ", 1)[1] for item in caller.ask(top_k=50, return_="bullets", **fields)["items"]}


def events(caller: Caller, memory: str) -> list[str]:
    """What was done to a memory, newest first."""
    return [entry["event"] for entry in caller.get(f"/v1/memories/{memory}/history").json()["items"]]
