"""PROTOCOL.md is enough: clients in other languages that were written from it."""

from __future__ import annotations

import json
import os
import select
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import NEWER
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


class Raw:
    """A kernel that reads the pipe with `recvmsg`, written from PROTOCOL.md alone.

    A frame `fence` has its descriptor as `descriptor`.
    """

    def __init__(self, path: Path, capabilities: list[str]) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(30)
        self.socket.connect(str(path))
        self.descriptors: list[int] = []
        self._given: list[int] = []
        self._data = b""
        self.say(
            type="hello",
            protocol=1,
            pid=os.getpid(),
            client="raw/1",
            capabilities=capabilities,
            cwd=None,
        )
        self.welcome = self.hear()

    def say(self, **frame: Any) -> None:
        """Send a frame."""
        self.socket.sendall(json.dumps(frame).encode() + b"\n")

    def hear(self) -> dict[str, Any]:
        """Give the next frame."""
        while b"\n" not in self._data:
            data, descriptors, _, _ = socket.recv_fds(
                self.socket, 65536, 8, socket.MSG_CMSG_CLOEXEC
            )
            assert data, "the sidecar has closed the connection"
            self._data += data
            self._given += descriptors
            self.descriptors += descriptors
        line, _, self._data = self._data.partition(b"\n")
        frame: dict[str, Any] = json.loads(line)
        if frame["type"] == "fence":
            frame["descriptor"] = self._given.pop(0)
        return frame

    def export(self, world: World, number: int) -> list[dict[str, Any]]:
        """Ask for the diff of a workspace; gives the frames up to it."""
        data = b"".join(
            f"{name}={value}".encode() + b"\0"
            for name, value in sorted(world.environ.items())
        )
        self.say(
            type="export",
            id=number,
            root=str(world.path("w/.envrc")),
            fingerprint=sha256(data).hexdigest(),
            direnv=world.direnv,
            environment=world.environ,
        )
        heard = [self.hear()]
        while heard[-1]["type"] != "diff":
            heard.append(self.hear())
        return [each for each in heard if each["type"] != "progress"]

    def close(self) -> None:
        """Go."""
        self.socket.close()
        for descriptor in self.descriptors:
            os.close(descriptor)


@pytest.fixture
def raw(daemon: Daemon) -> Iterator[Callable[..., Raw]]:
    """Give what connects kernels, with the capabilities that they announce."""
    made: list[Raw] = []

    def connect(*capabilities: str) -> Raw:
        made.append(Raw(daemon.socket, list(capabilities)))
        return made[-1]

    yield connect
    for each in made:
        each.close()


def is_quiet(descriptor: int) -> bool:
    """Tell whether a poll says that nothing has happened."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return not poll.poll(0)


def many_files(world: World) -> None:
    """Make a workspace with so many watched files that a fence is worth it."""
    for number in range(20):
        world.write(f"w/file{number}", "x")
    world.envrc("w", "watch_file file* missing\n" + exports("FOO"))


@pytest.mark.parametrize("version", [NEWER], indirect=True)
def test_a_fence_comes_before_its_diff(world: World, raw: Callable[..., Raw]) -> None:
    """With a descriptor that tells of a write once the write has returned."""
    many_files(world)
    kernel = raw("fence", "something else")
    assert kernel.welcome["capabilities"] == ["fence"]

    fence, diff = kernel.export(world, 1)

    assert fence["type"] == "fence"
    assert fence["root"] == str(world.path("w/.envrc"))
    there = [path for path, seen, *_ in diff["snapshot"] if seen is not None]
    covered = [path for path in there if path not in fence["rest"]]
    assert str(world.path("w/file7")) in covered
    data = b"\0".join(sorted(map(os.fsencode, covered)))
    assert fence["paths"] == sha256(data).hexdigest()
    root = os.stat("/")
    namespace = os.stat("/proc/self/ns/mnt").st_ino
    *mounts, user, group, _ = fence["view"].split(" ")
    assert mounts == [str(namespace), str(root.st_dev), str(root.st_ino)]
    assert (user, group) == (str(os.geteuid()), str(os.getegid()))
    descriptor = fence["descriptor"]
    assert os.readlink(f"/proc/self/fd/{descriptor}") == "anon_inode:inotify"
    assert is_quiet(descriptor)
    world.path("w/file7").write_text("y")
    assert not is_quiet(descriptor)


@pytest.mark.parametrize("version", [NEWER], indirect=True)
def test_two_kernels_share_a_fence(world: World, raw: Callable[..., Raw]) -> None:
    """It is armed once, and outlives the one that had it first."""
    many_files(world)
    one, two = raw("fence"), raw("fence")
    first, _ = one.export(world, 1)
    second, _ = two.export(world, 1)
    one.say(type="status", id=2)
    assert one.hear()["status"]["fences"]["armed"] == 1
    assert first["paths"] == second["paths"]
    one.close()
    one.descriptors.clear()
    assert is_quiet(second["descriptor"])
    world.path("w/file1").write_text("y")
    assert not is_quiet(second["descriptor"])


@pytest.mark.parametrize("version", [NEWER], indirect=True)
def test_a_fence_can_be_asked_for(world: World, raw: Callable[..., Raw]) -> None:
    """By a kernel that has closed its own: it gets another one, and no answer else."""
    many_files(world)
    root = str(world.path("w/.envrc"))
    kernel = raw("fence")
    first, _ = kernel.export(world, 1)
    os.close(first["descriptor"])
    kernel.descriptors.clear()
    kernel.say(type="fence", root=root, held=True)
    kernel.say(type="fence", root=root, held=False)
    second = kernel.hear()
    assert (second["type"], second["paths"]) == ("fence", first["paths"])
    assert is_quiet(second["descriptor"])
    kernel.say(type="status", id=2)
    status = kernel.hear()["status"]
    assert (status["fences"]["armed"], status["evaluations"]) == (1, 1)


@pytest.mark.parametrize("version", [NEWER], indirect=True)
@pytest.mark.parametrize("capabilities", [(), ("fences",)], ids=["none", "another"])
def test_who_does_not_announce_it_gets_no_fence(
    world: World, raw: Callable[..., Raw], capabilities: tuple[str, ...]
) -> None:
    """Neither the frame nor a descriptor, also where another kernel has one."""
    many_files(world)
    other = raw("fence")
    assert [each["type"] for each in other.export(world, 1)] == ["fence", "diff"]
    kernel = raw(*capabilities)
    assert kernel.welcome["capabilities"] == ["fence"]
    assert [each["type"] for each in kernel.export(world, 1)] == ["diff"]
    kernel.say(type="fence", root=str(world.path("w/.envrc")), held=False)
    kernel.say(type="status", id=2)
    assert kernel.hear()["status"]["fences"]["armed"] == 1
    assert kernel.descriptors == []


if NODE:

    def test_node(world: World, daemon: Daemon) -> None:
        """Where there is a node: the whole environment is what the hook leaves."""
        command = (str(NODE), str(HERE / "client.mjs"))
        *lines, last = spoken(world, daemon, *command)
        assert frames(lines)["diff"]["outcome"] == "loaded"
        environ = json.loads(last)["environ"]
        expected = reference.applied(world.environ, printed(world))
        assert reference.difference(environ, expected) == {}
