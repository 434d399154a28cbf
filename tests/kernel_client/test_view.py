"""How a process sees files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernel_client.view import passes_everywhere, view

HERE = Path(__file__).parents[2]


def seen_by(*before: str) -> str:
    """Give the view of a Python that is started in some way."""
    code = "from kernel_client.view import view; print(view())"
    command = [*before, sys.executable, "-c", code]
    ended = subprocess.run(
        command, cwd=HERE, check=False, capture_output=True, text=True
    )
    if ended.returncode != 0:
        pytest.skip(f"not allowed here: {before[0]}")
    return ended.stdout.strip()


def test_view() -> None:
    """The mount namespace, what `/` is, who we are; the same for a child."""
    namespace, device, inode, user, group, override = view().split()
    assert namespace == str(os.stat("/proc/self/ns/mnt").st_ino)
    assert (device, inode) == (str(os.stat("/").st_dev), str(os.stat("/").st_ino))
    assert (user, group) == (str(os.geteuid()), str(os.getegid()))
    assert override == str(int(passes_everywhere()))
    assert seen_by("env") == view()


def test_other_mounts() -> None:
    """They could differ at any time."""
    assert seen_by("unshare", "-m").split()[1:] == view().split()[1:]
    assert seen_by("unshare", "-m") != view()


def test_fewer_rights() -> None:
    """To the superuser of a container a folder can be closed."""
    other = seen_by("setpriv", "--bounding-set=-all", "--inh-caps=-all")
    assert other.split()[-1] == "0"
    if os.geteuid() == 0:
        assert passes_everywhere()
        assert other != view()
