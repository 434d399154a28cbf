"""`envwatch ask` under tmux beside a real ipykernel: blocked, asked, answered, loaded."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import OLDER
from tests.support.jupyters import Jupyter
from tests.support.tmux import Terminal
from tests.support.worlds import World

ASK = shlex.join([sys.executable, "-m", "envwatch", "ask"])
HINT = "puts it away"
FOO = "import os; print('FOO is', os.environ.get('FOO'))"
direct = pytest.mark.parametrize("mode", ["direct"], indirect=True)


@pytest.fixture
def jupyter(world: World, socket: Path | None) -> Jupyter:
    """Give a person with Jupyter."""
    return Jupyter(world, socket)


@pytest.fixture
def shell(world: World, jupyter: Jupyter) -> Iterator[Terminal]:
    """Give a shell in a terminal, in the workspace."""
    bash = ["env", "PS1=ready> ", "bash", "--norc", "--noprofile", "-i"]
    opened = Terminal(
        bash, environ=jupyter.person.environ, folder=world.folder("w"), columns=100
    )
    try:
        opened.see("ready>")
        yield opened
    finally:
        opened.close()


def test_blocked_asked_answered_loaded(
    world: World, jupyter: Jupyter, shell: Terminal
) -> None:
    """The next run after `y` has the environment; after `n` it has not."""
    world.envrc("w", "export FOO=1\n", allow=False)
    kernel = jupyter.kernel("python3")
    try:
        kernel.run("%load_ext kernel_client")
        assert "FOO is None\n" in kernel.run(FOO).out
        shown = shell.command(f"{ASK}; echo code=$?", HINT)
        assert "is blocked: new" in shown
        assert " export FOO=1\n" in shown
        assert "FOO is None\n" in kernel.run(FOO).out
        shell.answer("y", "code=0")
        assert "FOO is 1\n" in kernel.run(FOO).out

        world.write("w/.envrc", "export FOO=2\n")
        assert "FOO is None\n" in kernel.run(FOO).out
        shown = shell.command(f"{ASK}; echo code=$?", HINT)
        assert "changed since it was allowed" in shown
        shell.answer("n", "code=11")
        assert "FOO is None\n" in kernel.run(FOO).out

        shell.command(f"{ASK}; echo code=$?", HINT)
        shell.answer("y", "code=0")
        assert "FOO is 2\n" in kernel.run(FOO).out
    finally:
        kernel.close()


@direct
@pytest.mark.parametrize("version", [OLDER], indirect=True)
def test_stopped_and_gone_on(world: World, shell: Terminal) -> None:
    """Ctrl-Z gives the shell its terminal; after `fg` it can be answered."""
    world.envrc("w", "export FOO=1\n", allow=False)
    shell.command(ASK, HINT)
    shell.type("C-z")
    shell.see("Stopped")
    shell.enter("stty -a | grep -o '[-]*icanon\\|[-]*echo '")
    shell.see("\necho")
    assert "-icanon" not in shell.screen.replace("[-]", "")
    shell.enter("clear; fg; echo code=$?")
    shell.wait(lambda screen: "Stopped" not in screen and HINT in screen, "it is back")
    shell.answer("y", "code=0")
