"""Many kernels, one edit: real processes that are parked and then let go at once."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench.edits import Echo
from bench.measures import Row, micro, seconds
from bench.worlds import World

_KERNEL = """
import os, subprocess, sys, time
from kernel_client import Client, Settings

os.chdir(sys.argv[1])
environ = dict(os.environ)
client = Client(
    environ,
    output=lambda line: None,
    settings=Settings(sidecar="/nonexistent/envwatch", socket=sys.argv[2], direnv=sys.argv[3]),
)
print(client.refresh().outcome, flush=True)
for word in sys.stdin:
    if word.strip() == "refresh":
        result = client.refresh()
        print(time.monotonic(), result.outcome, environ.get("FOO"), flush=True)
    else:
        bare = {k: v for k, v in os.environ.items() if not k.startswith("DIRENV_")}
        subprocess.run(
            [sys.argv[3], "export", "json"], env=bare, stdin=subprocess.DEVNULL,
            capture_output=True,
        )
        print(time.monotonic(), "spawned", None, flush=True)
"""


def herd(world: World, *, quick: bool) -> Iterator[Row]:
    """Row 6: all kernels ask for the same edit at once."""
    count = 60 if quick else 300
    world.environ["PATH"] = f"{Path(world.direnv).parent}:/usr/bin:/bin"
    world.serve()
    folder = world.workspace(
        "h", "watch_file value\necho run >>count\nexport FOO=$(cat value)\n"
    )
    (folder / "value").write_text("0")
    kernels = []
    for _ in range(count):
        kernel = world.start(
            [sys.executable, "-c", _KERNEL, str(folder), world.socket, world.direnv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        kernels.append(kernel)
        if kernel.stdout is None or kernel.stdout.readline() != b"loaded\n":
            raise SystemExit("bench: a kernel did not load the workspace")
    echo = Echo(world, "echo", 2000)
    walls, bests, runs = [], [], []
    for turn in range(2 if quick else 5):
        counted = len((folder / "count").read_bytes())
        alone = seconds(world.hook(dict(world.environ), folder))
        trip = statistics.median(seconds(echo.trip) for _ in range(200))
        counted_alone = len((folder / "count").read_bytes()) - counted
        (folder / "value").write_text(str(turn + 1))
        started = time.monotonic()
        answers = _all(kernels, "refresh")
        walls.append(max(float(answer[0]) for answer in answers) - started)
        bests.append(alone + count * trip)
        if any(answer[2] != str(turn + 1) for answer in answers):
            raise SystemExit("bench: the edit did not reach every kernel")
        every = len((folder / "count").read_bytes()) - counted - counted_alone
        runs.append(every // len("run\n"))
    started = time.monotonic()
    answers = _all(kernels, "spawn")
    spawned = max(float(answer[0]) for answer in answers) - started
    wall = statistics.median(walls)
    ratio = statistics.median(a / b for a, b in zip(walls, bests, strict=True))
    yield Row(
        f"{count} kernels, one edit: evaluations",
        "1",
        f"{max(runs)} at most",
        max(runs) == 1,
    )
    yield Row(
        "  beside that evaluation + bare round trips",
        "<= 1.3 x",
        f"{ratio:.2f} x: {micro(wall)} / {micro(statistics.median(bests))}",
        ratio <= 1.3,
    )
    yield Row(
        f"  beside {count} direnvs",
        ">= 50 x less wall time",
        f"{spawned / wall:.0f} x: {micro(wall)} / {micro(spawned)}",
        spawned / wall >= 50,
    )


def _all(kernels: list[subprocess.Popen[bytes]], word: str) -> list[list[str]]:
    for kernel in kernels:
        assert kernel.stdin is not None
        kernel.stdin.write(f"{word}\n".encode())
        kernel.stdin.flush()
    answers = []
    for kernel in kernels:
        assert kernel.stdout is not None
        answers.append(kernel.stdout.readline().decode().split())
    return answers
