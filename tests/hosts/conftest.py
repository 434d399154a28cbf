"""Fixtures of the tests of what hosts load and install."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.jupyters import Jupyter
from tests.support.worlds import World


@pytest.fixture
def jupyter(world: World, socket: Path | None) -> Jupyter:
    """Give a person's Jupyter, with the sidecar or without one."""
    return Jupyter(world, socket)
