"""PROTOCOL.md is enough: clients in other languages that were written from it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.support import reference
from tests.support.daemons import Daemon
from tests.support.planted import exports, secret
from tests.support.worlds import World

HERE = Path(__file__).parent
NODE = shutil.which("node")
BODY = "export CHANGED=new\nunset GONE\n" + exports("FOO")


def spoken(world: World, daemon: Daemon, *command: str) -> list[str]:
    """Run a client in the workspace, with the world's environment for its own."""
    world.environ.update(CHANGED="old", GONE="was here", ODD='q" b\\ tab\t é')
    root = str(world.envrc("w", BODY))
    done = subprocess.run(
        [*command, str(daemon.socket), root, world.direnv],
        check=False,
        cwd=world.path("w"),
        env=world.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=40,
    )
    assert done.returncode == 0, (done.returncode, done.stderr)
    assert done.stderr == b""
    return done.stdout.decode().splitlines()


def printed(world: World) -> dict[str, str | None]:
    """Give what direnv itself prints here."""
    said = reference.run(
        world.direnv,
        "export",
        "json",
        environ=world.environ,
        folder=str(world.path("w")),
    )
    assert said.changes is not None
    return said.changes


def frames(lines: list[str]) -> dict[str, dict[str, Any]]:
    """Give the last frame of each type."""
    return {frame["type"]: frame for frame in map(json.loads, lines)}


def test_bash(world: World, daemon: Daemon) -> None:
    """bash, socat and sha256sum: the difference is direnv's own, and is used."""
    *lines, variable = spoken(world, daemon, "/bin/bash", str(HERE / "client.sh"))
    assert variable == f"variable:{secret('FOO')}"
    heard = frames(lines)
    assert set(heard) >= {"welcome", "need_base", "diff", "done"}
    assert heard["welcome"]["direnv"]["path"] == world.direnv
    diff = heard["diff"]
    assert diff["outcome"] == "loaded"
    assert {**diff["set"], **dict.fromkeys(diff["unset"])} == printed(world)
    # With the root file left, a workspace has no kernel any more.
    (status,) = [
        each["status"] for each in map(json.loads, lines) if each.get("id") == 2
    ]
    left = heard["done"]["status"]
    assert [each["kernels"] for each in status["workspaces"]] == [1]
    assert sum(each["kernels"] for each in left["workspaces"]) == 0
    assert left["evaluations"] == 1


if NODE:

    def test_node(world: World, daemon: Daemon) -> None:
        """Where there is a node: the whole environment is what the hook leaves."""
        command = (str(NODE), str(HERE / "client.mjs"))
        *lines, last = spoken(world, daemon, *command)
        assert frames(lines)["diff"]["outcome"] == "loaded"
        environ = json.loads(last)["environ"]
        expected = reference.applied(world.environ, printed(world))
        assert reference.difference(environ, expected) == {}
