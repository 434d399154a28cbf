"""The `envwatch` command itself: version, help, imports, and every kind of error."""

from __future__ import annotations

import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import click
import pytest

from envwatch import __version__, errors
from envwatch.__main__ import told
from envwatch.cli import COMMANDS, cli
from kernel_client.errors import DirenvError, SettingError, SidecarError
from tests.conftest import OLDER
from tests.support.daemons import until
from tests.support.persons import Person

one_version = pytest.mark.parametrize("version", [OLDER], indirect=True)

HEAVY = ("anyio", "asyncio", "structlog", "watchfiles", "envwatch.runtime")


@one_version
def test_version(person: Person) -> None:
    """`--version` is one line."""
    assert person.run("--version") == (0, f"envwatch {__version__}\n", "")


@one_version
def test_help_names_every_command(person: Person) -> None:
    """Every command is in the help text."""
    ended = person.run("--help")

    assert ended.code == 0
    for name in COMMANDS:
        assert f"\n  {name} " in ended.out


@one_version
@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command(person: Person, name: str) -> None:
    """Each command has its own help, with the line that the list has."""
    ended = person.run(name, "--help")

    assert ended.code == 0
    assert ended.out.startswith(f"Usage: envwatch {name} ")


@pytest.mark.parametrize("name", COMMANDS)
def test_name_of_a_command(name: str) -> None:
    """A command is called what the list of commands calls it."""
    command: click.Command = import_module(f"envwatch.commands.{name}").command

    assert command.name == name


@one_version
@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "demo"])
def test_only_serving_pays_for_the_runtime(person: Person, name: str) -> None:
    """No command imports the runtime before it serves."""
    code = (
        f"import sys, envwatch.__main__, envwatch.commands.{name};"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )

    assert person.python(code, folder=person.world.top).out == "[]\n"


@one_version
def test_nothing_asked(person: Person) -> None:
    """Without a command the help text is shown as an error: exit code 2."""
    ended = person.run()

    assert ended.code == 2
    assert ended.err.startswith("Usage: envwatch")


@one_version
@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["--nonsense"], ["status", "--nonsense"]]
)
def test_wrong_command_line(person: Person, arguments: list[str]) -> None:
    """What cannot be understood is one line that says where help is."""
    person.run(*arguments).said(2, "nonsense", "--help")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (click.UsageError("x"), 2),
        (errors.ConfigError("x"), 64),
        (errors.NoSidecar("x"), 69),
        (errors.Unavailable("x"), 69),
        (errors.NotWritten("x"), 74),
        (errors.Temporary("x"), 75),
        (errors.AlreadyListening("x"), 75),
        (errors.Refused("x"), 77),
        (errors.UnsafeSocket("x"), 77),
        (SettingError("x"), 64),
        (DirenvError("x"), 69),
        (SidecarError("absent", "x"), 69),
        (SidecarError("protocol", "x"), 69),
        (SidecarError("silent", "x"), 75),
        (SidecarError("closed", "x"), 75),
        (SidecarError("unsafe", "x"), 77),
        (ValueError("a value"), 70),
    ],
)
def test_exit_codes(error: Exception, code: int) -> None:
    """Each class of error has its exit code, and one line."""
    found, line = told(error)

    assert found == code
    assert "\n" not in line
    assert "a value" not in line


BUG = (
    "import sys; from envwatch import __main__, cli;"
    " cli.cli.callback = lambda: [][1];"
    " sys.exit(__main__.main(['status']))"
)


@one_version
def test_bug(person: Person) -> None:
    """A bug is one line without a traceback: exit code 70."""
    person.python(BUG, folder=person.world.top).said(70, "IndexError", "ENVWATCH_DEBUG")


@one_version
def test_bug_with_its_traceback(person: Person) -> None:
    """ENVWATCH_DEBUG=1 shows where the bug is."""
    person.environ["ENVWATCH_DEBUG"] = "1"

    ended = person.python(BUG, folder=person.world.top)

    assert ended.code == 70
    assert "Traceback" in ended.err


@one_version
def test_interrupt(person: Person) -> None:
    """Ctrl-C ends a command without a traceback: exit code 130."""
    mark = person.world.path("asked")
    slow = person.world.write("slow", f"#!/bin/sh\n: >{mark}\nexec sleep 60\n")
    slow.chmod(0o755)
    process = person.start("status", environ={"ENVWATCH_DIRENV": str(slow)})
    until("direnv is asked", mark.exists)

    process.send_signal(signal.SIGINT)
    ended = person.ended(process)

    assert ended.code == 130
    assert ended.err.strip() == ""


@one_version
def test_nobody_reads(person: Person) -> None:
    """When the reader has gone the command ends in silence: exit code 141."""
    process = person.start("--help")
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None

    said = process.stderr.read()
    process.stderr.close()

    assert process.wait(30) == 141
    assert said == b""


def test_completes_paths_of_commands() -> None:
    """Completion sees the same commands as the help text."""
    context = click.Context(cli)

    assert cli.list_commands(context) == list(COMMANDS)
    assert cli.get_command(context, "os") is None


def test_an_output_that_cannot_be_written_is_told() -> None:
    """A full disk is no bug of ours: one line, and its own exit code."""
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "envwatch", "--version"],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert ended.returncode == 74
    assert ended.stderr.count(b"\n") == 1
    assert b"cannot write the output" in ended.stderr
