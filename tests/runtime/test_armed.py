"""What a built watcher makes of names, and of events."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from envwatch.runtime import armed
from envwatch.runtime.armed import Armed

ADDED, MODIFIED, DELETED = 1, 2, 3


@contextmanager
def built(*folders: Path) -> Iterator[Armed]:
    """Build a watcher, and close it."""
    made = Armed.build(frozenset(map(str, folders)))
    try:
        yield made
    finally:
        made.close()


def test_a_change_is_one_of_the_folder_it_is_in(tmp_path: Path) -> None:
    """Only of that one."""
    below = tmp_path / "a"
    below.mkdir()
    with built(tmp_path, below) as watcher:
        changes = watcher.read([(MODIFIED, f"{below}/x")])
    assert changes.folders == {str(below)}
    assert not changes.rebuild


@pytest.mark.parametrize(
    ("kind", "rebuild"), [(ADDED, True), (DELETED, True), (MODIFIED, False)]
)
def test_a_watched_folder_that_comes_or_goes(
    tmp_path: Path, kind: int, *, rebuild: bool
) -> None:
    """Its watch is dead then; a chmod leaves it alive."""
    below = tmp_path / "a"
    below.mkdir()
    with built(tmp_path, below) as watcher:
        changes = watcher.read([(kind, str(below))])
    assert changes.folders == {str(tmp_path), str(below)}
    assert changes.rebuild == rebuild


def test_a_missing_folder_is_waited_for_above_it(tmp_path: Path) -> None:
    """The first step of its way back means to build again; a neighbour does not."""
    missing = tmp_path / "a" / "b"
    with built(missing) as watcher:
        assert watcher.names == {str(tmp_path): {str(missing)}}
        assert watcher.read([(ADDED, f"{tmp_path}/a")]).rebuild
        assert not watcher.read([(ADDED, f"{tmp_path}/ab")]).rebuild


def test_names_that_lead_elsewhere_now_are_found(tmp_path: Path) -> None:
    """No event tells of a renamed ancestor, or of a link that was set anew."""
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    with built(folder) as watcher:
        assert watcher.is_true()
        (tmp_path / "a").rename(tmp_path / "z")
        folder.mkdir(parents=True)
        assert not watcher.is_true()


def test_it_ends_when_it_is_stopped(tmp_path: Path) -> None:
    """A wait gives None then, not changes."""
    with built(tmp_path) as watcher:
        watcher.stop.set()
        assert watcher.wait() is None


def test_a_folder_that_is_gone_stands_for_nothing(tmp_path: Path) -> None:
    """The nearest one above it is watched in its place, at the end the root."""
    folder = tmp_path / "a"
    folder.mkdir()
    assert armed.standing(str(folder))[0] == str(folder)
    shutil.rmtree(folder)
    assert armed.standing(str(folder / "b"))[0] == str(tmp_path)
    assert armed.standing("/")[0] == "/"


def test_names_that_are_not_utf8_are_known(tmp_path: Path) -> None:
    """As a folder, and in one."""
    bad = os.fsdecode(os.fsencode(tmp_path) + b"/\xff")
    assert armed.unwatchable(str(tmp_path)) is None
    assert "not UTF-8" in (armed.unwatchable(bad) or "")
    assert not armed.has_bad_name(str(tmp_path))
    os.mkdir(bad)
    assert armed.has_bad_name(str(tmp_path))
    assert not armed.has_bad_name(str(tmp_path / "missing"))


def test_a_real_change_is_heard(tmp_path: Path) -> None:
    """Of the folder itself, not of what is below it."""
    folder, below = tmp_path / "a", tmp_path / "a" / "b"
    below.mkdir(parents=True)
    with built(folder) as watcher:
        (below / "deep").touch()
        (folder / "x").touch()
        paths: set[str] = set()
        while str(folder / "x") not in paths:
            found = watcher.notify.watch(50, 10, 0, watcher.stop)
            assert not isinstance(found, str)
            paths |= {path for _, path in found}
            assert watcher.read(found).folders == {str(folder)}
        assert str(below / "deep") not in paths


def test_waiting_gives_what_changed(tmp_path: Path) -> None:
    """With its folder; nothing has to be built again for a new file."""
    with built(tmp_path) as watcher:
        (tmp_path / "x").touch()
        changes = watcher.wait()
    assert changes == armed.Changes(
        frozenset({str(tmp_path)}), rebuild=False, overflow=False
    )


def test_closing_stops_it(tmp_path: Path) -> None:
    """Whoever waits in another thread is let go."""
    with built(tmp_path) as watcher:
        assert not watcher.stop.is_set()
        watcher.close()
        assert watcher.stop.is_set()


@pytest.mark.parametrize(("fewer", "overflow"), [(0, True), (1, False)])
def test_a_batch_that_is_too_large_is_an_overflow(
    tmp_path: Path, fewer: int, *, overflow: bool
) -> None:
    """The queue of inotify says nothing when it is full."""
    count = armed.OVERFLOW_CHANGES - fewer
    with built(tmp_path) as watcher:
        batch = [(ADDED, f"{tmp_path}/{number}") for number in range(count)]
        assert watcher.read(batch).overflow == overflow


def test_one_inode_is_registered_once(tmp_path: Path) -> None:
    """A change in it is one under each of its wanted names."""
    folder, link = tmp_path / "a", tmp_path / "link"
    folder.mkdir()
    link.symlink_to(folder)
    with built(folder, link) as watcher:
        assert watcher.names == {str(folder): {str(folder), str(link)}}
        changes = watcher.read([(MODIFIED, f"{folder}/x")])
    assert changes.folders == {str(folder), str(link)}


def test_a_folder_that_may_not_be_read_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when it is the one above a missing folder."""

    def no_access(path: str, mode: int) -> bool:
        return path != str(tmp_path)

    monkeypatch.setattr(os, "access", no_access)
    assert "may not be read" in (armed.unwatchable(str(tmp_path / "missing")) or "")
    assert armed.unwatchable("/") is None
