"""What the OpenAPI document allows, and what it does not, sent by a machine: the server keeps to its document."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memplane.domain.identity.principal import KeyScope
from support.callers import THREAD, Tenant
from support.commands import clean_environment
from support.serving import RunningServer

SECONDS = int(os.environ.get("FUZZ_SECONDS", "0"))
"""How long each database is asked, by `make fuzz`; else each phase runs once, however slow the machine is."""
EXAMPLES = 2
"""How many cases each operation gets of each phase that makes them up, where no time is given: the same ones each time,
so that what fails is the change's own. `make fuzz` seeks others."""
LEFT_OUT = "positive_data_acceptance"
"""What a JSON schema cannot say (a year, a name that is taken) is refused with 422 all the same."""
REFUSED = (400, 401, 403, 404, 405, 406, 409, 413, 415, 422, 428, 429, "5xx")
"""Answers to what the document does not allow: those that the tool expects, and 413 to what is too large."""
PHASES = ("examples", "coverage", "fuzzing", "stateful")
pytestmark = pytest.mark.slow
Json = dict[str, Any]


def furnished(tenant: Tenant) -> str:
    """A key that may do everything, in a tenant with something in it."""
    caller = tenant.caller("supervisor", act_for=("*",), scopes=tuple(KeyScope))
    for number in range(5):
        caller.remember(f"Ana has booked hall {number} in Vienna with Ben Miller.", "profile", thread_id=THREAD)
        caller.say(f"Where is hall {number}?")
    assert caller.credential is not None
    return caller.credential


def fuzzed(url: str, credential: str, folder: Path, *more: str) -> tuple[int, str, Json]:
    """Ask a server; exit code, what was told, and the report."""
    report = folder / "report.json"
    statuses = ", ".join(f'"{each}"' for each in REFUSED)
    (folder / "schemathesis.toml").write_text(f"[checks.negative_data_rejection]\nexpected-statuses = [{statuses}]\n")
    command = [sys.executable, "-W", "ignore", "-m", "schemathesis.cli", "run", f"{url}/openapi.json"]
    command += ["--header", f"Authorization: Bearer {credential}", "--exclude-checks", LEFT_OUT]
    command += (
        ["--max-time", str(SECONDS)] if SECONDS else ["--max-examples", str(EXAMPLES), "--generation-deterministic"]
    )
    command += ["--workers", "1", "--continue-on-failure", "--no-color"]
    command += ["--report", "json", "--report-json-path", str(report), *more]
    environment = {name: value for name, value in clean_environment().items() if not name.lower().endswith("_proxy")}
    environment |= {
        "SCHEMATHESIS_HOOKS": "support.fuzz_hooks",
        "PYTHONPATH": str(Path(__file__).parents[1]),
        "FUZZ_KEEPS": credential.split("_")[1] if "_" in credential else credential,
    }
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS * 2 + 600, check=False
    )
    return done.returncode, done.stdout + done.stderr, json.loads(report.read_text())


def test_the_server_keeps_to_its_document(
    start_server: Callable[..., RunningServer],
    tmp_path: Path,
    storage: str,
    record_property: Callable[[str, object], None],
) -> None:
    """No 5xx, no status or body that the document does not tell of, no operation without its key."""
    server = start_server(rate_per_second=0)
    credential = furnished(Tenant(server))
    code, told, report = fuzzed(server.url, credential, tmp_path)
    record_property("fuzz", cases := f"{storage}: {report['test_cases']}, {report['operations']}")
    print(cases)  # noqa: T201 - the figures, with -s
    assert code == 0, told[-20_000:]
    still = server.client.get("/v1/admin/keys", headers={"Authorization": f"Bearer {credential}"})
    assert still.status_code == 200, still.text  # the key was not ended: what was asked, it was asked as one who may
    assert report["operations"]["tested"] == report["operations"]["total"] > 20
    assert {name: phase["status"] for name, phase in report["phases"].items()} == dict.fromkeys(PHASES, "success")
    assert report["test_cases"]["generated"] >= (5_000 if SECONDS >= 240 else 4 * report["operations"]["total"])


@pytest.mark.untold("GET /healthz: 500")
@pytest.mark.breaks
def test_a_server_that_does_not_is_found_out(
    start_server: Callable[..., RunningServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: an answer that its schema does not have."""
    server = start_server(rate_per_second=0)
    monkeypatch.setattr("memplane.entrypoints.http.routes.health.memplane.__version__", None)
    code, told, report = fuzzed(
        server.url, "none", tmp_path, "--include-path", "/healthz", "--phases", "examples,coverage"
    )
    assert code == 1
    assert {name for failure in report["failures"] for name in failure["operations"]} == {"GET /healthz"}, told[-5_000:]
