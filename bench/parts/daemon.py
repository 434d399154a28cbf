"""The sidecar with many kernels attached, and nothing to do."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Sequence

from bench.findings import CannotRunError, Distribution, Findings, Row
from bench.measures import readable
from bench.processes import cpu_s, rss_kb, sleeps, wake_ups
from bench.progress import ticking
from bench.worlds import World, wait_until

PROCESSES = 4
WORKSPACES = 20
CPU_TARGET = 0.005
RSS_TARGET_KB = 40 * 1024
SETTLE_S = 2.0
ATTACHED = (1, 100, 1000)
ASKING_FRAMES = 4
"""The first answer, and then hello, welcome and the second question."""


def idle(world: World, *, quick: bool) -> Iterator[Row]:
    """Row 7: a thousand connections of a few processes, twenty workspaces loaded."""
    count = 200 if quick else 1000
    idle_s = 4.0 if quick else 10.0
    sidecar = world.serve()
    alone = rss_kb(sidecar.pid)
    folders = [
        str(world.workspace(f"w{number}", f"export FOO={number}\n"))
        for number in range(WORKSPACES)
    ]
    _attached(world, count, folders)
    status = world.status()
    if status["watching"]["state"] != "ok":
        raise CannotRunError(f"watching is {status['watching']['state']}")
    time.sleep(SETTLE_S)
    rss = rss_kb(sidecar.pid)
    before, started = cpu_s(sidecar.pid), time.monotonic()
    time.sleep(idle_s)
    used, passed = cpu_s(sidecar.pid) - before, time.monotonic() - started
    share = used / passed
    rss = max(rss, rss_kb(sidecar.pid))
    folders_watched = status["watching"]["folders"]
    yield Row(
        "daemon",
        f"sidecar idle, {count} kernels, {folders_watched} folders watched",
        f"<= {CPU_TARGET:.1%} of a core",
        f"{share:.2%} ({readable(used)} in {passed:.1f} s)",
        share <= CPU_TARGET,
        {"share": share, "used_s": used, "passed_s": passed},
    )
    yield Row(
        "daemon",
        f"  its memory, {count} kernels in {PROCESSES} processes",
        f"<= {RSS_TARGET_KB // 1024} MB",
        f"{rss / 1024:.1f} MB ({alone / 1024:.1f} MB alone)",
        rss <= RSS_TARGET_KB,
        {"rss_kb": rss, "alone_kb": alone},
    )


def starts(world: World, *, quick: bool) -> Findings:
    """From starting the sidecar's process to its socket that listens."""
    found = []
    for _ in ticking(range(4 if quick else 15), "daemon: starts"):
        started = time.perf_counter()
        sidecar = world.serve()
        found.append(time.perf_counter() - started)
        world.end(sidecar)
    chart = "The sidecar's start, until it listens"
    # Whoever waits for it looks every ten milliseconds.
    yield Distribution("daemon", chart, "envwatch serve", tuple(found))


def by_kernels(world: World, *, quick: bool) -> Findings:
    """Memory, processor time, wake-ups and frames, with nothing to do."""
    idle_s = 3.0 if quick else 10.0
    folders = [
        str(world.workspace(f"k{number}", f"export FOO={number}\n"))
        for number in range(WORKSPACES)
    ]
    for count in ticking(ATTACHED, "daemon: attached kernels"):
        sidecar = world.serve()
        crowds = _attached(world, count, folders)
        time.sleep(SETTLE_S)
        frames = world.status()["frames"]
        began = (cpu_s(sidecar.pid), sleeps(sidecar.pid), time.monotonic())
        time.sleep(idle_s)
        passed = time.monotonic() - began[2]
        used = cpu_s(sidecar.pid) - began[0]
        wakes = wake_ups(began[1], sleeps(sidecar.pid))
        now = world.status()["frames"]
        moved = sum(now.values()) - sum(frames.values()) - ASKING_FRAMES
        rss = rss_kb(sidecar.pid)
        yield Row(
            "daemon",
            f"idle, {count} attached: processor, memory, wake-ups, frames",
            "-",
            f"{used / passed:.2%} of a core, {rss / 1024:.1f} MB,"
            f" {wakes / passed:.1f} and {max(0, moved) / passed:.1f} per second",
            figures={
                "kernels": count,
                "share": used / passed,
                "rss_kb": rss,
                "wakes_per_s": wakes / passed,
                "frames_per_s": max(0, moved) / passed,
            },
        )
        for each in (*crowds, sidecar):
            world.end(each)


def _attached(
    world: World, count: int, folders: Sequence[str]
) -> list[subprocess.Popen[bytes]]:
    """Attach so many kernels, connections of a few processes."""
    processes = min(PROCESSES, count)
    crowds = [
        world.start(
            "bench.actors.crowd",
            str(count // processes),
            *folders,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for _ in range(processes)
    ]
    for crowd in crowds:
        if crowd.stdout is None or crowd.stdout.readline() != b"ready\n":
            raise CannotRunError("a crowd of kernels did not attach")
    wait_until("all are attached", lambda: world.status()["kernels"] > count)
    return crowds
