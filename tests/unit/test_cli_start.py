"""A command waits for no module that it does not need."""

import os
import subprocess
import sys

HEAVY = ("memplane.bootstrap", "croniter", "fastapi", "langgraph", "numpy", "procrastinate", "psycopg", "sqlalchemy")


def loaded(module: str) -> set[str]:
    """Which of the heavy modules are there once another one is, in a process of its own."""
    told = f"import sys, {module}; print(*(name for name in {HEAVY!r} if name in sys.modules))"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    done = subprocess.run([sys.executable, "-c", told], check=True, capture_output=True, text=True, env=environment)
    return set(done.stdout.split())


def test_commands_that_ask_a_server_load_nothing_of_a_server() -> None:
    assert loaded("memplane.entrypoints.cli.main") == set()


def test_what_serves_loads_them() -> None:
    assert loaded("memplane.entrypoints.cli.admin.server_process") >= {
        "memplane.bootstrap",
        "croniter",
        "numpy",
        "sqlalchemy",
    }
