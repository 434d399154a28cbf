"""What a composed text means, earlier input, and what a kernel reports."""

from __future__ import annotations

import pytest

from envwatch.core.console import (
    HELP,
    Code,
    Command,
    History,
    Mistake,
    Name,
    Report,
    composed,
    reported,
)

# ------------------------------------------------------------------ what is composed


@pytest.mark.parametrize("text", ["", "   ", "\n\n", " \n\t"])
def test_nothing_is_nothing(text: str) -> None:
    """Enter on an empty composer runs nothing."""
    assert composed(text) is None


@pytest.mark.parametrize(
    "text", ["1 + 1", "  x", "!ls /", "%cd /tmp", "def f():\n    pass\n", "a\n/cd x"]
)
def test_code_goes_to_the_kernel_as_it_is(text: str) -> None:
    """Blanks at its beginning count in Python."""
    assert composed(text) == Code(text)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("/cd", Command(Name.CD, "~")),
        ("/cd   ", Command(Name.CD, "~")),
        ("/cd ..", Command(Name.CD, "..")),
        ("  /cd  my  folder \n", Command(Name.CD, "my  folder")),
        ("/cd /a 'b'", Command(Name.CD, "/a 'b'")),
        ("/status", Command(Name.STATUS)),
        ("/reload", Command(Name.RELOAD)),
        ("/help", Command(Name.HELP)),
        ("/quit\n", Command(Name.QUIT)),
    ],
)
def test_commands(text: str, meant: Command) -> None:
    """What follows `/cd` is one folder, to its last letter."""
    assert composed(text) == meant


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("/", "no command /;"),
        ("/Quit", "no command /Quit;"),
        ("/exit now", "no command /exit;"),
        ("/quit now", "/quit takes nothing"),
        ("/status x", "/status takes nothing"),
        ("/cd a\nb", "one line"),
    ],
)
def test_what_is_neither_is_said(text: str, word: str) -> None:
    """And nothing is run."""
    meant = composed(text)
    assert isinstance(meant, Mistake)
    assert word in meant.reason


def test_every_command_is_in_the_help() -> None:
    """`/help` lists what there is."""
    listed = {each.partition(" ")[0] for each in HELP if each.startswith("/")}
    assert listed == {f"/{name}" for name in Name} - {"/help"}


# ------------------------------------------------------------------ earlier input


def test_earlier_input_and_the_draft() -> None:
    """Up goes back, down comes forth, and at last to what was being written."""
    history = History()
    history.add("a")
    history.add("b")
    assert history.older("draft") == "b"
    assert history.older("b") == "a"
    assert history.older("a") is None
    assert history.newer() == "b"
    assert history.newer() == "draft"
    assert history.newer() is None
    assert history.older("another") == "b"
    assert history.newer() == "another"


def test_without_earlier_input() -> None:
    """There is nothing to go to."""
    history = History()
    assert history.older("draft") is None
    assert history.newer() is None


def test_the_same_is_kept_once_in_a_row() -> None:
    """And sending begins at the newest again."""
    history = History()
    for text in ("a", "b", "b"):
        history.add(text)
    assert [history.older(""), history.older("")] == ["b", "a"]
    history.add("a")
    assert [history.older("") for _ in range(4)] == ["a", "b", "a", None]


def test_the_oldest_go() -> None:
    """It does not grow for ever."""
    history = History(limit=2)
    for text in ("a", "b", "c"):
        history.add(text)
    assert [history.older("") for _ in range(3)] == ["c", "b", None]


# ------------------------------------------------------------------ what a kernel reports


def test_a_report() -> None:
    """All of it, and only what is of the right kind."""
    text = (
        '{"folder": "/w\\udcff", "is_on": true, "outcome": "blocked", "is_told": true}'
    )
    report = reported(text)
    assert report == Report("/w\udcff", is_on=True, outcome="blocked", is_told=True)
    assert report.is_blocked
    assert reported('{"folder": 7, "is_on": 1, "is_told": "x"}') == Report(None)
    assert reported('{"error": "no"}') == Report(None, error="no")


@pytest.mark.parametrize("text", ["", "[]", "7", "{", "null", "[" * 100_000])
def test_what_is_no_report(text: str) -> None:
    """A kernel without the hook gives none."""
    assert reported(text) is None


@pytest.mark.parametrize(
    "report",
    [
        Report("/w", outcome="blocked", is_told=False),
        Report("/w", outcome="denied", is_told=True),
        Report("/w", outcome=None, is_told=True),
        Report("/w", outcome="loaded", is_told=True),
    ],
    ids=str,
)
def test_what_does_not_ask(report: Report) -> None:
    """Only a run that was told that its file is blocked does."""
    assert not report.is_blocked
