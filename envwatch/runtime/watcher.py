"""Watches folders, and goes on when that cannot be done (NUMBERS.md section 5).

One watcher for all folders; another set builds a new one, which is up before the
old one closes. Whatever was lost in between is found by comparing everything.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from envwatch.core.events import Event, FoldersChanged, Unsure, WatchingState

if TYPE_CHECKING:
    from envwatch.runtime.armed import Armed

QUIET_S = 0.02
"""Wants that come together are built together."""

BUILD_SHARE = 10
"""Building takes at most one part in so many of the time."""

FIRST_PAUSE_S = 0.1
LAST_PAUSE_S = 30.0
CALM_S = 2 * LAST_PAUSE_S
"""A watcher that has lived for so long starts with the first pause again."""

_BAD_NAME = "a file name that is not UTF-8 keeps its folder from being watched"
_REMEDIES = (
    (
        "OS file watch limit",
        "the limit of watched folders is reached",
        "raise fs.inotify.max_user_watches",
    ),
    (
        "Too many open files",
        "the limit of inotify instances is reached",
        "raise fs.inotify.max_user_instances",
    ),
)


class Watcher:
    """Performs `Watch`: tells of changed folders, and of its own troubles."""

    def __init__(self, handle: Callable[[Event], None]) -> None:
        self._handle = handle
        self._wanted: frozenset[str] = frozenset()
        self._left_out: dict[str, str] = {}
        self._armed: Armed | None = None
        self._turn = anyio.Event()
        self._rebuild = False
        self._doubt = False
        self._is_closed = False
        self._is_degraded = False
        self._pause_s = 0.0
        self._died_at = 0.0
        # Bad names are looked for only after a death: a name that nobody touches
        # does no harm, and to list a large folder costs a fifth of a second.
        self._is_wary = False
        self._limiter = anyio.CapacityLimiter(4)

    def want(self, folders: frozenset[str]) -> None:
        """Watch exactly these; the same again: make sure that they are watched."""
        self._doubt = self._doubt or folders == self._wanted
        self._rebuild = self._rebuild or folders != self._wanted
        self._wanted = folders
        self._turn.set()

    def close(self) -> None:
        """Stop watching; `run` ends soon."""
        self._is_closed = True
        self._disarm()
        self._turn.set()

    async def run(self) -> None:
        """Keep a watcher for what is wanted, until `close`."""
        async with anyio.create_task_group() as tasks:
            try:
                while not self._is_closed:
                    await self._turn.wait()
                    self._turn = anyio.Event()
                    if self._doubt:
                        self._doubt = False
                        self._rebuild = self._rebuild or await self._is_doubtful()
                    if not self._rebuild or self._is_closed:
                        continue
                    await anyio.sleep(max(QUIET_S, self._pause()))
                    self._rebuild = False
                    started = time.monotonic()
                    armed = await self._build()
                    if armed is not None:
                        tasks.start_soon(self._listen, armed)
                    await anyio.sleep((time.monotonic() - started) * BUILD_SHARE)
            finally:
                self._disarm()

    # ------------------------------------------------------------ building

    async def _is_doubtful(self) -> bool:
        armed = self._armed
        if armed is None or self._is_degraded:
            return bool(self._wanted)
        return not await to_thread.run_sync(armed.is_true, limiter=self._limiter)

    async def _build(self) -> Armed | None:
        """Build a new watcher, then close the old one; tells how it went."""
        wanted = self._wanted
        if not wanted:
            self._disarm()
            self._state("off")
            return None
        try:
            self._left_out, armed = await to_thread.run_sync(
                _build, wanted, self._is_wary, limiter=self._limiter
            )
        except Exception as error:  # noqa: BLE001 - whatever it is, sweeps go on
            # The old one, if it lives, still tells of some folders.
            self._degraded(*_trouble(error))
            self._handle(Unsure())
            return None
        if self._is_closed:
            if armed is not None:
                armed.close()
            return None
        self._disarm()
        self._armed = armed
        self._is_wary = _BAD_NAME in self._left_out.values()
        if self._left_out:
            self._degraded(next(iter(self._left_out.values())), None)
        else:
            self._state("ok")
        self._handle(Unsure())
        return armed

    def _disarm(self) -> None:
        armed, self._armed = self._armed, None
        if armed is not None:
            armed.close()

    # ------------------------------------------------------------ listening

    async def _listen(self, armed: Armed) -> None:
        while armed is self._armed:
            try:
                changes = await to_thread.run_sync(armed.wait, limiter=self._limiter)
            except Exception:  # noqa: BLE001 - a dead watcher, or one that was closed
                if armed is self._armed:
                    self._died()
                return
            if changes is None or self._is_closed:
                return
            self._handle(
                Unsure() if changes.overflow else FoldersChanged(changes.folders)
            )
            if changes.rebuild:
                self._again()

    def _died(self) -> None:
        """Build another one, later each time when it dies again and again."""
        self._pause_s = min(LAST_PAUSE_S, max(FIRST_PAUSE_S, self._pause() * 2))
        self._died_at = time.monotonic()
        self._is_wary = True
        self._disarm()
        self._handle(Unsure())
        self._again()

    def _pause(self) -> float:
        """Give how long to wait before building; nothing after a calm time."""
        if time.monotonic() - self._died_at > CALM_S:
            self._pause_s = 0.0
        return self._pause_s

    def _again(self) -> None:
        self._rebuild = True
        self._turn.set()

    # ------------------------------------------------------------ telling

    def _degraded(self, reason: str, remedy: str | None) -> None:
        self._is_degraded = True
        self._handle(WatchingState("degraded", reason, remedy))

    def _state(self, state: str) -> None:
        self._is_degraded = False
        self._handle(WatchingState(state))


def _build(
    wanted: frozenset[str],
    is_wary: bool,  # noqa: FBT001 - passed on by run_sync, which takes no keywords
) -> tuple[dict[str, str], Armed | None]:
    """Give the folders that must be swept, each with its reason, and a watcher."""
    # Here, on a worker thread: it costs milliseconds that no kernel waits for.
    from envwatch.runtime import armed  # noqa: PLC0415

    left_out: dict[str, str] = {}
    for folder in wanted:
        reason = armed.unwatchable(folder)
        if reason is None and is_wary and armed.has_bad_name(folder):
            reason = _BAD_NAME
        if reason is not None:
            left_out[folder] = reason
    rest = wanted - left_out.keys()
    return left_out, armed.Armed.build(rest) if rest else None


def _trouble(error: Exception) -> tuple[str, str | None]:
    """Give the reason and the remedy; both errors come without an errno."""
    text = str(error)
    for mark, reason, remedy in _REMEDIES:
        if mark in text:
            return reason, remedy
    return f"the watcher cannot be started ({type(error).__name__})", None
