"""`envwatch demo`: the whole of it, and what it leaves behind: nothing."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.conftest import OLDER
from tests.support.daemons import until
from tests.support.persons import Person

one_version = pytest.mark.parametrize("version", [OLDER], indirect=True)


def processes(top: Path) -> list[str]:
    """Give the command of every process whose environment names this folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if os.fsencode(top) in (entry / "environ").read_bytes():
                found.append((entry / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


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
    for step in range(1, 9):
        assert f"\n{step}. " in ended.out
    assert list(temporary.iterdir()) == []
    assert processes(temporary) == []
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
    assert processes(temporary) == []


@one_version
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ended_early(person: Person, temporary: Path, number: signal.Signals) -> None:
    """Ctrl-C, or the system, ends the demo's processes and removes its folder."""
    process = person.start("demo")
    until("kernels run", lambda: len(processes(temporary)) > 5)

    process.send_signal(number)
    ended = person.ended(process)

    assert ended.code == 128 + number
    assert "Traceback" not in ended.err
    assert list(temporary.iterdir()) == []
    until("no process is left", lambda: processes(temporary) == [])


@one_version
def test_no_direnv(person: Person, temporary: Path) -> None:
    """Without direnv there is nothing to show: exit code 69, and how to install it."""
    person.run("demo", environ={"PATH": "/nowhere"}).said(69, "install")
    assert list(temporary.iterdir()) == []
