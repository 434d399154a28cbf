"""What a refresh shows: each line once, wherever it is to go."""

from __future__ import annotations

import io
import sys

import pytest

from kernel_client.shown import Shown


class Broken(io.StringIO):
    """A stream that takes nothing."""

    def write(self, _: str) -> int:
        """Fail."""
        raise OSError

    def isatty(self) -> bool:
        """Fail too."""
        raise OSError


def test_output_of_a_host() -> None:
    """It gets each line; so does the list of this refresh."""
    lines: list[str] = []
    shown = Shown(lines.append)
    shown.hear("one")
    assert lines == shown.lines == ["one"]
    shown.begin()
    shown.hear("two")
    assert (lines, shown.lines) == (["one", "two"], ["two"])


def test_stderr_of_that_moment(capsys: pytest.CaptureFixture[str]) -> None:
    """A notebook has another one for each cell."""
    shown = Shown(None)
    shown.hear("one")
    assert capsys.readouterr().err == "one\n"


@pytest.mark.parametrize("stream", [None, Broken()])
def test_no_stream(stream: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is raised, and the line is still told."""
    monkeypatch.setattr(sys, "stderr", stream)
    shown = Shown(None)
    shown.hear("one")
    assert shown.lines == ["one"]


def test_once() -> None:
    """The same line again is not shown; another one, and then it, is."""
    lines: list[str] = []
    shown = Shown(lines.append)
    for line in ("a", "a", "b", "a"):
        shown.begin()
        shown.hear_once(line)
    assert lines == ["a", "b", "a"]


def test_muted() -> None:
    """It is kept apart, and shown to nobody."""
    lines: list[str] = []
    shown = Shown(lines.append)
    kept = shown.mute()
    shown.hear("one")
    shown.unmute()
    shown.hear("two")
    assert kept == ["one"]
    assert lines == shown.lines == ["two"]
