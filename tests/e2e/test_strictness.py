"""Two processes, and 100,000 changes: each is seen by the very next refresh."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kernel_client import Client, Settings
from tests.support.changes import CHANGES, WHOLE, Tree
from tests.support.pairs import NO_COMMAND

ROUNDS = 50_000
"""For each of two ways to get a fence."""

IN_FORCE = 0.95
"""In so many rounds at least there must have been a fence at all."""


class Other:
    """The other process: it changes things, and may give fences."""

    def __init__(self, folder: Path, direnv: str) -> None:
        self.socket = folder / "s"
        arguments = [str(self.socket), str(folder / "tree"), direnv]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.giver", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
        )
        self._heard()

    def do(self, name: str) -> None:
        """Make a change, and wait until it has been made."""
        assert self._process.stdin is not None
        self._process.stdin.write(name.encode() + b"\n")
        self._process.stdin.flush()
        self._heard()

    def close(self) -> None:
        """End it."""
        self._process.communicate(timeout=30)

    def _heard(self) -> None:
        assert self._process.stdout is not None
        assert self._process.stdout.readline()


@contextmanager
def playing(folder: Path, direnv: str, way: str) -> Iterator[tuple[Client, Other]]:
    """Give a kernel whose fences the other process gives, or that arms its own."""
    (folder / "tree").mkdir()
    other = Other(folder, direnv)
    client = Client(
        {"HOME": str(folder), "PATH": os.environ["PATH"]},
        output=lambda _: None,
        settings=Settings(
            sidecar=NO_COMMAND, socket=str(other.socket), direnv=direnv, fence="always"
        ),
    )
    if way == "own":
        # Answers come over the pipe all the same; only the fence is its own.
        client._answers._on_fence = None
    before = os.getcwd()
    try:
        yield client, other
    finally:
        os.chdir(before)
        client.close()
        other.close()


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("version", ["2.37"])
@pytest.mark.parametrize("way", ["given", "own"])
def test_no_change_is_missed(
    tmp_path: Path, direnvs: dict[str, str], version: str, way: str
) -> None:
    """Whatever changes, whoever changes it: the next refresh is not `unchanged`."""
    chosen = random.Random()
    missed: Counter[str] = Counter()
    fenced = 0
    with playing(tmp_path, direnvs[version], way) as (client, other):
        tree = Tree(tmp_path / "tree")
        os.chdir(tree.w)
        assert client.refresh().outcome == "loaded"
        for _ in range(ROUNDS):
            name = chosen.choice(CHANGES)
            held = client._fences._held
            fenced += held is not None and held.is_quiet()
            if chosen.random() < 0.5:
                getattr(tree, name)()
            else:
                other.do(name)
            if client.refresh().outcome == "unchanged":
                missed[name] += 1
            if name not in WHOLE:
                tree.mend()
                client.refresh()
        tree.close()
    assert not missed
    assert fenced >= IN_FORCE * ROUNDS
