"""Fixtures of all tests, and the search for the planted secret at the end."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support import planted
from tests.support.daemons import Daemon
from tests.support.pairs import Pair
from tests.support.worlds import World

CHECKOUT = Path(__file__).parents[1]

OLDER, NEWER = "2.32", "2.37"

settings.register_profile(
    "soak",
    max_examples=int(os.environ.get("ENVWATCH_SOAK_EXAMPLES", "1000")),
    deadline=None,
    derandomize=False,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)


# ------------------------------------------------------------------ fixtures


@pytest.fixture(scope="session")
def direnvs() -> dict[str, str]:
    """Give the path of the real direnv for each version that is compared with."""
    found = {path.parent.name: str(path) for path in CHECKOUT.glob(".direnvs/*/direnv")}
    # Debian's testing suite moves on: the newest one stands for 2.37.
    newer = sorted(
        found.keys() - {OLDER}, key=lambda name: [*map(int, name.split("."))]
    )
    if OLDER not in found or not newer:
        pytest.fail(
            f"no direnv {OLDER} and {NEWER} in .direnvs: run `make setup`",
            pytrace=False,
        )
    return {OLDER: found[OLDER], NEWER: found.get(NEWER, found[newer[-1]])}


@pytest.fixture(params=[OLDER, NEWER])
def version(request: pytest.FixtureRequest) -> str:
    """Give each direnv version in turn."""
    return str(request.param)


@pytest.fixture(params=["direct", "sidecar"])
def mode(request: pytest.FixtureRequest) -> str:
    """Give each way to an answer in turn: direnv directly, or the sidecar."""
    return str(request.param)


@pytest.fixture(scope="session")
def daemons(direnvs: dict[str, str]) -> Iterator[dict[str, Daemon]]:
    """Give the shared sidecar of each version; a test that kills starts its own."""
    running: dict[str, Daemon] = _Started(direnvs)
    yield running
    for daemon in running.values():
        daemon.close()


class _Started(dict[str, Daemon]):
    """Starts a sidecar when it is first asked for."""

    def __init__(self, direnvs: dict[str, str]) -> None:
        super().__init__()
        self._direnvs = direnvs

    def __missing__(self, version: str) -> Daemon:
        daemon = Daemon(self._direnvs[version])
        self[version] = daemon
        daemon.start()
        return daemon


@pytest.fixture
def daemon(direnvs: dict[str, str], version: str) -> Iterator[Daemon]:
    """Give a sidecar of the test's own, running, to be killed and restarted."""
    started = Daemon(direnvs[version])
    try:
        started.start()
        yield started
    finally:
        started.close()


@pytest.fixture
def socket(request: pytest.FixtureRequest, mode: str, version: str) -> Path | None:
    """Give the socket of the shared sidecar, or None in direct mode."""
    if mode == "direct":
        return None
    shared: dict[str, Daemon] = request.getfixturevalue("daemons")
    return shared[version].socket


@pytest.fixture
def world(direnvs: dict[str, str], version: str) -> Iterator[World]:
    """Give a home, a direnv store and folders; the working folder is put back."""
    before = os.getcwd()
    made = World(direnvs[version], is_newer=version != OLDER)
    os.chdir(made.top)
    try:
        yield made
    finally:
        os.chdir(before)
        made.close()


@pytest.fixture
def pair(world: World, socket: Path | None) -> Iterator[Pair]:
    """Give a kernel and the reference shell, nothing loaded in either."""
    made = Pair(world, socket=socket)
    try:
        yield made
    finally:
        made.close()


# ------------------------------------------------------------------ the planted secret


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Search what a test printed and logged; a failing one's own text may show it."""
    if report.passed:
        for name, text in report.sections:
            planted.collect(f"{report.nodeid}, {name}", text)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the whole run when the planted secret was said anywhere."""
    if planted.leaks():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say where the planted secret was said."""
    leaks = planted.leaks()
    if leaks:
        terminalreporter.section("the planted secret was said", red=True)
        for line in leaks:
            terminalreporter.line(line)
