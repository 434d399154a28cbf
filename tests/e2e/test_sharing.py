"""Twenty real kernels, one edit: one evaluation."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import Start
from tests.support.daemons import Daemon, until
from tests.support.planted import exports, secret
from tests.support.worlds import World

KERNELS = 20


@pytest.fixture
def wrapped(world: World) -> Path:
    """Give a direnv that counts how it is called, first on the world's PATH."""
    wrapper = world.folder("bin") / "direnv"
    counter = shlex.quote(str(world.path("calls")))
    wrapper.write_text(
        f'#!/bin/sh\necho "$1" >> {counter}\nexec {shlex.quote(world.direnv)} "$@"\n'
    )
    wrapper.chmod(0o755)
    world.environ["PATH"] = f"{wrapper.parent}:{world.environ['PATH']}"
    return wrapper


@pytest.fixture
def counting(wrapped: Path) -> Iterator[Daemon]:
    """Give a sidecar that runs the counting direnv."""
    daemon = Daemon(str(wrapped))
    try:
        daemon.start()
        yield daemon
    finally:
        daemon.close()


def body(world: World, tag: str) -> str:
    """Give a body that counts its runs, and takes long enough to be joined."""
    runs = shlex.quote(str(world.path("runs")))
    return f"echo {tag} >> {runs}\nsleep 0.3\n{exports('FOO', tag=tag)}"


@pytest.mark.parametrize("version", ["2.32", "2.37"])
def test_one_edit_and_allow_is_one_evaluation(
    world: World, start: Start, counting: Daemon
) -> None:
    """The body ran exactly once for all, and each kernel has the new value.

    So it is at the first load, and after an edit and its approval.
    """
    world.envrc("w", body(world, "one"))
    kernels = [start("w", listening=counting.socket) for _ in range(KERNELS)]
    for tag in ("one", "two"):
        if tag == "two":
            world.envrc("w", body(world, "two"), allow=False)
            for kernel in kernels:
                kernel.tell("answer = refresh()")
            blocked = [kernel.answer() for kernel in kernels]
            assert {result["outcome"] for result in blocked} == {"blocked"}
            assert {kernel.get("FOO") for kernel in kernels} == {None}
            world.allow("w")
        for kernel in kernels:
            kernel.tell("answer = refresh()")
        results = [kernel.answer() for kernel in kernels]
        assert {result["outcome"] for result in results} == {"loaded"}
        assert {result["answered"] for result in results} == {"sidecar"}
        assert {kernel.get("FOO") for kernel in kernels} == {secret(f"FOO{tag}")}
        until("it ran", lambda tag=tag: tag in ran(world))  # type: ignore[misc]
        assert ran(world).count(tag) == 1, counting.said
    # And they all go on without asking anybody.
    assert {kernel.refresh()["answered"] for kernel in kernels} == {"stats"}
    assert ran(world) == ["one", "two"]
    exported = world.path("calls").read_text().split().count("export")
    # Load, blocked, loaded; a change that is seen twice may be asked about twice.
    assert 3 <= exported <= 5


def ran(world: World) -> list[str]:
    """Give which bodies ran."""
    return world.path("runs").read_text().split()
