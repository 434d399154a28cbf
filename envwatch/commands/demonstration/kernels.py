"""The demo's hold on its kernel processes."""

from __future__ import annotations

import contextlib
import json
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import envwatch
from envwatch.errors import Temporary

PACKAGES = Path(envwatch.__file__).resolve().parents[1]
"""Where this envwatch is, so that other processes run the same one."""


class Kernel:
    """One kernel process; `deadline` is when the demo gives up on it."""

    module: ClassVar[str] = "kernel"
    end_s: ClassVar[float] = 2.0

    def __init__(self, environ: Mapping[str, str], *, deadline: float) -> None:
        self._deadline = deadline
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"{__package__}.{self.module}"],
            cwd=PACKAGES,
            env=dict(environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # Ctrl-C is for the demo, which ends its kernels itself.
            start_new_session=True,
        )
        assert self._process.stdin is not None  # noqa: S101 - Popen was given PIPE
        assert self._process.stdout is not None  # noqa: S101
        self._orders = self._process.stdin
        self._answers = self._process.stdout

    def tell(self, order: Mapping[str, Any]) -> None:
        """Give an order without waiting for its answer."""
        try:
            self._orders.write(json.dumps(order).encode() + b"\n")
            self._orders.flush()
        except OSError:
            raise Temporary("a kernel of the demo has ended") from None

    def answer(self) -> dict[str, Any]:
        """Wait for the answer to the last order.

        Raises:
            Temporary: it ended or failed, or the demo's time is over.
        """
        left_s = max(0.0, self._deadline - time.monotonic())
        if not select.select([self._answers], [], [], left_s)[0]:
            raise Temporary("a kernel of the demo did not answer in time")
        line = self._answers.readline()
        if not line:
            raise Temporary("a kernel of the demo has ended")
        told: dict[str, Any] = json.loads(line)
        if "failed" in told:
            raise Temporary(told["failed"])
        return told

    def close(self) -> None:
        """End the process."""
        with contextlib.suppress(OSError):
            # It may have ended already, with an order unread.
            self._orders.close()
        try:
            self._process.wait(self.end_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._answers.close()


class Notebook(Kernel):
    """The process that has an ipykernel of its own."""

    module = "notebook"
    end_s = 5.0

    def close(self) -> None:
        """End the ipykernel and the process, also while it waits for a cell."""
        self._process.terminate()
        super().close()


def asked(kernels: Sequence[Kernel], **order: Any) -> list[dict[str, Any]]:
    """Give one order to all kernels at once; wait for all answers."""
    for kernel in kernels:
        kernel.tell(order)
    return [kernel.answer() for kernel in kernels]
