"""How commands write paths and times for a person."""

from __future__ import annotations

_MINUTE_S = 60
_HOUR_S = 3600


def plain(text: str) -> str:
    """Give a text on one line that any terminal can show, and that forges nothing."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )


def duration(seconds: float) -> str:
    """Give a span of time in its own unit: `350 us`, `41 ms`, `2.5 s`, `12 min`."""
    if seconds < 1e-3:  # noqa: PLR2004
        return f"{seconds * 1e6:.3g} us"
    if seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    if seconds < 2 * _MINUTE_S:
        return f"{seconds:.3g} s"
    if seconds < 2 * _HOUR_S:
        return f"{seconds / _MINUTE_S:.0f} min"
    return f"{seconds / _HOUR_S:.0f} h"
