"""What bytes from a terminal mean."""

from __future__ import annotations

import pytest

from envwatch.commands.terminal import PASTE, named


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"y", "y"),
        (b"\x1b", "escape"),
        (b"\x1b[A", "sequence"),
        (b"\x1by", "sequence"),
        (b"\x1b[200~y\x1b[201~", PASTE),
        (b"yy", PASTE),
        (b"y\n", PASTE),
        (b"\r", "enter"),
        (b"\n", "enter"),
        ("é".encode(), "é"),
        (b"\xff", "�"),
        (b"\x04", "control"),
        (b"\x00", "control"),
    ],
)
def test_names(data: bytes, name: str) -> None:
    """One character is itself; several at once are a paste."""
    assert named(data) == name
