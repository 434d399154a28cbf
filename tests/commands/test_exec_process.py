"""`envwatch exec` as a real process: in the place of the caller's child, and its cost."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import OLDER
from tests.support.daemons import until
from tests.support.persons import CHECKOUT, Person
from tests.support.planted import exports
from tests.support.programs import COMMAND

one_version = pytest.mark.parametrize("version", [OLDER], indirect=True)


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


def ignored() -> int:
    """Give the signals that a program ignores which is started from here."""
    command = ["grep", "^SigIgn", "/proc/self/status"]
    ended = subprocess.run(command, capture_output=True, check=True)
    return int(ended.stdout.split()[1], 16)


@one_version
def test_dispositions(alone: Person) -> None:
    """Python ignores SIGPIPE and SIGXFSZ; the program does not."""
    alone.world.envrc("w", exports("FOO"))

    ended = alone.run("exec", "w", "grep", "^SigIgn", "/proc/self/status")

    assert int(ended.out.split()[1], 16) == ignored()


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

    assert int(ended.stdout.split()[1], 16) == ignored() | 1 << (signal.SIGHUP - 1)


@one_version
@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT]
)
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


@one_version
def test_inspecting_python(alone: Person) -> None:
    """PYTHONINSPECT is the program's; it changes neither our code nor our stdin."""
    alone.world.envrc("w", exports("FOO"), allow=False)
    alone.environ["PYTHONINSPECT"] = "1"

    alone.run("exec", "w", "true").said(10, "blocked")
    alone.run("exec", "--odd").said(2, "no such option")
    assert "PYTHONINSPECT=1" in alone.run("exec", alone.world.folder("p"), "env").lines


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
