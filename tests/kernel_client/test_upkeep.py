"""What becomes of what is loaded: the result, and whether the folder may be passed."""

from __future__ import annotations

import os

import pytest

from kernel_client import Client, Settings
from tests.conftest import NEWER
from tests.support.planted import exports
from tests.support.worlds import World

pytestmark = pytest.mark.parametrize("version", [NEWER], indirect=True)


def client(world: World, direnv: str) -> Client:
    """Give one without a sidecar that stands in `w`."""
    os.chdir(world.folder("w"))
    settings = Settings(direnv=direnv, sidecar="off")
    return Client(dict(world.environ), output=lambda _: None, settings=settings)


def test_loaded_and_still(world: World) -> None:
    """Where nothing changed there is no result; either way the folder may be passed."""
    upkeep = client(world, world.direnv)._upkeep
    root = world.envrc("w", exports("A"))
    result, walk = upkeep.bring(forced=False)
    assert result is not None
    assert walk is not None
    assert (result.outcome, walk.root) == ("loaded", str(root))
    result, walk = upkeep.bring(forced=False)
    assert result is None
    assert walk is not None
    checks = upkeep.checks(walk)
    assert checks is not None
    assert str(root) in {entry[0] for entry in checks[1]}


def test_nothing_above(world: World) -> None:
    """That is worth keeping, too: where a root file would appear is looked at."""
    upkeep = client(world, world.direnv)._upkeep
    result, walk = upkeep.bring(forced=False)
    assert result is not None
    assert result.outcome == "absent"
    assert walk is not None
    checks = upkeep.checks(walk)
    assert checks is not None
    assert str(world.path("w/.envrc")) in checks[0]


def test_without_direnv(world: World) -> None:
    """Nothing is kept: it may be there at the next run."""
    world.envrc("w", exports("A"))
    result, walk = client(world, "/nowhere/direnv")._upkeep.bring(forced=False)
    assert result is not None
    assert (result.outcome, walk) == ("off", None)
