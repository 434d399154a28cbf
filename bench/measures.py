"""How figures are made: pairs in turn, medians, ratios pair by pair."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Self

Work = Callable[[], object]
Timed = Callable[[], float]
"""Does something, and gives the seconds that it took."""

WIDE = 1.5
"""Quartiles of the pairs' ratios that are further apart than this are noise."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """Seconds of two works, measured in turn, and the ratios of the pairs.

    `middle` is the median of the ratios, `low` and `high` their quartiles.
    """

    ours_s: float
    other_s: float
    middle: float
    low: float
    high: float

    def __str__(self) -> str:
        wide = ", wide" if self.high > self.low * WIDE else ""
        return (
            f"{_times(self.middle)} x ({_times(self.low)} to {_times(self.high)}{wide})"
        )

    def inverse(self) -> Ratio:
        """Give the ratio the other way round."""
        return Ratio(
            self.other_s, self.ours_s, 1 / self.middle, 1 / self.high, 1 / self.low
        )

    def figures(self) -> dict[str, float]:
        """Give its numbers for a row."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Middle:
    """The median of some seconds, and their quartiles."""

    middle: float
    low: float
    high: float

    @classmethod
    def of(cls, found: Sequence[float]) -> Self:
        """Give it for at least two figures."""
        low, _, high = statistics.quantiles(found, n=4)
        return cls(statistics.median(found), low, high)

    def __str__(self) -> str:
        spread = f"{readable(self.low)} to {readable(self.high)}"
        return f"{readable(self.middle)} ({spread})"

    def figures(self) -> dict[str, float]:
        """Give its numbers for a row."""
        return asdict(self)


def seconds(work: Work, times: int = 1) -> float:
    """Give the seconds of one call, as the mean of `times` calls."""
    turns = range(times)
    started = time.perf_counter()
    for _ in turns:
        work()
    return (time.perf_counter() - started) / times


def ratio_of(pairs: Sequence[tuple[float, float]]) -> Ratio:
    """Give the medians of pairs that were measured in turn."""
    ratios = sorted(ours / other for ours, other in pairs)
    low, high = ratios[0], ratios[-1]
    if len(ratios) >= 4:
        low, _, high = statistics.quantiles(ratios, n=4)
    return Ratio(
        statistics.median(ours for ours, _ in pairs),
        statistics.median(other for _, other in pairs),
        statistics.median(ratios),
        low,
        high,
    )


def paired(
    ours: Work,
    other: Work,
    *,
    pairs: int,
    times: int = 1,
    other_times: int | None = None,
) -> Ratio:
    """Measure A B A B …, after one turn of each that does not count.

    A figure of a pair is the mean of `times` calls of ours, and of `other_times`
    of the other (as many where it is None).
    """
    others = times if other_times is None else other_times
    seconds(ours, times)
    seconds(other, others)
    return ratio_of(
        [(seconds(ours, times), seconds(other, others)) for _ in range(pairs)]
    )


def timed(work: Work) -> Timed:
    """Give a work that tells how long it took."""
    now = time.perf_counter

    def once() -> float:
        started = now()
        work()
        return now() - started

    return once


def in_turn(
    works: Mapping[str, Timed], *, turns: int, limit_s: float = 10.0
) -> dict[str, tuple[float, ...]]:
    """Measure A B C A B C …, each call by itself; gives the seconds of each.

    Two turns do not count. Ends early after `limit_s`, with at least two turns.
    """
    found: dict[str, list[float]] = {name: [] for name in works}
    for each in (*works.values(), *works.values()):
        each()
    deadline = time.perf_counter() + limit_s
    for turn in range(turns):
        if turn >= 2 and time.perf_counter() > deadline:
            break
        for name, work in works.items():
            found[name].append(work())
    return {name: tuple(samples) for name, samples in found.items()}


def _times(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 1000 else f"{ratio:.3g}"


def readable(value_s: float) -> str:
    """Write seconds for a person."""
    if abs(value_s) < 1e-3:
        return f"{value_s * 1e6:.3g} us"
    return f"{value_s * 1e3:.3g} ms" if abs(value_s) < 1 else f"{value_s:.3g} s"
