"""What the system tells of a process."""

from __future__ import annotations

import os
from pathlib import Path

from bench.findings import CannotRunError

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """Give the processor time of all its threads, and of children that have ended.

    That of the threads is to the nanosecond, that of the children to the tick.
    """
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        total += int((task / "schedstat").read_text().split()[0])
    # After the name, which may have blanks and brackets in it.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return total / 1e9 + (int(fields[13]) + int(fields[14])) * _TICK_S


def rss_kb(pid: int) -> int:
    """Give its resident memory, in KiB."""
    return _of_status(pid, "VmRSS")


def switches(pid: int) -> int:
    """Give how often its threads went to sleep of their own: each is a wake-up."""
    return sum(
        _field(task / "status", "voluntary_ctxt_switches")
        for task in Path(f"/proc/{pid}/task").iterdir()
    )


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
