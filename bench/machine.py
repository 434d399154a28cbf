"""What machine this is, and how quiet it was while something was measured."""

from __future__ import annotations

import datetime as dt
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.findings import CannotRunError
from kernel_client import direnv as program
from kernel_client.errors import DirenvError

DRIFT = 1.1
"""A fixed loop that takes this much longer at one time than at another is noise."""

STOLEN = 0.02
"""Of the time, taken by other machines on the same host: more is noise."""

LOAD = 0.5
"""Of the cores, before the first part: more is noise."""


@dataclass(frozen=True, slots=True)
class Moment:
    """The machine at one time.

    `loop_s` is how long a fixed loop takes, `load` the load of the last minute,
    `stolen` and `passed` are processor time since the start, in ticks; `forks` counts
    the processes and threads that were started since then.
    """

    loop_s: float
    load: float
    stolen: int
    passed: int
    forks: int


def moment() -> Moment:
    """Look at the machine; takes some fifty milliseconds."""
    loops = []
    for _ in range(9):
        started = time.perf_counter()
        _loop()
        loops.append(time.perf_counter() - started)
    stolen, passed, forks = _counters(Path("/proc/stat").read_text())
    load = os.getloadavg()[0]
    return Moment(statistics.median(loops), load, stolen, passed, forks)


def _loop() -> int:
    total = 0
    for number in range(100_000):
        total ^= number
    return total


def _counters(text: str) -> tuple[int, int, int]:
    stolen = passed = forks = 0
    for line in text.splitlines():
        name, *values = line.split()
        if name == "cpu":
            ticks = [int(value) for value in values]
            stolen, passed = ticks[7], sum(ticks[:8])
        elif name == "processes":
            forks = int(values[0])
    return stolen, passed, forks


def noise(moments: Sequence[Moment], cores: int) -> tuple[str, ...]:
    """Say what was noisy between the first moment and the last; nothing: quiet."""
    found = []
    loops = [each.loop_s for each in moments]
    drift = max(loops) / min(loops)
    if drift > DRIFT:
        found.append(f"a fixed loop took up to {drift:.2f} times as long as at best")
    first, last = moments[0], moments[-1]
    passed = last.passed - first.passed
    stolen = (last.stolen - first.stolen) / passed if passed else 0.0
    if stolen > STOLEN:
        found.append(f"the host took {stolen:.1%} of the processors' time away")
    if first.load > LOAD * cores:
        found.append(f"the load was {first.load:.1f} on {cores} cores at the start")
    return tuple(found)


def described(direnv: str | None, environ: Mapping[str, str]) -> dict[str, str]:
    """Give what is worth knowing of this machine, by name.

    Raises:
        CannotRunError: there is no direnv, or it does not tell its version.
    """
    found = program.find(environ, direnv or "direnv")
    if found is None:
        raise CannotRunError(f"there is no {direnv or 'direnv on PATH'}")
    try:
        version = program.version(found, environ, limit_s=5.0)
    except DirenvError as error:
        raise CannotRunError(str(error)) from None
    facts = {
        "date": dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "direnv": version,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "linux": platform.release(),
        "cores": str(len(os.sched_getaffinity(0))),
        "processor": _processor(),
        "memory": f"{_memory_kb() / 1024**2:.0f} GiB",
    }
    mise = program.find(environ, "mise")
    if mise is not None:
        facts["mise"] = mise_version(mise)
    return facts


def mise_version(mise: str) -> str:
    """Give the version of a mise."""
    try:
        done = subprocess.run(
            [mise, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
        return done.stdout.split()[0]
    except (OSError, subprocess.SubprocessError, IndexError):
        return "unknown"


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _memory_kb() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1])
    return 0
