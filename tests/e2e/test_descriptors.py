"""A pipe that a kernel inherits: ENVWATCH_FD, and `serve --stdio`."""

from __future__ import annotations

import socket as sockets
from pathlib import Path

import pytest

from tests.e2e.conftest import Start
from tests.e2e.kernels import connected
from tests.support.daemons import Daemon, until
from tests.support.persons import Person
from tests.support.planted import exports, secret
from tests.support.worlds import World

NEWER = pytest.mark.parametrize("version", ["2.37"])


@NEWER
def test_inherited_descriptor(
    world: World, start: Start, daemons: dict[str, Daemon], version: str
) -> None:
    """A kernel that cannot see the path is served over the descriptor."""
    world.envrc("w", exports("FOO"))
    with connected(daemons[version].socket) as pipe:
        number = pipe.fileno()
        more = {
            "ENVWATCH_FD": str(number),
            "ENVWATCH_SIDECAR": "off",
            "ENVWATCH_SOCKET": "/nonexistent/sock",
        }
        kernel = start("w", more=more, pass_fds=[number])
    result = kernel.refresh()
    assert (result["outcome"], result["answered"]) == ("loaded", "sidecar")
    assert kernel.get("FOO") == secret("FOO")
    assert kernel.refresh()["outcome"] == "unchanged"


@NEWER
@pytest.mark.parametrize("number", [99, 2])
def test_descriptor_that_is_no_pipe(world: World, start: Start, number: int) -> None:
    """Closed, or something else: direnv directly, and nothing is said about it."""
    world.envrc("w", exports("FOO"))
    kernel = start("w", more={"ENVWATCH_FD": str(number)})
    result = kernel.refresh()
    assert (result["outcome"], result["answered"]) == ("loaded", "direnv")
    assert kernel.get("FOO") == secret("FOO")
    assert all(line.startswith("direnv: ") for line in result["messages"])


@NEWER
def test_descriptor_whose_other_end_has_gone(world: World, start: Start) -> None:
    """The same."""
    world.envrc("w", exports("FOO"))
    ours, theirs = sockets.socketpair()
    with ours, theirs:
        number = ours.fileno()
        kernel = start("w", more={"ENVWATCH_FD": str(number)}, pass_fds=[number])
    assert kernel.refresh()["answered"] == "direnv"
    assert kernel.get("FOO") == secret("FOO")


@NEWER
def test_stdio(world: World, start: Start, tmp_path: Path) -> None:
    """`envwatch serve --stdio` serves one kernel, and ends with it."""
    world.envrc("w", exports("FOO"))
    person = Person(world)
    ours, theirs = sockets.socketpair()
    with ours:
        serving = person.start(
            "serve", "--stdio", environ={"ENVWATCH_DIRENV": world.direnv}, pipe=theirs
        )
        theirs.close()
        number = ours.fileno()
        kernel = start("w", more={"ENVWATCH_FD": str(number)}, pass_fds=[number])
    try:
        assert kernel.refresh()["answered"] == "sidecar"
        assert kernel.get("FOO") == secret("FOO")
        world.envrc("w", exports("FOO", tag="2"))
        assert kernel.refresh()["answered"] == "sidecar"
        assert kernel.get("FOO") == secret("FOO2")
        kernel.run("kernel_client.default_client().close()")
        code = f"os.close({number})"
        kernel.run(code)
        until("the sidecar has ended", lambda: serving.poll() is not None)
        assert serving.returncode == 0
    finally:
        serving.kill()
        person.ended(serving)
    assert kernel.refresh()["outcome"] in ("unchanged", "loaded")
