"""Lines that a second run repeats are heard once."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from kernel_client.echo import Echo

LINES = st.lists(st.sampled_from("abc"), max_size=6)


@given(LINES, LINES)
def test_same_run_again_says_nothing(first: list[str], more: list[str]) -> None:
    """Only what comes after the repeated lines is news."""
    heard: list[str] = []
    echo = Echo(heard.append)
    for line in first:
        echo(line)
    echo.again()
    for line in (*first, *more):
        echo(line)
    assert heard == echo.heard == [*first, *more]


@pytest.mark.parametrize(
    ("second", "heard"),
    [
        (["a", "x", "c"], ["a", "b", "c", "x", "c"]),
        (["x", "a"], ["a", "b", "c", "x", "a"]),
        (["a"], ["a", "b", "c"]),
        ([], ["a", "b", "c"]),
    ],
    ids=["other line", "other from the start", "shorter", "nothing"],
)
def test_another_run(second: list[str], heard: list[str]) -> None:
    """From the first line that differs on, everything is heard."""
    said: list[str] = []
    echo = Echo(said.append)
    for line in "abc":
        echo(line)
    echo.again()
    for line in second:
        echo(line)
    assert said == heard
