"""`memplane doctor` names the keys that may record what people say."""

from pathlib import Path

from integration.commands import run

CHECK = "keys with turns:user"


def test_keys_that_may_record_what_people_say_are_named(tmp_path: Path) -> None:
    data = ("--storage", "sqlite", "--data", str(tmp_path / "data"))

    def made(agent: str, *scopes: str) -> str:
        given = [part for scope in scopes for part in ("--scope", scope)]
        return str(run("keys", "create", "--agent", agent, *given, *data, "--json").document["id"])

    def told() -> tuple[str, str]:
        found = {each["check"]: each for each in run("doctor", *data, "--json").document["checks"]}[CHECK]
        return found["status"], found["found"]

    assert told() == ("skipped", "not made yet; `memplane init` or `memplane serve` makes it")
    assert run("init", *data).code == 0
    (first,) = (
        key["id"] for key in run("keys", "list", *data, "--json").document["items"] if key["agent"] == "supervisor"
    )
    assert told() == ("ok", f"default/{first} (supervisor)")
    made("supervisor")
    assert run("keys", "revoke", first, *data).code == 0
    status, found = told()
    assert (status, "nothing is drawn from it" in found) == ("warning", True)
    key = made("supervisor", "memory:write", "turns:user")
    assert told() == ("ok", f"default/{key} (supervisor)")
    made("planner", "memory:write", "turns:user")
    assert told() == ("ok", f"default/{key} (supervisor); 1 more, which the policy lets record no turns")
    assert run("keys", "revoke", key, *data).code == 0
    assert told() == ("ok", "none; 1 more, which the policy lets record no turns")
