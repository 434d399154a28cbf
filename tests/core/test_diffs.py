"""Kept diffs are bounded by bytes."""

from __future__ import annotations

from envwatch.core.diffs import Diffs, Kept
from envwatch.core.events import Key
from tests.core.conftest import result_of


def kept(name: str, size: int) -> Kept:
    """Give a kept diff of a size."""
    return Kept(Key("/d", f"/{name}", "f"), result_of(), 0.0, size, 1)


def test_the_least_recently_used_goes_first() -> None:
    """A use is a hand-out, not only a put."""
    diffs = Diffs(100)
    for name in ("a", "b"):
        diffs.put(kept(name, 50))
    assert diffs.get(Key("/d", "/a", "f")) is not None
    assert diffs.put(kept("c", 50)) == [Key("/d", "/b", "f")]
    assert {each.key.root for each in diffs} == {"/a", "/c"}
    assert diffs.size == 100


def test_what_is_larger_than_the_bound_is_not_kept() -> None:
    """It does not push everything else out either."""
    diffs = Diffs(100)
    diffs.put(kept("a", 50))
    diffs.put(kept("b", 101))
    assert [each.key.root for each in diffs] == ["/a"]


def test_dropping_gives_the_bytes_back() -> None:
    """By key, by root file, and by replacing."""
    diffs = Diffs(1000)
    diffs.put(kept("a", 50))
    diffs.put(kept("a", 60))
    assert (diffs.size, len(diffs)) == (60, 1)
    diffs.drop_root("/a")
    assert (diffs.size, len(diffs)) == (0, 0)


def test_shared_tells_of_another_session_only() -> None:
    """The same kernel asking again does not share with itself."""
    one = kept("a", 1)
    assert [one.give(1), one.give(1), one.give(2), one.give(1)] == [
        False,
        False,
        True,
        True,
    ]
