"""What a kernel holds of a fence, and when it gets another one.

A fence is an inotify descriptor (arming.py): quiet means that no path it covers
has changed since it was armed. That counts only together with one comparison of
the snapshot made afterwards, so a fence is taken up before a comparison, never
after. The table of mounts is polled with it: a mount gives no event below.
"""

from __future__ import annotations

import os
import select
import time

from kernel_client import instances, lean, messages, settings as names
from kernel_client.errors import FenceError
from kernel_client.view import view

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from functools import partial
    from typing import Optional

    from kernel_client.settings import Settings
    from kernel_client.sidecar import Link
    from kernel_client.snapshot import Snapshot
    from kernel_client.wire import Frame

    Ready = list[tuple[int, int]]
    Poll = tuple[Callable[[], Ready], Ready]
    Guard = tuple[frozenset[str], Optional[Poll], Optional[float]]
else:
    # What `functools` adds to it costs a start of `envwatch exec` a millisecond.
    from _functools import partial

MIN_PATHS = 16
"""Snapshots with fewer paths that are there are left to stats."""

MIN_PATHS_OWN = 128
"""The same for a fence of one kernel's own: it takes an instance for itself."""

FIRST_PAUSE_S = 1.0
LAST_PAUSE_S = 60.0
_CALM_S = 10.0


class Fence:
    """One fence in this kernel's hands.

    `descriptor` is the inotify instance, closed with it; `digest` names the paths
    that it covers (`named`), `rest` are paths of the same snapshot that it does
    not. `poll` gives what is ready of it, the mounts and the pipe; `quiet` is what
    that is while nothing has happened: the table of mounts, which can always be
    read. Once its descriptors are closed, or their numbers are other files by now,
    it gives something else or fails.

    Raises:
        FenceError: that descriptor is none; it is closed.
    """

    def __init__(
        self, root: str, descriptor: int, digest: str, rest: Iterable[str]
    ) -> None:
        self.root = root
        self.descriptor = instances.hold(descriptor)
        self.digest = digest
        self.rest = frozenset(rest)
        self.is_burnt = False
        self.born = time.monotonic()
        self._link: Link | None = None
        self._view = view()
        self._mounts = -1
        self._epoll: select.epoll | None = None
        try:
            if os.readlink(f"/proc/self/fd/{descriptor}") != instances.INOTIFY:
                raise OSError
            self._epoll = select.epoll()
            self._mounts = os.open("/proc/self/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
            # A change of the mounts is urgent, and told once.
            self._epoll.register(self._mounts, select.EPOLLIN | select.EPOLLPRI)
            self._epoll.register(descriptor, select.EPOLLIN)
        except OSError:
            # Nobody else can have closed them yet.
            instances.close(descriptor)
            self.abandon()
            raise FenceError("inotify", "that descriptor is no fence") from None
        self.poll: Callable[[], Ready] = partial(self._epoll.poll, 0, 4)
        self.quiet = [(self._mounts, select.EPOLLIN)]

    def listen(self, link: Link | None) -> None:
        """Have the poll wait for what comes over this pipe too."""
        if link is self._link or self._epoll is None:
            return
        # An older one was closed, and so is gone by itself.
        self._link = link
        if link is not None:
            self._epoll.register(link.fileno(), select.EPOLLIN)

    def is_quiet(self) -> bool:
        """Tell whether nothing has happened; once it has, it stays so."""
        if self._epoll is None or self.is_burnt:
            return False
        try:
            self.hear(self.poll())
        except (OSError, ValueError):
            self.is_burnt = True
        if not _watches(self._epoll, self.descriptor, select.EPOLLIN):
            self.is_burnt = True
        if self._view != view():
            self.is_burnt = True
        return not self.is_burnt

    def hear(self, ready: Ready) -> None:
        """Note what its poll gave, the pipe left out: a mount is told only once."""
        numbers = self.numbers
        if [each for each in ready if each[0] in numbers] != self.quiet:
            self.is_burnt = True

    @property
    def numbers(self) -> tuple[int, int]:
        """The numbers of its two descriptors."""
        return self.descriptor, self._mounts

    def burn(self) -> None:
        """It is of no use any more."""
        self.is_burnt = True

    def close(self, *, later: bool = False) -> None:
        """Close what is still ours; `later` does not wait for Linux."""
        self.is_burnt = True
        epoll, self._epoll = self._epoll, None
        descriptor, mounts = self.descriptor, self._mounts
        self.descriptor = self._mounts = -1
        if epoll is None:
            return
        has_mounts = _watches(epoll, mounts, select.EPOLLIN | select.EPOLLPRI)
        has_fence = _watches(epoll, descriptor, select.EPOLLIN)
        if not has_fence:
            instances.forget(descriptor)
        else:
            (instances.close_later if later else instances.close)(descriptor)
        if has_mounts:
            os.close(mounts)
        if has_fence or has_mounts:
            epoll.close()
        else:
            # Perhaps its own number is another file's: it must not be closed.
            _lost.append(epoll)

    def abandon(self) -> None:
        """Close the rest, where the instance itself is closed already.

        Nothing is asked of the epoll: in a forked child it is the parent's too, and
        so is what it has not told yet.
        """
        self.is_burnt = True
        epoll, self._epoll = self._epoll, None
        mounts = self._mounts
        self.descriptor = self._mounts = -1
        if epoll is not None:
            epoll.close()
        if mounts >= 0:
            os.close(mounts)

    def __del__(self) -> None:
        # A client that was dropped without close().
        self.close()


_lost: list[select.epoll] = []


def _watches(epoll: select.epoll, number: int, events: int) -> bool:
    """Tell whether a number is still the file that was registered."""
    try:
        epoll.modify(number, events)
    except (OSError, ValueError):
        return False
    return True


_NOTHING: Ready = []


class Fences:
    """The fence of what is loaded: asks for it, holds it, gives it up."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._recheck_s = settings.fence_recheck_s
        self._pending: Fence | None = None
        self._held: Fence | None = None
        self._covered: tuple[Snapshot, Fence, frozenset[str]] | None = None
        self._is_copy = False
        self._is_last = True
        self._is_elsewhere = False
        self._ask_at = 0.0
        self._pause_s = FIRST_PAUSE_S
        self._told_at = 0.0

    # ------------------------------------------------------------ what comes

    def received(self, frame: Frame, descriptor: int) -> None:
        """Take in what the sidecar sent; counts from the next `prepare`."""
        self._drop_pending()
        if frame["view"] != view():
            os.close(descriptor)
            self._is_elsewhere = True
            return
        rest = [path for path in frame["rest"] if isinstance(path, str)]
        try:
            self._pending = Fence(frame["root"], descriptor, frame["paths"], rest)
        except FenceError:
            return

    def heard(self, ready: list[tuple[int, int]]) -> None:
        """Note what the fast path's poll gave."""
        if self._held is not None:
            self._held.hear(ready)

    def burn(self) -> None:
        """What the poll gave may have been lost."""
        if self._held is not None:
            self._held.burn()

    # ------------------------------------------------------------ what counts

    def prepare(self, root: str, snapshot: Snapshot, link: Link | None) -> None:
        """Take up a fence; the snapshot is to be compared after this."""
        now = time.monotonic()
        giver = _giver(link)
        self._is_last = giver is None
        pending, self._pending = self._pending, None
        if pending is not None:
            self._drop()
            self._held = pending
            self._told_at = now
        held = self._held
        if held is not None and (held.root != root or not held.is_quiet()):
            if now - held.born >= _CALM_S:
                self._pause_s = FIRST_PAUSE_S
            self._drop()
            if not self._is_eager:
                # Most likely a change; then there will be another snapshot.
                return
        if (
            self._held is None
            and giver is None
            and now >= self._ask_at
            and self._is_wanted(snapshot, is_shared=False)
        ):
            self._wait(now)
            self._held = _own(root, snapshot)

    def renew(self) -> None:
        """A new record: what was held belonged to the one before."""
        self._drop()
        self._pause_s = FIRST_PAUSE_S
        self._ask_at = 0.0 if self._is_eager else time.monotonic() + FIRST_PAUSE_S

    def guard(self, root: str, snapshot: Snapshot, link: Link | None) -> Guard:
        """Give (paths covered, poll, when to look again) for a compared snapshot.

        The poll is a pair: what to call, and what that gives while all is quiet.

        The root file itself stays with stats: that tells too when a folder above
        is closed to us. When to look again is in monotonic seconds; None: never.
        Asks the sidecar for a fence where there is none.

        Raises:
            SidecarError: the sidecar has gone.
        """
        now = time.monotonic()
        giver = _giver(link)
        held = self._held
        covered = None if held is None else self._covers(held, snapshot)
        if held is None or not covered or held.root != root or not held.is_quiet():
            pipe = None if link is None else (link.quiet_poll, _NOTHING)
            if not self._is_wanted(snapshot, is_shared=giver is not None):
                return frozenset(), pipe, None
            if giver is not None and now >= self._ask_at:
                self._wait(now)
                giver.send(messages.fence(root, held=False))
            return frozenset(), pipe, self._ask_at
        if giver is not None and now - self._told_at >= self._recheck_s:
            self._told_at = now
            giver.send(messages.fence(root, held=True))
        held.listen(link)
        return covered - {root}, (held.poll, held.quiet), now + self._recheck_s

    def close(self) -> None:
        """Give up whatever is held."""
        self._drop_pending()
        self._drop()

    def forget(self) -> None:
        """In a forked child, which has closed the instances: it has no fence.

        A pool of short-lived children would use up the user's instances, so that
        it arms none of its own either.
        """
        for each in (self._held, self._pending):
            if each is not None:
                each.abandon()
        self._held = self._pending = self._covered = None
        self._is_copy = True

    # ------------------------------------------------------------ within

    @property
    def _is_eager(self) -> bool:
        return self._settings.fence == names.ALWAYS

    def _wait(self, now: float) -> None:
        """Neither ask nor arm again too soon, and later each time."""
        self._ask_at = now if self._is_eager else now + self._pause_s
        self._pause_s = min(LAST_PAUSE_S, self._pause_s * 2)

    def _is_wanted(self, snapshot: Snapshot, *, is_shared: bool) -> bool:
        if self._settings.fence == names.OFF or (self._is_copy and not is_shared):
            return False
        if is_shared and self._is_elsewhere:
            # Its fences are of no use here, and never will be.
            return False
        least = MIN_PATHS if is_shared else MIN_PATHS_OWN
        if self._is_eager:
            least = 1
        if len(snapshot) < least:
            return False
        return sum(entry[1] is not None for entry in snapshot) >= least

    def _covers(self, held: Fence, snapshot: Snapshot) -> frozenset[str]:
        known = self._covered
        if known is None or known[0] is not snapshot or known[1] is not held:
            covered = frozenset(present(snapshot)) - held.rest
            if named(covered) != held.digest:
                covered = frozenset()
            known = self._covered = (snapshot, held, covered)
        return known[2]

    def _drop(self) -> None:
        held, self._held = self._held, None
        self._covered = None
        if held is not None:
            # The last copy, unless the sidecar has one.
            held.close(later=self._is_last)

    def _drop_pending(self) -> None:
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.close()


def _giver(link: Link | None) -> Link | None:
    """Give the pipe where the sidecar at its end gives fences."""
    return link if link is not None and link.fences else None


def present(snapshot: Snapshot) -> list[str]:
    """Give the paths of a snapshot that were there: those that a fence can cover."""
    return [path for path, seen, _, _ in snapshot if seen is not None]


def named(paths: Iterable[str]) -> str:
    """Give the name on the pipe of a set of paths (PROTOCOL.md, `fence`)."""
    return lean.sha256(b"\0".join(sorted(os.fsencode(path) for path in set(paths))))


def _own(root: str, snapshot: Snapshot) -> Fence | None:
    """Arm a fence for this kernel alone, where that can be done."""
    try:
        from kernel_client import arming
    except (ImportError, OSError):
        return None  # a Python without ctypes
    paths = present(snapshot)
    try:
        armed = arming.arm(paths, arming.max_watches())
        digest = named(frozenset(paths) - armed.rest)
        return Fence(root, armed.descriptor, digest, armed.rest)
    except FenceError:
        return None
