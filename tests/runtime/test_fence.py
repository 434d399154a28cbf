"""Fences of this process, with real inotify: armed, burnt, given away, closed."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import anyio.lowlevel
import pytest

from envwatch.core.events import Allowance, Armed, Burnt, Event, NotArmed, Snapshot
from envwatch.runtime import fence as fence_module
from envwatch.runtime.fence import Fences, bounds
from kernel_client import arming, fence, snapshot, wire
from kernel_client.view import view

CHECKOUT = Path(__file__).parents[2]

ALLOWED = Allowance(1, 1, 1000)

MOUNTING = """
import asyncio, os, subprocess, sys
from envwatch.core.events import Mounted
from envwatch.runtime.fence import Fences

async def main(folder):
    heard = []
    before = os.listdir("/proc/self/fd")
    fences = Fences(heard.append)
    for each in range(2):
        # A second one is armed: the table is listened to once.
        fences.guard(None)
    commands = [], ["mount", "-t", "tmpfs", "none", folder], ["umount", folder]
    for command in commands:
        already = len(heard)
        if command:
            subprocess.run(command, check=True)
        while command and len(heard) == already:
            await asyncio.sleep(0)
        for _ in range(100):
            await asyncio.sleep(0)
        print(len(heard))
    assert heard == [Mounted()] * len(heard)
    fences.close()
    assert os.listdir("/proc/self/fd") == before

asyncio.run(main(sys.argv[1]))
"""


@pytest.fixture
def anyio_backend() -> str:
    """Use the backend that the sidecar uses."""
    return "asyncio"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Give a root file with two more files beside it."""
    for name in (".envrc", "a", "b"):
        (tmp_path / "w" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "w" / name).write_text(name)
    return tmp_path / "w" / ".envrc"


@pytest.fixture
def heard() -> list[Event]:
    """Give the list that events are put in."""
    return []


@pytest.fixture
def instances(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Give what counts the inotify instances of this test that are open."""
    made: list[int] = []
    real = arming._instance

    def instance() -> int:
        """Make one, and note it."""
        made.append(real())
        return made[-1]

    def count() -> int:
        """Count those that are not closed."""
        return sum(map(is_instance, set(made)))

    monkeypatch.setattr(arming, "_instance", instance)
    return count


@pytest.fixture
async def fences(
    heard: list[Event],
    instances: Callable[[], int],
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Fences]:
    """Give fences that are closed in the end, each as soon as the loop comes round."""
    monkeypatch.setattr(fence_module, "CLOSE_AFTER_S", 0.0)
    made = Fences(heard.append)
    yield made
    made.close()
    await until(lambda: not instances())


def seen(root: Path, *more: str) -> Snapshot:
    """Take a snapshot of a root file, what is beside it, and other paths."""
    beside = [str(path) for path in sorted(root.parent.iterdir())]
    return snapshot.take([*beside, *more])


def armed(fences: Fences, root: Path, number: int = 1) -> int:
    """Arm a fence, and listen to it; gives its descriptor."""
    outcome = fences.arm(str(root), seen(root), Allowance(number, 1, 1000))
    fences.guard(outcome)
    descriptor = fences.descriptor(number, 1)
    assert descriptor is not None
    return descriptor


def watches(descriptor: int) -> int:
    """Count the watches of an inotify instance, as the system tells."""
    text = Path(f"/proc/self/fdinfo/{descriptor}").read_text()
    return text.count("inotify wd:")


def is_instance(descriptor: int) -> bool:
    """Tell whether a descriptor of this process is an inotify instance."""
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}") == "anon_inode:inotify"
    except FileNotFoundError:
        return False


async def turn(times: int = 20) -> None:
    """Let the loop come round, so often that whatever is ready is called."""
    for _ in range(times):
        await anyio.lowlevel.checkpoint()


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop come round until something is true."""
    while not condition():
        await anyio.lowlevel.checkpoint()


# ------------------------------------------------------------------ arming


async def test_what_was_armed_is_told(fences: Fences, root: Path) -> None:
    """What it covers, what it does not, how many watches it takes, and the frame."""
    missing = str(root.parent / "missing")
    all_seen = seen(root, missing, "/proc/version")
    outcome = fences.arm(str(root), all_seen, ALLOWED)

    assert isinstance(outcome, Armed)
    assert outcome.number == 1
    assert outcome.snapshot is all_seen
    assert [each[0] for each in outcome.rest] == [missing, "/proc/version"]
    (frame,) = wire.Decoder().feed(outcome.frame)
    covered = [str(root), str(root.parent / "a"), str(root.parent / "b")]
    assert frame == {
        "type": "fence",
        "root": str(root),
        "paths": fence.named(covered),
        "rest": ["/proc/version"],
        "view": view(),
    }
    descriptor = fences.descriptor(1, 1)
    assert descriptor is not None
    assert outcome.watches == watches(descriptor) > len(covered)


async def test_what_is_armed_takes_one_descriptor(fences: Fences, root: Path) -> None:
    """The others were there only to see that some are left for other programs."""
    armed(fences, root)
    before = set(os.listdir("/proc/self/fd"))
    armed(fences, root, 2)
    assert len(set(os.listdir("/proc/self/fd")) - before) == 1


@pytest.mark.parametrize(
    ("least", "more", "code"),
    [
        (4, "missing", "few"),
        (3, "missing", None),
        (1, "version uptime stat", None),
        (1, "version uptime stat cmdline", "filesystem"),
    ],
    ids=["few", "enough", "half", "most"],
)
async def test_where_it_is_worth_one(
    fences: Fences, root: Path, least: int, more: str, code: str | None
) -> None:
    """Enough paths that are there, half of them where inotify can be believed."""
    paths = [f"/proc/{name}" for name in more.split()]
    outcome = fences.arm(str(root), seen(root, *paths), Allowance(1, least, 1000))
    fences.guard(outcome)
    assert outcome.number == 1
    assert (outcome.code if isinstance(outcome, NotArmed) else None) == code
    assert (fences.descriptor(1, 1) is None) == (code is not None)
    assert fences.is_quiet(1) == (code is None)


async def test_what_is_not_worth_one_is_closed(
    fences: Fences, instances: Callable[[], int]
) -> None:
    """Where inotify cannot be believed."""
    seen = snapshot.take(["/proc/version"])
    outcome = fences.arm("/proc/version", seen, ALLOWED)
    assert isinstance(outcome, NotArmed)
    assert outcome.code == "filesystem"
    await until(lambda: not instances())


async def test_no_more_watches_than_allowed(
    fences: Fences, root: Path, instances: Callable[[], int]
) -> None:
    """One less than it needs is too few, and nothing of it stays."""
    outcome = fences.arm(str(root), seen(root), ALLOWED)
    assert isinstance(outcome, Armed)
    fences.retire(1, clear=False)
    await until(lambda: not instances())
    needed = outcome.watches
    enough = fences.arm(str(root), seen(root), Allowance(2, 1, needed))
    assert isinstance(enough, Armed)
    short = fences.arm(str(root), seen(root), Allowance(3, 1, needed - 1))
    assert isinstance(short, NotArmed)
    assert (short.number, short.code) == (3, "watches")
    await until(lambda: instances() == 1)


@pytest.mark.parametrize("when", ["before", "within"])
async def test_a_change_meanwhile_is_no_fence(
    fences: Fences,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    when: str,
    instances: Callable[[], int],
) -> None:
    """What changed before its watch was there gives no event: it is compared."""
    before = seen(root)
    if when == "before":
        (root.parent / "a").write_text("longer than it was")
    else:
        real = arming.arm

        def arm(*arguments: object) -> arming.Armed:
            """Arm, and change something before it is compared."""
            made = real(*arguments)  # type: ignore[arg-type]
            (root.parent / "a").unlink()
            return made

        monkeypatch.setattr(arming, "arm", arm)
    outcome = fences.arm(str(root), before, ALLOWED)
    assert isinstance(outcome, NotArmed)
    assert (outcome.number, outcome.code) == (1, "changed")
    await until(lambda: not instances())


async def test_a_comparison_that_fails_is_no_fence(
    fences: Fences,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    instances: Callable[[], int],
) -> None:
    """Nor is its descriptor left behind."""

    def compare(seen: Snapshot) -> Snapshot:
        """Fail as on a path that is closed."""
        raise OSError

    monkeypatch.setattr(snapshot, "compare", compare)
    outcome = fences.arm(str(root), seen(root), ALLOWED)
    assert isinstance(outcome, NotArmed)
    assert outcome.code == "changed"
    await until(lambda: not instances())


@pytest.mark.parametrize(
    ("instances", "max_fences", "max_held"),
    [(128, 64, 96), (1024, 64, 768), (8, 4, 6), (1, 0, 0)],
)
def test_bounds(
    monkeypatch: pytest.MonkeyPatch, instances: int, max_fences: int, max_held: int
) -> None:
    """Half of the user's instances, three quarters held, a tenth of the watches."""
    monkeypatch.setattr(arming, "max_user_instances", lambda: instances)
    monkeypatch.setattr(arming, "max_user_watches", lambda: 8199)
    found = bounds("always")
    assert (found.mode, found.min_paths) == ("always", fence.MIN_PATHS)
    assert (found.max_fences, found.max_held) == (max_fences, max_held)
    assert found.max_watches == 819


# ------------------------------------------------------------------ burning


def write(root: Path) -> None:
    """Write into a file."""
    with (root.parent / "a").open("r+") as file:
        file.write("A")


def rename(root: Path) -> None:
    """Put another file in its place."""
    fresh = root.parent.parent / "fresh"
    fresh.write_text("a")
    fresh.replace(root.parent / "a")


def delete(root: Path) -> None:
    """Delete a file."""
    (root.parent / "a").unlink()


def move(root: Path) -> None:
    """Rename a folder above."""
    root.parent.rename(root.parent.with_name("elsewhere"))


@pytest.mark.parametrize("change", [write, rename, delete, move])
async def test_a_change_burns_it(
    fences: Fences, heard: list[Event], root: Path, change: Callable[[Path], None]
) -> None:
    """That is told once, through the loop, and the descriptor stays readable."""
    descriptor = armed(fences, root)
    await turn()
    assert heard == []
    assert fences.is_quiet(1)
    change(root)
    assert not fences.is_quiet(1)
    await until(lambda: bool(heard))
    change_again = root.parent.parent / "elsewhere" / "b"
    (change_again if change is move else root.parent / "b").write_text("more")
    await turn()
    assert heard == [Burnt(1)]
    assert not arming.is_quiet(descriptor)


async def test_only_what_it_covers_burns_it(
    fences: Fences, heard: list[Event], root: Path
) -> None:
    """Reading does not, nor does what is written beside it."""
    armed(fences, root)
    (root.parent / "another").write_text("x")
    seen(root)
    (root.parent.parent / "another").mkdir()
    await turn()
    assert heard == []
    assert fences.is_quiet(1)


async def test_a_burnt_descriptor_is_given_to_nobody(
    fences: Fences, heard: list[Event], root: Path
) -> None:
    """It is told of at once, before the loop comes round, and not again by it."""
    armed(fences, root)
    write(root)
    assert fences.descriptor(1, 4) is None
    assert heard == [Burnt(1, 4)]
    await turn()
    assert heard == [Burnt(1, 4)]


async def test_each_fence_tells_of_itself(
    fences: Fences, heard: list[Event], root: Path, tmp_path: Path
) -> None:
    """By its number, also when two stand side by side."""
    other = tmp_path / "v" / ".envrc"
    other.parent.mkdir()
    other.write_text("x")
    armed(fences, root, 7)
    armed(fences, other, 8)
    write(root)
    await until(lambda: bool(heard))
    assert heard == [Burnt(7)]
    assert fences.descriptor(8, 1) is not None
    assert fences.descriptor(9, 1) is None
    assert not fences.is_quiet(9)


# ------------------------------------------------------------------ closing


async def test_a_retired_fence_is_closed_and_silent(
    fences: Fences, heard: list[Event], root: Path
) -> None:
    """A copy in other hands goes on as it was: nothing has changed."""
    descriptor = armed(fences, root)
    copy = os.dup(descriptor)
    try:
        fences.retire(1, clear=False)
        assert fences.descriptor(1, 1) is None
        assert not fences.is_quiet(1)
        await until(lambda: not is_instance(descriptor))
        assert watches(copy) > 0
        assert arming.is_quiet(copy)
        write(root)
        await turn()
        assert not arming.is_quiet(copy)
    finally:
        os.close(copy)
    assert heard == []
    fences.retire(1, clear=False)
    fences.retire(77, clear=True)


async def test_a_cleared_fence_burns_for_all_who_hold_it(
    fences: Fences, heard: list[Event], root: Path
) -> None:
    """Its watches are given back though they keep the descriptor open."""
    descriptor = armed(fences, root)
    copy = os.dup(descriptor)
    try:
        assert watches(copy) > 0
        fences.retire(1, clear=True)
        await until(lambda: not is_instance(descriptor))
        assert watches(copy) == 0
        assert not arming.is_quiet(copy)
    finally:
        os.close(copy)
    await turn()
    assert heard == []


async def test_a_burnt_fence_can_be_retired(
    fences: Fences, heard: list[Event], root: Path
) -> None:
    """The loop has let go of it already."""
    descriptor = armed(fences, root)
    write(root)
    await until(lambda: bool(heard))
    fences.retire(1, clear=False)
    await until(lambda: not is_instance(descriptor))


async def test_in_the_end_nothing_is_open(
    heard: list[Event], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither what is in use nor what was to be closed later, nor the table."""
    monkeypatch.setattr(fence_module, "CLOSE_AFTER_S", 10.0**6)
    before = set(os.listdir("/proc/self/fd"))
    fences = Fences(heard.append)
    for number in (1, 2, 3):
        armed(fences, root, number)
    fences.retire(2, clear=False)
    # Three instances, the table of mounts, and what waits for it.
    open_now = set(os.listdir("/proc/self/fd")) - before
    assert len(open_now) == 5
    fences.close()
    loop = asyncio.get_running_loop()
    assert not any(loop.remove_reader(int(each)) for each in open_now)
    await until(lambda: set(os.listdir("/proc/self/fd")) <= before)
    fences.close()
    write(root)
    await turn()
    assert heard == []


# ------------------------------------------------------------------ mounts


def test_a_mount_is_told_once(tmp_path: Path) -> None:
    """And an unmount; where none is, the loop is not woken at all.

    In a mount namespace of its own, where nobody else mounts.
    """
    unshare = shutil.which("unshare")
    command = [str(unshare), "--mount", "--propagation", "private"]
    probe = f"mount -t tmpfs none {tmp_path}"
    if (
        not unshare
        or subprocess.run([*command, "sh", "-c", probe], check=False).returncode
    ):
        pytest.skip("no mount is allowed here")
    done = subprocess.run(
        [*command, sys.executable, "-c", MOUNTING, str(tmp_path)],
        cwd=CHECKOUT,
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [b"0", b"1", b"2"]


async def test_without_a_table_of_mounts_there_are_fences(
    fences: Fences, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where /proc is closed to us, kernels look after themselves."""

    def closed() -> None:
        """Have no table."""
        raise PermissionError

    monkeypatch.setattr(fence_module, "Mounts", closed)
    assert armed(fences, root) > 0
