"""Fences of this process: armed, given away, burnt, closed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
from collections.abc import Callable

from envwatch.core import frames
from envwatch.core.events import (
    Allowance,
    Armed,
    Burnt,
    Event,
    Mounted,
    NotArmed,
    Snapshot,
)
from envwatch.core.fences import Bounds
from kernel_client import arming, fence, instances, snapshot
from kernel_client.errors import FenceError
from kernel_client.view import view

MAX_FENCES = 64

CLOSE_AFTER_S = 0.1


def bounds(mode: str) -> Bounds:
    """Give how many fences this user's limits leave room for."""
    instances = arming.max_user_instances()
    return Bounds(
        mode=mode,
        max_fences=min(MAX_FENCES, instances // 2),
        max_held=instances * 3 // 4,
        max_watches=arming.max_watches(),
        min_paths=fence.MIN_PATHS,
    )


class Fences:
    """Holds the descriptors, by the core's numbers, and tells when one is burnt.

    Nobody reads a fence: it stays readable for the kernels that share it.
    """

    def __init__(self, handle: Callable[[Event], None]) -> None:
        self._handle = handle
        self._loop = asyncio.get_running_loop()
        self._armed: dict[int, arming.Armed] = {}
        self._mounts: Mounts | None = None
        self._closing: set[int] = set()
        self._clearing: asyncio.Future[None] | None = None

    def arm(self, root: str, seen: Snapshot, allowance: Allowance) -> Armed | NotArmed:
        """Arm one, and compare the snapshot a last time; on a worker thread."""
        number = allowance.number
        paths = fence.present(seen)
        if len(paths) < allowance.min_paths:
            return NotArmed(number, "few", "there is little to watch")
        try:
            armed = arming.arm(paths, allowance.max_watches)
        except FenceError as error:
            return NotArmed(number, error.code, str(error))
        try:
            problem = _problem(armed, seen, paths)
        except (OSError, ValueError):
            problem = _CHANGED
        if problem is not None:
            instances.close_later(armed.descriptor)
            return NotArmed(number, *problem)
        self._armed[number] = armed
        covered = fence.named(frozenset(paths) - armed.rest)
        return Armed(
            number,
            seen,
            tuple(each for each in seen if each[1] is None or each[0] in armed.rest),
            frames.fence(root, covered, armed.rest, view()),
            len(armed.watches),
        )

    def guard(self, outcome: Armed | NotArmed | None) -> None:
        """Begin to listen to one that was armed; on the loop."""
        if self._mounts is None:
            self._listen_to_mounts()
        if isinstance(outcome, Armed):
            armed = self._armed[outcome.number]
            number = outcome.number
            self._loop.add_reader(armed.descriptor, self._burn, number)

    def descriptor(self, number: int, session: int) -> int | None:
        """Give the descriptor of one that is quiet; tells of one that is not."""
        armed = self._armed.get(number)
        if armed is None:
            return None
        if not armed.is_quiet():
            self._burn(number, session)
            return None
        return armed.descriptor

    def is_quiet(self, number: int) -> bool:
        """Tell whether one is there and nothing has happened."""
        armed = self._armed.get(number)
        return armed is not None and armed.is_quiet()

    def retire(self, number: int, *, clear: bool) -> None:
        """Close one; `clear` takes its watches back from all who hold it."""
        armed = self._armed.pop(number, None)
        if armed is None:
            return
        self._loop.remove_reader(armed.descriptor)
        if clear:
            # Thousands of watches take milliseconds that no kernel waits for.
            self._clearing = self._loop.run_in_executor(None, _clear, armed)
            return
        # Later: who closes the last copy waits 10 ms, and a kernel must not.
        self._closing.add(armed.descriptor)
        self._loop.call_later(CLOSE_AFTER_S, self._close, armed.descriptor)

    def _close(self, descriptor: int) -> None:
        if descriptor in self._closing:
            self._closing.discard(descriptor)
            instances.close_later(descriptor)

    def close(self) -> None:
        """Close all of them; the kernels' own copies go on."""
        for number in list(self._armed):
            self.retire(number, clear=False)
        for descriptor in list(self._closing):
            self._close(descriptor)
        if self._mounts is not None:
            self._loop.remove_reader(self._mounts.descriptor)
            self._mounts.close()
            self._mounts = None

    def _burn(self, number: int, wanted_by: int | None = None) -> None:
        # It stays readable for ever.
        self._loop.remove_reader(self._armed[number].descriptor)
        self._handle(Burnt(number, wanted_by))

    def _listen_to_mounts(self) -> None:
        with contextlib.suppress(OSError):
            self._mounts = Mounts()
            self._loop.add_reader(self._mounts.descriptor, self._handle, Mounted())


class Mounts:
    """Tells when the table of mounts changes: its `descriptor` is readable then, once.

    Raises OSError where there is no such table.
    """

    def __init__(self) -> None:
        self._table = os.open("/proc/self/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
        # The table itself can always be read; only a change is urgent.
        self._epoll = select.epoll()
        self._epoll.register(self._table, select.EPOLLPRI)
        self.descriptor = self._epoll.fileno()

    def close(self) -> None:
        """Close both descriptors."""
        self._epoll.close()
        os.close(self._table)


_CHANGED = ("changed", "something changed while it was armed")


def _problem(
    armed: arming.Armed, seen: Snapshot, paths: list[str]
) -> tuple[str, str] | None:
    if 2 * len(armed.rest) > len(paths):
        return "filesystem", "inotify cannot be believed where most paths lie"
    return None if snapshot.compare(seen) is seen else _CHANGED


def _clear(armed: arming.Armed) -> None:
    armed.clear()
    instances.close(armed.descriptor)
