"""Evaluations with the real direnv, many kernels, and an end before their time."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from envwatch.core.events import (
    Allowance,
    Arm,
    Armed,
    Burnt,
    Compare,
    Compared,
    Evaluate,
    Evaluated,
    Event,
    Fenced,
    Key,
    Lines,
    NotArmed,
    Snapshot,
)
from envwatch.runtime.evaluator import MAX_PATHS_INLINE, Evaluator, Said
from envwatch.runtime.fence import Fences
from kernel_client import messages, snapshot
from tests.runtime.conftest import Peer
from tests.support.daemons import Daemon, until
from tests.support.planted import secret
from tests.support.processes import gone
from tests.support.worlds import World

Start = Callable[..., Daemon]
Connect = Callable[..., Peer]


@pytest.fixture
def anyio_backend() -> str:
    """Use the backend that the sidecar uses."""
    return "asyncio"


@pytest.fixture
def counted(world: World) -> Path:
    """Put a wrapper around direnv that counts its exports; gives the count's file."""
    count = world.path("count")
    wrapper = world.folder("bin") / "direnv"
    wrapper.write_text(
        f'#!/bin/sh\n[ "$1" = export ] && echo x >> {count}\nexec {world.direnv} "$@"\n'
    )
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
    world.direnv = str(wrapper)
    world.environ["PATH"] = f"{wrapper.parent}:/usr/bin:/bin"
    return count


def lines(path: Path) -> int:
    """Count the lines of a file that may be missing."""
    return len(path.read_text().splitlines()) if path.exists() else 0


def test_twenty_kernels_one_evaluation(
    started: Start, peers: Connect, world: World, counted: Path
) -> None:
    """The body of the file runs once, and direnv is run once."""
    body = world.path("body")
    world.envrc("w", f"echo x >> {body}\nexport A='{secret('A')}'\n")
    daemon = started(world.direnv)
    kernels = [peers(daemon) for _ in range(20)]
    for number, kernel in enumerate(kernels, 1):
        kernel.export(world, number)
    for number, kernel in enumerate(kernels, 1):
        diff = kernel.hear("diff")
        assert (diff["id"], diff["outcome"]) == (number, "loaded")
        assert diff["set"]["A"] == secret("A")
    assert (lines(body), lines(counted)) == (1, 1)
    late = peers(daemon)
    assert late.diff(world)["shared"]
    assert lines(counted) == 1


def test_an_edit_and_an_allow_run_the_file_once_for_twenty(
    started: Start, peers: Connect, world: World, counted: Path
) -> None:
    """Blocked answers in between are cheap: they do not run it."""
    body = world.path("body")
    world.envrc("w", f"echo x >> {body}\nexport A=1\n")
    daemon = started(world.direnv)
    kernels = [peers(daemon) for _ in range(20)]
    for kernel in kernels:
        kernel.diff(world)
    until("watching", lambda: kernels[0].status()["watching"]["state"] == "ok")
    assert lines(body) == 1
    world.envrc("w", f"echo x >> {body}\nexport A=22\n")
    for kernel in kernels:
        assert kernel.hear("changed")["reason"] == "files"
    until("it was run again", lambda: lines(body) > 1)
    for number, kernel in enumerate(kernels, 2):
        diff = kernel.diff(world, number)
        assert (diff["outcome"], diff["set"]["A"]) == ("loaded", "22")
    assert lines(body) == 2


def test_precompute_is_ready_before_it_is_asked_for(
    started: Start, peers: Connect, world: World
) -> None:
    """An edit of what is loaded is told and evaluated without a question."""
    daemon = started()
    world.envrc("w", "watch_file x\nexport A=$(cat x)\n")
    world.write("w/x", "1")
    kernel = peers(daemon)
    assert kernel.diff(world)["set"]["A"] == "1"
    until("watching", lambda: kernel.status()["watching"]["state"] == "ok")
    world.write("w/x", "2")
    assert kernel.hear("changed")["root"] == str(world.path("w/.envrc"))
    until("it is evaluated", lambda: kernel.status()["evaluations"] == 2)
    until("it is kept", lambda: kernel.status()["workspaces"][0]["kept"] == 1)
    assert kernel.diff(world, 2)["set"]["A"] == "2"
    assert kernel.status()["evaluations"] == 2


def test_a_flood_of_lines_arrives_whole_and_in_order(
    started: Start, peers: Connect, world: World
) -> None:
    """At a kernel that waited from the start, and at one that joined."""
    count = 30_000
    world.envrc("w", f"seq {count} >&2\nread -r _ < {world.path('go')}\n")
    os.mkfifo(world.path("go"))
    daemon = started()
    first, late = peers(daemon), peers(daemon)
    first.export(world)
    for expected in range(count):
        line = "direnv: loading" if expected == 0 else str(expected)
        assert line in first.hear("progress")["line"]
    late.export(world)
    heard = [late.hear("progress")["line"] for _ in range(count)]
    assert heard[1:] == [str(number) for number in range(1, count)]
    with world.path("go").open("w") as go:
        go.write("\n")
    for kernel in (first, late):
        assert kernel.hear("diff")["messages"][: len(heard)] == heard


async def test_lines_that_come_together_are_one_event() -> None:
    """A line costs no turn of the loop; none is lost, none comes twice."""
    heard: list[Event] = []
    said = Said(7, heard.append)

    def say() -> None:
        """Say much at once."""
        for number in range(1000):
            said(str(number))

    speaker = threading.Thread(target=say)
    speaker.start()
    # The loop is held, as it is when many kernels ask at once.
    speaker.join()
    await anyio.lowlevel.checkpoint()
    assert heard == [Lines(7, tuple(map(str, range(1000))))]
    said("last")
    said.flush()
    await anyio.lowlevel.checkpoint()
    assert heard[1:] == [Lines(7, ("last",))]


def test_without_precompute_only_the_notice_comes(
    started: Start, peers: Connect, world: World
) -> None:
    """Nothing is run that nobody asked for."""
    daemon = started(PRECOMPUTE="off")
    world.envrc("w", "export A=1\n")
    kernel = peers(daemon)
    kernel.diff(world)
    until("watching", lambda: kernel.status()["watching"]["state"] == "ok")
    world.envrc("w", "export A=2\n")
    kernel.hear("changed")
    assert kernel.status()["evaluations"] == 1
    assert kernel.diff(world, 2)["set"]["A"] == "2"


@pytest.mark.parametrize("how", ["cancel", "close", "terminate", "stop"])
def test_an_evaluation_that_nobody_waits_for_is_killed(
    started: Start, peers: Connect, world: World, how: str
) -> None:
    """With every process of its group: on cancel, on a dead kernel, at the end."""
    daemon = started()
    pids = world.path("pids")
    world.envrc("w", f"sleep 1000 &\necho $! $$ > {pids}\nsleep 1000\n")
    kernel, other = peers(daemon), peers(daemon)
    kernel.export(world)
    until("it runs", lambda: pids.exists() and len(pids.read_text().split()) == 2)
    started_pids = [int(pid) for pid in pids.read_text().split()]
    assert not any(map(gone, started_pids))
    if how == "cancel":
        kernel.send(messages.cancel(2, export_id=1))
        assert kernel.hear("done")["id"] == 2
    elif how == "close":
        kernel.close()
    elif how == "terminate":
        assert daemon.process is not None
        daemon.process.terminate()
        assert daemon.process.wait(20) == 0
        assert not daemon.socket.exists()
    else:
        other.send(messages.stop(1))
        assert other.hear("done")
        assert kernel.hear("error")["code"] == "stopping"
    until("all are gone", lambda: all(map(gone, started_pids)))
    if how in ("cancel", "close"):
        until("idle", lambda: other.status()["workspaces"][0]["state"] == "idle")


def test_a_precomputed_evaluation_is_killed_at_the_end(
    started: Start, peers: Connect, world: World
) -> None:
    """Nobody waits for it, and nobody must wait for it to end."""
    daemon = started()
    world.envrc("w", "export A=1\n")
    kernel = peers(daemon)
    kernel.diff(world)
    until("watching", lambda: kernel.status()["watching"]["state"] == "ok")
    pids = world.path("pids")
    world.envrc("w", f"echo $$ > {pids}\nsleep 1000\n")
    until("it runs", lambda: pids.exists() and pids.read_text().strip() != "")
    pid = int(pids.read_text())
    assert not gone(pid)
    assert daemon.process is not None
    daemon.process.terminate()
    assert daemon.process.wait(20) == 0
    until("it is gone", lambda: gone(pid))


def test_a_kernel_that_joins_hears_what_was_said(
    started: Start, peers: Connect, world: World
) -> None:
    """And one progress a second, so that nobody gives the sidecar up."""
    daemon = started()
    go = world.path("go")
    os.mkfifo(go)
    world.envrc("w", f"echo hello >&2\nread line < {go}\nexport A=1\n")
    first, second = peers(daemon), peers(daemon)
    first.export(world)
    while "hello" not in (first.hear("progress")["line"] or ""):
        pass
    second.export(world)
    while "hello" not in (second.hear("progress")["line"] or ""):
        pass
    while second.hear("progress")["line"] is not None:
        pass
    go.write_text("\n")
    assert first.hear("diff")["set"]["A"] == "1"
    assert "hello" in second.hear("diff")["messages"]


def test_no_direnv_is_said_and_not_fatal(started: Start, world: World) -> None:
    """Kernels are welcome, and are told to go to direnv themselves."""
    daemon = started("/nonexistent/direnv")
    peer = Peer(daemon.socket, greets=False)
    peer.send(messages.hello(pid=1, client="t", cwd=None))
    assert peer.hear("welcome")["direnv"] is None
    peer.export(world)
    assert peer.hear("error")["code"] == "direnv"
    peer.close()


def test_the_log_has_one_line_for_each_evaluation_and_no_value(
    started: Start, peers: Connect, world: World
) -> None:
    """Outcome, seconds, kernels; never what direnv said."""
    daemon = started()
    world.envrc("w", f"echo {secret('said')} >&2\nexport A='{secret('A')}'\n")
    peers(daemon).diff(world)
    until("it is logged", lambda: '"evaluated"' in daemon.said)
    (line,) = [line for line in daemon.said.splitlines() if '"evaluated"' in line]
    assert '"outcome": "loaded"' in line
    assert '"kernels": 1' in line
    assert "s3cr3t" not in daemon.said


# ------------------------------------------------------------------ fences


class Bench:
    """An evaluator with fences of its own, and a file below one of them."""

    def __init__(self, folder: Path, tasks: anyio.abc.TaskGroup) -> None:
        self.heard: list[Event] = []
        self.fences = Fences(self.heard.append)
        self.evaluator = Evaluator(
            tasks, self.heard.append, fences=self.fences, concurrency=1, kill_s=60.0
        )
        self.path = folder / "file"
        self.path.write_text("x")
        self.seen = snapshot.take([str(self.path)])
        self.key = Key("/direnv", str(self.path), "f")

    async def next(self, kind: type[Event] | None = None) -> Event:
        """Wait for the next event (of a kind); others before it are dropped."""
        while True:
            while not self.heard:
                await anyio.lowlevel.checkpoint()
            event = self.heard.pop(0)
            if kind is None or isinstance(event, kind):
                return event


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    """Give an evaluator; its fences are closed in the end."""
    async with anyio.create_task_group() as tasks:
        made = Bench(tmp_path, tasks)
        yield made
        made.fences.close()


def other(seen: Snapshot) -> Snapshot:
    """Give what a snapshot would be if everything had changed."""
    return tuple((path, (0, 0, 0, 0, 0), None, None) for path, *_ in seen)


async def test_what_a_quiet_fence_covers_is_not_looked_at(bench: Bench) -> None:
    """Only the rest is; a fence that is burnt, or gone, covers nothing."""
    key, wrong = bench.key, other(bench.seen)
    bench.fences.arm(str(bench.path), bench.seen, Allowance(1, 1, 100))
    bench.evaluator.compare(Compare(key, wrong, 1, ()))
    bench.evaluator.compare(Compare(key, wrong, 1, bench.seen))
    bench.evaluator.compare(Compare(key, wrong, 1, wrong))
    bench.evaluator.compare(Compare(key, wrong))
    bench.evaluator.compare(Compare(key, wrong, 2, ()))
    same, changed = Compared(key, wrong), Compared(key, None)
    assert bench.heard == [same, same, changed, changed, changed]
    bench.heard.clear()
    bench.path.write_text("y")
    bench.evaluator.compare(Compare(key, wrong, 1, ()))
    assert bench.heard == [changed]


async def test_when_the_rest_has_changed_everything_is_compared(bench: Bench) -> None:
    """It may be the same but for a ctime; what was found goes on."""
    bench.fences.arm(str(bench.path), bench.seen, Allowance(1, 1, 100))
    bench.evaluator.compare(Compare(bench.key, bench.seen, 1, other(bench.seen)))
    assert bench.heard == [Compared(bench.key, bench.seen)]


async def test_a_long_snapshot_with_a_fence_needs_no_thread(bench: Bench) -> None:
    """Without one, or with a burnt one, the loop is not held by it."""
    long = other(snapshot.take([f"/{n}" for n in range(MAX_PATHS_INLINE + 1)]))
    bench.fences.arm(str(bench.path), bench.seen, Allowance(1, 1, 100))
    bench.evaluator.compare(Compare(bench.key, long, 1, ()))
    assert bench.heard == [Compared(bench.key, long)]
    bench.heard.clear()
    for effect in (Compare(bench.key, long), Compare(bench.key, long, 1, long)):
        bench.evaluator.compare(effect)
        assert bench.heard == []
        assert await bench.next() == Compared(bench.key, None)
    bench.path.write_text("y")
    bench.evaluator.compare(Compare(bench.key, long, 1, ()))
    assert bench.heard == []
    assert await bench.next() == Compared(bench.key, None)


async def test_a_fence_is_armed_and_listened_to(bench: Bench) -> None:
    """Its number is that of the allowance, and its change comes as an event."""
    bench.evaluator.arm(Arm(bench.key, bench.seen, Allowance(7, 1, 100)))
    fenced = await bench.next()
    assert isinstance(fenced, Fenced)
    assert isinstance(fenced.fence, Armed)
    assert (fenced.fence.number, fenced.fence.snapshot) == (7, bench.seen)
    assert bench.key.root in fenced.fence.frame.decode()
    bench.path.write_text("y")
    assert await bench.next() == Burnt(7)
    bench.evaluator.arm(Arm(bench.key, bench.seen, Allowance(8, 1, 100)))
    refused = await bench.next()
    assert isinstance(refused, Fenced)
    assert isinstance(refused.fence, NotArmed)
    assert (refused.fence.number, refused.fence.code) == (8, "changed")


async def test_arming_that_fails_is_an_answer(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bug costs the fence alone, and its text is not told."""

    def fail(*_: object) -> None:
        """Have a bug."""
        raise RuntimeError("not to be told")

    monkeypatch.setattr(bench.fences, "arm", fail)
    bench.evaluator.arm(Arm(bench.key, bench.seen, Allowance(7, 1, 100)))
    expected = NotArmed(7, "inotify", "arming failed (RuntimeError)")
    assert await bench.next() == Fenced(expected)


async def test_an_evaluation_comes_with_its_fence(bench: Bench, world: World) -> None:
    """Where one was asked for: armed, listened to, or the reason why not."""
    root = world.envrc("w", "watch_file x\nexport A=1\n")
    key = Key(world.direnv, str(root), "f")

    async def evaluate(fence: Allowance | None, direnv: str = "") -> Evaluated:
        """Evaluate to the end."""
        used = key._replace(direnv=direnv or world.direnv)
        effect = Evaluate(1, used, world.environ, (), waiting=True, fence=fence)
        bench.evaluator.evaluate(effect)
        ended = await bench.next(Evaluated)
        assert isinstance(ended, Evaluated)
        return ended

    without = await evaluate(None)
    assert (without.result.outcome, without.fence) == ("loaded", None)
    ended = await evaluate(Allowance(3, 1, 1000))
    assert isinstance(ended.fence, Armed)
    assert ended.fence.number == 3
    assert ended.fence.snapshot is ended.result.snapshot
    assert str(world.path("w/x")) in [path for path, *_ in ended.fence.rest]
    few = await evaluate(Allowance(4, 1000, 1000))
    assert isinstance(few.fence, NotArmed)
    assert (few.result.outcome, few.fence.code) == ("loaded", "few")
    broken = await evaluate(Allowance(5, 1, 1000), "/nonexistent/direnv")
    assert broken.result.snapshot is None
    assert isinstance(broken.fence, NotArmed)
    assert (broken.fence.number, broken.fence.code) == (5, "few")
    world.write("w/.envrc", "export A=2\n")
    assert await bench.next() == Burnt(3)
