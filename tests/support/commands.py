"""Commands, each in a process of its own that is forked from one which has read their modules: that takes a second."""

import json
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.process import clean_environment

PATIENCE = 120
"""Seconds after which something that never ends has failed."""
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["memplane.entrypoints.cli.main", "memplane.entrypoints.cli.serving"])


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
) -> Result:
    """Run `memplane` to its end, without the operator's own settings.

    Raises:
        TimeoutError: it has no end.
    """
    with tempfile.TemporaryDirectory(prefix="memplane-command-") as folder:
        streams = [Path(folder) / name for name in ("in", "out", "err")]
        for stream in streams:
            stream.write_text(stdin or "" if stream.name == "in" else "")
        place = cwd or Path.cwd()
        process = _FORKS.Process(target=_ended, args=(arguments, clean_environment(environment), streams, place))
        process.start()
        process.join(PATIENCE)
        if process.exitcode is None:
            process.kill()
            raise TimeoutError(f"memplane {' '.join(arguments)}: {[stream.read_text() for stream in streams]}")
        return Result(process.exitcode, *(stream.read_text() for stream in streams[1:]))


def _ended(arguments: Sequence[str], environment: Mapping[str, str], streams: Sequence[Path], place: Path) -> None:
    """The forked process: it becomes the command."""
    from memplane.entrypoints.cli.main import main  # noqa: PLC0415 - was read before the fork

    for number, stream in enumerate(streams):
        opened = os.open(stream, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_APPEND)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - multiprocessing had closed it
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(place)
    sys.argv = ["memplane", *arguments]
    main()
