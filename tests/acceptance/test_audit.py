"""The chain over the history: every kind of tampering is found, and named; erasing and purging are none."""

from collections.abc import Callable
from uuid import UUID

import pytest

from memplane.domain.identity.principal import KeyScope
from memplane.domain.privacy.audit_chain import Head
from support.callers import USER, Caller, Json, Tenant, refused
from support.nights import Night
from support.telling import say, write

THINGS = (
    "The user owns a piano.", "Boats moor at the northern pier.", "Tax returns are due in May.",
    "Ana met Ben in Vienna.", "Green tea helps against headaches.", "Trains to Graz leave hourly.",
)  # fmt: skip
"""So unlike each other that none is related to another: each is one entry."""


@pytest.fixture
def seal(tenant: Tenant) -> Callable[[], None]:
    """Seals what was added."""
    night = Night(tenant)
    return lambda: night.run("seal") and None


@pytest.fixture
def sealed(tenant: Tenant, supervisor: Caller, seal: Callable[[], None]) -> Tenant:
    """A tenant with a sealed history, in two batches."""
    for thing in THINGS[:3]:
        write(supervisor, thing)
    seal()
    for thing in THINGS[3:]:
        write(supervisor, thing)
    seal()
    return tenant


def verify(admin: Caller, **params: object) -> Json:
    response = admin.get("/v1/admin/audit", **params)
    assert response.status_code == 200, response.text
    return dict(response.json())


def at(tenant: Tenant, position: int) -> UUID:
    """The entry at a position."""
    rows = tenant.rows("SELECT id FROM history WHERE tenant_id = %(tenant)s AND position = %(at)s", at=position)
    return UUID(str(rows[0]["id"]))


def change(tenant: Tenant, what: str, position: int) -> None:
    """Tamper with the entry at a position, as one who owns the schema."""
    tenant.rows(f"{what} WHERE tenant_id = %(tenant)s AND position = %(at)s", at=position)


class TestClean:
    """What was left alone."""

    def test_nothing_is_wrong(self, sealed: Tenant, supervisor: Caller, admin: Caller) -> None:
        found = verify(admin)
        assert (found["fault"], found["verified"], found["sealed"], found["unsealed"]) == (None, 6, 6, 0)
        write(supervisor, "Lamps flicker at night.")
        assert verify(admin, anchor=found["head"])["unsealed"] == 1
        assert Head.parse(found["head"]).position == 6
        assert sealed.count("history_seals") == 2

    def test_part_by_part(self, sealed: Tenant, admin: Caller) -> None:
        change(sealed, "UPDATE history SET new_ref = 'forged'", 5)
        parts, after = [], 0
        while after is not None:
            part = verify(admin, after=after, limit=2)
            parts.append((part["verified"], part["fault"] and part["fault"]["position"]))
            after = part["next"]
        assert parts == [(2, None), (2, None), (0, 5)]

    def test_erasing_and_purging_between_seals_is_no_tampering(
        self, sealed: Tenant, supervisor: Caller, admin: Caller, seal: Callable[[], None]
    ) -> None:
        anchor = verify(admin)["head"]
        gone = write(supervisor, "Lamps flicker at night.", user_id="ben")["id"]
        supervisor.delete(f"/v1/memories/{gone}")
        assert admin.post("/v1/admin/purge", {"memory_id": gone, "early": True}).status_code == 200
        assert admin.post(f"/v1/users/{USER}/erase", {"confirm": USER}).json()["finished"]
        for _ in range(2):
            found = verify(admin, anchor=anchor)
            assert found["fault"] is None
            seal()
        assert found["sealed"] > 6
        rows = sealed.rows("SELECT * FROM history WHERE tenant_id = %(tenant)s AND erased_by IS NOT NULL")
        assert len(rows) >= len(THINGS) + 2
        assert {(row["salt"], row["new_ref"]) for row in rows} == {(None, None)}
        change(sealed, "UPDATE history SET new_ref = 'forged'", 2)  # the control: what lost its words gets none again
        assert verify(admin)["fault"]["position"] == 2


class TestTampering:
    """Each of the ways, done in the database itself."""

    @pytest.mark.parametrize(
        "what",
        [
            "new_ref = 'forged'", "actor = 'agent:other'", "event = 'DELETE'", "policy_hash = 'sha256:0'",
            "meta = '{}'",
            "of_user = NULL", "old_ref = NULL, new_ref = NULL, meta = '{}', salt = NULL, erased_by = id",
        ],
    )  # fmt: skip
    def test_an_edited_entry(self, sealed: Tenant, admin: Caller, what: str) -> None:
        entry = at(sealed, 3)
        change(sealed, f"UPDATE history SET {what}", 3)
        assert verify(admin)["fault"] == {"fault": "edited", "position": 3, "entry": str(entry)}

    def test_a_deleted_entry(self, sealed: Tenant, admin: Caller) -> None:
        change(sealed, "DELETE FROM history", 4)
        assert verify(admin)["fault"] == {"fault": "deleted", "position": 4, "entry": None}

    def test_entries_in_another_order(self, sealed: Tenant, admin: Caller) -> None:
        second, fifth = at(sealed, 2), at(sealed, 5)
        for entry, position in ((second, 99), (fifth, 2), (second, 5)):
            sealed.rows("UPDATE history SET position = %(at)s WHERE id = %(id)s", id=entry, at=position)
        assert verify(admin)["fault"] == {"fault": "reordered", "position": 2, "entry": str(fifth)}

    def test_an_end_that_was_cut_off_is_found_by_the_anchor(self, sealed: Tenant, admin: Caller) -> None:
        anchor = verify(admin)["head"]
        for position in (6, 5, 4):
            change(sealed, "DELETE FROM history", position)
        assert verify(admin)["fault"] == {"fault": "truncated", "position": 4, "entry": None}  # the seals tell
        sealed.rows("DELETE FROM history_seals WHERE tenant_id = %(tenant)s AND position > 3")
        assert verify(admin)["fault"] is None  # without an anchor it looks whole
        assert verify(admin, anchor=anchor)["fault"] == {"fault": "truncated", "position": 4, "entry": None}

    def test_a_chain_that_was_written_anew_is_found_by_the_anchor(
        self, sealed: Tenant, admin: Caller, seal: Callable[[], None]
    ) -> None:
        anchor = verify(admin)["head"]
        change(sealed, "UPDATE history SET new_ref = 'forged'", 1)
        sealed.rows(
            "UPDATE history SET position = NULL, link = NULL, salt = NULL, payload_hash = NULL"
            " WHERE tenant_id = %(tenant)s"
        )
        sealed.rows("DELETE FROM history_seals WHERE tenant_id = %(tenant)s")
        seal()
        assert verify(admin)["fault"] is None
        assert verify(admin, anchor=anchor)["fault"]["fault"] == "rewritten"


class TestAccess:
    """Who may, and what is refused."""

    def test_scope_users_and_anchors(self, tenant: Tenant, supervisor: Caller, admin: Caller) -> None:
        refused(supervisor.get("/v1/admin/audit"), 403, "scope_forbidden")
        bound = tenant.caller("supervisor", users=[USER], scopes=(KeyScope.ADMIN,))
        refused(bound.get("/v1/admin/audit"), 403, "user_forbidden")
        for wrong in ({"anchor": "x"}, {"anchor": "1:00"}, {"anchor": "-1:" + "0" * 64}, {"limit": 10_001}):
            refused(admin.get("/v1/admin/audit", **wrong), 422, "invalid_request")
        assert verify(admin)["head"] == str(Head())

    def test_what_was_sealed_once_stays_where_it_is(self, sealed: Tenant, supervisor: Caller, admin: Caller) -> None:
        before = verify(admin)["head"]
        Night(sealed).run("seal")
        assert verify(admin)["head"] == before
        say(supervisor, write(supervisor, "Lamps flicker at night.")["id"], "pin", pinned=True)
        Night(sealed).run("seal")
        assert verify(admin, anchor=before)["sealed"] == 8
