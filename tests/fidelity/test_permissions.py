"""Files that may not be read, as an ordinary user meets them (DIRENV.md case 23).

Direct mode only: the sidecar of the superuser turns other users away.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from tests.support.children import as_ordinary_user
from tests.support.pairs import Pair
from tests.support.planted import PLANTED, exports
from tests.support.worlds import World


def ordinary(world: World, work: Callable[[Pair], None]) -> None:
    """Let an ordinary user do something with a kernel and a reference shell."""

    def inside() -> None:
        os.chdir(world.top)
        pair = Pair(world, socket=None)
        work(pair)
        pair.close()

    as_ordinary_user(world.top, inside)


def test_unreadable_root_file(world: World) -> None:
    """A root file that may not be read counts as absent: the one above is found."""
    world.envrc("w", exports("FOO"))
    world.envrc("w/in", exports("BAR")).chmod(0)

    def work(pair: Pair) -> None:
        pair.step("w/in", outcome="loaded")
        assert "BAR" not in pair.environ
        world.path("w/in/.envrc").chmod(0o600)
        pair.step(outcome="loaded")
        assert "FOO" not in pair.environ

    ordinary(world, work)


def test_becomes_unreadable_while_loaded(world: World) -> None:
    """A loaded file that may not be read any more is unloaded (DESIGN 9.2).

    With 2.37 the hook keeps its values for ever.
    """
    path = world.envrc("w", exports("FOO"))

    def work(pair: Pair) -> None:
        pair.step("w", outcome="loaded")
        path.chmod(0)
        if world.is_newer:
            pair.shell.prompt()
            assert PLANTED in pair.shell.environ["FOO"]
        pair.step(outcome="unloaded", forced=world.is_newer)

    ordinary(world, work)


def test_allow_store_becomes_unreadable(world: World) -> None:
    """When nobody can say whether a file is allowed, nothing of it stays.

    Deliberate: the hook gets rc 1 and no answer, and keeps its values
    (section D, rule 2).
    """
    base = dict(world.environ)
    world.envrc("w", exports("FOO"))
    store = world.data / "allow"

    def work(pair: Pair) -> None:
        pair.step("w", outcome="loaded")
        store.chmod(0)
        try:
            world.stamp("w/.envrc")
            assert pair.shell.prompt().code == 1
            assert PLANTED in pair.shell.environ["FOO"]
            assert pair.kernel.refresh().outcome == "broken"
            assert pair.environ == base
        finally:
            store.chmod(0o700)
        pair.step(outcome="loaded")

    ordinary(world, work)


def test_unreadable_folder_above(world: World) -> None:
    """A folder above that may be passed but not listed does no harm."""
    world.envrc("up/w", exports("FOO"))

    def work(pair: Pair) -> None:
        world.path("up").chmod(0o100)
        try:
            pair.step("up/w", outcome="loaded")
        finally:
            world.path("up").chmod(0o700)

    ordinary(world, work)


@pytest.mark.parametrize("name", ["watched", "source"])
def test_unreadable_watched_file(world: World, name: str) -> None:
    """A watched or sourced file that may not be read is as direnv takes it."""
    path = world.write("w/other", exports("OTHER"))
    word = "watch_file other" if name == "watched" else "source_env other"
    world.envrc("w", f"{word}\n{exports('FOO')}")
    path.chmod(0)

    def work(pair: Pair) -> None:
        pair.step("w")
        path.chmod(0o600)
        world.stamp(path)
        pair.step("w")

    ordinary(world, work)
