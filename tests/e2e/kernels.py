"""Kernels as real processes, whose `os.environ` is the one that is kept."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support import planted
from tests.support.pairs import NO_COMMAND
from tests.support.worlds import World

CHECKOUT = Path(__file__).parents[2]
DEADLINE_S = 40.0

_LOOP = """
import json, os, sys, traceback
import kernel_client
orders, answers = os.fdopen(int(sys.argv[1])), os.fdopen(int(sys.argv[2]), "w")
space = {"os": os, "kernel_client": kernel_client}
def refresh():
    result = kernel_client.refresh()
    return {name: getattr(result, name) for name in result.__slots__}
space["refresh"] = refresh
for order in orders:
    space["answer"] = None
    try:
        exec(json.loads(order), space)
        told = ["gave", space["answer"]]
    except BaseException:
        told = ["failed", traceback.format_exc()]
    answers.write(json.dumps(told) + "\\n")
    answers.flush()
"""


def environ_of(
    world: World, *, listening: Path | None, coverage: bool = True, **more: str
) -> dict[str, str]:
    """Give the environment of a kernel: a sidecar that listens, or (None) none."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if coverage and name.startswith("COVERAGE_")
    }
    given = {
        **kept,
        **world.environ,
        "PYTHONPATH": str(CHECKOUT),
        "ENVWATCH_SIDECAR": "off" if listening is None else NO_COMMAND,
    }
    if listening is not None:
        given["ENVWATCH_SOCKET"] = str(listening)
    return {**given, **more}


class KernelProcess:
    """A Python process that runs what it is told, and answers with `answer`."""

    def __init__(
        self,
        environ: Mapping[str, str],
        folder: str | os.PathLike[str],
        *,
        pass_fds: Sequence[int] = (),
        before: Sequence[str] = (),
        path: str | None = None,
    ) -> None:
        self.environ = dict(environ)
        orders, self._orders = os.pipe()
        self._answers, answers = os.pipe()
        command = [*before, sys.executable, "-c", _LOOP, str(orders), str(answers)]
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env={**self.environ, **({} if path is None else {"PATH": path})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(orders, answers, *pass_fds),
            start_new_session=True,
        )
        os.close(orders)
        os.close(answers)
        self._read = os.fdopen(self._answers, "r", encoding="utf-8")

    def tell(self, code: str) -> None:
        """Give an order without waiting for its answer."""
        os.write(self._orders, json.dumps(code).encode() + b"\n")

    def answer(self) -> Any:
        """Wait for the answer to the last order."""
        ready, _, _ = select.select([self._answers], [], [], DEADLINE_S)
        assert ready, "the kernel gave no answer in time"
        line = self._read.readline()
        assert line, "the kernel has ended"
        how, value = json.loads(line)
        assert how == "gave", value
        return value

    def run(self, code: str) -> Any:
        """Give an order and wait for its answer."""
        self.tell(code)
        return self.answer()

    def refresh(self) -> dict[str, Any]:
        """Refresh; what it says must not hold the planted secret."""
        result: dict[str, Any] = self.run("answer = refresh()")
        planted.collect("a kernel's result", json.dumps(result))
        return result

    def get(self, name: str) -> str | None:
        """Give a variable of its environment."""
        value: str | None = self.run(f"answer = os.environ.get({name!r})")
        return value

    def all(self) -> dict[str, str]:
        """Give its environment."""
        value: dict[str, str] = self.run("answer = dict(os.environ)")
        return value

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self.process.send_signal(signal.SIGINT)

    def close(self) -> str:
        """End it as a host does, and give all that it printed."""
        os.close(self._orders)
        try:
            out, _ = self.process.communicate(timeout=DEADLINE_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.communicate()
            raise
        finally:
            self._read.close()
        said = out.decode(errors="replace")
        planted.collect("a kernel's output", said)
        assert self.process.returncode == 0, said
        return said


def connected(path: Path) -> socket.socket:
    """Connect to a sidecar, as a host does for a kernel that it starts."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(path))
    return connection
