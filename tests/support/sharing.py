"""One PostgreSQL for all processes of a test session: the first who needs it has it started, its owner ends it.

Without pytest-xdist the one process owns it. With pytest-xdist the controller does: its workers ask for it over a
socket, so that the server outlives each of them, and a session whose tests need no database starts none.
"""

import json
import shutil
import tempfile
import threading
import traceback
from contextlib import ExitStack
from dataclasses import asdict
from multiprocessing.connection import Client, Listener
from pathlib import Path

from support.cluster import Cluster, selected_cluster

_WANTED, _STOP = b"wanted", b"stop"


class Owner:
    """Starts the server when it is first wanted, and ends it with the session."""

    def __init__(self) -> None:
        self._cluster: Cluster | None = None
        self._held = ExitStack()
        self._thread: threading.Thread | None = None
        self._address = ""

    def cluster(self) -> Cluster:
        """The server, started if it is not yet running."""
        if self._cluster is None:
            self._cluster = self._held.enter_context(selected_cluster())
        return self._cluster

    def listen(self) -> str:
        """Let other processes ask for the server; the same address for all of them."""
        if self._thread is None:
            folder = Path(tempfile.mkdtemp(prefix="memplane-session-"))
            self._held.callback(shutil.rmtree, folder)
            self._address = str(folder / "owner.sock")
            listener = Listener(self._address, "AF_UNIX", backlog=64)
            self._thread = threading.Thread(target=self._serve, args=(listener,), name="postgres-owner", daemon=True)
            self._thread.start()
        return self._address

    def stop(self) -> None:
        """End the server, and all that was made for it."""
        if self._thread is not None:
            with Client(self._address, "AF_UNIX") as connection:
                connection.send_bytes(_STOP)
            self._thread.join()
        self._held.close()

    def _serve(self, listener: Listener) -> None:
        with listener:
            while True:
                with listener.accept() as connection:
                    try:
                        if connection.recv_bytes() == _STOP:
                            return
                        connection.send_bytes(self._answer())
                    except (EOFError, OSError):  # the one who asked is gone
                        continue

    def _answer(self) -> bytes:
        try:
            return json.dumps({"cluster": asdict(self.cluster())}).encode()
        except Exception:  # noqa: BLE001 - told to the one who asked, whose test then fails with it
            return json.dumps({"failure": traceback.format_exc()}).encode()


def ask(address: str) -> Cluster:
    """The session's server, from another process than its owner."""
    with Client(address, "AF_UNIX") as connection:
        connection.send_bytes(_WANTED)
        answer = json.loads(connection.recv_bytes())
    if "failure" in answer:
        raise RuntimeError(f"the session's PostgreSQL could not be started:\n{answer['failure']}")
    return Cluster(**answer["cluster"])
