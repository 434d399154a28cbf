"""Who holds a pipe that direnv reads."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from kernel_client import holders
from tests.support.daemons import until


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """Give a process that has the read end of a pipe, and a child with the other."""
    reading, writing = os.pipe()
    code = f"sleep 60 {reading}<&- & exec {writing}>&-; read line"
    process = subprocess.Popen(
        ["/bin/bash", "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(reading, writing),
        start_new_session=True,
    )
    os.close(reading)
    os.close(writing)
    try:
        yield process
    finally:
        os.killpg(process.pid, 9)
        process.wait()
        assert process.stdin is not None
        process.stdin.close()


def test_holder_is_found(sleeper: subprocess.Popen[bytes]) -> None:
    """The process that keeps the other end open, and nobody else."""
    until("the child runs", lambda: len(holders.pipe_holders(sleeper.pid)) == 1)
    (pid,) = holders.pipe_holders(sleeper.pid)
    with open(f"/proc/{pid}/cmdline", "rb") as command:
        assert b"sleep" in command.read()
    assert holders.has_children(sleeper.pid)
    os.kill(pid, 9)
    until("it has gone", lambda: not holders.pipe_holders(sleeper.pid))


def test_what_cannot_be_seen_ends_nobody() -> None:
    """No such process: it is said to have children, and nobody holds its pipes."""
    gone = subprocess.Popen(["/bin/true"])
    gone.wait()
    assert holders.has_children(gone.pid)
    assert holders.pipe_holders(gone.pid) == []
