"""The sidecar when nothing happens: processor and memory."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path

from bench.measures import Row
from bench.worlds import World
from kernel_client import Client


def idle(world: World, *, quick: bool) -> Iterator[Row]:
    """Row 7: a thousand kernels attached, each with its workspace loaded."""
    count = 1000
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    process = world.serve()
    folders = [world.workspace(f"i{n}", "export FOO=1\n") for n in range(5)]
    clients: list[Client] = []
    for number in range(count):
        os.chdir(folders[number % len(folders)])
        client = world.client(dict(world.environ), shared=True)
        if client.refresh().answered != "sidecar":
            raise SystemExit("bench: the sidecar did not answer")
        clients.append(client)
    os.chdir("/")
    world.until_watching()
    before, started = _cpu_s(process.pid), time.monotonic()
    time.sleep(3 if quick else 10)
    share = (_cpu_s(process.pid) - before) / (time.monotonic() - started)
    text = Path(f"/proc/{process.pid}/status").read_text()
    rss = int(text.partition("VmRSS:")[2].split()[0]) / 1024
    for client in clients:
        client.close()
    yield Row(
        f"sidecar idle, {count} kernels: processor",
        "<= 0.5 % of a core",
        f"{share:.2%}",
        share <= 0.005,
    )
    yield Row(
        f"sidecar with {count} kernels: memory",
        "<= 40 MB",
        f"{rss:.1f} MB",
        rss <= 40,
    )


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
