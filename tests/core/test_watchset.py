"""Which folders are watched for what is loaded."""

from __future__ import annotations

from envwatch.core.events import Key
from envwatch.core.watchset import WatchSet
from tests.core.conftest import snapshot_of

A, B = Key("/d", "/a/.envrc", "f"), Key("/d", "/b/.envrc", "f")


def test_folders_are_those_of_all_keys() -> None:
    """A folder that two use stays for the second."""
    watched = WatchSet()
    watched.put(A, snapshot_of("/a"), frozenset({"/a", "/home"}))
    watched.put(B, snapshot_of("/b"), frozenset({"/b", "/home"}))
    assert watched.changed() == frozenset({"/a", "/b", "/home"})
    watched.remove(A)
    assert watched.changed() == frozenset({"/b", "/home"})
    assert watched.touched(["/home", "/a"]) == [B]


def test_the_same_folders_are_not_told_again() -> None:
    """A new snapshot over the same folders builds no new watcher."""
    watched = WatchSet()
    watched.put(A, snapshot_of("/a"), frozenset({"/a"}))
    assert watched.changed() is not None
    watched.put(A, snapshot_of("/a", mtime=2), frozenset({"/a"}))
    assert watched.changed() is None
    watched.put(A, snapshot_of("/a"), frozenset({"/x"}))
    watched.put(A, snapshot_of("/a"), frozenset({"/a"}))
    assert watched.changed() is None
