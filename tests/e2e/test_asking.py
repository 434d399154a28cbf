"""`envwatch ask` under tmux beside a real ipykernel: blocked, asked, answered, loaded."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from envwatch.core.question import QUIET_S
from tests.conftest import OLDER
from tests.support import planted
from tests.support.daemons import until
from tests.support.jupyters import Jupyter
from tests.support.worlds import World

HINT = "puts it away"
FOO = "import os; print('FOO is', os.environ.get('FOO'))"
direct = pytest.mark.parametrize("mode", ["direct"], indirect=True)


class Tmux:
    """A tmux server of its own with one shell in it."""

    def __init__(self, jupyter: Jupyter, folder: Path) -> None:
        self._environ = {**jupyter.person.environ, "TERM": "xterm-256color"}
        self._socket = str(jupyter.world.path("tmux"))
        self.command = shlex.join([sys.executable, "-m", "envwatch", "ask"])
        shell = ("env", "PS1=ready> ", "bash", "--norc", "--noprofile", "-i")
        size = ("-x", "100", "-y", "30")
        self._run("-f", "/dev/null", "new-session", "-d", *size, "-c", folder, *shell)
        self.see("ready>")

    def _run(self, *arguments: str | os.PathLike[str]) -> str:
        return subprocess.run(
            ["tmux", "-S", self._socket, *arguments],
            env=self._environ,
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    @property
    def screen(self) -> str:
        """What is on the screen now."""
        return self._run("capture-pane", "-p")

    def see(self, text: str) -> str:
        """Wait for a text on the screen."""
        until(f"the screen has {text}", lambda: text in self.screen)
        return self.screen

    def type(self, text: str) -> None:
        """Type a line."""
        self._run("send-keys", "-l", text)
        self._run("send-keys", "Enter")

    def press(self, key: str, wanted: str) -> None:
        """Press a key, again when it came too early to answer, until it has."""

        pressed = [time.monotonic()]

        def has_answered() -> bool:
            if wanted in self.screen:
                return True
            # At a distance that the question takes for an answer.
            if time.monotonic() - pressed[-1] > 2 * QUIET_S:
                pressed.append(time.monotonic())
                self._run("send-keys", key)
            return False

        until(f"{key} has answered", has_answered)

    def close(self) -> None:
        """End it with everything in it."""
        planted.collect("tmux", self.screen)
        self._run("kill-server")


@pytest.fixture
def jupyter(world: World, socket: Path | None) -> Jupyter:
    """Give a person with Jupyter."""
    return Jupyter(world, socket)


@pytest.fixture
def tmux(world: World, jupyter: Jupyter) -> Iterator[Tmux]:
    """Give a shell under tmux, in the workspace."""
    opened = Tmux(jupyter, world.folder("w"))
    yield opened
    opened.close()


def test_blocked_asked_answered_loaded(
    world: World, jupyter: Jupyter, tmux: Tmux
) -> None:
    """The next run after `y` has the environment; after `n` it has not."""
    world.envrc("w", "export FOO=1\n", allow=False)
    kernel = jupyter.kernel("python3")
    try:
        kernel.run("%load_ext kernel_client")
        assert "FOO is None\n" in kernel.run(FOO).out
        tmux.type(f"clear; {tmux.command}; echo code=$?")
        shown = tmux.see(HINT)
        assert "is blocked: new" in shown
        assert " export FOO=1\n" in shown
        assert "FOO is None\n" in kernel.run(FOO).out
        tmux.press("y", "code=0")
        assert "FOO is 1\n" in kernel.run(FOO).out

        world.write("w/.envrc", "export FOO=2\n")
        assert "FOO is None\n" in kernel.run(FOO).out
        tmux.type(f"clear; {tmux.command}; echo code=$?")
        assert "changed since it was allowed" in tmux.see(HINT)
        tmux.press("n", "code=11")
        assert "FOO is None\n" in kernel.run(FOO).out

        tmux.type(f"clear; {tmux.command}; echo code=$?")
        tmux.see(HINT)
        tmux.press("y", "code=0")
        assert "FOO is 2\n" in kernel.run(FOO).out
    finally:
        kernel.close()


@direct
@pytest.mark.parametrize("version", [OLDER], indirect=True)
def test_stopped_and_gone_on(world: World, tmux: Tmux) -> None:
    """Ctrl-Z gives the shell its terminal; after `fg` it can be answered."""
    world.envrc("w", "export FOO=1\n", allow=False)
    tmux.type(f"clear; {tmux.command}")
    tmux.see(HINT)
    tmux._run("send-keys", "C-z")
    tmux.see("Stopped")
    tmux.type("stty -a | grep -o '[-]*icanon\\|[-]*echo '")
    tmux.see("\necho")
    assert "-icanon" not in tmux.screen.replace("[-]", "")
    tmux.type("fg; echo code=$?")
    tmux.press("y", "code=0")
