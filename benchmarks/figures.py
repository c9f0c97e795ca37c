"""The page of figures: each benchmark replaces its own section, between its markers."""

import os
import platform
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import psycopg

from memplane.adapters.postgres.embedded.embedded_postgres import EmbeddedPostgres
from memplane.entrypoints.cli.bench.grid import Grid

PAGE = Path(__file__).resolve().parents[1] / "docs" / "figures.md"
HEAD = """# Figures

Every section is written by the benchmark that it names, with the date and the machine; absolute times depend on the
machine, so each stands beside the floor and the peers of the same run.
"""


def machine(server: EmbeddedPostgres | None = None) -> str:
    """What was measured on: processor, cores, Python, PostgreSQL, and how busy it was."""
    told = [f"{os.cpu_count()} cores ({_processor()})", f"{platform.system()}, Python {platform.python_version()}"]
    if server is not None:
        with psycopg.connect(server.admin_conninfo, autocommit=True) as connection:
            (version,) = connection.execute("SHOW server_version").fetchone() or ("?",)
        told.append(f"PostgreSQL {version}")
    told.append(f"load average {os.getloadavg()[0]:.1f}")
    return ", ".join(told)


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    named = re.search(r"model name\s*:\s*(.+)", info.read_text(encoding="utf-8")) if info.exists() else None
    return " ".join(named[1].split()) if named else platform.machine()


def write_section(page: Path, name: str, title: str, paragraphs: Iterable[str | Grid]) -> None:
    """Put a section in place of the one of the same name, or at the end of the page; the page is made if missing."""
    told = [part.markdown() if isinstance(part, Grid) else part for part in paragraphs]
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    section = "\n\n".join([begin, f"## {title}", f"Measured on {today}.", *told, end])
    content = page.read_text(encoding="utf-8") if page.exists() else HEAD
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if pattern.search(content):
        content = pattern.sub(lambda _: section, content)
    else:
        content = f"{content.rstrip()}\n\n{section}\n"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(content, encoding="utf-8")
