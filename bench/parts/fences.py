"""The fence: `refresh()` unchanged, with thousands of watched files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from bench import clients
from bench.findings import CannotRunError, Row
from bench.measures import Ratio, Work, paired, ratio_of, readable, seconds
from bench.parts.hook import DEPTH, TIMES
from bench.worlds import World, wait_until
from kernel_client import Client, Settings

FEW = 3
MANY = 5000
FLAT_RATIO = 1.5
BARE_RATIO = 1.6
SPAWN_RATIO = 300


def fences(world: World, *, quick: bool) -> Iterator[Row]:
    """Row 3."""
    pairs = 200 if quick else 1000
    world.serve()
    stats = Settings(sidecar="off", direnv=world.direnv, fence="off")
    few, many = _watching(world, FEW), _watching(world, MANY)
    with_few = _loaded(world, few, world.settings)
    fenced = _loaded(world, many, world.settings)
    os.chdir(many)
    wait_until("the kernel has a fence", lambda: clients.is_fenced(fenced))
    by_stats = _loaded(world, many, stats)
    by_stats.refresh()
    flat = _in_turn(many, fenced.refresh, few, with_few.refresh, pairs)
    os.chdir(many)
    calls, bare = _bare(fenced)
    beside = paired(fenced.refresh, bare, pairs=pairs, times=TIMES)
    before = paired(
        by_stats.refresh, fenced.refresh, pairs=pairs // 20, times=1, other_times=TIMES
    )
    spawn = world.hook(clients.environ_of(fenced), many)
    if spawn():
        raise CannotRunError("direnv does not take it for unchanged")
    spawned = paired(
        spawn, fenced.refresh, pairs=pairs // 20, times=1, other_times=TIMES
    )
    for client in (with_few, fenced, by_stats):
        client.close()
    os.chdir("/")
    yield _row(
        f"refresh() unchanged, {MANY} watched files",
        f"<= {FLAT_RATIO} x that with {FEW}",
        flat,
        flat.middle <= FLAT_RATIO,
    )
    what, target = f"  beside {calls}, bare", f"<= {BARE_RATIO} x"
    yield _row(what, target, beside, beside.middle <= BARE_RATIO)
    yield _row("  by stats, without the fence", "-", before, None)
    what, target = "  beside direnv export json", f">= {SPAWN_RATIO} x cheaper"
    yield _row(what, target, spawned, spawned.middle >= SPAWN_RATIO)


def _row(what: str, target: str, ratio: Ratio, met: bool | None) -> Row:  # noqa: FBT001 - as Row has it
    times = f"{readable(ratio.ours_s)} / {readable(ratio.other_s)}"
    return Row("hook", what, target, f"{ratio}: {times}", met, ratio.figures())


def _watching(world: World, count: int) -> Path:
    up = DEPTH - len(world.top.parts) + 1 - 3
    above = "/".join(["p"] * up)
    folder = world.workspace(f"{above}/w{count}", "watch_dir src\nexport FOO=1\n")
    inside = folder / "src"
    inside.mkdir()
    for number in range(count):
        (inside / str(number)).write_text("")
    deep = folder / "a" / "b"
    deep.mkdir(parents=True)
    return deep


def _loaded(world: World, folder: Path, settings: Settings) -> Client:
    return clients.loaded(settings, folder, dict(world.environ))


def _bare(client: Client) -> tuple[str, Work]:
    """Give the bare loop of what no fence can spare; the stat of the root file can."""
    calls = clients.calls(client)
    if calls.poll is None:
        raise CannotRunError("there is no fence")
    return f"getcwd, {len(calls.absent)} access, poll", calls._replace(there=()).bare()


def _in_turn(here: Path, ours: Work, there: Path, other: Work, pairs: int) -> Ratio:
    """Measure in two folders, with the way between them left out."""

    def turn(folder: Path, work: Work) -> float:
        os.chdir(folder)
        work()
        return seconds(work, TIMES)

    return ratio_of([(turn(here, ours), turn(there, other)) for _ in range(pairs)])
