"""What a part of the benchmark gives: rows with a target, and distributions."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

OF_P90, OF_P99 = 10, 100

MAX_KEPT = 400
"""So many samples of a distribution go into the JSON report."""


class CannotRunError(Exception):
    """A part of the benchmark cannot be run here; its text says why."""


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table.

    `target` is "-" for what is only there to be compared with, and `met` is None
    there and where the row could not be measured; `figures` has the numbers
    behind `measured`, times in seconds.
    """

    part: str
    what: str
    target: str
    measured: str
    met: bool | None = None
    figures: dict[str, float] = field(default_factory=dict)

    @property
    def is_scored(self) -> bool:
        """Whether it has a target."""
        return self.target != "-"

    def plain(self) -> dict[str, Any]:
        """Give it as JSON has it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Percentiles:
    """What is shown of a distribution, in seconds.

    None where there are too few samples to tell: fewer than ten for p90, fewer than
    a hundred for p99.
    """

    p50: float
    p90: float | None
    p99: float | None
    most: float

    @classmethod
    def of(cls, samples_s: Sequence[float]) -> Percentiles:
        """Give them for one sample or more."""
        count, middle, most = (
            len(samples_s),
            statistics.median(samples_s),
            max(samples_s),
        )
        if count < OF_P90:
            return cls(middle, None, None, most)
        cuts = statistics.quantiles(samples_s, n=100, method="inclusive")
        return cls(middle, cuts[89], cuts[98] if count >= OF_P99 else None, most)


@dataclass(frozen=True, slots=True)
class Distribution:
    """How long one thing took, each time: what a chart draws as one line.

    `chart` is the chart that it belongs to; `at` is where on the chart's axis
    `axis` it was measured, None where the chart has the distributions themselves.
    """

    part: str
    chart: str
    label: str
    samples_s: tuple[float, ...]
    at: float | None = None
    axis: str = ""

    @property
    def percentiles(self) -> Percentiles:
        """What is shown of it."""
        return Percentiles.of(self.samples_s)

    def plain(self) -> dict[str, Any]:
        """Give it as JSON has it; many samples are thinned evenly, in order of size."""
        kept = sorted(self.samples_s)
        if len(kept) > MAX_KEPT:
            step = (len(kept) - 1) / (MAX_KEPT - 1)
            kept = [kept[round(number * step)] for number in range(MAX_KEPT)]
        return {
            "part": self.part,
            "chart": self.chart,
            "label": self.label,
            "axis": self.axis,
            "at": self.at,
            "count": len(self.samples_s),
            **asdict(self.percentiles),
            "samples_s": kept,
        }


Finding = Row | Distribution
Findings = Iterator[Finding]
Measuring = Callable[..., Findings]
