"""The demo's stage and kernels when something goes wrong on it."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from envwatch.commands.demonstration.kernels import asked
from envwatch.commands.demonstration.stage import Stage
from envwatch.errors import Temporary
from tests.conftest import OLDER


@pytest.fixture
def stage(direnvs: dict[str, str]) -> Iterator[Stage]:
    """Give a stage, with nobody on it."""
    made = Stage(direnvs[OLDER])
    yield made
    made.close()
    assert not made.top.exists()


def test_kernel_that_was_killed(stage: Stage) -> None:
    """A kernel that has ended is said to have, by an order and by its answer."""
    kernels = stage.start_kernels(1)
    asked(kernels)
    kernels[0]._process.kill()
    kernels[0]._process.wait()

    for _ in range(2):
        with pytest.raises(Temporary, match="has ended"):
            asked(kernels)


def test_kernel_that_does_not_answer(stage: Stage) -> None:
    """The demo's own time is over before a kernel's is."""
    stage.deadline = time.monotonic()

    with pytest.raises(Temporary, match="in time"):
        asked(stage.start_kernels(1))


def test_what_does_not_happen(stage: Stage) -> None:
    """A wait names what did not come true."""
    stage.deadline = time.monotonic()

    with pytest.raises(Temporary, match="in time that pigs fly"):
        stage.until("pigs fly", lambda: False)


def test_sidecar_that_cannot_serve(stage: Stage) -> None:
    """A sidecar that ends at its start says why."""
    stage.environ["ENVWATCH_IDLE_S"] = "soon"

    with pytest.raises(Temporary, match="ended at once: envwatch: ENVWATCH_IDLE_S"):
        stage.start_sidecar()


def test_direnv_that_cannot_allow(stage: Stage) -> None:
    """A `direnv allow` that fails ends the demo."""
    with pytest.raises(Temporary, match="direnv allow"):
        stage.allow()
