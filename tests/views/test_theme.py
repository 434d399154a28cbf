"""The theme has no colour of its own."""

from __future__ import annotations

from textual.theme import BUILTIN_THEMES

from envwatch.views.theme import TERMINAL


def test_every_colour_is_the_terminals() -> None:
    """In a light terminal it is light; what Textual's styles name is all there."""
    named = {value for value in TERMINAL.variables.values() if "ansi" in value}
    assert named == {"ansi_default"}
    assert TERMINAL.variables.keys() >= BUILTIN_THEMES["ansi-dark"].variables.keys()
    generated = TERMINAL.to_color_system().generate()
    for name in ("foreground", "background", "surface", "panel", "primary", "error"):
        assert generated[name] in ("ansi_default", "transparent"), name
