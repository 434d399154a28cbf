"""Kernels of a test, all ended with it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.kernels import KernelProcess, environ_of
from tests.support.worlds import World

Start = Callable[..., KernelProcess]


@pytest.fixture
def start(world: World, request: pytest.FixtureRequest) -> Iterator[Start]:
    """Give what starts a kernel in a folder of the world."""
    running: list[KernelProcess] = []

    def started(
        folder: str | os.PathLike[str],
        *,
        listening: Path | None = None,
        coverage: bool = True,
        more: dict[str, str] | None = None,
        **how: Any,
    ) -> KernelProcess:
        environ = environ_of(
            world, listening=listening, coverage=coverage, **(more or {})
        )
        kernel = KernelProcess(environ, world.path(folder), **how)
        running.append(kernel)
        return kernel

    yield started
    problems = []
    for kernel in running:
        try:
            kernel.close()
        except Exception as error:  # noqa: BLE001 - the others must end too
            problems.append(error)
    assert not problems, problems
