"""Plain `ipython` with the start-up file of `envwatch ipython install`."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import OLDER
from tests.support import planted
from tests.support.daemons import until
from tests.support.jupyters import Jupyter
from tests.support.worlds import World

older = pytest.mark.parametrize("version", [OLDER], indirect=True)
direct = pytest.mark.parametrize("mode", ["direct"], indirect=True)

DEADLINE_S = 40.0
FOO = "import os; print('FOO is', os.environ.get('FOO'))"


class Terminal:
    """An `ipython` in a terminal of its own; `say` types, `see` waits for a text."""

    def __init__(self, jupyter: Jupyter, *arguments: str) -> None:
        self._terminal, end = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "IPython", "--simple-prompt", *arguments],
            cwd=jupyter.world.path("w"),
            env={**jupyter.environ, "TERM": "dumb"},
            stdin=end,
            stdout=end,
            stderr=end,
            start_new_session=True,
        )
        os.close(end)
        self.seen = ""
        self._from = 0

    def see(self, text: str) -> str:
        """Wait for a text; give all that came since the last one, up to it."""
        deadline = time.monotonic() + DEADLINE_S
        while text not in self.seen[self._from :]:
            left_s = deadline - time.monotonic()
            ready = left_s > 0 and select.select([self._terminal], [], [], left_s)[0]
            assert ready, (text, self.seen)
            self._read()
        end = self.seen.index(text, self._from) + len(text)
        came, self._from = self.seen[self._from : end], end
        return came

    def _read(self) -> None:
        try:
            data = os.read(self._terminal, 65536)
        except OSError:
            data = b""
        assert data, self.seen
        self.seen += data.decode(errors="replace").replace("\r\n", "\n")

    def say(self, line: str) -> None:
        """Type a line."""
        os.write(self._terminal, line.encode() + b"\n")

    def run(self, line: str) -> str:
        """Type a line at the prompt; give what came until the next prompt."""
        self.say(line)
        return self.see("\nIn [")

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self.process.send_signal(signal.SIGINT)

    def close(self) -> None:
        """End it, and search what it showed for the secret."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._terminal)
        planted.collect("a terminal", self.seen)


@pytest.fixture
def jupyter(world: World, socket: Path | None) -> Jupyter:
    """Give a person, whose IPython has the start-up file."""
    made = Jupyter(world, socket)
    ended = made.person.run("ipython", "install")
    assert ended.code == 0, ended
    return made


@pytest.fixture
def terminal(world: World, jupyter: Jupyter) -> Iterator[Terminal]:
    """Give an `ipython` at its first prompt, in an allowed workspace."""
    world.envrc("w", "export FOO=1\n" + planted.exports("TOKEN"))
    opened = Terminal(jupyter)
    opened.see("\nIn [")
    yield opened
    opened.close()


def test_terminal_follows(world: World, terminal: Terminal) -> None:
    """The first prompt has the environment; each line after that follows."""
    assert "direnv: export +FOO +TOKEN" in terminal.seen
    assert "FOO is 1\n" in terminal.run(FOO)

    world.envrc("w", "export FOO=2\n", allow=False)
    blocked = terminal.run(FOO)
    assert "FOO is None\n" in blocked
    assert "is blocked; allowing it is up to the person" in blocked
    assert "direnv allow" not in blocked

    world.allow("w")
    assert "FOO is 2\n" in terminal.run(FOO)
    assert "direnv" not in terminal.run("%cd -q ..")
    left = terminal.run(FOO)
    assert "direnv: unloading\n" in left
    assert "FOO is None\n" in left


@older
@direct
def test_interrupt(world: World, terminal: Terminal) -> None:
    """Ctrl-C ends the hold, the line is not run, the next one is."""
    world.envrc("w", "touch started\nsleep 1000\n")
    terminal.say(FOO)
    until("direnv evaluates", world.path("w/started").exists)
    terminal.interrupt()
    came = terminal.see("\nIn [")
    assert "the cell was not run" in came
    assert "\nFOO is " not in came

    world.envrc("w", "export FOO=3\n")
    assert "FOO is 3\n" in terminal.run(FOO)


@older
@direct
def test_interrupt_at_the_start(world: World, jupyter: Jupyter) -> None:
    """Ctrl-C while the first prompt waits gives a prompt, and nothing is loaded."""
    world.envrc("w", "touch started\nsleep 1000\n")
    terminal = Terminal(jupyter)
    try:
        until("direnv evaluates", world.path("w/started").exists)
        terminal.interrupt()
        assert "envwatch: interrupted" in terminal.see("\nIn [")
        world.envrc("w", "export FOO=3\n")
        assert "FOO is 3\n" in terminal.run(FOO)
    finally:
        terminal.close()


@older
@direct
def test_script(world: World, jupyter: Jupyter) -> None:
    """`ipython script.py` and `ipython -c` run in the environment too."""
    world.envrc("w", "export FOO=1\n")
    world.write("w/script.py", FOO)
    for arguments in (["script.py"], ["-c", FOO]):
        terminal = Terminal(jupyter, *arguments)
        try:
            terminal.see("FOO is 1\n")
        finally:
            terminal.close()


@older
@direct
def test_no_name_is_left_behind(terminal: Terminal) -> None:
    """The person's namespace has nothing of the start-up file."""
    said = terminal.run("print([n for n in dir() if 'envwatch' in n or 'kernel' in n])")

    assert "\n[]\n" in said.replace("In [1]: ", "\n")


@older
@direct
def test_kernels_are_left_alone(world: World, jupyter: Jupyter) -> None:
    """They read the same profile, and are `envwatch jupyter`'s affair."""
    world.envrc("w", "export FOO=1\n")
    kernel = jupyter.kernel("python3")
    try:
        assert kernel.run(FOO).out == "FOO is None\n"
        assert "not found" in kernel.run("%envwatch").err
    finally:
        kernel.close()


@older
@direct
def test_uninstalled(world: World, jupyter: Jupyter) -> None:
    """Everything is as it was before."""
    world.envrc("w", "export FOO=1\n")
    assert jupyter.person.run("ipython", "uninstall").code == 0
    terminal = Terminal(jupyter)
    try:
        terminal.see("\nIn [")
        assert "FOO is None\n" in terminal.run(FOO)
    finally:
        terminal.close()
