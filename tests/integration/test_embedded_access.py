"""Who may connect to the embedded PostgreSQL: system users by name, not whoever reaches the socket."""

import json
import os
import pwd
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from integration.commands import start_embedded
from memplane.adapters.postgres.embedded.embedded_postgres import EmbeddedPostgres

ROLES = ("postgres", "memplane_owner", "memplane_app")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")

# Becomes the user argv[1], once everything is loaded, and says what connecting to each of the URLs comes to.
CALLER = """
import json, os, pwd, sys
import psycopg
entry = pwd.getpwnam(sys.argv[1])
os.setgroups([])
os.setgid(entry.pw_gid)
os.setuid(entry.pw_uid)
found = []
for url in sys.argv[2:]:
    try:
        psycopg.connect(url).close()
        found.append("in")
    except psycopg.OperationalError as error:
        found.append("refused" if "authentication failed" in str(error) else str(error))
print(json.dumps(found))
"""
# The same for a server in the folder argv[2], with an interpreter (argv[3]) and binaries that the user can reach.
STARTER = """
import os, pwd, sys
from pathlib import Path
import psycopg
from memplane.adapters.postgres.embedded import embedded_binaries, embedded_postgres
from memplane.adapters.postgres.embedded.embedded_files import Account
entry = pwd.getpwnam(sys.argv[1])
account = Account(entry.pw_uid, entry.pw_gid, entry.pw_name)
binaries = embedded_binaries.reachable_binaries(
    embedded_binaries.packaged_binaries(), account, [Path("/var/cache/memplane")]
)
embedded_postgres.packaged_binaries = lambda: binaries
sys.executable = sys.argv[3]
os.setgroups([])
os.setgid(entry.pw_gid)
os.setuid(entry.pw_uid)
with embedded_postgres.EmbeddedPostgres.start(Path(sys.argv[2]), durable=False) as server:
    print(server.admin_conninfo, flush=True)
    sys.stdin.read()
"""
SYSTEM_PYTHON = Path("/usr/bin/python3")


def connecting(user: str, *urls: str) -> list[str]:
    """What connecting comes to for another system user."""
    ran = subprocess.run([sys.executable, "-c", CALLER, user, *urls], capture_output=True, check=True, text=True)
    return list(json.loads(ran.stdout))


def urls(server: EmbeddedPostgres) -> list[str]:
    with psycopg.connect(server.admin_conninfo, autocommit=True) as admin:
        for role in ROLES[1:]:
            if not admin.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchone():
                admin.execute(f"CREATE ROLE {role} LOGIN")
    return [server.url(user=role, database="postgres") for role in ROLES]


@needs_root
def test_the_service_user_itself_is_refused(data: Path) -> None:
    with start_embedded(data) as server:
        named = urls(server)
        assert connecting("nobody", *named) == ["refused"] * 3
        assert connecting("root", *named) == ["in"] * 3  # the controls: who started it, and what was refused
        (data / "pg_hba.conf").write_text("local all all trust\n")
        with psycopg.connect(server.admin_conninfo, autocommit=True) as admin:
            admin.execute("SELECT pg_reload_conf()")
            while admin.execute("SELECT min(auth_method) FROM pg_hba_file_rules").fetchone() != ("trust",):
                pass
        assert connecting("nobody", *named) == ["in"] * 3


def test_a_cluster_that_trusted_everybody_is_carried_over(data: Path) -> None:
    with start_embedded(data) as server, psycopg.connect(server.admin_conninfo, autocommit=True) as admin:
        admin.execute("CREATE TABLE kept AS SELECT 7 AS n")
    (data / "pg" / "pg_hba.conf").write_text("local all all trust\n")
    for made in ("pg_hba.conf", "pg_ident.conf"):
        (data / made).unlink()
    with start_embedded(data) as server:
        with psycopg.connect(server.admin_conninfo) as admin:
            assert admin.execute("SELECT n FROM kept").fetchone() == (7,)
            rules = "SELECT DISTINCT type, auth_method, options FROM pg_hba_file_rules"
            assert admin.execute(rules).fetchall() == [("local", "peer", ["map=memplane"])]
            users = {name for (name,) in admin.execute("SELECT sys_name FROM pg_ident_file_mappings").fetchall()}
            assert users == {"root", pwd.getpwuid(os.geteuid()).pw_name}
        if os.geteuid() == 0:
            assert connecting("nobody", *urls(server)) == ["refused"] * 3


@needs_root
def test_a_plain_user_s_server_answers_that_user_and_root_alone(base: Path) -> None:
    user, folder = "games", base / "plain"
    if not SYSTEM_PYTHON.exists():
        pytest.skip("no interpreter that another user can surely reach")
    folder.mkdir()
    os.chown(folder, pwd.getpwnam(user).pw_uid, pwd.getpwnam(user).pw_gid)
    with subprocess.Popen(
        [sys.executable, "-c", STARTER, user, str(folder), str(SYSTEM_PYTHON)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as starter:
        assert starter.stdout is not None
        url = starter.stdout.readline().strip()
        assert connecting(user, url) == ["in"]
        assert connecting("root", url) == ["in"]
        (folder / "run").chmod(0o755)  # the folder's mode is the outer door
        assert "in" not in connecting("nobody", url)
        starter.communicate(timeout=60)
        assert starter.returncode == 0
