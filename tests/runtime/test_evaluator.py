"""Evaluations with the real direnv, many kernels, and an end before their time."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from envwatch.core.events import Event, Lines
from envwatch.runtime.evaluator import Said
from kernel_client import messages
from tests.runtime.conftest import Peer
from tests.support.daemons import Daemon, until
from tests.support.planted import secret
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


def alive(pid: int) -> bool:
    """Tell whether a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")")[-1].split()[0] != "Z"
    except OSError:
        return False


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
    assert all(map(alive, started_pids))
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
    until("all are gone", lambda: not any(map(alive, started_pids)))
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
    assert alive(pid)
    assert daemon.process is not None
    daemon.process.terminate()
    assert daemon.process.wait(20) == 0
    until("it is gone", lambda: not alive(pid))


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
