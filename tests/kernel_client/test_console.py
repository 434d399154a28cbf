"""What a kernel tells a front end that asks, on a shell that only keeps what it gets."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import kernel_client
from kernel_client import Client, Result, console, ipython


class Shell:
    """Keeps callbacks and what is published, as IPython does."""

    def __init__(self) -> None:
        self.published: list[tuple[dict[str, str], dict[str, str]]] = []
        self.display_pub = SimpleNamespace(publish=self._publish)
        self.events = SimpleNamespace(register=lambda *_: None)

    def _publish(self, data: dict[str, str], *, metadata: dict[str, str]) -> None:
        self.published.append((data, metadata))

    def register_magic_function(self, function: Any, **how: str) -> None:
        """Need no magic."""


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    """Give a shell with the hook, which has not refreshed."""
    made = Shell()
    monkeypatch.setattr(console, "_shell", lambda: made)
    monkeypatch.setattr(console, "_reported", {})
    client = Client({"PATH": ""}, output=lambda _: None)
    monkeypatch.setattr(kernel_client, "default_client", lambda: client)
    monkeypatch.setattr(console, "default_client", lambda: client)
    monkeypatch.setitem(ipython._hooks, made, ipython.Hook(made, client))
    yield made
    client.close()


def refreshed(shell: Shell, outcome: str, *messages: str) -> None:
    """Have the hook come to something."""
    hook = ipython.hook_of(shell)
    assert hook is not None
    result = Result(outcome, "/w/.envrc")
    result.messages = messages
    hook._note(result)


def test_a_report_without_a_refresh(shell: Shell) -> None:
    """The folder, and that the hook is on."""
    assert json.loads(console.report()) == {
        "folder": os.getcwd(),
        "is_on": True,
        "outcome": None,
        "is_told": False,
    }


def test_an_outcome_is_reported_once(shell: Shell) -> None:
    """So that a run that did not refresh is not told what an earlier one was."""
    refreshed(shell, "blocked", "direnv: error /w/.envrc is blocked")
    first = json.loads(console.report())
    assert (first["outcome"], first["is_told"]) == ("blocked", True)
    second = json.loads(console.report())
    assert (second["outcome"], second["is_told"]) == (None, False)
    refreshed(shell, "blocked")
    third = json.loads(console.report())
    assert (third["outcome"], third["is_told"]) == ("blocked", False)


def test_a_hook_that_is_off_and_none_at_all(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is loaded then, and the console says so."""
    hook = ipython.hook_of(shell)
    assert hook is not None
    hook.turn_off()
    assert json.loads(console.report())["is_on"] is False
    monkeypatch.delitem(ipython._hooks, shell)
    assert json.loads(console.report())["is_on"] is False


def test_what_direnv_says_is_told_apart(shell: Shell) -> None:
    """It is no output of the cell."""
    console.attach()
    output = kernel_client.default_client().output
    assert output is not None
    output("direnv: loading")
    assert shell.published == [
        ({"text/plain": "direnv: loading"}, {"envwatch": "said"})
    ]


def test_to_another_folder(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`~` is the home folder, a relative one counts from where the kernel is."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a b").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    report = json.loads(console.move("a b"))
    assert report["folder"] == os.getcwd() == str(tmp_path / "a b")
    assert report["error"] is None
    assert json.loads(console.move("~"))["folder"] == str(tmp_path)


@pytest.mark.parametrize(
    ("folder", "error"),
    [
        ("nowhere", "No such file or directory"),
        ("file", "Not a directory"),
        ("\0", "it is no path"),
    ],
    ids=ascii,
)
def test_where_it_cannot_go(
    shell: Shell,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    folder: str,
    error: str,
) -> None:
    """It stays where it is, and why is said."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    report = json.loads(console.move(folder))
    assert (report["folder"], report["error"]) == (str(tmp_path), error)


def test_a_folder_that_is_gone_and_one_that_is_no_utf_8(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report is ASCII, whatever the path."""
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    folder.mkdir()
    monkeypatch.chdir(folder)
    report = console.report()
    assert report.isascii()
    assert json.loads(report)["folder"] == str(folder)
    folder.rmdir()
    assert json.loads(console.report())["folder"] is None
