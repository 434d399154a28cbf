"""`envwatch exec` as a real process: what is run, what is refused, what passes."""

from __future__ import annotations

import signal
import socket as sockets
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from envwatch import execution
from envwatch.execution import UsageError, parsed
from tests.conftest import OLDER
from tests.support import reference
from tests.support.daemons import until
from tests.support.persons import CHECKOUT, Ended, Person
from tests.support.planted import PLANTED, exports, secret

one_version = pytest.mark.parametrize("version", [OLDER], indirect=True)

COMMAND = str(Path(sys.executable).parent / "envwatch")
NAMES = 'import os; print(*sorted(os.environ), sep="\\n")'


@pytest.fixture
def alone(person: Person) -> Person:
    """Give a person without a sidecar, who starts none."""
    person.environ["ENVWATCH_SIDECAR"] = "off"
    return person


def names(ended: Ended) -> set[str]:
    """Give the names that the program printed."""
    assert ended.code == 0, ended.err
    return set(ended.lines)


# ------------------------------------------------------------------ refused


def blocked_new(person: Person) -> None:
    """Never allowed."""
    person.world.envrc("w", exports("FOO"), allow=False)


def blocked_changed(person: Person) -> None:
    """Changed since it was allowed."""
    person.world.envrc("w", exports("FOO"))
    person.world.envrc("w", exports("FOO", "BAR"), allow=False)


def denied(person: Person) -> None:
    """The person said no; with 2.32 that only takes the approval away."""
    person.world.envrc("w", exports("FOO"))
    person.world.deny("w")


def failed(person: Person) -> None:
    """Ends with an error."""
    person.world.envrc("w", exports("FOO") + "exit 3\n")


def degraded(person: Person) -> None:
    """A value that no program can be started with."""
    person.world.envrc(
        "w", f"export FOO='{PLANTED}'$(head -c 140000 /dev/zero | tr '\\0' x)\n"
    )


def slow(person: Person) -> None:
    """Runs for longer than an evaluation may."""
    person.environ["ENVWATCH_KILL_S"] = "0.5"
    person.world.envrc("w", exports("FOO") + "sleep 60\n")


def held(person: Person) -> None:
    """Runs for longer than somebody waits."""
    person.environ["ENVWATCH_WAIT_S"] = "0.5"
    person.world.envrc("w", exports("FOO") + "sleep 60\n")


def broken(person: Person) -> None:
    """A direnv.toml that direnv cannot read."""
    person.world.envrc("w", exports("FOO"))
    person.world.toml("this is no toml")


def no_direnv(person: Person) -> None:
    """There is none."""
    person.world.envrc("w", exports("FOO"))
    person.environ["PATH"] = "/nowhere"


REFUSED: list[tuple[Callable[[Person], None], int, str]] = [
    (blocked_new, 10, "is blocked: it was never allowed"),
    (blocked_changed, 11, "is blocked: it has changed since it was allowed"),
    (denied, 12, "is denied"),
    (failed, 14, "failed (exit status 3)"),
    (degraded, 15, "loses variables (direnv could not pass on"),
    (slow, 16, "took too long (the evaluation was ended after 0.5 s)"),
    (held, 16, "is not evaluated after 0.5 s)"),
    (broken, 17, "cannot be loaded (direnv could not work"),
    (no_direnv, 69, "cannot be loaded (no direnv on PATH)"),
]
IDS = [prepare.__name__ for prepare, _, _ in REFUSED]


@pytest.mark.parametrize(("prepare", "code", "words"), REFUSED, ids=IDS)
def test_refused(
    alone: Person, prepare: Callable[[Person], None], code: int, words: str
) -> None:
    """The program is not run; one line of envwatch's says why, with its own code."""
    canary = alone.world.path("canary")
    prepare(alone)
    if prepare is denied and not alone.world.is_newer:
        code, words = 10, "is blocked"  # its approval has gone, and no more is known

    ended = alone.run("exec", alone.world.path("w"), "/usr/bin/touch", canary)

    assert not canary.exists()
    assert ended.code == code, ended.err
    assert ended.out == ""
    *others, line = ended.err.splitlines()
    assert line.startswith("envwatch: ")
    assert line.endswith("; /usr/bin/touch was not run")
    assert str(alone.world.path("w/.envrc")) in line
    assert words in line
    assert "direnv allow" not in ended.err
    if prepare is not degraded:  # where bash itself says what it could not start
        assert all(line.startswith("direnv: loading ") for line in others), others


@pytest.mark.parametrize(("prepare", "code", "words"), REFUSED[:5], ids=IDS[:5])
def test_refused_through_the_sidecar(
    attended: Person, prepare: Callable[[Person], None], code: int, words: str
) -> None:
    """The same with a sidecar, the second time from what it keeps."""
    canary = attended.world.path("canary")
    attended.environ["ENVWATCH_SIDECAR"] = "listening"
    prepare(attended)
    if prepare is denied and not attended.world.is_newer:
        code, words = 10, "is blocked"

    for _ in range(2):
        ended = attended.run("exec", attended.world.path("w"), "touch", canary)

        assert ended.code == code, ended.err
        assert words in ended.err.splitlines()[-1]
    assert not canary.exists()


# ------------------------------------------------------------------ what is run


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


# ------------------------------------------------------------------ in place


@one_version
def test_same_process(alone: Person) -> None:
    """The program has the pid that the caller started."""
    alone.world.envrc("w", exports("FOO"))
    process = alone.start("exec", "w", "sh", "-c", "echo $$")

    ended = alone.ended(process)

    assert ended.out == f"{process.pid}\n"


@one_version
def test_stdin(alone: Person) -> None:
    """The program reads all of stdin; the `.envrc` reads none of it."""
    alone.world.envrc("w", exports("FOO") + "cat >got\n")

    ended = subprocess.run(
        [COMMAND, "exec", alone.world.path("w"), "cat"],
        env=alone.environ,
        input=b"a\nb\n",
        capture_output=True,
        check=True,
    )

    assert ended.stdout == b"a\nb\n"
    assert alone.world.path("w/got").read_bytes() == b""


@one_version
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_signal_reaches_the_program(alone: Person, number: signal.Signals) -> None:
    """A signal to the pid is the program's to handle."""
    alone.world.envrc("w", exports("FOO"))
    mark = alone.world.path("ready")
    trap = f"trap 'echo got; exit 5' {number.name[3:]}; : >{mark}; "
    process = alone.start(
        "exec", "w", "bash", "-c", trap + "while :; do sleep .01; done"
    )
    until("the program runs", mark.exists)

    process.send_signal(number)

    assert alone.ended(process)[:2] == (5, "got\n")


@one_version
def test_signal_ends_the_program(alone: Person) -> None:
    """Its end by a signal is what the caller sees."""
    ended = alone.run("exec", alone.world.folder("p"), "sh", "-c", "kill -9 $$")

    assert ended.code == -signal.SIGKILL


@one_version
def test_dispositions(alone: Person) -> None:
    """Python ignores SIGPIPE and SIGXFSZ; the program does not."""
    alone.world.envrc("w", exports("FOO"))

    ended = alone.run("exec", "w", "grep", "^SigIgn", "/proc/self/status")

    assert int(ended.out.split()[1], 16) == 0


@one_version
def test_ignored_signals_stay_ignored(alone: Person) -> None:
    """As under nohup."""
    alone.world.envrc("w", exports("FOO"))
    grep = f"trap '' HUP; exec {COMMAND} exec w grep ^SigIgn /proc/self/status"

    ended = subprocess.run(
        ["sh", "-c", grep],
        cwd=alone.world.top,
        env=alone.environ,
        capture_output=True,
        check=True,
    )

    assert int(ended.stdout.split()[1], 16) == 1 << (signal.SIGHUP - 1)


@one_version
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signal_while_it_loads(alone: Person, number: signal.Signals) -> None:
    """The evaluation ends with us, and the caller sees the signal."""
    mark = alone.world.path("ready")
    alone.world.envrc("w", f"{exports('FOO')}echo $$ >{mark}\nsleep 60\n")
    process = alone.start("exec", "w", "touch", "canary")
    until("the file runs", lambda: mark.exists() and mark.read_text() != "")

    process.send_signal(number)
    process.send_signal(signal.SIGINT)

    ended = alone.ended(process)
    assert ended.code in (-number, -signal.SIGINT)  # whichever Python hears of first
    assert "Traceback" not in ended.err
    assert not alone.world.path("canary").exists()
    bash = int(mark.read_text())
    until("bash has gone", lambda: not Path(f"/proc/{bash}").exists())


# ------------------------------------------------------------------ not started


def test_command_not_found(alone: Person) -> None:
    """127, as in a shell."""
    alone.world.envrc("w", exports("FOO"))

    ended = alone.run("exec", "w", "no-such-command")

    assert ended.code == 127
    assert ended.err.splitlines()[-1] == "envwatch: no-such-command: command not found"


@one_version
@pytest.mark.parametrize("path", ["./text", "w/text", "/usr", "text"])
def test_command_that_may_not_run(alone: Person, path: str) -> None:
    """126, as in a shell: no execute bit, or a folder."""
    alone.world.write("text", "x").chmod(0o644)
    alone.world.write("w/text", "x").chmod(0o644)
    environ = {"PATH": f"{alone.world.top}:/usr/bin"}

    alone.run("exec", alone.world.folder("p"), path, environ=environ).said(
        126, path, "Permission denied"
    )


@one_version
def test_command_that_may_not_run_is_passed_over(alone: Person) -> None:
    """A later folder of PATH may have the one that can."""
    alone.world.write("a/tool", "x").chmod(0o644)
    alone.world.write("b/tool", "#!/bin/sh\necho b\n").chmod(0o755)
    environ = {"PATH": f"{alone.world.path('a')}:{alone.world.path('b')}"}

    ended = alone.run("exec", alone.world.folder("p"), "tool", environ=environ)

    assert ended == (0, "b\n", "")


@one_version
def test_file_that_is_no_program(alone: Person) -> None:
    """126: nobody guesses that it is a script of sh."""
    alone.world.write("text", "echo x\n").chmod(0o755)

    alone.run("exec", alone.world.folder("p"), "./text").said(126, "format error")


@one_version
def test_script_without_its_interpreter(alone: Person) -> None:
    """126, and the line says that the script itself is there."""
    alone.world.write("script", "#!/nowhere/sh\n").chmod(0o755)

    alone.run("exec", alone.world.folder("p"), "./script").said(126, "interpreter")


@one_version
def test_arguments_that_are_too_long(alone: Person) -> None:
    """126: the kernel refuses them, as it would without us."""
    code = (
        "import sys; from envwatch.__main__ import main;"
        " sys.exit(main(['exec', '.', 'true', 'x' * 200_000]))"
    )

    alone.python(code, folder=alone.world.top).said(126, "Argument list too long")


# ------------------------------------------------------------------ command line


@one_version
@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ([], "DIR and CMD are missing"),
        (["--"], "DIR and CMD are missing"),
        (["."], "CMD is missing"),
        (["--protect"], "--protect needs a value"),
        (["--protect", "", ".", "true"], "--protect must not be empty"),
        (["--protect=", ".", "true"], "--protect must not be empty"),
        (["--clear=", ".", "true"], "--clear must not be empty"),
        (["--nonsense", ".", "true"], "no such option: --nonsense"),
        (["--nonsense=x", ".", "true"], "no such option: --nonsense;"),
        (["missing", "true"], "No such file or directory"),
        (["file", "true"], "DIR file is not a folder"),
        (["--", "-missing", "true"], "-missing"),
    ],
)
def test_wrong_command_line(alone: Person, arguments: list[str], word: str) -> None:
    """One line that says what is wrong and where help is: exit code 2."""
    alone.world.write("file", "")

    alone.run("exec", *arguments).said(2, word, "`envwatch exec --help`")


@one_version
@pytest.mark.parametrize(
    "name", ["ENVWATCH_FD", "ENVWATCH_EXEC", "ENVWATCH_SHELL", "ENVWATCH_WAIT_S"]
)
def test_bad_setting(alone: Person, name: str) -> None:
    """A setting that cannot be used is refused: exit code 64."""
    alone.run("exec", ".", "true", environ={name: "maybe"}).said(64, name)


@pytest.mark.parametrize(
    "arguments",
    [
        [
            "--protect",
            "A",
            "--protect=B",
            "--keep",
            "K",
            "--clear",
            "C",
            "/d",
            "x",
            "y",
        ],
        [
            "--protect",
            "A",
            "--protect=B",
            "--keep=K",
            "--clear=C",
            "--",
            "/d",
            "x",
            "y",
        ],
    ],
)
def test_options(arguments: list[str]) -> None:
    """Both ways to write an option, with and without `--`."""
    order = parsed(arguments)

    assert order.rules.protect == ("A", "B")
    assert (order.rules.keep, order.rules.clear) == (("K",), ("C",))
    assert (order.folder, order.argv) == ("/d", ["x", "y"])


def test_options_of_the_program() -> None:
    """What comes after DIR is the program's, whatever it looks like."""
    assert parsed(["/d", "x", "--protect", "--", "-h"]).argv == [
        *("x", "--protect", "--", "-h")
    ]
    assert parsed(["-", "x"]).folder == "-"
    with pytest.raises(UsageError):
        parsed(["-x"])


@one_version
def test_bug(alone: Person) -> None:
    """A bug is one line without a traceback, and the program is not run."""
    code = (
        "import sys; from envwatch import __main__, execution;"
        " execution.parsed = lambda _: [][1];"
        " sys.exit(__main__.main(['exec', '.', 'touch', 'canary']))"
    )

    alone.python(code, folder=alone.world.top).said(70, "IndexError")

    assert not alone.world.path("canary").exists()


@one_version
def test_help_that_nobody_reads(alone: Person) -> None:
    """The help text, as that of every command, may be cut off."""
    piped = f"{COMMAND} exec --help | true; exit ${{PIPESTATUS[0]}}"
    ended = subprocess.run(
        ["bash", "-c", piped], env=alone.environ, capture_output=True, check=False
    )

    assert ended.returncode in (0, 141)
    assert ended.stderr == b""


def test_exit_codes_are_told_apart() -> None:
    """No two refusals have one code, and none is one of the status states' own."""
    codes = [*execution.EXIT_CODES.values(), execution.CHANGED]

    assert len(set(codes)) == len(codes)
    assert 13 not in codes


# ------------------------------------------------------------------ what it costs

HEAVY = ("anyio", "asyncio", "click", "structlog", "watchfiles")
SLOW = ("socket", "ctypes", "hashlib", "json", "re", "enum", "subprocess", "threading")


@one_version
@pytest.mark.parametrize("command", [[COMMAND], [sys.executable, "-m", "envwatch"]])
def test_imports(attended: Person, command: list[str]) -> None:
    """With a kept diff neither click nor anything of the runtime is imported."""
    attended.world.envrc("w", exports("FOO"))
    attended.environ["ENVWATCH_SIDECAR"] = "listening"
    python, *rest = [sys.executable, *command] if command == [COMMAND] else command

    # A test run that is measured imports a lot itself.
    environ = {
        name: value
        for name, value in attended.environ.items()
        if not name.startswith("COVERAGE_")
    }
    said = ""
    for _ in range(2):
        ended = subprocess.run(
            [
                python,
                "-X",
                "importtime",
                *rest,
                "exec",
                attended.world.path("w"),
                "true",
            ],
            cwd=CHECKOUT,
            env=environ,
            capture_output=True,
            text=True,
            check=True,
        )
        said = ended.stderr

    imported = {line.rpartition("|")[2].strip() for line in said.splitlines()}
    assert "kernel_client.sidecar" in imported
    assert imported.isdisjoint((*HEAVY, *SLOW))


@one_version
def test_imports_without_a_sidecar(alone: Person) -> None:
    """Nor where direnv runs here."""
    alone.world.envrc("w", exports("FOO"))
    code = (
        "import os, sys; from envwatch.__main__ import main;"
        "os.execve = lambda *_: sys.exit("
        f"','.join(n for n in {HEAVY!r} if n in sys.modules) or 99);"
        "main(['exec', 'w', 'true'])"
    )

    assert alone.python(code, folder=alone.world.top).code == 99
