"""How this process sees files: where paths lead, and what is open to it.

Two processes with the same view get the same answer for the same path. A fence
armed under one view says nothing under another.
"""

from __future__ import annotations

import os

_DAC_OVERRIDE = 1 << 1
"""The bit of CAP_DAC_OVERRIDE: no folder is closed to who has it."""


def view() -> str:
    """Name it: mount namespace, `/`, user, group, and whether all is open to it.

    Gives "" where that cannot be told.
    """
    try:
        root = os.stat("/")
        namespace = os.stat("/proc/self/ns/mnt").st_ino
    except OSError:
        return ""
    who = f"{os.geteuid()} {os.getegid()} {int(passes_everywhere())}"
    return f"{namespace} {root.st_dev} {root.st_ino} {who}"


def passes_everywhere() -> bool:
    """Tell whether permissions do not matter: the superuser with all its rights."""
    try:
        with open("/proc/self/status", "rb") as status:
            for line in status:
                if line.startswith(b"CapEff:"):
                    return bool(int(line.split()[1], 16) & _DAC_OVERRIDE)
    except (OSError, ValueError):
        pass
    return False
