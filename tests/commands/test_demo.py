"""`envwatch demo`: the whole of it, and what it leaves behind: nothing."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from tests.conftest import OLDER
from tests.support.daemons import until
from tests.support.persons import Person
from tests.support.processes import ipykernels, is_pending, processes

one_version = pytest.mark.parametrize("version", [OLDER], indirect=True)


# The command with its last steps alone, so that nobody waits for the others.
NOTEBOOK = """
import sys
from envwatch.__main__ import main
from envwatch.commands.demonstration.story import Story
def play(story):
    story._stage.write("first")
    story._stage.allow()
    story._stage.start_sidecar()
    story._stage.prompt(story._shell)
    story._notebook()
Story.play = play
sys.argv = ["envwatch", "demo"]
sys.exit(main())
"""


def kernels(top: Path) -> list[str]:
    """Give the commands of the processes that only a demo needs."""
    return [each for each in processes(top).values() if "serve" not in each.split()]


@pytest.fixture
def temporary(person: Person) -> Path:
    """Give the folder that the demo makes its own folder in."""
    folder = person.world.folder("t")
    person.environ["TMPDIR"] = str(folder)
    return folder


def test_everything_is_as_it_should_be(person: Person, temporary: Path) -> None:
    """All steps are as they should be, measured beside direnv, and nothing stays."""
    ended = person.run("demo")

    assert ended.code == 0, ended.out + ended.err
    assert ended.err == ""
    assert ended.lines[-1].startswith("everything was as it should be")
    assert "NOT SO" not in ended.out
    assert ended.out.count("(1 : ") >= 5
    assert ended.out.count("one evaluation for 20 kernels") == 3
    for step in range(1, 12):
        assert f"\n{step}. " in ended.out
    assert "its interpreter has started with what direnv's hook gives" in ended.out
    assert ".envrc is blocked" in ended.out
    assert "it has the new value" in ended.out
    assert list(temporary.iterdir()) == []
    assert processes(temporary) == {}
    assert not (person.world.data / "allow").exists()


@one_version
def test_what_is_not_so_is_said(person: Person, temporary: Path) -> None:
    """A direnv that evaluates twice is found out: exit code 1, and what was not."""
    fake = person.world.write(
        "fake",
        "#!/bin/sh\n"
        f'[ "$1" = export ] && {person.world.direnv} export json >/dev/null 2>&1\n'
        f'exec {person.world.direnv} "$@"\n',
    )
    fake.chmod(0o755)

    ended = person.run("demo", environ={"ENVWATCH_DIRENV": str(fake)})

    assert ended.code == 1
    assert "NOT SO: evaluations in all: 1, not 2" in ended.out
    assert "not everything was as it should be" in ended.lines[-1]
    assert list(temporary.iterdir()) == []
    assert processes(temporary) == {}


def assert_cleaned_up(
    person: Person,
    process: subprocess.Popen[bytes],
    number: signal.Signals,
    temporary: Path,
) -> None:
    """It ends as the signal would end it, and leaves no folder and no process."""
    ended = person.ended(process)
    assert ended.code == 128 + number
    assert "Traceback" not in ended.err
    assert list(temporary.iterdir()) == []
    until("no process is left", lambda: processes(temporary) == {})


@one_version
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ended_early(person: Person, temporary: Path, number: signal.Signals) -> None:
    """Ctrl-C, or the system, ends the demo's processes and removes its folder."""
    process = person.start("demo")
    until("kernels run", lambda: len(processes(temporary)) > 5)

    process.send_signal(number)
    assert_cleaned_up(person, process, number, temporary)


@one_version
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ended_in_the_notebook(
    person: Person, temporary: Path, number: signal.Signals
) -> None:
    """The notebook's kernel ends too, with one signal or with an impatient second."""
    process = person._started(["-c", NOTEBOOK], None, {})
    until("a notebook's kernel runs", lambda: ipykernels(temporary) != [])

    process.send_signal(number)
    until("the first is taken", lambda: not is_pending(process.pid, number))
    process.send_signal(number)
    assert_cleaned_up(person, process, number, temporary)


@one_version
def test_killed_in_the_notebook(person: Person, temporary: Path) -> None:
    """Nobody can clean up after `kill -9`; the kernels end by themselves."""
    process = person._started(["-c", NOTEBOOK], None, {})
    until("a notebook's kernel runs", lambda: ipykernels(temporary) != [])

    process.kill()
    person.ended(process)

    until("no kernel is left", lambda: kernels(temporary) == [])


@one_version
def test_no_direnv(person: Person, temporary: Path) -> None:
    """Without direnv there is nothing to show: exit code 69, and how to install it."""
    person.run("demo", environ={"PATH": "/nowhere"}).said(69, "install")
    assert list(temporary.iterdir()) == []
