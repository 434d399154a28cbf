"""`envwatch top`: the table for scripts, and what happens where no view can be."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from envwatch import state
from envwatch.commands import top
from envwatch.errors import NoSidecar
from kernel_client import Settings
from tests.conftest import OLDER
from tests.e2e.kernels import KernelProcess, environ_of
from tests.support.pairs import NO_COMMAND
from tests.support.persons import Person
from tests.support.planted import exports
from tests.support.programs import COMMAND

pytestmark = pytest.mark.parametrize("version", [OLDER], indirect=True)

WITHOUT_TEXTUAL = """
import sys
from unittest import mock
sys.modules["textual"] = None
sys.stdin, sys.argv = mock.Mock(), ["envwatch", "top", *{arguments!r}]
sys.stdout.isatty = sys.stdin.isatty = lambda: True
from envwatch.__main__ import main
sys.exit(main())
"""


@pytest.fixture
def start(attended: Person) -> Iterator[Callable[[str], KernelProcess]]:
    """Give what starts a kernel in a folder, and refreshes it once."""
    running: list[KernelProcess] = []

    def started(folder: str) -> KernelProcess:
        environ = environ_of(attended.world, listening=attended.socket)
        running.append(KernelProcess(environ, attended.world.path(folder)))
        running[-1].refresh()
        return running[-1]

    yield started
    for kernel in running:
        kernel.close()


def test_once_prints_the_table(
    attended: Person, start: Callable[[str], KernelProcess]
) -> None:
    """A title, and a line for each workspace with its whole path."""
    folder = "long/" * 30 + "end"
    attended.world.envrc(folder, exports("A"))
    attended.world.envrc("b", exports("A"), allow=False)
    for each in (folder, folder, "b"):
        start(each)

    ended = attended.run("top", "--once")

    assert (ended.code, ended.err) == (0, "")
    title, first, second = ended.lines
    assert title.split()[:4] == ["WORKSPACE", "STATE", "KERNELS", "OUTCOME"]
    assert first.split()[:4] == [str(attended.world.path("b")), "idle", "1", "blocked"]
    path = str(attended.world.path(folder))
    assert second.split()[:4] == [path, "idle", "2", "loaded"]
    assert second.split()[-1] == "2"


def test_once_escapes_paths(
    attended: Person, start: Callable[[str], KernelProcess]
) -> None:
    """A folder's name forges no line."""
    name = os.fsdecode(b"x\nforged  idle\x1b[2J\xff")
    attended.world.write(Path(name, ".envrc"), exports("A"))
    attended.world.allow(name)
    start(name)

    ended = attended.run("top", "--once")

    assert len(ended.lines) == 2
    assert "x\\nforged  idle\\x1b[2J\\udcff" in ended.lines[1]


def test_once_without_a_sidecar(person: Person) -> None:
    """There is nothing to print: 69, as with every command that needs one."""
    person.run("top", "--once").said(69, "no sidecar listens")


def test_without_a_terminal(attended: Person) -> None:
    """A view of no terminal is none; what to say instead is said."""
    ended = attended.run("top")
    assert ended.code == 2
    assert "--once" in ended.err


def test_without_textual(attended: Person) -> None:
    """One line that says what to install; the table needs nothing."""
    code = WITHOUT_TEXTUAL.format(arguments=[])
    ended = attended.python(code, folder=attended.world.top)
    ended.said(69, "pip install 'envwatch[tui]'")
    code = WITHOUT_TEXTUAL.format(arguments=["--once"])
    ended = attended.python(code, folder=attended.world.top)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("WORKSPACE")


# ------------------------------------------------------------------ starting one


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (Settings(sidecar="off"), "ENVWATCH_SIDECAR is off"),
        (Settings(sidecar="listening"), "ENVWATCH_SIDECAR is listening"),
        (Settings(fd=7), "ENVWATCH_FD"),
        (Settings(sidecar=NO_COMMAND), "no `envwatch` command"),
    ],
    ids=["off", "listening", "fd", "missing"],
)
def test_none_can_be_started(person: Person, settings: Settings, words: str) -> None:
    """Why not is said; what the settings forbid, a key does not do."""
    with pytest.raises(NoSidecar, match=words):
        top.start(settings, person.environ)


def test_one_is_started(person: Person) -> None:
    """It listens a moment later, where the settings say."""
    settings = Settings(sidecar=COMMAND, socket=str(person.socket))
    try:
        assert top.start(settings, person.environ) == "a sidecar is being started"
        while (ended := person.run("top", "--once")).code == 69:
            pass
        assert ended.code == 0
    finally:
        person.run("stop")


def test_the_direnv_of_a_question(person: Person) -> None:
    """It is the one that kernels here run."""
    base = state.base(person.environ)
    person.world.envrc("w", "export A=1\n", allow=False)
    made = top.inquiry(Settings.of(base), base)
    found = made.look(str(person.world.path("w")))
    assert found.subject is not None
