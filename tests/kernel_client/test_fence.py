"""What a kernel makes of a fence: when it counts, and when it wants another one."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from kernel_client import arming, fence, instances, snapshot
from kernel_client.errors import FenceError
from kernel_client.fence import Fence, Fences, named, present
from kernel_client.settings import Settings
from kernel_client.sidecar import Link
from kernel_client.view import view
from tests.support.children import forked

if TYPE_CHECKING:
    from kernel_client.snapshot import Snapshot


class Giver:
    """Stands for the pipe: notes what is sent, and gives fences or not."""

    def __init__(self, *, fences: bool = True) -> None:
        self.fences = fences
        self.sent: list[dict[str, Any]] = []
        self.read, self._write = os.pipe()

    def send(self, frame: dict[str, Any]) -> None:
        """Take a frame."""
        self.sent.append(frame)

    def quiet_poll(self) -> list[tuple[int, int]]:
        """Nothing comes."""
        return []

    def fileno(self) -> int:
        """Give a pipe's."""
        return self.read

    def close(self) -> None:
        """Close the pipe."""
        os.close(self.read)
        os.close(self._write)


@pytest.fixture
def giver() -> Iterator[Giver]:
    """Give a pipe with a sidecar that gives fences."""
    found = Giver()
    yield found
    found.close()


@pytest.fixture
def seen(tmp_path: Path) -> Snapshot:
    """Give a snapshot of a root file and of 200 more, one of them missing."""
    for number in range(200):
        (tmp_path / str(number)).write_text("")
    (tmp_path / ".envrc").write_text("")
    names = (".envrc", "missing", *map(str, range(200)))
    return snapshot.take(str(tmp_path / name) for name in names)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Give a clock that a test moves."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def link(giver: Giver) -> Link:
    """Pass it off as a connection."""
    return cast("Link", giver)


def root_of(seen: Snapshot) -> str:
    """Give the root file."""
    return seen[0][0]


def frame(seen: Snapshot, **changes: Any) -> dict[str, Any]:
    """Give the frame of a fence over a snapshot."""
    found = {
        "type": "fence",
        "root": root_of(seen),
        "paths": named(present(seen)),
        "rest": [],
        "view": view(),
    }
    return {**found, **changes}


def descriptors() -> int:
    """Count what this process has open."""
    return len(os.listdir("/proc/self/fd"))


def kinds() -> set[str]:
    """Name what this process has open."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            found.add(os.readlink(f"/proc/self/fd/{number}").rpartition("/")[2])
    return found


def given(fences: Fences, seen: Snapshot, **changes: Any) -> arming.Armed:
    """Hand a fence over as the sidecar does; gives the sidecar's own copy."""
    armed = arming.arm(present(seen), 1000)
    fences.received(frame(seen, **changes), os.dup(armed.descriptor))
    return armed


def test_counts_after_a_comparison(giver: Giver, seen: Snapshot) -> None:
    """Never what came after the paths were looked at; then all but the root file."""
    fences = Fences(Settings())
    root = root_of(seen)
    fences.prepare(root, seen, link(giver))
    armed = given(fences, seen)
    covered, _, due = fences.guard(root, seen, link(giver))
    assert not covered
    assert due is not None
    fences.prepare(root, seen, link(giver))
    covered, poll, due = fences.guard(root, seen, link(giver))
    assert covered == set(present(seen)) - {root}
    assert poll is not None
    assert poll[0]() == poll[1]
    Path(present(seen)[7]).write_text("x")
    ready = poll[0]()
    assert ready != poll[1]
    fences.heard(ready)
    fences.prepare(root, seen, link(giver))
    assert not fences.guard(root, seen, link(giver))[0]
    fences.close()
    instances.close(armed.descriptor)


@pytest.mark.parametrize(
    "changes",
    [{"paths": "0" * 64}, {"view": "1 2 3"}, {"root": "/other"}, {"rest": ["/x", 7]}],
)
def test_a_fence_of_something_else(
    giver: Giver, seen: Snapshot, changes: dict[str, Any]
) -> None:
    """Other paths, other mounts, another root file: stats go on, nothing is left open."""
    before = descriptors()
    fences = Fences(Settings())
    armed = given(fences, seen, **changes)
    fences.prepare(root_of(seen), seen, link(giver))
    covered = fences.guard(root_of(seen), seen, link(giver))[0]
    assert bool(covered) is ("rest" in changes)
    fences.close()
    instances.close(armed.descriptor)
    assert descriptors() == before


def test_rest_stays_with_stats(giver: Giver, seen: Snapshot) -> None:
    """What it does not cover is not taken for covered."""
    fences = Fences(Settings())
    rest = present(seen)[-3:]
    covered = [path for path in present(seen) if path not in rest]
    armed = given(fences, seen, rest=rest, paths=named(covered))
    fences.prepare(root_of(seen), seen, link(giver))
    assert fences.guard(root_of(seen), seen, link(giver))[0] == set(covered[1:])
    fences.close()
    instances.close(armed.descriptor)


def test_what_is_no_fence(seen: Snapshot) -> None:
    """Some other descriptor is closed, not polled."""
    before = descriptors()
    fences = Fences(Settings())
    fences.received(frame(seen), os.open("/dev/null", os.O_RDONLY))
    with pytest.raises(FenceError):
        Fence(root_of(seen), os.open("/dev/null", os.O_RDONLY), "", ())
    assert descriptors() == before


def test_a_descriptor_that_somebody_closed(giver: Giver, seen: Snapshot) -> None:
    """Its number is another file's by now: no fence, and that file stays open."""
    fences = Fences(Settings())
    armed = given(fences, seen)
    fences.prepare(root_of(seen), seen, link(giver))
    held = fences._held
    assert held is not None
    number = held.descriptor
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, number)
    assert not held.is_quiet()
    assert not fences.guard(root_of(seen), seen, link(giver))[0]
    fences.close()
    assert os.readlink(f"/proc/self/fd/{number}") == "/dev/null"
    assert number not in instances._held
    for each in (number, null):
        os.close(each)
    instances.close(armed.descriptor)


def test_the_newer_one_counts(giver: Giver, seen: Snapshot) -> None:
    """Two that came: one is closed."""
    before = descriptors()
    fences = Fences(Settings())
    copies = [given(fences, seen) for _ in range(3)]
    fences.prepare(root_of(seen), seen, link(giver))
    assert descriptors() == before + len(copies) + 3
    fences.renew()
    assert descriptors() == before + len(copies)
    for each in copies:
        instances.close(each.descriptor)


def test_asking(giver: Giver, seen: Snapshot, clock: list[float]) -> None:
    """Once a second at most, and less often when nothing comes; after comparing."""
    fences = Fences(Settings())
    root = root_of(seen)
    fences.renew()
    asked: list[float] = []
    for step in range(4000):
        clock[0] = 1000.0 + step / 20
        fences.prepare(root, seen, link(giver))
        assert len(giver.sent) == len(asked)
        _, _, due = fences.guard(root, seen, link(giver))
        assert due is not None
        assert due > clock[0]
        if len(giver.sent) > len(asked):
            asked.append(clock[0] - 1000.0)
    assert giver.sent[0] == {"type": "fence", "root": root, "held": False}
    waits = [after - before for before, after in pairwise(asked)]
    assert asked[0] == 1.0
    assert waits[:7] == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0]


def test_in_use(giver: Giver, seen: Snapshot, clock: list[float]) -> None:
    """While it is held that is told now and then, and all is compared again."""
    fences = Fences(Settings(fence_recheck_s=10.0))
    root = root_of(seen)
    armed = given(fences, seen)
    for step in range(31):
        clock[0] = 1000.0 + step
        fences.prepare(root, seen, link(giver))
        _, _, due = fences.guard(root, seen, link(giver))
        assert due == clock[0] + 10.0
    assert giver.sent == [{"type": "fence", "root": root, "held": True}] * 3
    fences.close()
    instances.close(armed.descriptor)


@pytest.mark.parametrize(
    ("settings", "shared", "paths", "is_wanted"),
    [
        ("auto", True, fence.MIN_PATHS, True),
        ("auto", True, fence.MIN_PATHS - 1, False),
        ("auto", False, fence.MIN_PATHS_OWN, True),
        ("auto", False, fence.MIN_PATHS_OWN - 1, False),
        ("always", True, 1, True),
        ("always", False, 1, True),
        ("off", True, 200, False),
        ("off", False, 200, False),
    ],
)
def test_where_one_is_wanted(
    seen: Snapshot, settings: str, paths: int, *, shared: bool, is_wanted: bool
) -> None:
    """By how many paths are there; a missing one does not count."""
    giver = Giver(fences=shared)
    fences = Fences(Settings(fence=settings))
    some = tuple(entry for entry in seen if entry[1] is not None)[:paths] + seen[1:2]
    fences.prepare(root_of(seen), some, link(giver))
    due = fences.guard(root_of(seen), some, link(giver))[2]
    assert (due is not None) is is_wanted
    fences.close()
    giver.close()


def test_its_own(seen: Snapshot, clock: list[float]) -> None:
    """Without a sidecar: not with the first answer, and not where things change."""
    fences = Fences(Settings())
    root = root_of(seen)
    fences.renew()
    fences.prepare(root, seen, None)
    assert not fences.guard(root, seen, None)[0]
    clock[0] += 1.0
    fences.prepare(root, seen, None)
    covered, poll, _ = fences.guard(root, seen, None)
    assert covered == set(present(seen)) - {root}
    assert poll is not None
    Path(root).write_text("x")
    clock[0] += 5.0
    held = []
    for _ in range(2):
        fences.prepare(root, seen, None)
        held.append(fences._held is not None)
    assert held == [False, True]
    fences.close()


def test_none_to_be_had(
    seen: Snapshot, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No instances, no watches: stats, and another try later."""

    def refuse(*_: Any) -> None:
        tried.append(clock[0])
        raise FenceError("instances", "none")

    tried: list[float] = []
    monkeypatch.setattr(arming, "arm", refuse)
    fences = Fences(Settings())
    for step in range(20):
        clock[0] = 1000.0 + step
        fences.prepare(root_of(seen), seen, None)
        assert not fences.guard(root_of(seen), seen, None)[0]
    assert tried == [1000.0, 1001.0, 1003.0, 1007.0, 1015.0]


def test_a_forked_copy(giver: Giver, seen: Snapshot) -> None:
    """It closes what it got, and never arms one of its own; a sidecar may give some."""
    before = descriptors()
    fences = Fences(Settings(fence="always"))
    armed = given(fences, seen)
    fences.prepare(root_of(seen), seen, link(giver))
    given_too = given(fences, seen)
    assert kinds() >= {"anon_inode:inotify", "anon_inode:[eventpoll]", "mountinfo"}

    def child() -> list[object]:
        fences.forget()
        told: list[object] = [sorted(kinds() & {"anon_inode:inotify", "mountinfo"})]
        for _ in range(2):
            fences.prepare(root_of(seen), seen, None)
            told.append(fences.guard(root_of(seen), seen, None)[2])
            fences.renew()
        told.append(fences.guard(root_of(seen), seen, link(giver))[2] is None)
        return told

    assert forked(child) == [[], None, None, False]
    fences.prepare(root_of(seen), seen, link(giver))
    assert fences._held is not None
    fences.close()
    for each in (armed, given_too):
        instances.close(each.descriptor)
    assert descriptors() == before


def test_names_of_paths() -> None:
    """As PROTOCOL.md says: sorted, each once, whatever bytes they have."""
    assert named(["/b", "/a", "/b"]) == sha256(b"/a\0/b").hexdigest()
    assert named(["/\udcff"]) == sha256(b"/\xff").hexdigest()
    assert named([]) == sha256(b"").hexdigest()


def test_a_client_that_was_dropped(seen: Snapshot) -> None:
    """Nothing stays open, though nobody has closed anything."""
    before = descriptors()
    fences = Fences(Settings(fence="always"))
    fences.prepare(root_of(seen), seen, None)
    assert fences._held is not None
    assert descriptors() > before
    del fences
    gc.collect()
    assert descriptors() == before


def test_another_view(
    giver: Giver, seen: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that went to other mounts goes back to stats when it looks again."""
    fences = Fences(Settings())
    armed = given(fences, seen)
    fences.prepare(root_of(seen), seen, link(giver))
    assert fences.guard(root_of(seen), seen, link(giver))[0]
    monkeypatch.setattr(fence, "view", lambda: "elsewhere")
    fences.prepare(root_of(seen), seen, link(giver))
    assert not fences.guard(root_of(seen), seen, link(giver))[0]
    fences.close()
    instances.close(armed.descriptor)


@pytest.mark.parametrize("closed", ["all", "reused", "other instance"])
def test_descriptors_that_are_closed_under_it(
    giver: Giver, seen: Snapshot, closed: str
) -> None:
    """Whatever their numbers are by now: its poll gives no more what it did."""
    fences = Fences(Settings())
    armed = given(fences, seen)
    fences.prepare(root_of(seen), seen, link(giver))
    _, poll, _ = fences.guard(root_of(seen), seen, link(giver))
    held = fences._held
    assert poll is not None
    assert held is not None
    assert held._epoll is not None
    numbers = [held._epoll.fileno(), *held.numbers]
    for number in numbers:
        os.close(number)
    mine: list[int] = []
    if closed == "reused":
        mine = [os.open("/dev/zero", os.O_RDONLY) for _ in numbers]
    elif closed == "other instance":
        mine = [arming.arm([], 1).descriptor for _ in numbers]
    try:
        ready = poll[0]()
    except (OSError, ValueError):
        ready = None
    assert ready != poll[1]
    assert not held.is_quiet()
    fences.close()
    for number in mine:
        os.fstat(number)
        (instances.close if closed == "other instance" else os.close)(number)
    instances.close(armed.descriptor)


def test_no_table_of_mounts(seen: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without /proc there is no fence, and nothing of one stays open."""
    before = descriptors()
    descriptor = arming.arm(present(seen), 1000).descriptor

    def missing(*_: object) -> int:
        raise FileNotFoundError

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", missing)
        with pytest.raises(FenceError):
            Fence(root_of(seen), descriptor, "", ())
    gc.collect()
    assert descriptors() == before
    assert descriptor not in instances._held
