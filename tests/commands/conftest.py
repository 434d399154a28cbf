"""Fixtures of the command tests."""

from __future__ import annotations

import pytest

from tests.support.daemons import Daemon
from tests.support.persons import Person
from tests.support.worlds import World


@pytest.fixture
def person(world: World) -> Person:
    """Give a person whose socket nobody listens at."""
    return Person(world)


@pytest.fixture
def attended(world: World, daemon: Daemon) -> Person:
    """Give a person with a sidecar of their own."""
    return Person(world, daemon.socket)


@pytest.fixture
def alone(person: Person) -> Person:
    """Give a person without a sidecar, who starts none."""
    person.environ["ENVWATCH_SIDECAR"] = "off"
    return person
