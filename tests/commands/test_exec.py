"""`envwatch exec` as a real process: what is refused, and how it is called."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable

import pytest

from envwatch import execution
from envwatch.order import UsageError, parsed
from kernel_client import gzenv
from tests.conftest import OLDER
from tests.support.persons import Person
from tests.support.planted import PLANTED, exports
from tests.support.programs import COMMAND

one_version = pytest.mark.parametrize("version", [OLDER], indirect=True)


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


UNSPELLED = [
    os.fsdecode(b"zz\xe9"),  # direnv's JSON has another path than we do
    os.fsdecode(b"\xe2\x82"),
    "a\nb",  # and so has the text of 2.32's status
]


@pytest.mark.parametrize("folder", UNSPELLED, ids=ascii)
@pytest.mark.parametrize("name", [".envrc", ".env"])
def test_refused_where_direnv_spells_the_path_otherwise(
    alone: Person, name: str, folder: str
) -> None:
    """A folder that JSON cannot name is refused as any other, and runs as any other."""
    world = alone.world
    if name == ".env":
        world.toml("[global]\nload_dotenv = true\n")
    canary = world.path("canary")
    path = world.write(f"{folder}/{name}", f"FOO={PLANTED}\n")

    def run() -> int:
        ended = alone.run("exec", path.parent, "/usr/bin/touch", canary)
        assert canary.exists() is (ended.code == 0), ended.err
        return ended.code

    assert run() == 10
    if world.is_newer:
        world.deny(folder)
        assert run() == 12
    world.allow(folder)
    assert run() == 0


@one_version
def test_refused_without_direnv_for_a_dotenv(alone: Person) -> None:
    """Nobody can tell whether `load_dotenv` is on where it is mentioned."""
    world = alone.world
    path = world.write("w/.env", "FOO=1\n")
    alone.environ["PATH"] = "/nowhere"
    assert alone.run("exec", path.parent, "/usr/bin/true").code == 0
    world.toml("[global]\nload_dotenv = true\n")
    alone.run("exec", path.parent, "/usr/bin/true").said(69, str(path), "no direnv")
    alone.environ["HOME"] = ""
    alone.environ["XDG_CONFIG_HOME"] = ""
    assert alone.run("exec", path.parent, "/usr/bin/true").code == 0


@pytest.mark.parametrize("above", [False, True])
def test_refused_where_direnv_does_not_say_what_counts(
    alone: Person, *, above: bool
) -> None:
    """A `.env` beside a direnv.toml that cannot be read; nor does one above it load."""
    world = alone.world
    path = world.write("w/in/.env", "FOO=1\n")
    if above:
        world.envrc("w", exports("FOO"))
    world.toml("this is no toml")
    canary = world.path("canary")
    ended = alone.run("exec", path.parent, "/usr/bin/touch", canary)
    ended.said(17, str(path), "direnv status")
    assert not canary.exists()
    world.toml("")
    assert alone.run("exec", path.parent, "/usr/bin/touch", canary).code == 0
    assert canary.exists()


@pytest.fixture
def latin(alone: Person) -> Person:
    """Give a person whose locale has another encoding than UTF-8."""
    made = alone.world.folder("locales")
    command = ["localedef", "-i", "en_US", "-f", "ISO-8859-1", str(made / "xx_XX")]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no locale can be made here")
    alone.environ.update(LOCPATH=str(made), LC_ALL="xx_XX")
    return alone


@one_version
def test_another_encoding_is_refused(latin: Person) -> None:
    """direnv's JSON is UTF-8; what it names would be other files and values here."""
    world = latin.world
    world.envrc("w\u00e9", exports("FOO"))
    world.folder("empty")
    run = ["/bin/sh", "-c", "echo ran"]
    latin.run("exec", world.path("w\u00e9"), *run).said(69, "UTF-8", "was not run")
    assert latin.run("exec", world.path("empty"), *run).out == "ran\n"
    given = {"DIRENV_DIFF": gzenv.encode({"p": {"A": "\u00e9"}, "n": {}})}
    given["DIRENV_FILE"] = "/v/.envrc"
    ended = latin.run("exec", world.path("empty"), *run, environ=given)
    ended.said(69, "UTF-8", "was not run")


@one_version
def test_another_encoding_loads_nothing(latin: Person) -> None:
    """A kernel there is off, and says so once."""
    latin.world.envrc("w", exports("FOO"))
    code = (
        "import kernel_client\n"
        "for _ in range(2): print(kernel_client.refresh().outcome)"
    )
    ended = latin.python(code, folder=latin.world.path("w"))
    assert ended.lines == ["off", "off"]
    ended.said(0, "UTF-8")


def test_refused_where_direnv_finds_nothing(alone: Person) -> None:
    """A root file that direnv does not see is one that nobody has allowed."""
    world = alone.world
    path = world.write("w/.envrc", exports("FOO"))
    state = '{"state": {"foundRC": {"path": "/w/.envrc", "allowed": 0}}}'
    script = f"#!/bin/sh\n[ $1 != status ] || echo '{state}'\n"
    silent = world.write("bin/direnv", script)
    silent.chmod(0o755)
    canary = world.path("canary")
    alone.environ["ENVWATCH_DIRENV"] = str(silent)

    ended = alone.run("exec", path.parent, "/usr/bin/touch", canary)

    assert (ended.code, canary.exists()) == (17, False), ended.err


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
        (["", "true"], "DIR must not be empty"),
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
