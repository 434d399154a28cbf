"""What is compared is measured in turn."""

from __future__ import annotations

import time

import pytest

from bench.measures import Ratio, in_turn, paired, ratio_of, readable, timed


def test_in_turn() -> None:
    """A B A B …; what warms up does not count."""
    called: list[str] = []

    def work(name: str) -> float:
        called.append(name)
        return float(len(called))

    found = in_turn({"a": lambda: work("a"), "b": lambda: work("b")}, turns=3)
    assert called == ["a", "b"] * 5
    assert found == {"a": (5.0, 7.0, 9.0), "b": (6.0, 8.0, 10.0)}


def test_in_turn_ends_early() -> None:
    """But never before two turns."""
    found = in_turn({"a": lambda: 1.0}, turns=10**9, limit_s=0.0)
    assert found == {"a": (1.0, 1.0)}


def test_paired() -> None:
    """A turn of each that does not count, then pairs in turn."""
    called: list[str] = []
    paired(
        lambda: called.append("a"),
        lambda: called.append("b"),
        pairs=2,
        times=2,
        other_times=1,
    )
    assert "".join(called) == "aabaabaab"


def test_ratios_are_of_the_pairs() -> None:
    """The median of the ratios is not the ratio of the medians."""
    ratio = ratio_of([(1.0, 1.0), (2.0, 10.0), (90.0, 9.0)])
    assert (ratio.ours_s, ratio.other_s, ratio.middle) == (2.0, 9.0, 1.0)
    assert (ratio.low, ratio.high) == (0.2, 10.0)
    assert ratio.inverse() == Ratio(9.0, 2.0, 1.0, 0.1, 5.0)


@pytest.mark.parametrize(
    ("high", "said"), [(2.9, "2 x (2 to 2.9)"), (3.1, "2 x (2 to 3.1, wide)")]
)
def test_wide(high: float, said: str) -> None:
    """Quartiles far apart are said to be so."""
    assert str(Ratio(1.0, 1.0, 2.0, 2.0, high)) == said


def test_large_ratios() -> None:
    """Are written out."""
    assert str(Ratio(1.0, 1.0, 2600.4, 2550.0, 2700.0)) == "2,600 x (2,550 to 2,700)"


def test_timed() -> None:
    """It takes at least what the work takes."""
    before = time.perf_counter()
    taken_s = timed(lambda: None)()
    assert 0 < taken_s < time.perf_counter() - before


@pytest.mark.parametrize(
    ("value_s", "said"),
    [(9.12e-6, "9.12 us"), (1.2e-3, "1.2 ms"), (0.5, "500 ms"), (2.0, "2 s")],
)
def test_readable(value_s: float, said: str) -> None:
    """In the unit that fits."""
    assert readable(value_s) == said
