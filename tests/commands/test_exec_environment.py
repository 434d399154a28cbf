"""`envwatch exec` as a real process: what the program has."""

from __future__ import annotations

import socket as sockets
import subprocess
import sys

import pytest

from tests.conftest import OLDER
from tests.support import reference
from tests.support.daemons import until
from tests.support.persons import Person
from tests.support.planted import exports, secret
from tests.support.programs import COMMAND, NAMES, names

one_version = pytest.mark.parametrize("version", [OLDER], indirect=True)


def test_environment(alone: Person) -> None:
    """The program has the workspace's environment, and the caller's folder."""
    alone.world.envrc("w", exports("FOO") + "PATH_add bin\n")
    bin_folder = alone.world.path("w/bin")
    script = f'test "$FOO" = \'{secret("FOO")}\' && echo "$PATH" && pwd -P'

    ended = alone.run("exec", alone.world.path("w"), "sh", "-c", script, folder="/usr")

    assert ended.code == 0
    path, folder = ended.lines
    assert path.startswith(f"{bin_folder}:")
    assert folder == "/usr"
    assert ended.err == f"direnv: loading {alone.world.path('w')}/.envrc\n"


def test_command_is_looked_up_in_the_workspace(alone: Person) -> None:
    """A tool that the workspace puts on PATH is found, and knows its name."""
    alone.world.envrc("w", exports("FOO") + "PATH_add bin\n")
    tool = alone.world.write("w/bin/tool", '#!/bin/sh\necho "$@"\n')
    tool.chmod(0o755)

    ended = alone.run("exec", alone.world.path("w"), "tool", "a b", "", "--", "-x")

    assert (ended.code, ended.out) == (0, "a b  -- -x\n")


def test_no_root_file(alone: Person) -> None:
    """Without a root file the program is run, and nothing is said."""
    ended = alone.run("exec", alone.world.folder("plain"), "sh", "-c", "exit 7")

    assert ended == (7, "", "")


def test_no_root_file_and_no_direnv(alone: Person) -> None:
    """What would need no direnv does not miss it."""
    environ = {"PATH": "/nowhere", "ENV": "x", "BASH_ENV": "x"}
    program = [sys.executable, "-c", NAMES]

    ended = alone.run("exec", alone.world.folder("p"), *program, environ=environ)

    assert {"ENV", "BASH_ENV", "DIRENV_DIFF"}.isdisjoint(names(ended))
    assert ended.err == ""


def test_reserved_names(alone: Person) -> None:
    """Forged DSH_TOKEN, BASH_ENV and ENV reach a protected program in no form."""
    alone.world.envrc("w", exports("DSH_TOKEN", "BASH_ENV", "ENV", "FOO"))
    code = f"{NAMES}; import kernel_client.gzenv as g; "
    code += 'print(*g.decode(os.environ["DIRENV_DIFF"])["n"], sep="\\n")'
    environ = {"DSH_HOST": "h", "BASH_ENV": "/nowhere"}

    ended = alone.run(
        *("exec", "--protect", "DSH_", "--", alone.world.path("w")),
        *(sys.executable, "-c", code),
        environ=environ,
    )

    assert {"DSH_TOKEN", "BASH_ENV", "ENV"}.isdisjoint(names(ended))
    assert {"DSH_HOST", "FOO"} <= names(ended)


@pytest.mark.parametrize(
    ("options", "value"),
    [
        ([], "forged"),
        (["--protect=HOST_"], "host's"),
        (["--protect", "X", "--protect", "HOST_"], "host's"),
        (["--keep", "HOST_KEY"], "host's"),
        (["--clear", "HOST_"], ""),
        (["--clear", "HOST_", "--keep=HOST_KEY"], "host's"),
    ],
)
@one_version
def test_whose_value(alone: Person, options: list[str], value: str) -> None:
    """Each option as it is on the command line."""
    alone.world.envrc("w", exports("FOO") + "export HOST_KEY=forged\n")
    program = ("sh", "-c", 'printf %s "$HOST_KEY"')
    environ = {"HOST_KEY": "host's"}

    ended = alone.run(
        "exec", *options, "--", alone.world.path("w"), *program, environ=environ
    )

    assert (ended.code, ended.out) == (0, value)


def test_caller_in_another_workspace(alone: Person) -> None:
    """What another workspace has loaded into the caller is taken back first."""
    alone.world.envrc("other", exports("FOO", "KEEP", "DSH_KEY"))
    alone.world.envrc("w", exports("BAR"))
    said = reference.run(
        alone.world.direnv,
        "export",
        "json",
        environ={**alone.world.environ, "DSH_KEY": "host's"},
        folder=str(alone.world.path("other")),
    )
    environ = reference.applied(alone.world.environ, said.changes or {})
    program = ("sh", "-c", 'echo "$KEEP ${FOO-none} $DSH_KEY $DIRENV_DIR"')

    ended = alone.run(
        *("exec", "--protect", "DSH_", alone.world.path("w"), *program),
        environ=environ,
    )

    assert ended.out == f"kept none host's -{alone.world.path('w')}\n"


@one_version
def test_link_to_a_workspace(alone: Person) -> None:
    """A folder is what it is without links, as a shell that stands in it has it."""
    alone.world.envrc("w", exports("FOO"))
    alone.world.path("link").symlink_to("w")

    ended = alone.run("exec", "link", "sh", "-c", 'echo "$DIRENV_FILE"')

    assert ended.out == f"{alone.world.path('w')}/.envrc\n"


@one_version
@pytest.mark.parametrize("sidecar", [None, "auto", "listening"])
def test_kept_diff(attended: Person, sidecar: str | None) -> None:
    """The second program gets what the sidecar keeps; no evaluation is made."""
    marks = attended.world.path("marks")
    attended.world.envrc("w", f"{exports('FOO')}echo >>{marks}\n")
    environ = {"ENVWATCH_SIDECAR": sidecar}

    for _ in range(3):
        ended = attended.run("exec", attended.world.path("w"), "true", environ=environ)
        assert ended.code == 0, ended.err

    assert marks.read_text() == "\n"


@one_version
def test_protected_names_that_are_withheld(attended: Person) -> None:
    """Programs whose protected values differ share one evaluation, and keep them."""
    marks = attended.world.path("marks")
    attended.world.envrc("w", f'{exports("FOO")}echo "$DSH_CALL" >>{marks}\n')
    program = ("exec", "--protect=DSH_", "w", "sh", "-c", 'echo "$DSH_CALL"')

    for call in ("1", "2", "3"):
        environ = {"DSH_CALL": call, "ENVWATCH_WITHHELD": "DSH_*"}
        assert attended.run(*program, environ=environ).out == f"{call}\n"

    assert marks.read_text() == "\n"


@one_version
@pytest.mark.parametrize("said", ["auto", "listening", "off"])
def test_starts_no_sidecar(person: Person, said: str) -> None:
    """Nothing is left behind by a program's start."""
    person.world.envrc("w", exports("FOO"))
    person.environ["ENVWATCH_SIDECAR"] = said
    code = (
        "import sys; from kernel_client import sidecar;"
        " sidecar.start = lambda *_: open('started', 'w');"
        " from envwatch.__main__ import main;"
        " sys.exit(main(['exec', 'w', 'true']))"
    )

    assert person.python(code, folder=person.world.top).code == 0

    assert not person.world.path("started").exists()


@one_version
def test_starts_the_sidecar_that_is_named(person: Person) -> None:
    """A path in ENVWATCH_SIDECAR is the person's word."""
    person.world.envrc("w", exports("FOO"))
    mark = person.world.path("mark")
    command = person.world.write("start", f'#!/bin/sh\necho "$1" >{mark}\n')
    command.chmod(0o755)

    ended = person.run(
        *("exec", person.world.path("w"), "true"),
        environ={"ENVWATCH_SIDECAR": str(command)},
    )

    assert ended.code == 0
    until("it is started", lambda: mark.exists() and mark.read_text() == "serve\n")


@one_version
@pytest.mark.parametrize("is_open", [True, False])
def test_inherited_descriptor(alone: Person, *, is_open: bool) -> None:
    """ENVWATCH_FD is for a kernel: it goes on to the program, open or closed."""
    alone.world.envrc("w", exports("FOO"))
    ours, theirs = sockets.socketpair()
    script = 'echo "$ENVWATCH_FD"; test -S "/proc/self/fd/$ENVWATCH_FD" && echo open'
    with ours, theirs:
        ended = subprocess.run(
            [COMMAND, "exec", alone.world.path("w"), "sh", "-c", script],
            env={**alone.environ, "ENVWATCH_FD": str(theirs.fileno())},
            pass_fds=[theirs.fileno()] if is_open else [],
            capture_output=True,
            text=True,
            check=False,
        )
        ours.settimeout(0)
        with pytest.raises(BlockingIOError):
            ours.recv(1)
    assert ended.stdout.split() == [str(theirs_number(ended)), *["open"] * is_open]


def theirs_number(ended: subprocess.CompletedProcess[str]) -> int:
    """Give the number that the program was told."""
    return int(ended.stdout.split()[0])


def test_descriptors(attended: Person) -> None:
    """Nothing of ours is open in the program."""
    attended.world.envrc("w", exports("FOO"))
    attended.environ["ENVWATCH_SIDECAR"] = "listening"

    for _ in range(2):
        ended = attended.run("exec", attended.world.path("w"), "ls", "/proc/self/fd")
        # 3 is the folder that ls itself reads.
        assert ended.lines == ["0", "1", "2", "3"]


def test_switched_off(alone: Person) -> None:
    """With ENVWATCH_EXEC=off the program runs as if it were not wrapped."""
    alone.world.envrc("w", exports("FOO"), allow=False)
    environ = {"ENVWATCH_EXEC": "off", "ENV": "mine"}

    ended = alone.run("exec", "w", sys.executable, "-c", NAMES, environ=environ)

    assert "ENV" in names(ended)
    assert "FOO" not in names(ended)
    assert ended.err == ""


def test_direnv_is_a_setting(alone: Person) -> None:
    """ENVWATCH_DIRENV names direnv, where PATH has none."""
    alone.world.envrc("w", exports("FOO"))
    environ = {"PATH": "/usr/sbin:/bin", "ENVWATCH_DIRENV": alone.world.direnv}

    ended = alone.run("exec", "w", sys.executable, "-c", NAMES, environ=environ)

    assert "FOO" in names(ended)


@one_version
@pytest.mark.parametrize(
    ("given", "had"),
    [
        ({}, set()),
        ({"LC_CTYPE": "C"}, {"LC_CTYPE=C"}),
        ({"LC_CTYPE": "C.UTF-8"}, {"LC_CTYPE=C.UTF-8"}),
        ({"LC_ALL": "C"}, {"LC_ALL=C"}),
        ({"LC_ALL": ""}, {"LC_ALL="}),
        ({"LC_ALL": "", "LC_CTYPE": "C"}, {"LC_ALL=", "LC_CTYPE=C"}),
        ({"LANG": "C.UTF-8"}, {"LANG=C.UTF-8"}),
    ],
)
def test_locale(alone: Person, given: dict[str, str], had: set[str]) -> None:
    """What Python does to its own environment in the C locale is not handed on."""
    environ = {"LANG": None, **given}

    ended = alone.run("exec", alone.world.folder("p"), "env", environ=environ)

    found = {line for line in ended.lines if line.startswith(("LC_", "LANG="))}
    assert found == had


@one_version
@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_closed_streams(attended: Person, closed: str) -> None:
    """A closed stream is closed in the program too, and no line goes astray."""
    attended.world.envrc("w", exports("FOO") + "echo said\n")
    environ = {**attended.environ, "ENVWATCH_SIDECAR": "listening"}
    found = attended.world.path("found")
    look = f"for n in 0 1 2; do test -e /proc/$$/fd/$n && echo $n >>{found}; done; :"
    start = ["sh", "-c", f'exec "$@" {closed}', "sh", COMMAND, "exec"]
    for _ in range(2):  # with an evaluation, and with what is kept of it
        found.write_text("")
        subprocess.run(
            [*start, str(attended.world.path("w")), "sh", "-c", look],
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
        )
        is_closed = {word[0] for word in closed.split()}
        assert set(found.read_text().split()) == {"0", "1", "2"} - is_closed


def test_what_the_file_says_is_shown(alone: Person) -> None:
    """As it says it, on stderr; stdout is the program's alone."""
    alone.world.envrc("w", exports("FOO") + "echo one; echo two >&2; source_up\n")

    ended = alone.run("exec", "w", "echo", "out")

    assert ended.out == "out\n"
    assert [line for line in ended.err.splitlines() if "loading" not in line] == [
        "one",
        "two",
        "direnv: No ancestor .envrc found",
    ]
