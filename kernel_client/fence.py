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

from kernel_client import messages, settings as names
from kernel_client.errors import FenceError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Optional

    from kernel_client.settings import Settings
    from kernel_client.sidecar import Link
    from kernel_client.snapshot import Snapshot
    from kernel_client.wire import Frame

    Poll = Callable[[int], list[tuple[int, int]]]
    Guard = tuple[frozenset[str], Optional[Poll], Optional[float]]

MIN_PATHS = 16
"""Snapshots with fewer paths that are there are left to stats."""

MIN_PATHS_OWN = 128
"""The same for a fence of one kernel's own: it takes an instance for itself."""

MAX_WATCHES_SHARE = 10
"""One of so many of the user's inotify watches may be used by one process."""

FIRST_PAUSE_S = 1.0
LAST_PAUSE_S = 60.0
_CALM_S = 10.0


class Fence:
    """One fence in this kernel's hands.

    `descriptor` is the inotify instance, `mounts` the table of mounts; both are
    closed with it (the first by `close_with`). `digest` names the paths that it covers (`named`), `rest` are
    paths of the same snapshot that it does not.

    Raises:
        FenceError: that descriptor is none; it is closed.
    """

    __slots__ = (
        "born",
        "close_with",
        "descriptor",
        "digest",
        "is_burnt",
        "mounts",
        "rest",
        "root",
    )

    def __init__(
        self,
        root: str,
        descriptor: int,
        digest: str,
        rest: Iterable[str],
        close_with: Callable[[int], None] = os.close,
    ) -> None:
        self.close_with = close_with
        self.root = root
        self.descriptor = descriptor
        self.digest = digest
        self.rest = frozenset(rest)
        self.is_burnt = False
        self.born = time.monotonic()
        self.mounts = -1
        try:
            self.mounts = os.open("/proc/self/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self.close()
            raise FenceError("inotify", "the table of mounts is not there") from None
        if _leads(descriptor) != _INOTIFY:
            os.close(descriptor)
            self.close()
            raise FenceError("inotify", "that descriptor is no fence")

    def register(self, poll: select.poll) -> None:
        """Have a poll wait for both descriptors."""
        poll.register(self.descriptor, select.POLLIN)
        poll.register(self.mounts, select.POLLPRI)

    def is_quiet(self) -> bool:
        """Tell whether nothing has happened; once it has, it stays so."""
        if not self.is_burnt:
            poll = select.poll()
            self.register(poll)
            self.is_burnt = bool(poll.poll(0)) or _leads(self.descriptor) != _INOTIFY
        return not self.is_burnt

    def close(self) -> None:
        """Close both descriptors."""
        self.is_burnt = True
        descriptor, mounts = self.descriptor, self.mounts
        self.descriptor = self.mounts = -1
        if _leads(mounts).endswith("/mountinfo"):
            os.close(mounts)
        if _leads(descriptor) == _INOTIFY:
            self.close_with(descriptor)


_INOTIFY = "anon_inode:inotify"


def _leads(descriptor: int) -> str:
    """Tell what a descriptor is; "" for none.

    Somebody may close what is not theirs, and the number goes to another file.
    """
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return ""


class Fences:
    """The fence of what is loaded: asks for it, holds it, gives it up."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._recheck_s = settings.fence_recheck_s
        self._pending: Fence | None = None
        self._held: Fence | None = None
        self._covered: tuple[Snapshot, Fence, frozenset[str]] | None = None
        self._is_copy = False
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
        """Note what the fast path's poll gave: a mount tells only once."""
        held = self._held
        if held is not None and any(
            number in (held.descriptor, held.mounts) for number, _ in ready
        ):
            held.is_burnt = True

    # ------------------------------------------------------------ what counts

    def prepare(self, root: str, snapshot: Snapshot, link: Link | None) -> None:
        """Take up a fence; the snapshot is to be compared after this."""
        now = time.monotonic()
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
            and not _gives(link)
            and now >= self._ask_at
            and self._is_wanted(snapshot, link)
        ):
            self._wait(now)
            self._held = _own(root, snapshot)

    def renew(self) -> None:
        """A new record: what was held belonged to the one before."""
        self._drop()
        self._is_copy = False
        self._pause_s = FIRST_PAUSE_S
        self._ask_at = 0.0 if self._is_eager else time.monotonic() + FIRST_PAUSE_S

    def guard(self, root: str, snapshot: Snapshot, link: Link | None) -> Guard:
        """Give (paths covered, poll, when to look again) for a compared snapshot.

        The root file itself stays with stats: that tells too when a folder above
        is closed to us. When to look again is in monotonic seconds; None: never.
        Asks the sidecar for a fence where there is none.

        Raises:
            SidecarError: the sidecar has gone.
        """
        now = time.monotonic()
        held = self._held
        covered = None if held is None else self._covers(held, snapshot)
        if held is None or not covered or held.root != root or not held.is_quiet():
            pipe = None if link is None else link.poll
            if not self._is_wanted(snapshot, link):
                return frozenset(), pipe, None
            if link is not None and link.fences and now >= self._ask_at:
                self._wait(now)
                link.send(messages.fence(root, held=False))
            return frozenset(), pipe, self._ask_at
        if link is not None and link.fences and now - self._told_at >= self._recheck_s:
            self._told_at = now
            link.send(messages.fence(root, held=True))
        poll = select.poll()
        if link is not None:
            link.register(poll)
        held.register(poll)
        return covered - {root}, poll.poll, now + self._recheck_s

    def close(self) -> None:
        """Give up whatever is held."""
        self._drop_pending()
        self._drop()

    def forget(self) -> None:
        """In a forked child: close the copies; it has no fence of its own.

        A pool of short-lived children would use up the user's instances.
        """
        for fence in (self._held, self._pending):
            if fence is not None:
                # Not the last copy, and no thread is to be started in a child.
                fence.close_with = os.close
        self.close()
        self._is_copy = True

    # ------------------------------------------------------------ within

    @property
    def _is_eager(self) -> bool:
        return self._settings.fence == names.ALWAYS

    def _wait(self, now: float) -> None:
        """Neither ask nor arm again too soon, and later each time."""
        self._ask_at = now if self._is_eager else now + self._pause_s
        self._pause_s = min(LAST_PAUSE_S, self._pause_s * 2)

    def _is_wanted(self, snapshot: Snapshot, link: Link | None) -> bool:
        is_shared = _gives(link)
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
            paths = [path for path in present(snapshot) if path not in held.rest]
            is_same = named(paths) == held.digest
            covered = frozenset(paths) if is_same else frozenset[str]()
            known = self._covered = (snapshot, held, covered)
        return known[2]

    def _drop(self) -> None:
        held, self._held = self._held, None
        self._covered = None
        if held is not None:
            held.close()

    def _drop_pending(self) -> None:
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.close()


def _gives(link: Link | None) -> bool:
    """Tell whether a sidecar is there that gives fences."""
    return link is not None and link.fences


def present(snapshot: Snapshot) -> list[str]:
    """Give the paths of a snapshot that were there: those that a fence can cover."""
    return [path for path, seen, _, _ in snapshot if seen is not None]


def named(paths: Iterable[str]) -> str:
    """Give the name on the pipe of a set of paths (PROTOCOL.md, `fence`)."""
    from hashlib import sha256

    data = b"\0".join(sorted(os.fsencode(path) for path in set(paths)))
    return sha256(data).hexdigest()


def view() -> str:
    """Name the mounts that this process sees; "" where that cannot be told.

    In another mount namespace, or below another root, a path can lead elsewhere.
    """
    try:
        root = os.stat("/")
        namespace = os.stat("/proc/self/ns/mnt").st_ino
    except OSError:
        return ""
    return f"{namespace} {root.st_dev} {root.st_ino}"


def _own(root: str, snapshot: Snapshot) -> Fence | None:
    """Arm a fence for this kernel alone, where that can be done."""
    try:
        from kernel_client import arming
    except (ImportError, OSError):
        return None  # a Python without ctypes
    paths = present(snapshot)
    try:
        budget = arming.max_user_watches() // MAX_WATCHES_SHARE
        armed = arming.arm(paths, budget)
        digest = named(path for path in paths if path not in armed.rest)
        return Fence(root, armed.descriptor, digest, armed.rest, arming.close)
    except FenceError:
        return None
