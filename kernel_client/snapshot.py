"""What watched paths looked like, and whether they still look like that.

direnv compares whole seconds of one mtime. An entry here is (path, stat, link,
digest), where stat is (mtime_ns, ctime_ns, size, inode, device) of what the path
leads to or None where it is missing, link is the same of a symbolic link itself,
and digest is the SHA-256 of a regular file's bytes or None. The digest has one
use: where only the ctime moved (chmod, a hard link made, an mtime put back),
content decides whether anything changed. Bytes are compared, never read as a
script.
"""

from __future__ import annotations

import os
import stat as mode_bits

from kernel_client import lean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Optional

    Stat = tuple[int, int, int, int, int]
    Entry = tuple[str, Optional[Stat], Optional[Stat], Optional[str]]
    Snapshot = tuple[Entry, ...]
    Wire = list[list[Optional[str]]]

MAX_DIGEST_BYTES = 256 * 1024
"""Files longer than this have no digest: a moved ctime counts as a change."""

MAX_DIGESTS = 64
"""At most this many files of a snapshot have a digest."""


def signature(seen: os.stat_result) -> Stat:
    """Give (mtime_ns, ctime_ns, size, inode, device)."""
    return (
        seen.st_mtime_ns,
        seen.st_ctime_ns,
        seen.st_size,
        seen.st_ino,
        seen.st_dev,
    )


def look(path: str) -> tuple[Stat | None, Stat | None]:
    """Give (stat, link) of a path as it is now, without its digest."""
    try:
        own = os.lstat(path)
        if not mode_bits.S_ISLNK(own.st_mode):
            return signature(own), None
    except (OSError, ValueError):
        return None, None
    try:
        return signature(os.stat(path)), signature(own)
    except OSError:
        return None, signature(own)


def digest(path: str) -> str | None:
    """Give the SHA-256 of a short regular file, or None."""
    try:
        # O_NONBLOCK: a path that became a FIFO must not hold anybody.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        seen = os.fstat(descriptor)
        if not mode_bits.S_ISREG(seen.st_mode) or seen.st_size > MAX_DIGEST_BYTES:
            return None
        data = os.read(descriptor, MAX_DIGEST_BYTES + 1)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    if len(data) > MAX_DIGEST_BYTES:
        return None
    return lean.sha256(data)


def take(paths: Iterable[str]) -> Snapshot:
    """Look at every path once, without digests; duplicates are dropped."""
    return tuple((path, *look(path), None) for path in dict.fromkeys(paths))


def with_digests(snapshot: Snapshot) -> Snapshot:
    """Add digests to the first `MAX_DIGESTS` regular files that have none.

    The bytes are read after the look, so a digest is kept only where the path
    still looks the same afterwards.
    """
    entries: list[Entry] = []
    left = MAX_DIGESTS
    for entry in snapshot:
        path, seen, link, found = entry
        if left and seen is not None and found is None:
            found = digest(path)
            if found is not None and look(path) != (seen, link):
                found = None
            if found is not None:
                left -= 1
        entries.append((path, seen, link, found))
    return tuple(entries)


def compare(snapshot: Snapshot) -> Snapshot | None:
    """Compare with the paths as they are now.

    Gives None when something changed. Otherwise gives the snapshot to go on
    with: the same object, or a newer one where only a ctime moved and the
    content is the same.
    """
    moved: dict[int, Entry] = {}
    for index, (path, was, was_link, was_digest) in enumerate(snapshot):
        now, now_link = look(path)
        if now == was and now_link == was_link:
            continue
        if (
            now is None
            or was is None
            or now_link != was_link
            or was_digest is None
            or now[0] != was[0]
            or now[2:] != was[2:]
            or digest(path) != was_digest
            or look(path) != (now, now_link)
        ):
            return None
        moved[index] = (path, now, now_link, was_digest)
    if not moved:
        return snapshot
    return tuple(moved.get(index, entry) for index, entry in enumerate(snapshot))


def folders(snapshot: Snapshot) -> frozenset[str]:
    """Give the folders whose events tell of a change of these paths.

    The parent of each path, of each link's target, and the folder above a
    missing one that exists; a watched folder itself too.
    """
    found: set[str] = set()
    parents: set[str] = set()
    for path, seen, link, _ in snapshot:
        parents.add(os.path.dirname(path))
        if link is not None and seen is not None:
            parents.add(os.path.dirname(os.path.realpath(path)))
    for parent in parents:
        folder = parent
        while folder not in found:
            if os.path.isdir(folder):
                found.add(folder)
                break
            folder = os.path.dirname(folder)
    return frozenset(found)


def to_wire(snapshot: Snapshot) -> Wire:
    """Give the JSON form of PROTOCOL.md."""
    return [
        [path, _text(seen), _text(link), found] for path, seen, link, found in snapshot
    ]


def from_wire(wire: Any) -> Snapshot:
    """Read the JSON form; raises ValueError, TypeError for another shape."""
    entries: list[Entry] = []
    for path, seen, link, found in wire:
        if (
            not isinstance(path, str)
            or "\0" in path
            or not isinstance(found, (str, type(None)))
        ):
            raise TypeError("a snapshot entry has a wrong type")
        entries.append((path, _numbers(seen), _numbers(link), found))
    return tuple(entries)


def _text(seen: Stat | None) -> str | None:
    return None if seen is None else " ".join(map(str, seen))


def _numbers(text: str | None) -> Stat | None:
    if text is None:
        return None
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError("a snapshot entry has a wrong type")
    mtime, ctime, size, inode, device = map(int, text.split(" "))
    return mtime, ctime, size, inode, device
