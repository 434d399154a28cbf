"""Working folders that are gone or oddly named, and no direnv at all."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support.pairs import Kernel, Pair, settings_of
from tests.support.planted import exports, secret
from tests.support.worlds import World


def test_deleted_working_folder(pair: Pair) -> None:
    """What was loaded is gone, nothing raises, and later folders work."""
    world = pair.world
    world.envrc("w", exports("FOO"))
    pair.step("w", outcome="loaded")
    shutil.rmtree(world.path("w"))
    result = pair.kernel.refresh()
    assert result.outcome == "unloaded"
    assert pair.environ == world.environ
    assert pair.kernel.refresh().messages == ()
    assert pair.kernel.reload().messages == ()
    world.envrc("v", exports("BAR"))
    pair.go("v")
    assert pair.kernel.refresh().outcome == "loaded"
    assert pair.environ["BAR"] == secret("BAR")


def test_started_in_a_deleted_folder(world: World, socket: Path | None) -> None:
    """A client that is made there has nothing to load."""
    os.chdir(world.folder("gone"))
    world.path("gone").rmdir()
    pair = Pair(world, socket=socket)
    try:
        for _ in range(2):
            assert pair.kernel.refresh().outcome in ("absent", "unchanged")
        assert pair.environ == world.environ
        world.envrc("w", exports("FOO"))
        pair.step("w", outcome="loaded")
    finally:
        pair.close()


@pytest.mark.parametrize(
    "name",
    [
        b"with  two spaces",
        b"new\nline",
        b"-dash",
        "ünïcödé €".encode(),
        b"tab\tand\x1b[31mcolour",
    ],
    ids=["spaces", "newline", "dash", "unicode", "colour"],
)
def test_odd_names(pair: Pair, name: bytes) -> None:
    """The hook's environment, whatever the folder is called."""
    folder = os.fsdecode(name)
    pair.world.envrc(folder, exports("FOO"))
    pair.step(folder, outcome="loaded", messages=False)
    assert pair.environ["FOO"] == secret("FOO")
    pair.step(outcome="unchanged")
    pair.world.envrc(folder, exports("BAR"))
    pair.step(outcome="loaded", messages=False)
    pair.step(pair.world.top, outcome="unloaded")


@pytest.mark.parametrize("version", ["2.37"])
@pytest.mark.parametrize("name", ["$HOME", "back\\slash", 'quotes\' and "quotes"'])
def test_names_that_older_direnv_cannot_quote(pair: Pair, name: str) -> None:
    """2.32 fails or hangs there by itself; the newer one loads, and so do we."""
    pair.world.envrc(name, exports("FOO"))
    pair.step(name, outcome="loaded", messages=False)
    pair.step(pair.world.top, outcome="unloaded")


def test_name_that_is_no_utf8(pair: Pair) -> None:
    """Never an exception: loaded as direnv does, and never stale."""
    folder = os.fsdecode(b"bad\xff\xfename")
    pair.world.envrc(folder, exports("FOO"))
    pair.go(folder)
    result = pair.kernel.refresh()
    assert result.outcome in ("loaded", "blocked", "absent", "broken", "degraded")
    if result.outcome == "loaded":
        assert pair.environ["FOO"] == secret("FOO")
    pair.world.write(f"{folder}/.envrc", exports("BAR"))
    result = pair.kernel.refresh()
    assert result.outcome == "blocked"
    assert "FOO" not in pair.environ
    assert "BAR" not in pair.environ
    for line in result.messages:
        line.encode()
    pair.go(pair.world.top)
    pair.kernel.refresh()
    assert pair.environ == pair.world.environ


def test_no_direnv_on_path(world: World, socket: Path | None) -> None:
    """Off: nothing runs, one line the first time, and it works once there is one."""
    world.envrc("w", exports("FOO"))
    os.chdir(world.path("w"))
    bare = {**world.environ, "PATH": "/nonexistent"}
    kernel = Kernel(bare, settings_of(socket))
    try:
        first = kernel.refresh()
        assert first.outcome == "off"
        assert len(first.messages) == 1
        assert "envwatch doctor" in first.messages[0]
        for _ in range(3):
            again = kernel.refresh()
            assert (again.outcome, again.messages) == ("off", ())
        assert kernel.environ == bare
        kernel.environ["PATH"] = world.environ["PATH"]
        assert kernel.refresh().outcome == "loaded"
        assert kernel.environ["FOO"] == secret("FOO")
    finally:
        kernel.close()


def test_direnv_that_goes_away(world: World, socket: Path | None) -> None:
    """While loaded: nothing stale, one line, and back with it."""
    folder = world.folder("bin")
    shutil.copy(world.direnv, folder / "direnv")
    world.environ["PATH"] = f"{folder}:/usr/bin:/bin"
    world.direnv = str(folder / "direnv")
    world.envrc("w", exports("FOO"))
    os.chdir(world.path("w"))
    kernel = Kernel({**world.environ, "PATH": f"{folder}:/bin"}, settings_of(socket))
    if shutil.which("direnv", path="/bin"):
        # This machine has one everywhere: then it is that one that is used.
        kernel.environ["PATH"] = str(folder)
        kernel.environ["DIRENV_BASH"] = "/bin/bash"
    before = dict(kernel.environ)
    try:
        assert kernel.refresh().outcome == "loaded"
        moved = folder / "away"
        Path(world.direnv).rename(moved)
        world.write("w/.envrc", exports("BAR"))
        result = kernel.refresh()
        assert result.outcome in ("broken", "off")
        assert len(result.messages) == 1
        assert kernel.environ == before
        kernel.refresh()
        assert kernel.refresh().messages == ()
        moved.rename(world.direnv)
        world.allow("w")
        kernel.environ["NUDGE"] = "1"
        result = kernel.refresh()
        if result.outcome == "off":
            # It is looked for again when PATH changes.
            kernel.environ["PATH"] += ":/nonexistent"
            result = kernel.refresh()
        assert result.outcome == "loaded"
        assert kernel.environ["BAR"] == secret("BAR")
    finally:
        kernel.close()
