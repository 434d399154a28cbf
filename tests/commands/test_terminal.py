"""What bytes from a terminal mean."""

from __future__ import annotations

import os
import sys

import pytest

from envwatch.commands.terminal import PASTE, Terminal, named


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


def test_a_paste_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow line may cut it anywhere, and its end too: no piece is a key."""
    ours, theirs = os.pipe()
    with open(ours, "rb") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(sys, "stdout", stdin)
        terminal = Terminal()
        for data in (b"\x1b[200~", b"y", b"\x1b[2", b"01~"):
            os.write(theirs, data)
            assert terminal.read(1) == PASTE
        os.write(theirs, b"y")
        assert terminal.read(1) == "y"
    os.close(theirs)
