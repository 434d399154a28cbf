"""The sidecar as a view meets it: one connection, and one question a second.

A thread of its own does the waiting, so that a sidecar that is silent never holds up
a key. Nothing is subscribed to: between two questions the sidecar owes us nothing.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kernel_client import messages
from kernel_client.errors import SidecarError
from kernel_client.sidecar import Link

EVERY_S = 1.0
"""The time between two questions."""

_WAIT_S = 3.0
_JOIN_S = 0.5
_ABSENT = frozenset({"absent", "closed"})


@dataclass(frozen=True)
class Told:
    """What the sidecar answered at a time (monotonic seconds)."""

    status: dict[str, Any]
    at: float


@dataclass(frozen=True)
class Lost:
    """There is no sidecar to be had; `is_absent`: nobody listens at all."""

    reason: str
    is_absent: bool


@dataclass(frozen=True)
class Reloaded:
    """A reload was told to so many kernels; None: it was not."""

    root: str
    kernels: int | None


Heard = Told | Lost | Reloaded


class Feed:
    """Asks until it is closed; `hear` gets what comes, on the feed's own thread.

    `connect` gives a connection, or raises `SidecarError`.
    """

    def __init__(
        self,
        connect: Callable[[], Link],
        hear: Callable[[Heard], object],
        *,
        every_s: float = EVERY_S,
    ) -> None:
        self._connect = connect
        self._hear = hear
        self._every_s = every_s
        self._link: Link | None = None
        self._orders: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)

    def open(self) -> None:
        """Begin to ask."""
        self._thread.start()

    def reload(self, root: str) -> None:
        """Have every kernel load a root file again, and ask anew at once."""
        self._orders.put(root)

    def close(self) -> None:
        """Ask no more; a question that is under way is not waited for long."""
        self._is_closed = True
        self._orders.put(None)
        self._thread.join(_JOIN_S)

    def _run(self) -> None:
        root: str | None = None
        while not self._is_closed:
            if root is not None:
                self._say(Reloaded(root, self._reloaded(root)))
            self._say(self._asked())
            try:
                root = self._orders.get(timeout=self._every_s)
            except queue.Empty:
                root = None
        self._drop()

    def _say(self, heard: Heard) -> None:
        if not self._is_closed:
            self._hear(heard)

    def _asked(self) -> Told | Lost:
        try:
            link = self._linked()
            answer = link.request(messages.status(link.number()), _WAIT_S)
        except SidecarError as error:
            self._drop()
            return Lost(str(error), is_absent=error.code in _ABSENT)
        status = answer.get("status")
        return Told(status if isinstance(status, dict) else {}, time.monotonic())

    def _reloaded(self, root: str) -> int | None:
        try:
            link = self._linked()
            answer = link.request(messages.reload(link.number(), root=root), _WAIT_S)
        except SidecarError:
            self._drop()
            return None
        kernels = answer.get("kernels")
        return kernels if isinstance(kernels, int) else 0

    def _linked(self) -> Link:
        if self._link is None:
            self._link = self._connect()
        return self._link

    def _drop(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.close()
