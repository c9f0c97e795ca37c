"""Merges of users by the command line and the client: listed with until when each can be undone."""

import json

from integration.commands import Served
from memplane.client import MemplaneSync


def test_merges_are_listed_and_undone(served: Served, user: str) -> None:
    for nth in range(2):
        stored = served.run("remember", "Ana plays chess.", "--user", f"{user}-anon{nth}", "--category", "event")
        assert stored.code == 0, stored.err
        assert served.run("users", "merge", f"{user}-anon{nth}", "--into", user, "--yes").code == 0
    listed = served.run("users", "merges", "--user", user, "--json").document
    assert [each["user_id"] for each in listed["items"]] == [f"{user}-anon1", f"{user}-anon0"]
    told = served.run("users", "merges", "--user", f"{user}-anon0")
    assert f"{listed['items'][1]['revertible_until'][:10]}" in told.out
    assert f"{user}-anon1" not in told.out
    page = served.run("users", "merges", "--user", user, "--limit", "1", "--json").document
    assert len(page["items"]) == 1
    rest = served.run("users", "merges", "--user", user, "--cursor", page["next"], "--json").document
    assert [each["user_id"] for each in rest["items"]] == [f"{user}-anon0"]
    refused = served.run("remember", "Ana plays golf.", "--user", f"{user}-anon0", "--category", "event")
    assert (refused.code, f"'{user}'" in refused.err) == (1, True)

    assert served.run("users", "unmerge", f"{user}-anon0", "--yes").code == 0
    with MemplaneSync(served.url, json.loads((served.data / "keys.json").read_text())["admin"]) as client:
        known = list(client.all_user_merges(user_id=user, page_size=1))
        assert [each.undone_at is None for each in known] == [True, False]
    absent = served.run("users", "unmerge", f"{user}-anon0", "--yes")
    assert (absent.code, "`memplane users merges`" in absent.err) == (1, True)
    assert served.run("users", "merges", "--user", f"{user}-nobody").out.startswith("No user was merged")
