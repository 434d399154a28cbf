"""How the rows are shown."""

from __future__ import annotations

from collections.abc import Sequence

from bench.measures import Row

_WORDS = {True: "met", False: "NOT MET", None: "-"}
_HEADS = ("", "row", "target", "measured")


def word(row: Row) -> str:
    """Say whether a row is met."""
    return _WORDS[row.met]


def lines(rows: Sequence[Row]) -> list[str]:
    """Give the table, a line for each row."""
    cells = [_HEADS, *((word(row), row.what, row.target, row.measured) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            text.ljust(width) for text, width in zip(cell, widths, strict=True)
        ).rstrip()
        for cell in cells
    ]
