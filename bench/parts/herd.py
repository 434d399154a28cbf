"""Many kernels in one workspace, one edit, and a run in each of them at once."""

from __future__ import annotations

import json
import statistics
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from bench.findings import CannotRunError, Distribution, Findings, Row
from bench.measures import ratio_of, readable
from bench.processes import cpu_s
from bench.progress import ticking
from bench.worlds import World, wait_until

TEXTS = ("export FOO=1 BAR=one\n", "export FOO=2 BAR=two\n")
COUNT = 300
WALL_RATIO = 1.3
SPAWN_RATIO = 50
COUNTS = (1, 10, 100, 300)
WALL = "One edit, then a run in each of N kernels at once: wall"
CPU = "One edit, then a run in each of N kernels at once: processor time"
NAMES = {"refresh": "refresh(), sidecar", "spawn": "direnv export json each"}
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
    kernels = Kernels(world, count, folder)
    kernels.told("refresh")
    kernels.told(echo)
    pairs: list[tuple[float, float]] = []
    refreshed: list[tuple[float, float]] = []
    evaluations: list[float] = []
    trips: list[float] = []
    ran: list[int] = []
    for turn in ticking(range(rounds), f"herd: {count} kernels"):
        time.sleep(SETTLE_S)
        before = world.status()["evaluations"]
        (folder / ".envrc").write_text(TEXTS[(turn + 1) % 2])
        ours = kernels.told("refresh")
        bare = kernels.told(echo)
        time.sleep(SETTLE_S)
        wait_until("the sidecar is idle", lambda: _is_idle(world))
        ran.append(world.status()["evaluations"] - before)
        evaluation = world.of_root(folder)["last"]["seconds"]
        evaluations.append(evaluation)
        trips.append(bare)
        pairs.append((ours, evaluation + bare))
        if turn % 3 == 1 and len(refreshed) < spawns:
            refreshed.append((ours, kernels.told("spawn")))
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


def by_count(
    world: World, *, quick: bool, kernels: tuple[int, ...] | None = None
) -> Findings:
    """One edit, and a run in each of N kernels at once; against N direnvs.

    Processor time is that of the kernels, the sidecar and whatever either started.
    """
    sidecar = world.serve()
    for count in kernels or COUNTS:
        folder = world.workspace(f"n{count}", *TEXTS)
        parked = Kernels(world, count, folder)
        parked.told("refresh")
        walls: dict[str, list[float]] = {}
        spent: dict[str, list[float]] = {}
        ran: list[int] = []
        for turn in ticking(range(3 if quick else 7), f"herd: {count} kernels"):
            time.sleep(SETTLE_S)
            before = world.status()["evaluations"]
            (folder / ".envrc").write_text(TEXTS[(turn + 1) % 2])
            commands = ("refresh", "spawn") if turn < 2 else ("refresh",)
            for command in commands:
                began = parked.cpu_s() + cpu_s(sidecar.pid)
                wall = parked.told(command)
                if command == "refresh":
                    wait_until("the sidecar is idle", lambda: _is_idle(world))
                used = parked.cpu_s() + cpu_s(sidecar.pid) - began
                walls.setdefault(NAMES[command], []).append(wall)
                spent.setdefault(NAMES[command], []).append(used)
            ran.append(world.status()["evaluations"] - before)
        parked.close()
        axis = "kernels"
        for chart, found in ((WALL, walls), (CPU, spent)):
            for name, samples in found.items():
                yield Distribution("herd", chart, name, tuple(samples), count, axis)
        middle, other = (statistics.median(each) for each in walls.values())
        used, others = (statistics.median(each) for each in spent.values())
        yield Row(
            "herd",
            f"one edit, {count} at once: wall, processor time, evaluations",
            "-",
            f"{readable(middle)}, {readable(used)}, {max(ran)};"
            f" {count} direnvs: {readable(other)}, {readable(others)}",
            figures={
                "kernels": count,
                "wall_s": middle,
                "cpu_s": used,
                "evaluations": max(ran),
                "direnvs_wall_s": other,
                "direnvs_cpu_s": others,
            },
        )


class Kernels:
    """Parked kernels, in processes of their own, that do something all at once."""

    def __init__(self, world: World, count: int, folder: Path) -> None:
        self.count = count
        self._world = world
        self._parked = world.start(
            "bench.actors.kernels",
            str(count),
            str(folder),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._line()

    def told(self, command: str) -> float:
        """Have all of them do something; give the wall time in seconds."""
        if self._parked.stdin is None:
            raise CannotRunError("the kernels have no input")
        self._parked.stdin.write(f"{command}\n".encode())
        self._parked.stdin.flush()
        found = self._line()
        if found["good"] != self.count:
            word = command.partition(" ")[0]
            good = f"{found['good']:.0f} of {self.count}"
            raise CannotRunError(f"{word}: {good} kernels did it")
        return found["wall"]

    def cpu_s(self) -> float:
        """Give the processor time of all of them so far."""
        pid = self._parked.pid
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
        return sum(cpu_s(int(child)) for child in text.split())

    def close(self) -> None:
        """End them."""
        self._world.end(self._parked)

    def _line(self) -> dict[str, float]:
        if self._parked.stdout is None:
            raise CannotRunError("the kernels have no output")
        line = self._parked.stdout.readline()
        if not line:
            raise CannotRunError("the kernels have ended")
        found: dict[str, float] = json.loads(line)
        return found


def _is_idle(world: World) -> bool:
    return all(each["state"] == "idle" for each in world.status()["workspaces"])
