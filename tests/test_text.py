"""How commands write times and texts."""

from __future__ import annotations

import pytest

from envwatch.text import duration, plain


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 us"),
        (4.12e-6, "4.12 us"),
        (0.0411, "41.1 ms"),
        (2.5, "2.5 s"),
        (119.9, "120 s"),
        (720, "12 min"),
        (7200, "2 h"),
        (90_000, "25 h"),
    ],
)
def test_duration(seconds: float, text: str) -> None:
    """A span of time is written in its own unit."""
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/w/a b/é/日本", "/w/a b/é/日本"),
        ("a\nb\tc\x1b[0m", r"a\nb\tc\x1b[0m"),
        ("\udcff\u202e", r"\udcff\u202e"),
    ],
)
def test_plain(text: str, shown: str) -> None:
    """What is not printable is escaped, so that nothing is forged."""
    assert plain(text) == shown
