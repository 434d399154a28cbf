"""A kernel that inherits a loaded environment, and what changes before its first run."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.kernels import KernelProcess
from tests.support import reference
from tests.support.worlds import World

Start = Callable[..., KernelProcess]


@pytest.fixture
def inheriting(world: World, socket: Path | None, start: Start) -> Start:
    """Give what starts a kernel in `w` with what the hook has loaded there."""

    def started() -> KernelProcess:
        shell = reference.Shell(world.direnv, world.environ)
        os.chdir(world.path("w"))
        shell.prompt()
        os.chdir(world.top)
        four = ("DIRENV_DIFF", "DIRENV_DIR", "DIRENV_FILE", "DIRENV_WATCHES", "V")
        more = {name: shell.environ[name] for name in four}
        kernel = start("w", listening=socket, more=more)
        assert kernel.get("V") == "1"
        return kernel

    return started


def test_nothing_changed(world: World, inheriting: Start) -> None:
    """It is adopted without a word."""
    world.envrc("w", "export V=1\n")
    kernel = inheriting()
    assert kernel.refresh()["outcome"] == "unchanged"
    assert kernel.get("V") == "1"


@pytest.mark.parametrize("name", [".envrc", "value"])
def test_changed_within_the_same_second(
    world: World, inheriting: Start, name: str
) -> None:
    """direnv compares whole seconds of an mtime; the kernel sees it all the same."""
    texts = {"value": ("1", "2"), ".envrc": ("export V=1\n", "export V=2\n")}
    world.write("w/value", "1")
    body = "watch_file value\nexport V=$(cat value)\n" if name == "value" else ""
    world.envrc("w", body or texts[name][0])
    kernel = inheriting()
    path = world.path("w") / name
    times = path.stat()
    path.write_text(texts[name][1])
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    if name == ".envrc":
        allowed = world.data / "allow"
        before = {each: each.stat().st_mtime_ns for each in allowed.iterdir()}
        world.allow("w")
        for each, when in before.items():
            os.utime(each, ns=(when, when))
    assert kernel.refresh()["outcome"] == "loaded"
    assert kernel.get("V") == "2"


def test_settings_of_direnv_changed(world: World, inheriting: Start) -> None:
    """lib/*.sh is in no watch of direnv's."""
    library = world.write(world.config / "lib/x.sh", "value() { echo 1; }\n")
    world.envrc("w", "export V=$(value)\n")
    kernel = inheriting()
    library.write_text("value() { echo 2; }\n")
    assert kernel.refresh()["outcome"] == "loaded"
    assert kernel.get("V") == "2"
