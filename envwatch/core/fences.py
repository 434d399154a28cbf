"""Fences: for which keys one is armed, who holds it, and when another must go.

A fence is an inotify descriptor that kernels poll in place of many stats
(PROTOCOL.md, `fence`). It belongs to one key and one snapshot. Nothing rests on
it here but cost: a kernel compares everything once after it was given one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from envwatch.core.events import (
    Allowance,
    Arm,
    Armed,
    Effect,
    Key,
    NotArmed,
    Pass,
    Retire,
    Snapshot,
)
from envwatch.core.session import Session, Sessions
from envwatch.core.watchset import WatchSet
from kernel_client.settings import ALWAYS, OFF

FIRST_PAUSE_S = 1.0
LAST_PAUSE_S = 30.0
"""How long a key waits for its next fence; longer each time one did not last."""

CALM_S = 10.0
"""A fence that was quiet for so long has lasted."""

IN_USE_S = 60.0
"""A fence that a kernel polled within this time does not go for another one."""

CLEAR_AFTER_S = 5.0
"""A fence that is of no use, and still held by kernels, loses its watches then."""

_NO_WATCHES = "a tenth of fs.inotify.max_user_watches is in use"

_SHORT = frozenset({"instances", "watches", "inotify"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How many fences there may be.

    `mode` is `auto`, `always` or `off`; `max_fences` those in use, `max_held`
    with those that are of no use but not yet given up by every kernel;
    `max_watches` the inotify watches of all together, `min_paths` the fewest
    paths that are worth one.
    """

    mode: str = OFF
    max_fences: int = 64
    max_held: int = 96
    max_watches: int = 0
    min_paths: int = 16


@dataclass(slots=True)
class Fence:
    """One fence; times in monotonic seconds.

    `used`: when a kernel last told that it polls it; `holders`: sessions that
    were given it and have not said otherwise; `gone`: since when it is of no use.
    """

    key: Key
    armed: Armed
    born: float
    used: float
    holders: set[int] = field(default_factory=set[int])
    gone: float = 0.0
    cleared: bool = False

    @property
    def number(self) -> int:
        """Its number, as the runtime knows it."""
        return self.armed.number


@dataclass(slots=True)
class Pace:
    """When the next fence of a key may be armed."""

    due: float = 0.0
    pause_s: float = FIRST_PAUSE_S


@dataclass(slots=True)
class Fences:
    """All fences. Effects are appended to `out`.

    `reason` tells in one line why there are not more, or is None.
    """

    bounds: Bounds
    sessions: Sessions
    watchset: WatchSet
    out: list[Effect]
    reason: str | None = None
    _fences: dict[Key, Fence] = field(default_factory=dict[Key, Fence])
    _gone: dict[int, Fence] = field(default_factory=dict[int, Fence])
    _arming: dict[int, Key] = field(default_factory=dict[int, Key])
    _asked: dict[Key, set[int]] = field(default_factory=dict[Key, set[int]])
    _paces: dict[Key, Pace] = field(default_factory=dict[Key, Pace])
    _numbers: int = 0

    def __len__(self) -> int:
        return len(self._fences)

    def __iter__(self) -> Iterator[Fence]:
        return iter(self._fences.values())

    @property
    def watches(self) -> int:
        """How many inotify watches they use."""
        used = sum(each.armed.watches for each in self._fences.values())
        return used + sum(
            each.armed.watches for each in self._gone.values() if not each.cleared
        )

    def of_root(self, root: str) -> int:
        """Tell how many of a root file's keys have a fence."""
        return sum(key.root == root for key in self._fences)

    def get(self, key: Key, snapshot: Snapshot) -> Fence | None:
        """Give the fence that was armed for this key and snapshot."""
        fence = self._fences.get(key)
        if fence is None:
            return None
        mine = fence.armed.snapshot
        return fence if mine is snapshot or mine == snapshot else None

    # ------------------------------------------------------------ arming

    def allowance(self, key: Key, now: float) -> Allowance | None:
        """Give leave to arm a fence for a key, where there is room for it."""
        bounds = self.bounds
        if bounds.mode == OFF or key in self._arming.values():
            return None
        if not any(session.can_fence for session in self.sessions.having(key)):
            return None
        if not self._has_room(key, now):
            self.reason = f"{bounds.max_fences} fences are the limit"
            return None
        left = bounds.max_watches - self.watches
        if left <= 0:
            self.reason = _NO_WATCHES
            return None
        self._numbers += 1
        self._arming[self._numbers] = key
        least = 1 if bounds.mode == ALWAYS else bounds.min_paths
        return Allowance(self._numbers, least, left)

    def _has_room(self, key: Key, now: float) -> bool:
        """Tell whether there may be one more fence; one may go for it."""
        bounds, arming = self.bounds, set(self._arming.values())
        # Each may stay in kernels' hands when the next one of its key is there.
        if len(self._fences) + len(self._arming) + len(self._gone) >= bounds.max_held:
            return False
        others = (self._fences.keys() | arming) - {key}
        if len(others) < bounds.max_fences:
            return True
        idle = [
            fence
            for fence in self._fences.values()
            if fence.key not in arming and now - fence.used >= IN_USE_S
        ]
        if not idle:
            return False
        self._retire(min(idle, key=lambda fence: fence.used), now, at_once=True)
        return True

    def armed_anew(self, fence: Armed | NotArmed, now: float, *, is_used: bool) -> None:
        """Take in the fence of an evaluation; `is_used` False: nobody wants it now."""
        key = self._arming.get(fence.number)
        if key is not None:
            self._paces.pop(key, None)
        self.armed(fence, now, is_used=is_used)

    def armed(
        self, fence: Armed | NotArmed, now: float, *, is_used: bool = True
    ) -> None:
        """Take in what came of an allowance."""
        key = self._arming.pop(fence.number, None)
        asked = set[int]() if key is None else self._asked.pop(key, set())
        if isinstance(fence, NotArmed):
            if fence.code in _SHORT:
                self.reason = fence.message
            return
        if key is None or not is_used or not self.sessions.is_loaded(key):
            self.out.append(Retire(fence.number, clear=False))
            return
        old = self._fences.get(key)
        if old is not None:
            self._retire(old, now)
        if self.watches + fence.watches > self.bounds.max_watches:
            # Another one was armed meanwhile.
            self.reason = _NO_WATCHES
            self.out.append(Retire(fence.number, clear=False))
            return
        self.reason = None
        self._fences[key] = Fence(key, fence, now, now)
        for number in asked:
            session = self.sessions.get(number)
            if session is not None and session.loaded == key:
                self._pass(self._fences[key], session, now)

    # ------------------------------------------------------------ kernels

    def give(self, session: Session, key: Key, snapshot: Snapshot, now: float) -> None:
        """Send the fence of a diff that is being given, if there is one."""
        fence = self.get(key, snapshot)
        if fence is not None and session.can_fence:
            self._pass(fence, session, now)

    def heard(self, session: Session, key: Key, now: float, *, held: bool) -> None:
        """A kernel polls the fence that it has, or wants one."""
        fence = self._fences.get(key)
        if held:
            if fence is not None:
                fence.used = now
            return
        self.release(session)
        if fence is not None:
            # Perhaps once more: it may not have reached that kernel. One that is
            # burnt is not sent, and comes back by `burnt`.
            self._pass(fence, session, now)
            return
        self._want(session, key, now)

    def release(self, session: Session) -> None:
        """A session has no fence any more."""
        number, session.fence = session.fence, None
        if number is None:
            return
        for fence in self._fences.values():
            if fence.number == number:
                fence.holders.discard(session.number)
                return
        gone = self._gone.get(number)
        if gone is None:
            return
        gone.holders.discard(session.number)
        if not gone.holders:
            del self._gone[number]
            if not gone.cleared:
                self.out.append(Retire(number, clear=False))

    # ------------------------------------------------------------ ends

    def burnt(self, number: int, wanted_by: int | None, now: float) -> None:
        """Something may have changed under a fence.

        `wanted_by` is the session that it was to be sent to just now.
        """
        session = None if wanted_by is None else self.sessions.get(wanted_by)
        if session is not None and session.fence == number:
            self.release(session)
        fence = next((each for each in self if each.number == number), None)
        if fence is None:
            return
        self._retire(fence, now)
        if session is not None and session.loaded == fence.key:
            self._want(session, fence.key, now)

    def burn_all(self, now: float) -> None:
        """Mounts have changed: paths may lead elsewhere now."""
        for fence in list(self._fences.values()):
            self._retire(fence, now)

    def drop(self, key: Key, now: float) -> None:
        """Nobody has this key loaded any more."""
        self._asked.pop(key, None)
        fence = self._fences.get(key)
        if fence is not None:
            self._retire(fence, now)
        self._paces.pop(key, None)

    def tick(self, now: float) -> None:
        """Arm what had to wait; take back watches that are of no use."""
        for key in list(self._asked):
            self._arm(key, now)
        for fence in self._gone.values():
            if not fence.cleared and now - fence.gone >= CLEAR_AFTER_S:
                self._clear(fence)

    # ------------------------------------------------------------ within

    def _want(self, session: Session, key: Key, now: float) -> None:
        self._asked.setdefault(key, set()).add(session.number)
        self._arm(key, now)

    def _arm(self, key: Key, now: float) -> None:
        pace = self._paces.setdefault(key, Pace())
        watched = self.watchset.get(key)
        if watched is None:
            self._asked.pop(key, None)
            return
        if now < pace.due:
            return
        allowance = self.allowance(key, now)
        if allowance is None:
            if key not in self._arming.values():
                self._asked.pop(key, None)
            return
        pace.due = now + pace.pause_s
        pace.pause_s = min(LAST_PAUSE_S, pace.pause_s * 2)
        self.out.append(Arm(key, watched.snapshot, allowance))

    def _pass(self, fence: Fence, session: Session, now: float) -> None:
        if session.fence == fence.number:
            return
        self.release(session)
        fence.used = now
        fence.holders.add(session.number)
        session.fence = fence.number
        self.out.append(Pass(session.number, fence.armed.frame, fence.number))

    def _retire(self, fence: Fence, now: float, *, at_once: bool = False) -> None:
        del self._fences[fence.key]
        self.reason = None
        pace = self._paces.setdefault(fence.key, Pace())
        lasted = now - fence.born >= CALM_S
        pace.pause_s = FIRST_PAUSE_S if lasted else min(LAST_PAUSE_S, pace.pause_s * 2)
        if not fence.holders:
            self.out.append(Retire(fence.number, clear=False))
            return
        fence.gone = now
        self._gone[fence.number] = fence
        if at_once:
            self._clear(fence)

    def _clear(self, fence: Fence) -> None:
        fence.cleared = True
        self.out.append(Retire(fence.number, clear=True))
