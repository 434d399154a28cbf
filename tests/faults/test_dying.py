"""A sidecar that dies: at any point of an export, and while it evaluates."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import pytest

from kernel_client import Result
from tests.faults.peers import marked
from tests.faults.proxy import BreakingWire
from tests.support.daemons import Daemon, until
from tests.support.pairs import Pair
from tests.support.planted import exports
from tests.support.worlds import World

NEWER = pytest.mark.parametrize("version", ["2.37"])
BODY = "unset KEEP\n" + exports("FOO", "BAR")


@contextlib.contextmanager
def paired(world: World, wire: BreakingWire) -> Iterator[Pair]:
    """Give a kernel over the wire, beside the reference shell."""
    pair = Pair(world, socket=wire.path)
    try:
        yield pair
    finally:
        pair.close()
        wire.close()


@NEWER
@pytest.mark.parametrize(
    "after", [0, 1, 80, 170, 260, 290, 420, 560, 700, 860, 1000, 1500, 2200]
)
def test_killed_after_so_many_bytes(world: World, daemon: Daemon, after: int) -> None:
    """kill -9 at every stage of the exchange: the run has the hook's environment.

    What direnv says is said once, and later runs go back to the sidecar.
    """
    world.envrc("w", BODY)
    wire = BreakingWire(daemon.socket, after, daemon.kill)
    with paired(world, wire) as pair:
        pair.step("w", outcome="loaded", alone=None)
        pair.step(outcome="unchanged", alone=None)
        if not wire.is_broken:
            # The exchange was shorter than that: it dies in a later one.
            daemon.kill()
        world.envrc("w", BODY, allow=False)
        world.envrc("w", BODY + "export THIRD=3\n")
        pair.step(outcome="loaded", alone=None)
        daemon.start()
        world.envrc("w", BODY + "export FOURTH=4\n")
        assert pair.step(outcome="loaded").result.answered == "sidecar"


@NEWER
@pytest.mark.parametrize("start", range(0, 1800, 300))
def test_cut_after_so_many_bytes(
    world: World, daemons: dict[str, Daemon], version: str, start: int
) -> None:
    """The wire breaks, the sidecar lives: the same, at very many points."""
    world.envrc("w", BODY)
    for after in range(start, start + 300, 37):
        with contextlib.ExitStack() as stack:
            wire = BreakingWire(daemons[version].socket, after, lambda: None)
            pair = stack.enter_context(paired(world, wire))
            pair.step("w", outcome="loaded", alone=None)
            pair.step(world.top, outcome="unloaded", alone=None)


@NEWER
def test_killed_while_it_evaluates(world: World, daemon: Daemon) -> None:
    """The kernel that holds goes to direnv, and has the environment; nothing is left."""
    world.envrc("w", "echo >> started\nwhile [ ! -e go ]; do sleep 0.02; done\n" + BODY)
    pair = Pair(world, socket=daemon.socket)
    results: list[Result] = []
    try:
        pair.go("w")
        holding = threading.Thread(target=lambda: results.append(pair.kernel.refresh()))
        holding.start()
        started = world.path("w/started")
        until("it is evaluated", started.exists)
        daemon.kill()
        until("direnv is asked", lambda: len(started.read_text()) > 1)
        world.write("w/go", "")
        holding.join(30)
        (result,) = results
        assert (result.outcome, result.answered) == ("loaded", "direnv")
        pair.step(messages=False, alone=None)
        until("nothing is left", lambda: marked(f"HOME={world.home}") == [])
        daemon.start()
        world.envrc("w", BODY)
        assert pair.step(outcome="loaded").result.answered == "sidecar"
    finally:
        pair.close()


@NEWER
def test_killed_while_nothing_is_asked(world: World, daemon: Daemon) -> None:
    """An unchanged run does not care, a later one goes direct, then back."""
    world.envrc("w", BODY)
    pair = Pair(world, socket=daemon.socket)
    try:
        pair.step("w", outcome="loaded")
        daemon.kill()
        pair.step(outcome="unchanged")
        pair.step(outcome="unchanged")
        pair.step(world.top, outcome="unloaded")
        pair.step("w", outcome="loaded", alone=True)
        daemon.start()
        pair.step(outcome="unchanged")
        pair.step(world.top, outcome="unloaded")
        assert pair.step("w", outcome="loaded").result.answered == "sidecar"
    finally:
        pair.close()
