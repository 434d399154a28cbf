"""A noisy machine is said to be noisy."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bench import machine
from bench.findings import CannotRunError
from bench.machine import Moment, noise

QUIET = Moment(loop_s=1e-3, load=0.2, stolen=100, passed=1000, forks=10)
LATER = replace(QUIET, loop_s=1.05e-3, stolen=101, passed=2000, load=9.0)


def test_quiet() -> None:
    """A load that we have made ourselves is none that counts."""
    assert noise([QUIET, LATER], 2) == ()


@pytest.mark.parametrize(
    ("moments", "word"),
    [
        ([QUIET, replace(QUIET, loop_s=1.2e-3), LATER], "1.20 times"),
        ([QUIET, replace(LATER, stolen=200)], "10.0%"),
        ([replace(QUIET, load=1.5), LATER], "1.5 on 2 cores"),
    ],
)
def test_noisy(moments: list[Moment], word: str) -> None:
    """A loop that drifts, time that the host took, a load before the first part."""
    (said,) = noise(moments, 2)
    assert word in said


def test_moment_counts_what_was_started() -> None:
    """By the system's own counter."""
    before = machine.moment()
    for _ in range(3):
        subprocess.run([sys.executable, "-c", ""], check=True)
    after = machine.moment()
    assert after.forks - before.forks >= 3
    assert after.passed >= before.passed
    assert before.loop_s > 0


def test_described(direnvs: dict[str, str]) -> None:
    """The direnv that was asked for."""
    facts = machine.described(direnvs["2.32"], os.environ)
    assert facts["direnv"].startswith("2.32")
    assert {"date", "python", "linux", "cores", "processor", "memory"} <= set(facts)


def test_no_direnv(tmp_path: Path) -> None:
    """Said, in place of a figure."""
    with pytest.raises(CannotRunError, match="no direnv on PATH"):
        machine.described(None, {"PATH": str(tmp_path)})
