"""Processes that a file leaves behind (DIRENV.md case 28), and stdin (case 29)."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator

import pytest

from tests.support.pairs import Pair
from tests.support.planted import exports, secret


@pytest.fixture(autouse=True)
def ended(pair: Pair) -> Iterator[None]:
    """End what a file left behind, by the ids that it wrote down."""
    yield
    for path in pair.world.top.rglob("*.pid"):
        for line in path.read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(line), signal.SIGKILL)


def test_clean_background_process(pair: Pair) -> None:
    """A background process that let go of everything goes on, and holds nobody."""
    body = "sleep 60 >/dev/null 2>&1 3>&- & echo $! >>bg.pid\n"
    pair.world.envrc("w", exports("FOO") + body)

    pair.step("w", outcome="loaded")

    for line in pair.world.path("w/bg.pid").read_text().split():
        os.kill(int(line), 0)


def test_background_process_holds_stderr(pair: Pair) -> None:
    """A background process that keeps stderr does not hold the kernel."""
    pair.world.envrc("w", f"{exports('FOO')}sleep 60 3>&- & echo $! >>bg.pid\n")
    started = time.monotonic()

    pair.step("w", outcome="loaded")

    assert time.monotonic() - started < 10


def test_background_process_holds_direnv(pair: Pair) -> None:
    """A background process that keeps direnv itself waiting is ended, and it is said.

    Deliberate (DESIGN 9.5): the hook waits for as long as that process lives.
    """
    pair.world.envrc(
        "w", f"{exports('FOO')}sleep 60 >/dev/null 2>&1 & echo $! >>bg.pid\n"
    )
    pair.go("w")
    started = time.monotonic()

    result = pair.kernel.refresh()

    assert time.monotonic() - started < 15
    assert result.outcome == "loaded"
    assert pair.environ["FOO"] == secret("FOO")
    assert any("background process" in line for line in result.messages)


def test_reads_stdin(pair: Pair) -> None:
    """A file that reads stdin gets its end at once."""
    pair.world.envrc("w", f'read -r line; echo "got:$line"\n{exports("FOO")}')

    assert "got:" in pair.step("w", outcome="loaded").result.messages


def test_reads_stdin_with_it_disabled(pair: Pair) -> None:
    """`disable_stdin` changes nothing here."""
    pair.world.toml("[global]\ndisable_stdin = true\n")
    pair.world.envrc("w", f'read -r line; echo "got:$line"\n{exports("FOO")}')

    assert "got:" in pair.step("w", outcome="loaded").result.messages


def test_kernels_own_stdin_is_left_alone(pair: Pair) -> None:
    """A file never reads what the kernel's own stdin holds."""
    reading, writing = os.pipe()
    os.write(writing, b"for the kernel\n")
    saved = os.dup(0)
    os.dup2(reading, 0)
    try:
        pair.world.envrc("w", f"cat\n{exports('FOO')}")
        pair.step("w", outcome="loaded")
        assert os.read(0, 100) == b"for the kernel\n"
    finally:
        os.dup2(saved, 0)
        for descriptor in (saved, reading, writing):
            os.close(descriptor)
