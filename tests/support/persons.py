"""A person at a terminal: runs the `envwatch` command as a real process."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.support import planted
from tests.support.worlds import World

CHECKOUT = Path(__file__).parents[2]
DEADLINE_S = 55.0


class Ended(NamedTuple):
    """How a command ended: exit code, stdout, stderr."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """Lines of stdout."""
        return self.out.splitlines()

    @property
    def object(self) -> Any:
        """What it printed as JSON."""
        return json.loads(self.out)

    def said(self, code: int, *words: str) -> None:
        """Expect an exit code, and one line of error with these words."""
        assert self.code == code, self
        assert len(self.err.splitlines()) == 1, self
        assert self.err.startswith("envwatch: "), self
        for word in words:
            assert word in self.err, self


class Person:
    """Runs commands in a world, with the socket of one sidecar or of none."""

    def __init__(self, world: World, listening: Path | None = None) -> None:
        self.world = world
        if listening is None:
            listening = world.folder("run") / "sock"
            listening.parent.chmod(0o700)
        self.socket = listening
        self.environ = {
            **{
                name: value
                for name, value in os.environ.items()
                if name.startswith("COVERAGE_")
            },
            **world.environ,
            "ENVWATCH_SOCKET": str(listening),
            "PYTHONPATH": str(CHECKOUT),
        }

    def run(
        self,
        *arguments: str | os.PathLike[str],
        folder: str | os.PathLike[str] | None = None,
        environ: Mapping[str, str | None] | None = None,
    ) -> Ended:
        """Run a command to its end; `environ` adds variables, or (None) removes."""
        return self.ended(self.start(*arguments, folder=folder, environ=environ))

    def python(self, code: str, *, folder: str | os.PathLike[str]) -> Ended:
        """Run Python code to its end, where a command needs a special beginning."""
        return self.ended(self._started(["-c", code], folder, {}))

    def ended(self, process: subprocess.Popen[bytes]) -> Ended:
        """Wait for the end of a process, and search what it said for the secret."""
        try:
            out, err = process.communicate(timeout=DEADLINE_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise
        ended = Ended(
            process.returncode,
            (out or b"").decode(errors="replace"),
            err.decode(errors="replace"),
        )
        planted.collect(f"{process.args!r}, stdout", ended.out)
        planted.collect(f"{process.args!r}, stderr", ended.err)
        return ended

    def start(
        self,
        *arguments: str | os.PathLike[str],
        folder: str | os.PathLike[str] | None = None,
        environ: Mapping[str, str | None] | None = None,
        pipe: socket.socket | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start a command, in a session of its own; `pipe` is its stdin and stdout."""
        command = ["-m", "envwatch", *arguments]
        return self._started(command, folder, environ or {}, pipe)

    def _started(
        self,
        arguments: Sequence[str | os.PathLike[str]],
        folder: str | os.PathLike[str] | None,
        environ: Mapping[str, str | None],
        pipe: socket.socket | None = None,
    ) -> subprocess.Popen[bytes]:
        given = {**self.environ, **environ}
        return subprocess.Popen(
            [sys.executable, *arguments],
            cwd=folder or self.world.top,
            env={name: value for name, value in given.items() if value is not None},
            stdin=pipe.fileno() if pipe else subprocess.DEVNULL,
            stdout=pipe.fileno() if pipe else subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
