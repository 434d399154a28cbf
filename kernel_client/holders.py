"""Who keeps direnv waiting after its bash has ended (DIRENV.md case 28).

direnv reads its pipe to the end, and a background process of the file that
inherited it never closes it. Linux tells in /proc which processes hold a pipe.
"""

from __future__ import annotations

import os
from contextlib import suppress


def has_children(pid: int) -> bool:
    """Tell whether a process has child processes; True where that cannot be seen."""
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return True
    for task in tasks:
        try:
            with open(f"/proc/{pid}/task/{task}/children", "rb") as children:
                if children.read().strip():
                    return True
        except OSError:
            # A kernel without CONFIG_PROC_CHILDREN: never end anybody.
            return True
    return False


def pipe_holders(pid: int) -> list[int]:
    """Give the processes of this user that hold a pipe that direnv reads."""
    pipes = _pipes(pid)
    standard: set[str] = set()
    for number in ("0", "1", "2"):
        with suppress(OSError):
            standard.add(os.readlink(f"/proc/{pid}/fd/{number}"))
    pipes -= standard
    if not pipes:
        return []
    uid = os.getuid()
    found: list[int] = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) in (pid, os.getpid()):
            continue
        with suppress(OSError):
            if os.stat(f"/proc/{name}").st_uid == uid and pipes & _pipes(int(name)):
                found.append(int(name))
    return found


def _pipes(pid: int) -> set[str]:
    found: set[str] = set()
    folder = f"/proc/{pid}/fd"
    with suppress(OSError):
        for number in os.listdir(folder):
            with suppress(OSError):
                target = os.readlink(f"{folder}/{number}")
                if target.startswith("pipe:"):
                    found.add(target)
    return found
