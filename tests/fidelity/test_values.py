"""Values and names of every kind (DIRENV.md cases 13, 22, 24)."""

from __future__ import annotations

import os
import subprocess

import pytest

from kernel_client import Client
from kernel_client.outcome import LOST
from tests.support.pairs import Pair, settings_of
from tests.support.planted import PLANTED, exports, secret

TEXTS = {
    "newline": "a\nb\n",
    "tab": "a\tb",
    "ansi": "\x1b[31mred\x1b[0m",
    "emoji": "🎉 ünïcödé",
    "line separator": "a\u2028b",
    "html": "<a href='x'>&</a>",
    "quotes": "\"'`$\\",
    "equals": "a=b=c",
    "trailing spaces": "  a  ",
    "bell": "\x07\x01\x7f",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_text(pair: Pair, text: str) -> None:
    """Text of every kind arrives exactly."""
    pair.world.write("w/value", PLANTED + text + "|")
    pair.world.envrc("w", 'export FOO="$(cat value)"\n')

    pair.step("w", outcome="loaded")

    assert pair.environ["FOO"] == PLANTED + text + "|"


def test_empty(pair: Pair) -> None:
    """An empty value is a value: set, kept, put back."""
    pair.set("EMPTY", "")
    pair.world.envrc("w", f"export FOO=\nexport KEEP=\nexport EMPTY='{secret('E')}'\n")
    pair.step("w", outcome="loaded")
    assert (pair.environ["FOO"], pair.environ["KEEP"]) == ("", "")

    pair.step("", outcome="unloaded")

    assert pair.environ["EMPTY"] == ""


def test_bytes_that_are_not_text(pair: Pair) -> None:
    """Bytes that a file exports and that are not UTF-8 are replaced by direnv."""
    pair.world.envrc("w", f"export FOO=$'{PLANTED}\\xff\\xfe'\n")

    pair.step("w", outcome="loaded")

    assert pair.environ["FOO"] == f"{PLANTED}\ufffd\ufffd"


def test_callers_bytes_that_are_not_text(pair: Pair) -> None:
    """A variable of the caller's that is not UTF-8 stays as it is.

    Deliberate (DESIGN 4): direnv hands back each bad byte as U+FFFD although the
    file never touched the variable, and its original is lost for ever (case 24).
    """
    pair.set("BYTES", "caf\udce9")
    pair.world.envrc("w", exports("FOO"))
    pair.go("w")

    pair.shell.prompt()
    assert pair.shell.environ["BYTES"] == "caf\ufffd"

    result = pair.kernel.refresh()
    assert result.outcome == "loaded"
    assert result.set_names == ("FOO",)
    assert pair.environ["BYTES"] == "caf\udce9"
    pair.go("")
    pair.kernel.refresh()
    assert pair.environ == {**pair.world.environ, "BYTES": "caf\udce9"}


def test_callers_name_that_is_not_text(pair: Pair) -> None:
    """A variable whose name is not UTF-8 stays as it is too."""
    pair.kernel.environ["N\udcff"] = "x"
    pair.world.envrc("w", exports("FOO"))
    pair.go("w")

    assert pair.kernel.refresh().outcome == "loaded"
    assert pair.environ["N\udcff"] == "x"


def test_shell_functions(pair: Pair) -> None:
    """Exported functions are never set or removed by direnv."""
    pair.set("BASH_FUNC_mine%%", "() {  echo mine\n}")
    pair.world.envrc(
        "w", f"theirs() {{ :; }}\nexport -f theirs\nunset -f mine\n{exports('FOO')}"
    )

    assert pair.step("w", outcome="loaded").result.set_names == ("FOO",)
    assert pair.environ["BASH_FUNC_mine%%"] == "() {  echo mine\n}"


@pytest.mark.parametrize("name", ["a.b", "a-b", "a b", "1A", "ÄÖ"])
def test_names_that_no_shell_could_set(pair: Pair, name: str) -> None:
    """Names that bash cannot have survive untouched."""
    pair.set(name, "kept")
    pair.world.envrc("w", exports("FOO"))
    pair.step("w", outcome="loaded")
    assert pair.environ[name] == "kept"

    pair.step("", outcome="unloaded")


@pytest.mark.parametrize("size", [100_000, 131_000])
def test_long_value(pair: Pair, size: int) -> None:
    """A value that is just short enough for a program is loaded as direnv has it."""
    pair.world.envrc(
        "w", f"export FOO='{PLANTED}'$(head -c {size} /dev/zero | tr '\\0' x)\n"
    )

    pair.step("w", outcome="loaded", messages=size < 131_000)


def test_value_that_is_too_long_for_bash(pair: Pair) -> None:
    """With a value of 128 KiB bash cannot start `direnv dump`: no variable arrives."""
    pair.world.envrc("w", exports("KEEP"))
    pair.step("w", outcome="loaded")
    pair.world.envrc(
        "w", f"export FOO='{PLANTED}'$(head -c 140000 /dev/zero | tr '\\0' x)\n"
    )

    pair.step(outcome="degraded", own=(f"envwatch: {LOST}",))

    assert pair.environ["KEEP"] == "kept"
    pair.step(outcome="unchanged")


def test_difference_that_would_break_every_program(pair: Pair) -> None:
    """A DIRENV_DIFF over 128 KiB is refused whole; the hook breaks every exec.

    Deliberate (DESIGN 4 and 9.7, case 22): two values that fit make a DIRENV_DIFF
    that does not, and with it in the environment nothing can be started.
    """
    random = "$(head -c 80000 /dev/urandom | base64 -w0)"
    pair.world.envrc(
        "w", f"export A='{PLANTED}'{random}\nexport B='{PLANTED}'{random}\n"
    )
    base = dict(pair.environ)
    pair.go("w")

    pair.shell.prompt()
    with pytest.raises(OSError, match="Argument list too long"):
        subprocess.run(["/bin/true"], env=pair.shell.environ, check=False)

    result = pair.kernel.refresh()
    assert result.outcome == "degraded"
    assert "DIRENV_DIFF" in result.messages[-1]
    left = {name for name in pair.environ if pair.environ[name] != base.get(name)}
    assert left <= {"DIRENV_DIR", "DIRENV_FILE", "DIRENV_WATCHES", "DIRENV_DIFF"}
    assert subprocess.run(["/bin/true"], env=pair.environ, check=False).returncode == 0
    assert pair.kernel.refresh().outcome == "unchanged"


def test_many_variables(pair: Pair) -> None:
    """A thousand variables arrive and go."""
    pair.world.envrc("w", exports(*(f"V{number}" for number in range(1000))))

    assert len(pair.step("w", outcome="loaded").result.set_names) == 1000
    pair.step("", outcome="unloaded")


@pytest.mark.parametrize(
    "name",
    ["LD_PRELOAD", "PYTHONPATH", "IFS", "TMPDIR", "DIRENV_LOG_FORMAT", "DIRENV_MINE"],
)
def test_names_with_a_meaning(pair: Pair, name: str) -> None:
    """Names that mean something to programs are exported as any other."""
    value = str(pair.world.folder("t")) if name == "TMPDIR" else ""
    pair.world.envrc("w", f"{exports('FOO')}export {name}='{value}'\n")

    pair.step("w", outcome="loaded", messages=name != "DIRENV_LOG_FORMAT")

    assert pair.environ[name] == value
    pair.step("", outcome="unloaded", messages=name != "DIRENV_LOG_FORMAT")


@pytest.mark.parametrize(
    "name", ["PS1", "SHLVL", "OLDPWD", "SHELL", "COMP_WORDBREAKS", "__fish_x"]
)
def test_ignored_names(pair: Pair, name: str) -> None:
    """Names that direnv ignores are neither set nor taken back (case 37)."""
    pair.set(name, "7")
    pair.world.envrc("w", f"{exports('FOO')}export {name}='{secret('no')}'\n")

    pair.step("w", outcome="loaded")

    assert pair.environ[name] == "7"


def test_forged_state(pair: Pair) -> None:
    """A file cannot forge where it was loaded from (case 37)."""
    pair.world.envrc(
        "w", f"{exports('FOO')}export DIRENV_FILE=/x DIRENV_DIR=-/x DIRENV_DIFF=x\n"
    )

    pair.step("w", outcome="loaded")

    assert pair.environ["DIRENV_FILE"] == str(pair.world.path("w/.envrc"))


def test_callers_withheld_name(pair: Pair) -> None:
    """A per-session name is not seen by the file, which the hook would show it.

    Deliberate (DESIGN 5): one kernel's value must not reach another by a shared
    answer.
    """
    pair.set("JPY_PARENT_PID", "4711")
    pair.world.envrc(
        "w", f'{exports("FOO")}export SEEN="{PLANTED}${{JPY_PARENT_PID-none}}"\n'
    )
    pair.go("w")

    pair.shell.prompt()
    assert pair.shell.environ["SEEN"] == f"{PLANTED}4711"

    pair.kernel.refresh()
    assert pair.environ["SEEN"] == f"{PLANTED}none"
    assert pair.environ["JPY_PARENT_PID"] == "4711"


@pytest.mark.parametrize("had", [None, "4711"])
def test_file_sets_a_withheld_name(pair: Pair, had: str | None) -> None:
    """A file that sets a per-session name gets an evaluation of the kernel's own."""
    if had is not None:
        pair.set("JPY_SESSION", had)
    pair.world.envrc("w", f"{exports('FOO')}export JPY_SESSION='{secret('j')}'\n")

    pair.step("w", outcome="loaded", alone=True, messages=False)

    assert pair.environ["JPY_SESSION"] == secret("j")
    pair.step("", outcome="unloaded")
    assert pair.environ.get("JPY_SESSION") == had


def test_environ_itself(pair: Pair) -> None:
    """With the process's own environ, whole and byte for byte, it is the same."""
    saved = dict(os.environb)
    pair.world.envrc("w", f"{exports('FOO', 'KEEP')}export U='ü{PLANTED}'\n")
    pair.go("w")
    os.environ.clear()
    os.environ.update(pair.world.environ)
    try:
        said: list[str] = []
        client = Client(output=said.append, settings=settings_of(pair.socket))
        assert client.refresh().outcome == "loaded"
        assert client.refresh().outcome == "unchanged"
        loaded = dict(os.environ)
        os.chdir(pair.world.top)
        assert client.refresh().outcome == "unloaded"
        left = dict(os.environ)
        client.close()
    finally:
        os.environb.clear()
        os.environb.update(saved)
    pair.shell.environ = dict(pair.world.environ)
    pair.go("w")
    pair.shell.prompt()
    assert loaded == pair.shell.environ
    assert left == pair.world.environ
