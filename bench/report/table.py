"""Tables for a terminal, and one for a README."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from bench.findings import Distribution, Row
from bench.measures import readable

WORDS = {True: "met", False: "NOT MET", None: "-"}


def of_rows(rows: Sequence[Row]) -> Table:
    """Give the table of the rows."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("", "part", "row", "target", "measured"):
        table.add_column(name, overflow="fold")
    for row in rows:
        cells = (WORDS[row.met], row.part, row.what, row.target, row.measured)
        table.add_row(*map(Text, cells))
    return table


def of_distributions(found: Sequence[Distribution]) -> Table:
    """Give the table of the percentiles, a line for each distribution."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("what took so long", overflow="fold")
    for name in ("times", "p50", "p90", "p99", "max"):
        table.add_column(name, justify="right", no_wrap=True)
    for chart, drawn in by_chart(found).items():
        table.add_row(Text(chart, style="bold"))
        for each in drawn:
            seen = each.percentiles
            figures = (seen.p50, seen.p90, seen.p99, seen.most)
            times = (str(len(each.samples_s)), *map(figure, figures))
            table.add_row(Text(f"  {labelled(each)}"), *map(Text, times))
    return table


def figure(value_s: float | None) -> str:
    """Write a percentile."""
    return "-" if value_s is None else readable(value_s)


def by_chart(found: Iterable[Distribution]) -> dict[str, list[Distribution]]:
    """Give the distributions of each chart."""
    charts: dict[str, list[Distribution]] = {}
    for each in found:
        charts.setdefault(each.chart, []).append(each)
    return charts


def labelled(each: Distribution) -> str:
    """Name a distribution, with where on its axis it is."""
    return (
        each.label if each.at is None else f"{each.label}, {each.at:,.0f} {each.axis}"
    )


def markdown(facts: Mapping[str, str], rows: Sequence[Row]) -> Iterator[str]:
    """Give the scoreboard's lines, for a README."""
    yield "; ".join(f"{name} {value}" for name, value in facts.items())
    yield ""
    yield "| | what | target | measured |"
    yield "|---|---|---|---|"
    for row in rows:
        cells = (WORDS[row.met], row.what.strip(), row.target, row.measured)
        yield f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
