"""Arms a fence: an inotify instance that is readable once a path may have changed.

inotify queues an event inside the call that changes something, so a change that
has returned is seen by the next poll, whoever made it. Nobody reads the instance:
it stays readable for all who share it. Shared by the sidecar and by a kernel that
has none; imported where one is armed, never for a refresh.

For each path the inode itself is watched, every symbolic link on the way, and
every folder above, since a rename up there gives no event down here.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import stat as mode_bits

from kernel_client import instances
from kernel_client.errors import FenceError
from kernel_client.view import passes_everywhere

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MODIFY = 0x2
ATTRIB = 0x4
CLOSE_WRITE = 0x8
MOVED_FROM = 0x40
MOVED_TO = 0x80
CREATE = 0x100
DELETE = 0x200
DELETE_SELF = 0x400
MOVE_SELF = 0x800

_ONLY_FOLDER = 0x0100_0000
_NO_FOLLOW = 0x0200_0000
_ADD_TO_MASK = 0x2000_0000

MOVED = DELETE_SELF | MOVE_SELF
"""Of folders above that cannot be closed to us: removed, moved away. Also of sticky
ones, as `/tmp`: nobody closes them, and with thousands of entries the kernel takes
milliseconds to watch for that."""

ABOVE = MOVED | ATTRIB
"""Of the other folders above, and of links: also closed to us, or replaced (the link
count of a link goes)."""

FOLDER = ABOVE | CREATE | DELETE | MOVED_FROM | MOVED_TO
"""Of a watched folder: its entries too, for they are what moves its mtime."""

FILE = ABOVE | MODIFY | CLOSE_WRITE
"""Of a watched file. CLOSE_WRITE: before Linux 6.5 a splice told nothing else."""

_BTRFS = 0x9123_683E

BELIEVED = frozenset(
    {
        0xEF53,  # ext2, ext3, ext4
        0x5846_5342,  # xfs
        _BTRFS,
        0x0102_1994,  # tmpfs
    }
)
"""Filesystem types (`f_type` of statfs) on which every local change tells; each is
tried in tests/kernel_client/test_arming.py."""

_TOP_OF_SUBVOLUME = 256
"""Inode of the folder that a btrfs subvolume begins with."""

OVERLAY = 0x794C_7630
"""overlayfs: believed where it is `/`, as in a container. Elsewhere somebody may write
to its layers, which tells nothing."""

_MAX_LINKS = 40  # as the kernel: more of them in one path is ELOOP
_GONE = frozenset({errno.ENOENT, errno.ENOTDIR})


class Armed:
    """A fence that has been armed.

    `descriptor` is the inotify instance, the caller's to close; `rest` are the
    paths that it does not cover, `watches` the watch descriptors in use.
    """

    __slots__ = ("descriptor", "rest", "watches")

    def __init__(
        self, descriptor: int, rest: frozenset[str], watches: frozenset[int]
    ) -> None:
        self.descriptor = descriptor
        self.rest = rest
        self.watches = watches

    def is_quiet(self) -> bool:
        """Tell whether nothing has happened since it was armed."""
        return is_quiet(self.descriptor)

    def clear(self) -> None:
        """Give the watches back though others may hold the descriptor too.

        That makes it readable for them.
        """
        for watch in self.watches:
            _libc.inotify_rm_watch(self.descriptor, watch)


def arm(paths: Iterable[str], max_watches: int) -> Armed:
    """Arm a fence for absolute paths that are there.

    What cannot be covered (another filesystem, no right to read) is in
    `Armed.rest`. A path counts as covered from now on: whoever relies on it
    looks at every path once more, afterwards.

    Raises:
        FenceError: there can be none now; its `code` tells why.
    """
    descriptor = _instance()
    try:
        walk = _Walk(descriptor, max_watches)
        # Sorted: a folder comes before its entries.
        rest = frozenset(path for path in sorted(paths) if not walk.cover(path))
        armed = Armed(descriptor, rest, frozenset(walk.watches))
        if not armed.is_quiet():
            raise FenceError("changed", "something changed while it was armed")
    except BaseException:
        instances.close_later(descriptor)
        raise
    return armed


def is_quiet(descriptor: int) -> bool:
    """Tell whether nothing is to be read from an inotify instance."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return not poll.poll(0)


def max_watches() -> int:
    """Give how many watches one process may use: a tenth of what its user may have."""
    return max_user_watches() // 10


def max_user_watches() -> int:
    """Give how many watches this user may have; 8192 where it is not told."""
    return _limit("max_user_watches", 8192)


def max_user_instances() -> int:
    """Give how many instances this user may have; 128 where it is not told."""
    return _limit("max_user_instances", 128)


def _limit(name: str, default: int) -> int:
    try:
        with open(f"/proc/sys/fs/inotify/{name}", encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return default


def _instance() -> int:
    descriptor: int = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if descriptor >= 0:
        return instances.hold(descriptor)
    number = ctypes.get_errno()
    if number in (errno.EMFILE, errno.ENFILE):
        raise FenceError("instances", "inotify instances (or descriptors) run short")
    raise FenceError("inotify", f"no inotify: {os.strerror(number)}")


class _Uncovered(Exception):  # noqa: N818 - no error: it stays with stats
    """This path cannot be covered."""


class _Walk:
    """Watches paths from the top down.

    From the top down: whatever is swapped after its watch was added has told so,
    and what is below is looked up through what is watched already.
    """

    def __init__(self, descriptor: int, max_watches: int) -> None:
        self._descriptor = descriptor
        self._max_watches = max_watches
        self._passes = passes_everywhere()
        self._entries: set[str] = set()
        self._folders: dict[str, str | None] = {}
        self._believed: dict[int, bool] = {}
        self.watches: set[int] = set()

    def cover(self, path: str) -> bool:
        """Watch a path; tells whether it is covered."""
        folder, name = os.path.split(path)
        if not path.startswith("/") or name in ("", ".", ".."):
            return False
        try:
            return self._watch(self._folder(folder), name, [_MAX_LINKS])
        except (_Uncovered, OSError, ValueError):
            return False

    def _watch(self, folder: str, name: str, links: list[int]) -> bool:
        path = _joined(folder, name)
        if self._folders.get(path) == path:
            return self._watched_folder(path)
        self._add(path, FILE)
        seen = os.lstat(path)
        kind = mode_bits.S_IFMT(seen.st_mode)
        if kind == mode_bits.S_IFLNK:
            self._believe(folder, seen)
            target = self._target(path, links)
            above, name = os.path.split(target)
            if name in ("", ".", ".."):
                return self._watched_folder(self._way(folder, target, links))
            return self._watch(self._way(folder, above, links), name, links)
        self._believe(path, seen)
        if kind == mode_bits.S_IFDIR:
            return self._watched_folder(path)
        # What is written to a FIFO or a device moves no time, or tells nothing.
        return kind == mode_bits.S_IFREG

    def _watched_folder(self, path: str) -> bool:
        # In place of the mask for a file: what its files do does not move it.
        self._add(path, FOLDER | _ONLY_FOLDER, replace=True)
        self._entries.add(path)
        # While somebody is in it, a folder that is removed tells nothing itself. It
        # loses its entries first, which tells; without any, the one above does,
        # where its entries are watched too.
        return os.path.dirname(path) in self._entries or _has_entries(path)

    def _folder(self, path: str) -> str:
        """Give a folder without links, once it and all above it are watched."""
        if path not in self._folders:
            try:
                self._folders[path] = self._way("/", path, [_MAX_LINKS])
            except (_Uncovered, OSError):
                self._folders[path] = None
        found = self._folders[path]
        if found is None:
            raise _Uncovered
        return found

    def _way(self, folder: str, path: str, links: list[int]) -> str:
        """Go from a folder without links along a path of folders and links."""
        if path.startswith("/"):
            folder = "/"
        for name in path.split("/"):
            if name in ("", "."):
                continue
            if name == "..":
                folder = os.path.dirname(folder)
                continue
            folder = self._step(folder, name, links)
        return folder

    def _step(self, folder: str, name: str, links: list[int]) -> str:
        path = _joined(folder, name)
        if self._folders.get(path) == path:
            return path
        self._add(path, MOVED)
        seen = os.lstat(path)
        if mode_bits.S_ISLNK(seen.st_mode):
            self._add(path, ABOVE)
            self._believe(folder, seen)
            return self._way(folder, self._target(path, links), links)
        if not mode_bits.S_ISDIR(seen.st_mode):
            raise _Uncovered
        self._believe(path, seen)
        if not self._passes and not seen.st_mode & mode_bits.S_ISVTX:
            self._add(path, ABOVE)
        self._folders[path] = path
        return path

    def _target(self, path: str, links: list[int]) -> str:
        links[0] -= 1
        if links[0] < 0:
            raise _Uncovered
        return os.readlink(path)

    def _believe(self, path: str, seen: os.stat_result) -> None:
        """Go on only where events of this device can be believed."""
        believed = self._believed.get(seen.st_dev)
        if believed is None:
            kind = filesystem(path)
            believed = kind in BELIEVED or (kind == OVERLAY and is_root(path))
            # A subvolume is deleted with all that is in it, and none of it tells.
            is_part = kind == _BTRFS and seen.st_ino == _TOP_OF_SUBVOLUME
            believed = believed and not (is_part and not is_mounted(path))
            self._believed[seen.st_dev] = believed
        if not believed:
            raise _Uncovered

    def _add(self, path: str, mask: int, *, replace: bool = False) -> None:
        mask |= _NO_FOLLOW
        if not replace:
            # The same inode may be watched for another path too.
            mask |= _ADD_TO_MASK
        watch = _libc.inotify_add_watch(self._descriptor, os.fsencode(path), mask)
        if watch >= 0:
            self.watches.add(watch)
            if len(self.watches) > self._max_watches:
                raise FenceError("watches", "the budget of inotify watches is used up")
            return
        number = ctypes.get_errno()
        if number == errno.ENOSPC:
            raise FenceError("watches", "inotify watches run short")
        if number in _GONE:
            raise FenceError("changed", "something changed while it was armed")
        raise _Uncovered


def is_root(path: str) -> bool:
    """Tell whether a path is in the filesystem of `/`.

    A file of an overlay can have the device of its layer, a folder has its own.
    """
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    return os.stat(folder).st_dev == os.stat("/").st_dev


def is_mounted(path: str) -> bool:
    """Tell whether something is mounted on a folder, given without links."""
    # As /proc writes them: octal for what would end a field or a line.
    escaped = os.fsencode(path).replace(b"\\", b"\\134")
    for each in b" \t\n#":
        escaped = escaped.replace(bytes([each]), b"\\%03o" % each)
    with open("/proc/self/mountinfo", "rb") as file:
        return any(line.split(b" ")[4] == escaped for line in file)


def filesystem(path: str) -> int:
    """Give `f_type` of statfs; 0 where it cannot be told."""
    buffer = (ctypes.c_long * 64)()
    if _libc.statfs(os.fsencode(path), buffer) != 0:
        return 0
    return buffer[0] & 0xFFFF_FFFF


def _has_entries(path: str) -> bool:
    with os.scandir(path) as entries:
        return next(entries, None) is not None


def _joined(folder: str, name: str) -> str:
    return folder + name if folder == "/" else f"{folder}/{name}"


_libc = ctypes.CDLL(None, use_errno=True)
