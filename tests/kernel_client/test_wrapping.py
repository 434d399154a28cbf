"""The argv that hosts get, and that they run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import kernel_client
from kernel_client import CommandError, SettingError, Settings, wrap_argv, wrap_bash
from kernel_client.wrapping import envwatch
from tests.support.planted import exports
from tests.support.worlds import World

COMMAND = str(Path(sys.executable).parent / "envwatch")
ODD = 'it\'s a "$(folder)"; `x` & *'


def test_argv() -> None:
    """The program comes after `--` and the workspace, argument by argument."""
    assert wrap_argv("/w", ["cat", "-n", "a b"]) == [
        COMMAND,
        "exec",
        "--",
        "/w",
        "cat",
        "-n",
        "a b",
    ]


def test_protected_prefixes() -> None:
    """Each prefix is an option of its own, before `--`."""
    argv = wrap_argv(Path("/w"), ["x"], protect=["DSH_", "HOST_"])

    assert argv[1:] == [
        "exec",
        *("--protect", "DSH_"),
        *("--protect", "HOST_"),
        *("--", "/w", "x"),
    ]


def test_bash() -> None:
    """The shell reads no file of its own before the command."""
    shell = ["/bin/bash", "--noprofile", "--norc", "-c", "a | b"]

    assert wrap_bash("/w", "a | b") == [COMMAND, "exec", "--", "/w", *shell]


def test_shell_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which bash is the person's choice, or the host's."""
    monkeypatch.setenv("ENVWATCH_SHELL", "/opt/bash")

    assert "/opt/bash" in wrap_bash("/w", "x")
    assert "/my/bash" in wrap_bash("/w", "x", settings=Settings(shell="/my/bash"))


def test_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """`ENVWATCH_EXEC=off` gives back what was to be wrapped."""
    monkeypatch.setenv("ENVWATCH_EXEC", "off")

    assert wrap_argv("/w", ("x", "y")) == ["x", "y"]
    assert wrap_bash("/w", "x")[0] == "/bin/bash"


def test_relative_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host may run the argv in another folder, so the path is made absolute."""
    monkeypatch.chdir(tmp_path)

    assert wrap_argv("w", ["x"])[3] == str(tmp_path / "w")


def test_nothing_to_wrap() -> None:
    """An argv without a program is a mistake of the host's."""
    with pytest.raises(ValueError, match="no program"):
        wrap_argv("/w", [])


@pytest.mark.parametrize(
    ("workspace", "argv", "protect", "error", "words"),
    [
        ("", ["x"], [], ValueError, "workspace must not be empty"),
        (b"/w", ["x"], [], TypeError, "not bytes"),
        ("/w", ["x"], "DSH_", TypeError, "protect must be a list"),
        ("/w", "x y", [], TypeError, "argv must be a list"),
    ],
)
def test_mistakes_of_a_host(
    workspace: Any, argv: Any, protect: Any, error: type[Exception], words: str
) -> None:
    """What would be taken for something else is refused."""
    with pytest.raises(error, match=words):
        wrap_argv(workspace, argv, protect=protect)


def test_empty_prefix() -> None:
    """An empty prefix would protect every variable there is."""
    with pytest.raises(SettingError, match="prefix must not be empty"):
        wrap_argv("/w", ["x"], protect=[""])


def test_bad_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell that would be looked up on the workspace's PATH is refused."""
    monkeypatch.setenv("ENVWATCH_SHELL", "bash")

    with pytest.raises(SettingError, match="ENVWATCH_SHELL"):
        wrap_bash("/w", "x")


def test_no_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an `envwatch` command there is nothing to wrap with."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))

    assert envwatch(os.environ) is None
    with pytest.raises(CommandError, match="install"):
        wrap_argv("/w", ["x"])


def test_command_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host in another environment uses the command on PATH."""
    command = tmp_path / "envwatch"
    command.touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    monkeypatch.setenv("PATH", f"/nowhere:{tmp_path}")

    assert wrap_argv("/w", ["x"])[0] == str(command)


# direnv 2.32 itself pastes the path into a shell's text, so no `$` and no backtick.
@pytest.mark.parametrize("folder", ["w", "it's ; a & *", "-w", "new\nline"])
def test_real_run(world: World, folder: str) -> None:
    """What a shell would take apart in a path or an argument arrives as it is."""
    world.envrc(folder, exports("FOO") + "export SEEN=yes\n")
    code = 'printf "%s|" "$SEEN" "$0" "$1" "$PWD"'
    environ = {**world.environ, "ENVWATCH_SIDECAR": "off"}

    argv = wrap_argv(world.path(folder), ["bash", "-c", code, ODD, ""])
    ended = subprocess.run(
        argv, cwd=world.home, env=environ, capture_output=True, check=True
    )
    assert ended.stdout.decode() == f"yes|{ODD}||{world.home}|"

    argv = wrap_bash(world.path(folder), "printf %s $SEEN; exit 3")
    ended = subprocess.run(
        argv, cwd=world.home, env=environ, capture_output=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (3, b"yes")


def test_exported() -> None:
    """Hosts find both beside `refresh`."""
    assert {"wrap_argv", "wrap_bash"} <= set(kernel_client.__all__)
