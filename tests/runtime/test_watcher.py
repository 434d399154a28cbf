"""What goes wrong with watching, and that everything goes on."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from watchfiles._rust_notify import WatchfilesRustInternalError

from envwatch.core.events import Event, FoldersChanged, Unsure, WatchingState
from envwatch.runtime import armed
from envwatch.runtime.armed import Armed
from envwatch.runtime.watcher import CALM_S, FIRST_PAUSE_S, LAST_PAUSE_S, Watcher

NOT_UTF8 = os.fsdecode(b"\xff")


@pytest.fixture
def anyio_backend() -> str:
    """Use the backend that the sidecar uses."""
    return "asyncio"


class Heard:
    """A watcher and what it told."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.watcher = Watcher(self._hear)
        self._came = anyio.Event()

    def _hear(self, event: Event) -> None:
        self.events.append(event)
        self._came.set()

    async def until(self, found: Callable[[Event], bool]) -> Event:
        """Wait for an event; it and all before it are dropped."""
        with anyio.fail_after(20):
            while True:
                while self.events:
                    event = self.events.pop(0)
                    if found(event):
                        return event
                self._came = anyio.Event()
                await self._came.wait()

    async def state(self, state: str) -> WatchingState:
        """Wait for a state of watching."""
        found = await self.until(
            lambda event: isinstance(event, WatchingState) and event.state == state
        )
        assert isinstance(found, WatchingState)
        return found

    async def doubt(self) -> None:
        """Wait for everything to be compared."""
        await self.until(lambda event: isinstance(event, Unsure))

    async def change(self, folder: Path) -> None:
        """Wait for a change in a folder."""
        await self.until(
            lambda event: (
                isinstance(event, FoldersChanged) and str(folder) in event.folders
            )
        )


@asynccontextmanager
async def watching(*folders: Path) -> AsyncIterator[Heard]:
    """Run a watcher for these folders."""
    heard = Heard()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(heard.watcher.run)
        heard.watcher.want(frozenset(map(str, folders)))
        try:
            yield heard
        finally:
            heard.watcher.close()


async def test_changes_are_told_with_their_folder(tmp_path: Path) -> None:
    """Writes, replacements and removals; all is compared once it watches."""
    async with watching(tmp_path) as heard:
        await heard.state("ok")
        await heard.doubt()
        (tmp_path / "x").write_text("1")
        await heard.change(tmp_path)
        (tmp_path / "x").unlink()
        await heard.change(tmp_path)


async def test_another_set_of_folders(tmp_path: Path) -> None:
    """The new watcher is told of, and no folders need no watcher."""
    a, b = tmp_path / "a", tmp_path / "b"
    a.mkdir()
    b.mkdir()
    async with watching(a) as heard:
        await heard.doubt()
        heard.watcher.want(frozenset({str(a), str(b)}))
        await heard.doubt()
        (b / "x").touch()
        await heard.change(b)
        heard.watcher.want(frozenset())
        await heard.state("off")
        assert heard.watcher._armed is None


async def test_a_folder_that_is_deleted_and_made_again(tmp_path: Path) -> None:
    """It is watched again, though its old watch is dead."""
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    async with watching(folder) as heard:
        await heard.doubt()
        shutil.rmtree(tmp_path / "a")
        await heard.change(folder)
        await heard.doubt()
        folder.mkdir(parents=True)
        await heard.change(folder)
        await heard.doubt()
        while True:
            # The way down is found step by step.
            (folder / "x").write_text("1")
            with anyio.move_on_after(0.5) as scope:
                await heard.change(folder)
            if not scope.cancelled_caught:
                break
        assert heard.watcher._armed is not None


async def test_a_renamed_ancestor_is_found_by_a_sweep(tmp_path: Path) -> None:
    """No event tells of it; the same want again makes sure."""
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    async with watching(folder) as heard:
        await heard.doubt()
        (tmp_path / "a").rename(tmp_path / "z")
        folder.mkdir(parents=True)
        heard.watcher.want(frozenset({str(folder)}))
        await heard.doubt()
        (folder / "x").touch()
        await heard.change(folder)


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (
            OSError('OS file watch limit reached. about ["/x"] (MaxFilesWatch)'),
            "fs.inotify.max_user_watches",
        ),
        (
            WatchfilesRustInternalError(
                "Error creating recommended watcher: Too many open files (os error 24)"
            ),
            "fs.inotify.max_user_instances",
        ),
    ],
)
async def test_without_room_it_is_degraded_until_there_is(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    remedy: str,
) -> None:
    """It names the sysctl, everything is compared, and each sweep tries again."""

    def full(*arguments: Any, **options: Any) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(armed, "RustNotify", full)
        async with watching(tmp_path) as heard:
            state = await heard.state("degraded")
            assert remedy in (state.remedy or "")
            assert str(tmp_path) not in (state.reason or "")
            await heard.doubt()
            patched.undo()
            heard.watcher.want(frozenset({str(tmp_path)}))
            await heard.state("ok")
            (tmp_path / "x").touch()
            await heard.change(tmp_path)


async def test_a_bad_name_costs_its_folder_only(tmp_path: Path) -> None:
    """A file name that is not UTF-8 kills the watcher; the rest is watched again."""
    bad, good = tmp_path / "bad", tmp_path / "good"
    bad.mkdir()
    good.mkdir()
    name = bad / NOT_UTF8
    async with watching(bad, good) as heard:
        await heard.state("ok")
        name.touch()
        state = await heard.state("degraded")
        assert "not UTF-8" in (state.reason or "")
        await heard.doubt()
        (good / "x").touch()
        await heard.change(good)
        name.unlink()
        heard.watcher.want(frozenset({str(bad), str(good)}))
        await heard.state("ok")
        (bad / "x").touch()
        await heard.change(bad)


async def test_a_bad_name_that_nobody_touches_does_no_harm(tmp_path: Path) -> None:
    """Old files in a home are not news: its folder is watched like any other."""
    (tmp_path / NOT_UTF8).touch()
    async with watching(tmp_path) as heard:
        await heard.state("ok")
        (tmp_path / "x").touch()
        await heard.change(tmp_path)


async def test_pauses_grow_and_end_after_a_calm_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One bad hour does not make every later build slow."""
    now = 1000.0
    monkeypatch.setattr("envwatch.runtime.watcher.time.monotonic", lambda: now)
    watcher = Heard().watcher
    pauses: list[float] = []
    for _ in range(12):
        watcher._died()
        pauses.append(watcher._pause())
        now += pauses[-1]
    assert pauses[:3] == [FIRST_PAUSE_S, FIRST_PAUSE_S * 2, FIRST_PAUSE_S * 4]
    assert pauses[-1] == LAST_PAUSE_S
    now += CALM_S + 1
    assert watcher._pause() == 0.0
    watcher._died()
    assert watcher._pause() == FIRST_PAUSE_S


async def test_a_folder_whose_name_is_not_utf8_is_swept(tmp_path: Path) -> None:
    """watchfiles cannot even name it."""
    folder = tmp_path / NOT_UTF8
    folder.mkdir()
    async with watching(folder) as heard:
        state = await heard.state("degraded")
        assert "not UTF-8" in (state.reason or "")


async def test_two_names_of_one_folder_are_both_told(tmp_path: Path) -> None:
    """inotify has one watch for an inode, and watchfiles one name."""
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    async with watching(real, link) as heard:
        await heard.doubt()
        (real / "x").touch()
        event = await heard.until(lambda each: isinstance(each, FoldersChanged))
        assert event == FoldersChanged(frozenset({str(real), str(link)}))


def test_a_batch_of_thousands_is_an_overflow(tmp_path: Path) -> None:
    """inotify does not say when its queue was full."""
    built = Armed.build(frozenset({str(tmp_path)}))
    batch = {(1, f"{tmp_path}/{number}") for number in range(4000)}
    assert built.read(batch).overflow
    assert not built.read(list(batch)[:3999]).overflow
    built.close()
