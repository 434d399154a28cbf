"""`envwatch console` in a real terminal, with a real ipykernel, to its end."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import NEWER
from tests.support.daemons import until
from tests.support.jupyters import Jupyter
from tests.support.programs import COMMAND
from tests.support.tmux import COLOURS, Terminal
from tests.support.worlds import World

FOO = "print('FOO', 'is', __import__('os').environ.get('FOO'))"
PID = "print('pid', __import__('os').getpid())"
SLEEP = "print('be' + 'gun', flush=True); __import__('time').sleep(1000)"
EMPTY = r"│ +│\n╰─+╯\n~/"
READY, ASKED = "a kernel runs in", "y allows this file"

one = [
    pytest.mark.parametrize("mode", ["direct"], indirect=True),
    pytest.mark.parametrize("version", [NEWER], indirect=True),
]


def in_one_way(test: Callable[..., None]) -> Callable[..., None]:
    """Test with one direnv and without a sidecar: neither has a part in it."""
    for mark in one:
        test = mark(test)
    return test


Open = Callable[..., Terminal]


@pytest.fixture
def console(world: World, socket: Path | None) -> Iterator[Open]:
    """Give what opens a console in a terminal, in a folder of the world."""
    opened: list[Terminal] = []
    environ = {**Jupyter(world, socket).environ, "HOME": str(world.top)}

    def started(folder: str = "w", **more: str) -> Terminal:
        opened.append(
            Terminal(
                [COMMAND, "console"],
                environ={**environ, **more},
                folder=world.folder(folder),
            )
        )
        return opened[-1]

    yield started
    for each in opened:
        each.close()


def pid_of(terminal: Terminal) -> int:
    """Have the kernel tell its process id."""
    terminal.enter(PID)
    screen = terminal.wait(lambda screen: re.search(r"pid \d+\n", screen), "its pid")
    return int(re.findall(r"pid (\d+)\n", screen)[-1])


def parent_of(terminal: Terminal) -> int:
    """Have the kernel tell the process id of the console."""
    terminal.enter("print('parent', __import__('os').getppid())")
    screen = terminal.wait(
        lambda screen: re.search(r"parent \d+\n", screen), "its parent"
    )
    return int(re.findall(r"parent (\d+)\n", screen)[-1])


def is_gone(pid: int) -> bool:
    """Tell whether a process has ended."""
    return not Path(f"/proc/{pid}").exists()


def test_a_whole_life(world: World, console: Open) -> None:
    """Blocked, asked, answered, loaded; edited, told, asked, answered, loaded; left."""
    world.envrc("w", "export FOO=1\n", allow=False)
    world.envrc("other", "export FOO=3\n")
    terminal = console()
    shown = terminal.see(READY, ASKED, "is blocked: new", " export FOO=1\n"[:-1])
    assert "~/w | blocked: new | kernel idle" in shown
    # The first letter of a prompt that is typed without reading answers nothing.
    terminal.write("p")
    terminal.write("r")
    terminal.type("Escape")  # too early after a letter to answer
    assert ASKED in terminal.screen
    assert re.search(EMPTY, terminal.screen)
    terminal.answer("y", "~/w/.envrc is allowed; the next run loads it")
    terminal.enter(FOO)
    shown = terminal.see("FOO is 1", "direnv: ", "~/w | allowed | kernel idle")
    assert ASKED not in shown

    edit = "_ = open('.envrc', 'a').write('export FOO=2\\n')"
    terminal.enter(edit)
    terminal.see("is blocked: changed", " export FOO=2", ASKED)
    terminal.answer("n", "~/w/.envrc stays blocked")
    terminal.enter(FOO)
    # That run was told, so it is asked again.
    shown = terminal.see("FOO is None", "is blocked; allowing it is up to", ASKED)
    terminal.answer("y", "~/w | allowed")
    terminal.wait(lambda screen: ASKED not in screen, "the question has gone")
    terminal.enter(FOO)
    terminal.see("FOO is 2")

    terminal.enter("/cd ../other")
    terminal.see("now in ~/other", "~/other | allowed")
    terminal.enter(FOO)
    terminal.see("FOO is 3")
    pid = pid_of(terminal)
    terminal.enter(SLEEP)
    terminal.see("begun", "kernel running")
    terminal.type("C-c")
    terminal.see("KeyboardInterrupt", "kernel idle")
    terminal.enter("/quit")
    assert terminal.end() == 0
    assert is_gone(pid)


@in_one_way
def test_a_question_after_cd(world: World, console: Open) -> None:
    """And one where the code itself has gone to another folder."""
    for name in ("a", "b"):
        world.envrc(name, f"export IN_{name}=1\n", allow=False)
    terminal = console()
    terminal.see(READY, "~/w | no root file")
    terminal.enter("/cd ../a")
    terminal.see("now in ~/a", "export IN_a=1", ASKED)
    terminal.answer("n", "~/a/.envrc stays blocked")
    terminal.enter("%cd -q ../b")
    terminal.see("~/b | blocked: new", "export IN_b=1", ASKED)


@in_one_way
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)], ids=str
)
def test_ended_by_a_signal(
    world: World, console: Open, number: signal.Signals, code: int
) -> None:
    """The kernel goes first, though it is busy; the terminal is put back."""
    terminal = console()
    terminal.see(READY)
    parent = parent_of(terminal)
    pid = pid_of(terminal)
    terminal.enter(SLEEP)
    terminal.see("begun")
    os.kill(parent, number)
    assert terminal.end() == code
    assert is_gone(pid)
    assert "kernel running" not in terminal.screen


@in_one_way
def test_its_terminal_has_gone(world: World, console: Open) -> None:
    """Nothing is left of it."""
    terminal = console()
    terminal.see(READY)
    pid = pid_of(terminal)
    terminal.enter(SLEEP)
    terminal.see("begun")
    terminal.close()
    until("the kernel has ended", lambda: is_gone(pid))


@in_one_way
def test_killed(world: World, console: Open) -> None:
    """Then the kernel notices by itself that nobody is there any more."""
    terminal = console()
    terminal.see(READY)
    parent = parent_of(terminal)
    pid = pid_of(terminal)
    os.kill(parent, signal.SIGKILL)
    terminal.end()
    until("the kernel has ended", lambda: is_gone(pid))


@in_one_way
@pytest.mark.parametrize("more", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_no_colour_of_its_own(
    world: World, console: Open, more: dict[str, str]
) -> None:
    """What a program prints in colour has the terminal's own colours, nothing else."""
    world.envrc("w", "export FOO=1\n", allow=False)
    terminal = console(**more)
    terminal.see(READY, ASKED)
    assert COLOURS.findall(terminal.painted) == []
