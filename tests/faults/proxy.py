"""A wire that breaks after so many bytes."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path


class BreakingWire:
    """Forwards to a sidecar; calls `breaks` after so many bytes, and is then cut.

    Bytes of both directions count, and are forwarded one at a time around the
    point, so that the break is exactly there. Later connections are forwarded
    whole.
    """

    def __init__(self, target: Path, after: int, breaks: Callable[[], None]) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="ewx-", dir="/tmp"))
        self.path = self.folder / "sock"
        self.is_broken = False
        self._target = target
        self._left = after
        self._breaks = breaks
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(self.path))
        self._listening.listen(8)
        self._wake, self._woken = os.pipe()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Cut everything."""
        os.write(self._woken, b"x")
        self._thread.join(20)
        assert not self._thread.is_alive()
        self._listening.close()
        os.close(self._wake)
        os.close(self._woken)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _accept(self) -> None:
        while True:
            ready, _, _ = select.select([self._listening.fileno(), self._wake], [], [])
            if self._wake in ready:
                return
            kernel, _ = self._listening.accept()
            sidecar = socket.socket(socket.AF_UNIX)
            with kernel, sidecar, contextlib.suppress(OSError):
                sidecar.connect(str(self._target))
                self._forward(kernel, sidecar)

    def _forward(self, kernel: socket.socket, sidecar: socket.socket) -> None:
        ends = {kernel.fileno(): (kernel, sidecar), sidecar.fileno(): (sidecar, kernel)}
        while True:
            if not self.is_broken and self._left <= 0:
                self.is_broken = True
                self._breaks()
                return
            ready, _, _ = select.select([*ends, self._wake], [], [])
            if self._wake in ready:
                # For the accepting loop, which ends too.
                return
            for descriptor in ready:
                end, other = ends[descriptor]
                size = 65536 if self.is_broken else min(65536, max(1, self._left))
                data = end.recv(size)
                if not data:
                    return
                other.sendall(data)
                self._left -= len(data)
                if not self.is_broken and self._left <= 0:
                    break
