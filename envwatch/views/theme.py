"""The terminal's own two colours, whatever they are: light, dark, or none at all.

What is bold or reversed says nothing that a word beside it does not say too.
"""

from __future__ import annotations

from textual.theme import BUILTIN_THEMES, Theme

_DEFAULT = "ansi_default"

TERMINAL = Theme(
    "terminal",
    primary=_DEFAULT,
    secondary=_DEFAULT,
    warning=_DEFAULT,
    error=_DEFAULT,
    success=_DEFAULT,
    accent=_DEFAULT,
    foreground=_DEFAULT,
    background=_DEFAULT,
    surface=_DEFAULT,
    panel=_DEFAULT,
    boost=_DEFAULT,
    ansi=True,
    # Every colour that Textual's own styles expect of a theme of this kind.
    variables={
        **{
            name: _DEFAULT if value.startswith("ansi_") else value
            for name, value in BUILTIN_THEMES["ansi-dark"].variables.items()
        },
        "footer-key-foreground": _DEFAULT,
    },
)
