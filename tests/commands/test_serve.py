"""`envwatch serve`: options, settings, and what keeps it from serving."""

from __future__ import annotations

import json
import os
import signal
import socket

import pytest

from tests.conftest import OLDER
from tests.support.daemons import Daemon, until
from tests.support.persons import Person

pytestmark = pytest.mark.parametrize("version", [OLDER], indirect=True)


def hello(protocol: int = 1) -> bytes:
    """Give a first frame."""
    frame = {
        "type": "hello",
        "protocol": protocol,
        "pid": os.getpid(),
        "client": "a test",
        "capabilities": [],
        "cwd": None,
    }
    return json.dumps(frame).encode() + b"\n"


def test_options_come_before_settings(person: Person, direnvs: dict[str, str]) -> None:
    """An option counts where the environment says something else."""
    path = person.world.folder("other") / "sock"
    path.parent.chmod(0o700)
    other = next(found for found in direnvs.values() if found != person.world.direnv)
    process = person.start("serve", "--socket", path, "--direnv", other)
    try:
        until("it listens", path.exists)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(10)
            connection.connect(str(path))
            connection.sendall(hello())
            with connection.makefile() as said:
                welcome = json.loads(said.readline())
    finally:
        process.send_signal(signal.SIGTERM)
        ended = person.ended(process)

    assert welcome["direnv"]["path"] == other
    assert ended.code == 0
    assert not person.socket.exists()


def test_idle(person: Person) -> None:
    """Without a kernel it ends by itself: exit code 0."""
    ended = person.run("serve", "--idle-s", "0.2")

    assert ended.code == 0
    assert "Traceback" not in ended.err


def test_stdio(person: Person) -> None:
    """With `--stdio` it serves one kernel, and ends with it."""
    ours, theirs = socket.socketpair()
    process = person.start("serve", "--stdio", pipe=theirs)
    theirs.close()
    with ours:
        ours.settimeout(20)
        ours.sendall(hello())
        with ours.makefile() as said:
            welcome = json.loads(said.readline())
    ended = person.ended(process)

    assert welcome["type"] == "welcome"
    assert ended.code == 0
    assert not person.socket.exists()


def test_another_one_listens(attended: Person, daemon: Daemon) -> None:
    """The first sidecar is left in place: exit code 75."""
    ended = attended.run("serve")

    assert ended.code == 75
    assert ended.err.splitlines()[-1].startswith("envwatch: ")
    assert daemon.process is not None
    assert daemon.process.poll() is None


def test_unsafe_folder(person: Person) -> None:
    """It does not listen where others could take its place: exit code 77."""
    person.socket.parent.chmod(0o777)

    ended = person.run("serve")

    assert ended.code == 77
    assert ended.err.splitlines()[-1].startswith("envwatch: ")


def test_setting_that_cannot_be_read(person: Person) -> None:
    """A wrong setting is named: exit code 64."""
    person.run("serve", environ={"ENVWATCH_IDLE_S": "soon"}).said(64, "ENVWATCH_IDLE_S")
    wrong = {"ENVWATCH_FENCE": "maybe"}
    person.run("serve", environ=wrong).said(64, "ENVWATCH_FENCE", "auto, always or off")


@pytest.mark.parametrize(
    ("option", "setting", "mode"),
    [
        ((), None, "auto"),
        ((), "off", "off"),
        (("--fence", "always"), "off", "always"),
        (("--fence=off",), None, "off"),
        (("--fence=auto",), "always", "auto"),
    ],
    ids=["nothing", "setting", "both", "option", "auto"],
)
def test_fence(
    person: Person, option: tuple[str, ...], setting: str | None, mode: str
) -> None:
    """Where fences are given: by an option, by a setting, or as it comes."""
    process = person.start(
        "serve", *option, environ={"ENVWATCH_FENCE": setting, "ENVWATCH_IDLE_S": "60"}
    )
    try:
        until("it listens", person.socket.exists)
        found = person.run("status", "--json").object["sidecar"]
    finally:
        process.send_signal(signal.SIGTERM)
        assert person.ended(process).code == 0

    assert found["running"] is True
    assert found["fences"]["mode"] == mode


@pytest.mark.parametrize(
    "option",
    [
        *("--idle-s=0", "--idle-s=nan", "--kill-s=soon", "--concurrency=0"),
        *("--fence=on", "--fence="),
    ],
)
def test_option_that_cannot_be_used(person: Person, option: str) -> None:
    """A wrong option is a wrong command line: exit code 2."""
    person.run("serve", option).said(2, option.partition("=")[0])
