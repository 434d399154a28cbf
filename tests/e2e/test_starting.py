"""The sidecar starts by itself, is come back to, and goes by itself."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import Start
from tests.e2e.kernels import CHECKOUT
from tests.faults.peers import marked
from tests.support.daemons import until
from tests.support.planted import exports, secret
from tests.support.worlds import World


@pytest.fixture
def command(world: World) -> Path:
    """Give an `envwatch` command for kernels to start."""
    path = world.folder("cmd") / "envwatch"
    kept = {n: v for n, v in os.environ.items() if n.startswith("COVERAGE_")}
    given = {**kept, "PYTHONPATH": str(CHECKOUT)}
    exported = " ".join(f"{n}={shlex.quote(v)}" for n, v in given.items())
    path.write_text(
        f'#!/bin/sh\nexec env {exported} {shlex.quote(sys.executable)} -m envwatch "$@"\n'
    )
    path.chmod(0o755)
    return path


def sidecars(world: World) -> list[int]:
    """Give the sidecars that run for this world."""
    return [
        pid
        for pid in marked(f"HOME={world.home}")
        if b"serve" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    ]


@pytest.mark.parametrize("version", ["2.37"])
def test_sidecar_starts_and_ends_by_itself(
    world: World, start: Start, command: Path
) -> None:
    """The first refresh goes direct and starts it; a later one comes back to it.

    It serves other kernels, gets none of the workspace's variables, ends when it
    has been idle, and leaves no file but its lock.
    """
    socket = world.folder("run") / "sock"
    socket.parent.chmod(0o700)
    world.envrc("w", exports("FOO"))
    more = {
        "ENVWATCH_SIDECAR": str(command),
        "ENVWATCH_SOCKET": str(socket),
        "ENVWATCH_IDLE_S": "1",
        "ENVWATCH_DIRENV": world.direnv,
        "OF_THE_KERNEL": secret("kernel"),
    }
    first = start("w", more=more)
    other = start("w", more=more)
    result = first.refresh()
    assert (result["outcome"], result["answered"]) == ("loaded", "direnv")
    assert first.get("FOO") == secret("FOO")
    until("the sidecar listens", socket.exists)
    (pid,) = sidecars(world)
    environ = Path(f"/proc/{pid}/environ").read_bytes()
    assert b"OF_THE_KERNEL" not in environ
    assert secret("").encode() not in environ
    assert os.getsid(pid) not in (first.process.pid, other.process.pid)

    world.envrc("w", exports("FOO", tag="2"))
    assert first.refresh()["answered"] == "sidecar"
    assert other.refresh()["answered"] == "sidecar"
    assert first.get("FOO") == other.get("FOO") == secret("FOO2")
    assert sidecars(world) == [pid]
    before = files(world)

    for kernel in (first, other):
        kernel.run("kernel_client.default_client().close()")
    until("it has ended", lambda: not sidecars(world))
    assert os.listdir(socket.parent) == ["sock.lock"]
    assert files(world) == before - {str(socket)}


def files(world: World) -> set[str]:
    """Give all files of a world."""
    return {
        os.path.join(folder, name)
        for folder, _, names in os.walk(world.top)
        for name in names
    }
