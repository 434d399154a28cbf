"""Tables for a terminal and for a README."""

from __future__ import annotations

import io

from rich.console import Console

from bench.findings import Distribution, Row
from bench.report import table

ROWS = [
    Row("hook", "refresh() unchanged", "<= 1.6 x", "1.1 x", met=True),
    Row("hook", "  beside [bold]direnv[/]", ">= 300 x", "280 x | 290 x", met=False),
    Row("hook", "mise hook-env", "-", "cannot run: there is no mise on PATH"),
]


def printed(shown: object) -> str:
    """Give what a terminal would have."""
    console = Console(width=160, file=io.StringIO())
    console.print(shown)
    out = console.file
    assert isinstance(out, io.StringIO)
    return out.getvalue()


def test_rows() -> None:
    """Met or not in words; text is no markup."""
    lines = printed(table.of_rows(ROWS)).splitlines()
    assert sum("NOT MET" in line for line in lines) == 1
    assert any("[bold]direnv[/]" in line for line in lines)


def test_distributions() -> None:
    """Those of one chart stand together."""
    found = [
        Distribution("p", "first", "a", (1e-6, 3e-6)),
        Distribution("p", "second", "b", (1e-3,), 300.0, "kernels"),
        Distribution("p", "first", "c", (1e-6,)),
    ]
    lines = printed(table.of_distributions(found)).splitlines()
    heads = [line.strip() for line in lines if line.strip() in ("first", "second")]
    assert heads == ["first", "second"]
    (line,) = (line for line in lines if "b, 300 kernels" in line)
    assert line.split()[-4:] == ["-", "-", "1", "ms"]


def test_markdown() -> None:
    """Four cells a line, whatever is in them."""
    lines = list(table.markdown({"direnv": "2.37.1"}, ROWS))
    assert lines[0] == "direnv 2.37.1"
    cells = [line.count("|") for line in lines[2:]]
    assert cells == [5] * (len(ROWS) + 2)
