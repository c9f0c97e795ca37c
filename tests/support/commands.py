"""Commands, each in a process of its own that is forked from one which has read their modules: that takes seconds."""

import atexit
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

PATIENCE = 120
"""Seconds after which something that never ends has failed."""
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(
    ["memplane.entrypoints.cli.main", "memplane.entrypoints.cli.admin.server_process", "memplane.entrypoints.http.app"]
)


def clean_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment without the operator's own settings."""
    return {name: value for name, value in os.environ.items() if not name.startswith("MEMPLANE_")} | dict(extra or {})


@dataclass(frozen=True)
class Result:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:  # noqa: ANN401 - any document there is
        """What `--json` printed: the whole of standard output."""
        return json.loads(self.out)


def run(
    *arguments: str,
    stdin: str | None = None,
    environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    terminal: bool = False,
) -> Result:
    """Run `memplane` to its end, without the operator's own settings; its input may come from a terminal.

    Raises:
        TimeoutError: it has no end.
    """
    with tempfile.TemporaryDirectory(prefix="memplane-command-") as folder:
        streams = [Path(folder) / name for name in ("in", "out", "err")]
        for stream in streams:
            stream.write_text(stdin or "" if stream.name == "in" else "")
        place = cwd or Path.cwd()
        start = _typed if terminal else _run
        process = _FORKS.Process(target=start, args=(arguments, clean_environment(environment), streams, place))
        process.start()
        process.join(PATIENCE)
        if process.exitcode is None:
            process.kill()
            raise TimeoutError(f"memplane {' '.join(arguments)}: {[stream.read_text() for stream in streams]}")
        return Result(process.exitcode, *(stream.read_text() for stream in streams[1:]))


class Forked:
    """A command that goes on until it is told to end: what the tests use of :class:`subprocess.Popen`.

    Args:
        arguments: of `memplane`.
        environment: the whole of it.
        errors: the file that standard error is added to.
        cwd: the folder that it is in.

    Attributes:
        pid: of the process.
        stdout: what it prints.
    """

    def __init__(self, *arguments: str, environment: Mapping[str, str], errors: Path, cwd: Path | None = None) -> None:
        reader, writer = _FORKS.Pipe(duplex=False)
        given = (arguments, dict(environment), writer, errors, cwd or Path.cwd())
        self._process = _FORKS.Process(target=_go_on, args=given, daemon=True)
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid
        writer.close()
        self.stdout = os.fdopen(os.dup(reader.fileno()), encoding="utf-8")
        reader.close()

    def poll(self) -> int | None:
        """Its exit code, or nothing while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float = PATIENCE) -> int:
        """Its exit code, once it has ended; what it printed and nobody read is let go.

        Raises:
            TimeoutExpired: it does not end.
        """
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("memplane", timeout)
        self.stdout.close()
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)


def _run(arguments: Sequence[str], environment: Mapping[str, str], streams: Sequence[Path], place: Path) -> None:
    for number, stream in enumerate(streams):
        _become(number, os.open(stream, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_APPEND))
    _command(arguments, environment, place)


def _typed(arguments: Sequence[str], environment: Mapping[str, str], streams: Sequence[Path], place: Path) -> None:
    """The same with a terminal for its input, where the words are typed already."""
    keyboard, terminal = os.openpty()
    os.write(keyboard, streams[0].read_bytes())
    _become(0, terminal)
    for number, stream in enumerate(streams[1:], 1):
        _become(number, os.open(stream, os.O_WRONLY | os.O_APPEND))
    _command(arguments, environment, place)


def _go_on(
    arguments: Sequence[str], environment: Mapping[str, str], output: Connection, errors: Path, place: Path
) -> None:
    _become(0, os.open(os.devnull, os.O_RDONLY))
    _become(1, os.dup(output.fileno()))
    output.close()
    _become(2, os.open(errors, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600))
    _command(arguments, environment, place)


def _become(number: int, opened: int) -> None:
    os.dup2(opened, number)
    os.close(opened)


def _command(arguments: Sequence[str], environment: Mapping[str, str], place: Path) -> None:
    """The forked process becomes the command."""
    from memplane.entrypoints.cli.main import main  # noqa: PLC0415 - was read before the fork

    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - multiprocessing had closed it
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(place)
    sys.argv = ["memplane", *arguments]
    try:
        main()
    finally:
        atexit._run_exitfuncs()  # as the interpreter does where it was not forked
