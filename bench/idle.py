"""The sidecar with many kernels attached, and nothing to do."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from bench.measures import CannotRunError, Row, readable
from bench.worlds import World, wait_until

PROCESSES = 4
WORKSPACES = 20
CPU_TARGET = 0.005
RSS_TARGET_KB = 40 * 1024
SETTLE_S = 2.0


def idle(world: World, *, quick: bool) -> Iterator[Row]:
    """Row 7: a thousand connections of a few processes, twenty workspaces loaded."""
    count = 200 if quick else 1000
    idle_s = 4.0 if quick else 10.0
    sidecar = world.serve()
    alone = _rss_kb(sidecar.pid)
    folders = [
        str(world.workspace(f"w{number}", f"export FOO={number}\n"))
        for number in range(WORKSPACES)
    ]
    each = count // PROCESSES
    crowds = [
        world.start(
            "bench.crowd",
            str(each),
            *folders,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for _ in range(PROCESSES)
    ]
    for crowd in crowds:
        if crowd.stdout is None or crowd.stdout.readline() != b"ready\n":
            raise CannotRunError("a crowd of kernels did not attach")
    status = world.status()
    if status["watching"]["state"] != "ok":
        raise CannotRunError(f"watching is {status['watching']['state']}")
    wait_until("all are attached", lambda: world.status()["kernels"] > count)
    time.sleep(SETTLE_S)
    rss = _rss_kb(sidecar.pid)
    before, started = _cpu_s(sidecar.pid), time.monotonic()
    time.sleep(idle_s)
    used, passed = _cpu_s(sidecar.pid) - before, time.monotonic() - started
    share = used / passed
    rss = max(rss, _rss_kb(sidecar.pid))
    folders_watched = status["watching"]["folders"]
    yield Row(
        "idle",
        f"sidecar idle, {count} kernels, {folders_watched} folders watched",
        f"<= {CPU_TARGET:.1%} of a core",
        f"{share:.2%} ({readable(used)} in {passed:.1f} s)",
        share <= CPU_TARGET,
        {"share": share, "used_s": used, "passed_s": passed},
    )
    yield Row(
        "idle",
        f"  its memory, {count} kernels in {PROCESSES} processes",
        f"<= {RSS_TARGET_KB // 1024} MB",
        f"{rss / 1024:.1f} MB ({alone / 1024:.1f} MB alone)",
        rss <= RSS_TARGET_KB,
        {"rss_kb": rss, "alone_kb": alone},
    )


def _cpu_s(pid: int) -> float:
    """Give the processor time of all threads, to the nanosecond."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


def _rss_kb(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise CannotRunError("the system does not tell the memory of a process")
