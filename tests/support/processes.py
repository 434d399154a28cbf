"""The processes of this machine that belong to a test, by its folder."""

from __future__ import annotations

import os
from pathlib import Path


def processes(top: Path) -> dict[int, str]:
    """Give the command of every process whose environment names this folder."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if os.fsencode(top) in (entry / "environ").read_bytes():
                command = (entry / "cmdline").read_text().replace("\0", " ")
                found[int(entry.name)] = command
        except OSError:
            continue
    return found


def ipykernels(top: Path) -> list[int]:
    """Give the pids of the notebooks' kernels among them."""
    found = processes(top).items()
    return [pid for pid, command in found if "ipykernel_launcher" in command]


def gone(pid: int) -> bool:
    """Tell whether a process has ended; one that only waits to be reaped has."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return text.rpartition(")")[2].split()[0] in "ZX"


def is_pending(pid: int, number: int) -> bool:
    """Tell whether a signal was sent to a process that has not taken it yet."""
    pending = 0
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name in ("SigPnd", "ShdPnd"):
            pending |= int(value, 16)
    return bool(pending >> (number - 1) & 1)
