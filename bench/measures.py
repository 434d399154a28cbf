"""How figures are made: pairs in turn, medians, ratios pair by pair."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

Work = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table: what, its target, what was measured, whether it is met."""

    what: str
    target: str
    measured: str
    met: bool


@dataclass(frozen=True, slots=True)
class Ratio:
    """Seconds of two works, measured in turn, and the ratio of each pair."""

    ours_s: float
    other_s: float
    middle: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.middle:.3g} ({self.low:.3g} to {self.high:.3g})"


def seconds(work: Work, times: int = 1) -> float:
    """Give the seconds of one call, as the mean of `times` calls."""
    started = time.perf_counter()
    for _ in range(times):
        work()
    return (time.perf_counter() - started) / times


def paired(
    ours: Work, other: Work, *, pairs: int, times: int = 1, other_times: int = 0
) -> Ratio:
    """Measure A B A B …, after one of each that does not count.

    The ratio is that of each pair; its quartiles tell how noisy the machine was.
    """
    seconds(ours, times)
    seconds(other, other_times or times)
    found = [
        (seconds(ours, times), seconds(other, other_times or times))
        for _ in range(pairs)
    ]
    ratios = sorted(a / b for a, b in found)
    low, _, high = statistics.quantiles(ratios, n=4)
    return Ratio(
        statistics.median(a for a, _ in found),
        statistics.median(b for _, b in found),
        statistics.median(ratios),
        low,
        high,
    )


def micro(value_s: float) -> str:
    """Write seconds for a person."""
    if value_s < 1e-3:
        return f"{value_s * 1e6:.3g} us"
    return f"{value_s * 1e3:.3g} ms" if value_s < 1 else f"{value_s:.3g} s"
