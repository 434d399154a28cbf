"""Many kernels in one workspace, one edit, and a run in each of them at once."""

from __future__ import annotations

import json
import statistics
import subprocess
import time
from collections.abc import Iterator

from bench.measures import CannotRunError, Row, ratio_of, readable
from bench.worlds import World, wait_until

TEXTS = ("export FOO=1 BAR=one\n", "export FOO=2 BAR=two\n")
COUNT = 300
WALL_RATIO = 1.3
SPAWN_RATIO = 50
SETTLE_S = 0.3
"""Longer than the sidecar's quiet time: a second evaluation would have begun."""


def herd(world: World, *, quick: bool) -> Iterator[Row]:
    """Row 6: the same parked processes refresh, exchange a line, and spawn direnv."""
    count = COUNT
    rounds, spawns = (3, 1) if quick else (9, 2)
    world.serve()
    folder = world.workspace("w", *TEXTS)
    request, reply_bytes = world.exchange(folder)
    echo = f"echo {world.echo(reply_bytes)} {len(request)}"
    kernels = world.start(
        "bench.kernels",
        str(count),
        str(folder),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    _line(kernels)
    _told(kernels, "refresh", count)
    _told(kernels, echo, count)
    pairs: list[tuple[float, float]] = []
    refreshed: list[tuple[float, float]] = []
    evaluations: list[float] = []
    trips: list[float] = []
    ran: list[int] = []
    for turn in range(rounds):
        time.sleep(SETTLE_S)
        before = world.status()["evaluations"]
        (folder / ".envrc").write_text(TEXTS[(turn + 1) % 2])
        ours = _told(kernels, "refresh", count)
        bare = _told(kernels, echo, count)
        time.sleep(SETTLE_S)
        wait_until("the sidecar is idle", lambda: _is_idle(world))
        ran.append(world.status()["evaluations"] - before)
        evaluation = world.of_root(folder)["last"]["seconds"]
        evaluations.append(evaluation)
        trips.append(bare)
        pairs.append((ours, evaluation + bare))
        if turn % 3 == 1 and len(refreshed) < spawns:
            refreshed.append((ours, _told(kernels, "spawn", count)))
    yield Row(
        "herd",
        f"{count} kernels, one edit: evaluations",
        "1",
        f"{max(ran)} (most of {rounds} rounds)",
        max(ran) == 1 and min(ran) == 1,
        {"most": max(ran), "fewest": min(ran)},
    )
    ratio = ratio_of(pairs)
    parts = (
        f"{readable(statistics.median(evaluations))} evaluation among them,"
        f" {readable(statistics.median(trips))} round trips"
    )
    yield Row(
        "herd",
        f"  wall beside that evaluation + {count} bare round trips",
        f"<= {WALL_RATIO} x",
        f"{ratio}: {readable(ratio.ours_s)} / {readable(ratio.other_s)} ({parts})",
        ratio.middle <= WALL_RATIO,
        {
            **ratio.figures(),
            "evaluation_s": statistics.median(evaluations),
            "trips_s": statistics.median(trips),
        },
    )
    beside = ratio_of(refreshed).inverse()
    yield Row(
        "herd",
        f"  wall beside {count} direnv export json",
        f">= {SPAWN_RATIO} x less",
        f"{beside}: {readable(beside.ours_s)} / {readable(beside.other_s)}",
        beside.middle >= SPAWN_RATIO,
        beside.figures(),
    )


def _is_idle(world: World) -> bool:
    return all(each["state"] == "idle" for each in world.status()["workspaces"])


def _told(kernels: subprocess.Popen[bytes], command: str, count: int) -> float:
    """Have all kernels do something; give the wall time in seconds."""
    if kernels.stdin is None:
        raise CannotRunError("the kernels have no input")
    kernels.stdin.write(f"{command}\n".encode())
    kernels.stdin.flush()
    found = _line(kernels)
    if found["good"] != count:
        word = command.partition(" ")[0]
        raise CannotRunError(f"{word}: {found['good']:.0f} of {count} kernels did it")
    return found["wall"]


def _line(kernels: subprocess.Popen[bytes]) -> dict[str, float]:
    if kernels.stdout is None:
        raise CannotRunError("the kernels have no output")
    line = kernels.stdout.readline()
    if not line:
        raise CannotRunError("the kernels have ended")
    found: dict[str, float] = json.loads(line)
    return found
