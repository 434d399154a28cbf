"""Sidecars as real processes: started, killed and ended by the test run."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.support import planted

START_S = 20.0
END_S = 20.0


def until(what: str, condition: Callable[[], bool], deadline_s: float = 20.0) -> None:
    """Poll a real condition; fail with `what` when it does not come true."""
    deadline = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < deadline, f"it did not happen in time: {what}"
        time.sleep(0.005)


class Daemon:
    """One sidecar on a socket of its own, for one direnv."""

    def __init__(
        self,
        direnv: str,
        *arguments: str,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.direnv = direnv
        self.arguments = arguments
        self.folder = Path(tempfile.mkdtemp(prefix="ewd-", dir="/tmp"))
        self.socket = self.folder / "s" / "sock"
        self.socket.parent.mkdir(mode=0o700)
        self.log = self.folder / "log"
        self.environ = dict(environ or {})
        self.process: subprocess.Popen[bytes] | None = None
        planted.register_log(self.log)

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        assert self.process is None
        environ = {
            **os.environ,
            "HOME": str(self.folder),
            "ENVWATCH_SOCKET": str(self.socket),
            "ENVWATCH_DIRENV": self.direnv,
            **self.environ,
        }
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "envwatch", "serve", *self.arguments],
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd=Path(__file__).parents[2],
            )
        until("the sidecar takes connections", self._listens, START_S)

    def kill(self) -> None:
        """Kill it as `kill -9` does; its socket stays behind."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(END_S)
        self.process = None

    def close(self) -> None:
        """End it as the system would, and remove what it left."""
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(END_S)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
            finally:
                self.process = None
        planted.drop_log(self.log)
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def said(self) -> str:
        """All that it has logged."""
        return self.log.read_text(errors="replace")

    def _listens(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, f"the sidecar ended: {self.said}"
        with socket.socket(socket.AF_UNIX) as probe, contextlib.suppress(OSError):
            probe.connect(str(self.socket))
            return True
        return False
