"""What the system tells of a process."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

from bench.findings import CannotRunError

_SCHEDULED = 2
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """Give the processor time of it, and of children that have ended.

    Its own is to the nanosecond, with that of threads that have ended, that of the
    children to the tick.
    """
    # The clock of a process, as clock_getcpuclockid(3) names it.
    own_s = time.clock_gettime((~pid << 3) | _SCHEDULED)
    # After the name, which may have blanks and brackets in it.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return own_s + (int(fields[13]) + int(fields[14])) * _TICK_S


def rss_kb(pid: int) -> int:
    """Give its resident memory, in KiB."""
    return _of_status(pid, "VmRSS")


def sleeps(pid: int) -> dict[int, int]:
    """Give how often each of its threads went to sleep of its own."""
    return {
        int(task.name): _field(task / "status", "voluntary_ctxt_switches")
        for task in Path(f"/proc/{pid}/task").iterdir()
    }


def wake_ups(before: Mapping[int, int], after: Mapping[int, int]) -> int:
    """Give how often its threads woke up between two looks; ended ones are left out."""
    return sum(count - before.get(thread, 0) for thread, count in after.items())


def watches(pid: int) -> int:
    """Give its inotify watches, of all its instances."""
    count = 0
    for entry in Path(f"/proc/{pid}/fdinfo").iterdir():
        try:
            text = entry.read_text()
        except OSError:
            continue
        count += sum(line.startswith("inotify ") for line in text.splitlines())
    return count


def _of_status(pid: int, name: str) -> int:
    return _field(Path(f"/proc/{pid}/status"), name)


def _field(path: Path, name: str) -> int:
    for line in path.read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise CannotRunError(f"the system does not tell {name} of a process")
