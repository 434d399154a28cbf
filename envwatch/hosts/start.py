"""The environment that a kernel is to start in, before there is a kernel.

The client of a kernel looks from its own working folder; here a server looks from
the folder that the kernel will have, and at the environment that it will get.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from kernel_client import Client, outcome, result
from kernel_client.settings import OFF, usable

_STARTS_WITHOUT = frozenset(
    {
        outcome.BLOCKED,
        outcome.DENIED,
        outcome.FAILED,
        outcome.DEGRADED,
        outcome.TIMEOUT,
        outcome.BROKEN,
    }
)


class Start(NamedTuple):
    """What a kernel starts with: its environment, and what there is to say.

    `lines` are what direnv and the file have said, and one of ours when the kernel
    starts `without` the workspace's environment. A file can print values, and also
    in direnv's own words (`log_status`), so only `ours` are for a log: nothing of
    what the evaluation has printed is in them.
    """

    environ: dict[str, str]
    outcome: str
    lines: tuple[str, ...]
    ours: tuple[str, ...] = ()

    @property
    def without(self) -> bool:
        """Tell whether there is a root file and nothing of it is loaded."""
        return self.outcome in _STARTS_WITHOUT


def started(environ: Mapping[str, str], folder: str, *, wait_s: float) -> Start:
    """Give what a kernel with this environment starts with in this folder.

    Waits up to `wait_s` seconds, and never longer than the kernel itself would
    wait. Of a file that is not loaded nothing is in the environment, not even
    direnv's own variables: the kernel's first cell asks again, and says why.
    Never raises.
    """
    lines: list[str] = []
    given = dict(environ)
    settings = usable(environ, lines.append)
    ours = list(lines)
    settings.wait_s = min(settings.wait_s, wait_s)
    # Nobody looks a second time, so nothing is to be kept under watch.
    settings.fence = OFF
    try:
        where = os.path.realpath(folder)
    except OSError:
        # Relative to a working folder that was deleted: nothing is above it.
        return Start(given, outcome.ABSENT, tuple(lines), tuple(ours))
    client = Client(given, output=lines.append, settings=settings, folder=where)
    try:
        found = client.refresh()
        if found.outcome not in (outcome.LOADED, result.UNCHANGED):
            client.unload()
    finally:
        client.close()
    root = found.root_file or folder
    if found.outcome in _STARTS_WITHOUT:
        without = f"envwatch: the kernel starts without the environment of {root}"
        lines.append(without)
        ours.append(f"{without}: {found.outcome}")
    elif found.outcome in (outcome.LOADED, result.UNCHANGED):
        ours.append(f"envwatch: the kernel starts in the environment of {root}")
    return Start(given, found.outcome, tuple(lines), tuple(ours))
