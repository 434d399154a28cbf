"""Files that never end (DIRENV.md cases 23, 28, 31; DESIGN 9.5).

The hook hangs with them, so only the client is driven.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time

import pytest

from tests.support.daemons import until
from tests.support.pairs import Pair
from tests.support.planted import PLANTED, exports, secret
from tests.support.reference import run


def test_fifo_as_root_file(pair: Pair) -> None:
    """A FIFO called .envrc is skipped; direnv hangs in opening it (case 23)."""
    pair.world.envrc("w", exports("FOO"))
    os.mkfifo(pair.world.folder("w/in") / ".envrc")
    pair.go("w/in")
    with pytest.raises(subprocess.TimeoutExpired):
        run(pair.world.direnv, "export", "json", environ=pair.environ, deadline_s=0.3)
    started = time.monotonic()

    pair.kernel.refresh()

    assert time.monotonic() - started < 10
    assert pair.kernel.refresh().messages == ()


def test_fifo_takes_the_place_of_a_loaded_file(pair: Pair) -> None:
    """A loaded file that became a FIFO is unloaded."""
    path = pair.world.envrc("w", exports("FOO"))
    pair.step("w", outcome="loaded")
    path.unlink()
    os.mkfifo(path)

    pair.kernel.refresh()

    assert pair.environ == pair.world.environ


def test_run_is_held_no_longer_than_it_may(pair: Pair) -> None:
    """After `wait_s` the run starts with the old values taken back; one line says so.

    The evaluation goes on, and the next run gets what it came to.
    """
    pair.world.envrc("w", exports("OLD"))
    made = Pair(pair.world, socket=pair.socket)
    try:
        made.step("w", outcome="loaded")
        made.kernel.client.settings.wait_s = 0.3
        body = f"while [ ! -e go ]; do sleep 0.02; done\n{exports('FOO')}"
        pair.world.envrc("w", body)

        result = made.kernel.refresh()

        assert result.outcome == "timeout"
        assert made.environ == pair.world.environ
        assert sum("envwatch:" in line for line in result.messages) == 1
        pair.world.write("w/go", "")
        until(
            "the evaluation has ended",
            lambda: made.kernel.refresh().outcome == "loaded",
        )
        assert made.environ["FOO"] == secret("FOO")
    finally:
        made.close()


def test_evaluation_runs_no_longer_than_it_may(pair: Pair) -> None:
    """After `kill_s` the whole process group is ended, and nothing stays loaded."""
    if pair.socket is not None:
        pytest.skip("the sidecar has a kill_s of its own")
    pair.world.envrc("w", exports("OLD"))
    made = Pair(pair.world, socket=None, kill_s=0.5)
    try:
        made.step("w", outcome="loaded")
        pair.world.envrc("w", f"{exports('FOO')}echo $$ >>pids; while :; do :; done\n")

        result = made.kernel.refresh()

        assert result.outcome == "timeout"
        assert PLANTED not in "".join(made.environ.values())
        for pid in pair.world.path("w/pids").read_text().split():
            until("bash has ended", lambda: not os.path.exists(f"/proc/{pid}"))  # noqa: B023
        assert made.kernel.refresh().outcome == "unchanged"
        pair.world.envrc("w", exports("FOO"))
        assert made.kernel.refresh().outcome == "loaded"
    finally:
        made.close()


def test_interrupted(pair: Pair) -> None:
    """An interrupt ends the wait and the evaluation, and the next run asks again."""
    pair.world.envrc("w", exports("OLD"))
    pair.step("w", outcome="loaded")
    loop = "[ -e go ] || while :; do sleep 0.02; done\n"
    pair.world.envrc("w", f"{exports('FOO')}echo $$ >>pids\n{loop}")
    pids = pair.world.path("w/pids")

    def interrupt() -> None:
        until(
            "the evaluation has begun", lambda: pids.exists() and bool(pids.read_text())
        )
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        pair.kernel.refresh()
    thread.join()

    assert pair.environ == pair.world.environ
    for pid in pids.read_text().split():
        until("bash has ended", lambda: not os.path.exists(f"/proc/{pid}"))  # noqa: B023
    pair.world.write("w/go", "")
    assert pair.kernel.refresh().outcome == "loaded"
    assert pair.environ["FOO"] == secret("FOO")
