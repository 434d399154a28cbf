"""The report as one page of HTML: nothing else is fetched to show it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from bench.findings import Distribution, Row
from bench.report.found import METHOD, Found
from bench.report.plots import svg
from bench.report.table import WORDS, by_chart, figure, labelled

_STYLE = """
:root { color-scheme: light dark; --line: #8886; --soft: #8882; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 1rem; line-height: 1.45;
  font-family: system-ui, sans-serif; background: Canvas; color: CanvasText; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
h3 { font-size: 1rem; margin: 0 0 .5rem; }
.wide { overflow-x: auto; margin-bottom: 1rem; }
table { border-collapse: collapse; font-size: .9rem; }
th, td { text-align: left; padding: .25rem .7rem .25rem 0; vertical-align: top;
  border-bottom: 1px solid var(--line); }
td.figure, th.figure { text-align: right; white-space: nowrap;
  font-variant-numeric: tabular-nums; }
td.missed { font-weight: bold; }
td.inner { padding-left: 1.2rem; }
.charts { display: grid; gap: 1.5rem;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 30rem), 1fr)); }
figure { margin: 0; padding: .8rem; border: 1px solid var(--line); border-radius: .4rem; }
figure svg { width: 100%; height: auto; display: block; }
details { margin-top: .6rem; } summary { cursor: pointer; }
.noisy { border-left: .3rem solid; padding-left: .8rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: 0; }
dd { margin: 0; overflow-wrap: anywhere; }
"""

_EMPTY_ICON = '<link rel="icon" href="data:,">'


def html(found: Found) -> str:
    """Give the page."""
    return "\n".join(
        (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>What an environment hook costs</title>\n{_EMPTY_ICON}",
            f"<style>{_STYLE}</style>\n</head>\n<body>",
            *_lines(found),
            "</body>\n</html>\n",
        )
    )


def _lines(found: Found) -> Iterator[str]:
    yield "<h1>What an environment hook costs</h1>"
    if found.is_quick:
        yield "<p>A quick run: fewer turns, so wider spreads.</p>"
    noise = found.noise
    if noise:
        said = escape("; ".join(noise))
        yield f'<p class="noisy"><strong>This machine was noisy:</strong> {said}.</p>'
    else:
        yield "<p>The machine was quiet.</p>"
    yield "<h2>Machine and versions</h2>\n<dl>"
    facts = {**found.facts, "started": f"{found.started} processes and threads"}
    for name, value in facts.items():
        yield f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>"
    yield "</dl>"
    scored = [row for row in found.rows if row.is_scored]
    if scored:
        yield "<h2>Scoreboard</h2>"
        yield from _table(scored)
    parts = dict.fromkeys(
        [row.part for row in found.rows] + [each.part for each in found.distributions]
    )
    for part in parts:
        yield f"<h2>{escape(part)}</h2>"
        yield from _part(found, part)
    yield "<h2>Method</h2>"
    yield from (f"<p>{escape(text)}</p>" for text in METHOD.split("\n\n"))


def _part(found: Found, part: str) -> Iterator[str]:
    rows = [row for row in found.rows if row.part == part and not row.is_scored]
    if rows:
        yield from _table(rows)
    charts = by_chart(each for each in found.distributions if each.part == part)
    yield '<div class="charts">'
    for chart, drawn in charts.items():
        yield f"<figure>\n<h3>{escape(chart)}</h3>"
        yield svg(drawn)
        yield "<figcaption><details><summary>Figures</summary>"
        yield from _percentiles(drawn)
        yield "</details></figcaption>\n</figure>"
    yield "</div>"
    yield "<details><summary>How this was made</summary>"
    yield from (f"<p>{escape(told)}</p>" for told in found.methods.get(part, ()))
    yield "</details>"


def _table(rows: Sequence[Row]) -> Iterator[str]:
    yield '<div class="wide" tabindex="0"><table>\n<thead><tr><th>Met?</th><th>What</th>'
    yield "<th>Target</th><th>Measured</th></tr></thead>\n<tbody>"
    for row in rows:
        kind = ' class="missed"' if row.met is False else ""
        yield f"<tr><td{kind}>{WORDS[row.met]}</td>"
        # Indented: it is about what the row above is about.
        inner = ' class="inner"' if row.what.startswith(" ") else ""
        yield f"<td{inner}>{escape(row.what.strip())}</td>"
        yield "".join(f"<td>{escape(text)}</td>" for text in (row.target, row.measured))
        yield "</tr>"
    yield "</tbody></table></div>"


def _percentiles(found: Sequence[Distribution]) -> Iterator[str]:
    heads = ("times", "p50", "p90", "p99", "max")
    yield '<div class="wide" tabindex="0"><table>\n<thead><tr><th>What</th>'
    yield "".join(f'<th class="figure">{head}</th>' for head in heads)
    yield "</tr></thead>\n<tbody>"
    for each in found:
        seen = each.percentiles
        times = map(figure, (seen.p50, seen.p90, seen.p99, seen.most))
        cells = (f"{len(each.samples_s):,}", *times)
        yield f"<tr><td>{escape(labelled(each))}</td>"
        yield "".join(f'<td class="figure">{cell}</td>' for cell in cells) + "</tr>"
    yield "</tbody></table></div>"
