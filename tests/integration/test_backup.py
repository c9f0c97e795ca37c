"""`memplane backup`: a copy of a file that is in use."""

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2

from integration.commands import run, serving

SQLITE = {"MEMPLANE_STORAGE": "sqlite"}


def test_a_copy_is_made_beside_writers_and_holds_what_was_acknowledged(tmp_path: Path) -> None:
    copy = tmp_path / "copies" / "memplane.db"
    copy.parent.mkdir()
    with serving(tmp_path, "--storage", "sqlite", "--port", "0") as served:
        headers = {"Authorization": f"Bearer {served.keys['supervisor']}"}
        with httpx2.Client(base_url=served.url, headers=headers, trust_env=False) as client:

            def tell(number: int) -> int:
                turn = {"user_id": "u", "thread_id": "t", "role": "user", "text": f"Turn {number}."}
                return client.post("/v1/turns", json=turn).status_code

            assert tell(0) < 300
            with ThreadPoolExecutor(4) as writers:
                told = writers.map(tell, range(1, 60))
                made = run("backup", str(copy), "--data", str(served.data), "--json", environment=SQLITE)
                assert set(told) <= {200, 201}
        assert made.code == 0, made.err
        assert stat.S_IMODE(copy.stat().st_mode) == 0o600
        again = run("backup", str(copy), "--data", str(served.data), environment=SQLITE)
        assert (again.code, "is there already" in again.err) == (4, True)

    (copy.parent / "keys.json").write_bytes((tmp_path / "data" / "keys.json").read_bytes())
    (copy.parent / "keys.json").chmod(0o600)
    examined = run("doctor", "--data", str(copy.parent), "--json", environment=SQLITE)
    assert examined.code == 0, examined.out
    copy.parent.rename(tmp_path / "data-restored")
    restored = tmp_path / "data-restored"
    with serving(tmp_path, "--data", str(restored), "--storage", "sqlite", "--port", "0") as back:
        named = ("--data", str(restored), "--url", back.url)
        found = run("query", "Turn 0.", "--user", "u", "--json", *named).document
        assert any("Turn 0." in item["text"] for item in found["items"])


def test_postgresql_is_backed_up_by_its_own_program(tmp_path: Path) -> None:
    refused = run("backup", str(tmp_path / "copy"), "--data", str(tmp_path), "--json")
    assert (refused.code, refused.document["error"]["code"]) == (1, "not_supported")
    assert "pg_dump" in refused.err
    assert list(tmp_path.iterdir()) == []


def test_there_must_be_something_to_copy(tmp_path: Path) -> None:
    refused = run("backup", str(tmp_path / "copy"), "--data", str(tmp_path), environment=SQLITE)
    assert (refused.code, "no such file" in refused.err) == (4, True)
    assert list(tmp_path.iterdir()) == []
