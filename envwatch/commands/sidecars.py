"""The sidecar as the commands meet it: reach it, ask it, see it end."""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from envwatch.errors import NoSidecar, Refused, Temporary
from kernel_client import sidecar
from kernel_client.errors import SidecarError
from kernel_client.settings import Settings
from kernel_client.sidecar import Link

_TURN_S = 0.01


@contextmanager
def reached(environ: Mapping[str, str]) -> Generator[Link]:
    """Give a connection to the sidecar that the environment's settings name.

    Raises:
        NoSidecar: none listens, or it is not for this process.
        Refused: the socket is unsafe.
        Temporary: it does not answer, or went away.
    """
    try:
        link = sidecar.connect(Settings.of(environ), environ, None)
        try:
            yield link
        finally:
            link.close()
    except SidecarError as error:
        raise _told(error) from None


def is_absent(environ: Mapping[str, str]) -> bool:
    """Tell whether nobody listens; False also when somebody does who cannot be used."""
    try:
        sidecar.connect(Settings.of(environ), environ, None).close()
    except SidecarError as error:
        return error.code == "absent"
    return False


def running(environ: Mapping[str, str]) -> int | None:
    """Give the process id of the sidecar that takes connections now, or None."""
    try:
        with reached(environ) as link:
            return link.pid
    except (NoSidecar, Temporary):
        return None


def wait_gone(environ: Mapping[str, str], pid: int, *, deadline_s: float) -> bool:
    """Wait until neither the socket nor the system knows this sidecar any more.

    Another one may take its place at once: a kernel starts it when it needs it.
    """
    deadline = time.monotonic() + deadline_s
    while running(environ) == pid or _is_sidecar(pid):
        if time.monotonic() >= deadline:
            return False
        time.sleep(_TURN_S)
    return True


def status_of(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Give the `status` object of a `done` frame; {} from a sidecar without one."""
    found = answer.get("status")
    return found if isinstance(found, dict) else {}


def _is_sidecar(pid: int) -> bool:
    """Tell whether this is still a process of envwatch; a zombie is none."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return b"envwatch" in command and pid != os.getpid()


def _told(error: SidecarError) -> Exception:
    message = str(error)
    if error.code == "unsafe":
        return Refused(message)
    if error.code in ("silent", "closed"):
        return Temporary(f"{message}; try again, or end its process")
    if error.code == "absent":
        return NoSidecar(f"{message}; a kernel starts one, or `envwatch serve`")
    if error.code == "protocol":
        return NoSidecar(f"{message}: end its process, and a kernel starts a new one")
    return NoSidecar(message)
