"""Charts as SVG that takes its colours of text and paper from the page it is in."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from bench.findings import Distribution
from bench.measures import readable

_INK = "#010203"
"""Stands for the colour of the page's text until the SVG is written."""

_COLOURS = ("#4c8ed6", "#d9822b", "#3d9b6b", "#c25b8f", "#8d7ad1", "#9a8b3c", "#7f8c8d")
_STYLES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)), (0, (3, 1, 1, 1, 1, 1)))
_MARKS = ("o", "s", "^", "D", "v", "P", "X")
_SIZE_INCHES = (5.2, 3.4)


def svg(found: Sequence[Distribution]) -> str:
    """Draw one chart: medians by an axis where there is one, else distributions."""
    with mpl.rc_context(_SETTINGS):
        figure = Figure(figsize=_SIZE_INCHES, layout="constrained")
        axes = figure.add_subplot()
        by_axis = found[0].at is not None
        (_curves if by_axis else _steps)(axes, found)
        legend = figure.legend(loc="outside lower center", ncols=1, frameon=False)
        for text in legend.get_texts():
            text.set_fontsize(9)
        # One line of legend more is one line of paper more: the axes stay as high.
        lines = len(legend.get_texts())
        figure.set_size_inches(_SIZE_INCHES[0], _SIZE_INCHES[1] + 0.19 * lines)
        drawn = io.StringIO()
        figure.savefig(drawn, format="svg", transparent=True)
    return _within_a_page(drawn.getvalue(), found[0].chart)


def _curves(axes: Axes, found: Sequence[Distribution]) -> None:
    """Medians along the axis, and by when nine of ten calls were done, or all of few."""
    labels = list(dict.fromkeys(each.label for each in found))
    for number, label in enumerate(labels):
        line = sorted(
            (each.at or 0.0, each.percentiles) for each in found if each.label == label
        )
        at = [place for place, _ in line]
        middle = [seen.p50 for _, seen in line]
        colour = _COLOURS[number % len(_COLOURS)]
        axes.plot(
            at,
            middle,
            label=label,
            color=colour,
            linestyle=_STYLES[number % len(_STYLES)],
            marker=_MARKS[number % len(_MARKS)],
        )
        most = [seen.most if seen.p90 is None else seen.p90 for _, seen in line]
        axes.fill_between(at, middle, most, color=colour, alpha=0.18, linewidth=0)
    axes.set(xscale="log", yscale="log", xlabel=found[0].axis)
    places = sorted({each.at or 0.0 for each in found})
    axes.set_xticks(places, [f"{place:,.0f}" for place in places])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(_time))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_ylabel("median; shaded: up to p90, or all of few")


def _steps(axes: Axes, found: Sequence[Distribution]) -> None:
    """What share of the calls was done by when."""
    for number, each in enumerate(found):
        axes.ecdf(
            each.samples_s,
            label=each.label,
            color=_COLOURS[number % len(_COLOURS)],
            linestyle=_STYLES[number % len(_STYLES)],
        )
    axes.set(xscale="log", ylabel="share of calls done")
    axes.xaxis.set_major_formatter(FuncFormatter(_time))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{share:.0%}"))
    axes.tick_params(axis="x", labelrotation=30)


def _time(value_s: float, _: object) -> str:
    return readable(value_s)


def _within_a_page(drawn: str, title: str) -> str:
    """Give the element alone, with the page's colour and its own names."""
    element = drawn[drawn.index("<svg ") :]
    element = re.sub(r"<metadata>.*?</metadata>", "", element, flags=re.DOTALL)
    element = element.replace(_INK, "currentColor")
    # Names are for the whole page, where there are several charts.
    mark = "".join(letter for letter in title.lower() if letter.isalnum())
    element = re.sub(r'\bid="([^"]+)"', rf'id="{mark}-\1"', element)
    element = re.sub(r"url\(#([^)]+)\)", rf"url(#{mark}-\1)", element)
    element = re.sub(r'xlink:href="#([^"]+)"', rf'xlink:href="#{mark}-\1"', element)
    # As wide as there is room for; the viewBox keeps its shape.
    head, end, rest = element.partition(">")
    return re.sub(r' (?:width|height)="[^"]*"', "", head) + end + rest


_SETTINGS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "envwatch",
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": _INK,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "axes.grid": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": _INK,
    "grid.alpha": 0.15,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
}
