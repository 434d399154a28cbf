"""What a cell shows of what direnv said."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from kernel_client import notice

BLOCKED = (
    "\x1b[31mdirenv: error /w/.envrc is blocked. Run `direnv allow` to approve its"
    " content\x1b[0m"
)


@pytest.mark.parametrize("colour", [True, False])
def test_blocked_line_advises_nothing(colour: object) -> None:
    """Allowing is the person's call, on a terminal too."""
    line = notice.shown(BLOCKED, colour=bool(colour))
    assert line.startswith("direnv: error /w/.envrc is blocked;")
    assert "direnv allow" not in line


def test_required_approval_advises_nothing() -> None:
    """The newer line of require_allowed neither."""
    line = notice.shown(
        "\x1b[31mdirenv: dep.toml requires approval. Run 'direnv allow' to approve."
    )
    assert line.startswith("direnv: dep.toml requires approval;")
    assert "direnv allow" not in line


def test_colour() -> None:
    """It is stripped unless the output is a terminal."""
    line = "\x1b[0mdirenv: loading /w/.envrc"
    assert notice.shown(line) == "direnv: loading /w/.envrc"
    assert notice.shown(line, colour=True) == line


@given(st.text(alphabet="\x1b[0;9m x"))
def test_colour_of_any_kind(line: str) -> None:
    """What is stripped is what the pattern of DIRENV.md section D, rule 23, says."""
    assert notice.shown(line) == re.sub(r"\x1b\[[0-9;]*m", "", line)


@given(st.text())
def test_every_output_can_take_it(line: str) -> None:
    """Whatever direnv said, the line can be encoded."""
    for colour in (True, False):
        notice.shown(line, colour=colour).encode()


def test_odd_bytes_are_shown_as_such() -> None:
    """Bytes of a path that are no UTF-8 are escaped."""
    assert notice.shown("a\udcff") == "a\\udcff"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (notice.held("/w/.envrc", 5.4), ("/w/.envrc", "5 s")),
        (notice.gave_up("/w/.envrc", 0.5), ("/w/.envrc", "0.5 s", "goes on")),
        (notice.lost_edit("PATH"), ("PATH",)),
        (notice.no_direnv(None), ("envwatch doctor",)),
        (notice.no_direnv("/no/direnv"), ("/no/direnv", "ENVWATCH_DIRENV")),
        (notice.failed("it failed (X)"), ("it failed (X)",)),
    ],
    ids=["held", "gave up", "lost edit", "no direnv", "no such direnv", "failed"],
)
def test_own_lines(line: str, words: tuple[str, ...]) -> None:
    """Each is one line, says who speaks and what it is about."""
    assert line.startswith("envwatch: ")
    assert "\n" not in line
    for word in words:
        assert word in line
