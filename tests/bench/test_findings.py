"""Percentiles, and what of a distribution goes into a report."""

from __future__ import annotations

import pytest

from bench.findings import MAX_KEPT, Distribution, Percentiles, Row


def test_percentiles() -> None:
    """Of single samples: of 1 to 101 in any order, each is its own percentile."""
    samples = [float(number) for number in range(101, 0, -1)]
    assert Percentiles.of(samples) == Percentiles(51.0, 91.0, 100.0, 101.0)


@pytest.mark.parametrize("count", [1, 9, 10, 99, 100])
def test_percentiles_of_few(count: int) -> None:
    """None is made up."""
    found = Percentiles.of([2.5] * count)
    assert found.p50 == found.most == 2.5
    assert found.p90 == (2.5 if count >= 10 else None)
    assert found.p99 == (2.5 if count >= 100 else None)


@pytest.mark.parametrize("count", [1, 2, MAX_KEPT, MAX_KEPT + 1, 10_000])
def test_thinned(count: int) -> None:
    """No more samples than are kept, the least and the most among them."""
    samples = tuple(float(number) for number in reversed(range(count)))
    plain = Distribution("part", "chart", "label", samples).plain()
    kept = plain["samples_s"]
    assert len(kept) == min(count, MAX_KEPT)
    assert kept == sorted(kept)
    assert (kept[0], kept[-1]) == (0.0, count - 1.0)
    assert plain["count"] == count
    assert plain["most"] == count - 1.0


def test_scored() -> None:
    """A row without a target is only there to be compared with."""
    assert Row("part", "what", "<= 1", "0.5").is_scored
    assert not Row("part", "what", "-", "0.5").is_scored
