"""What a refresh tells of itself."""

from __future__ import annotations

from kernel_client import result
from kernel_client.result import Result


def test_nothing_happened() -> None:
    """A bare result has names, messages and seconds of nothing."""
    bare = Result(result.UNCHANGED)
    assert (bare.outcome, bare.root_file) == ("unchanged", None)
    assert bare.set_names == bare.unset_names == bare.messages == ()
    assert (bare.answered, bare.seconds) == ("none", 0.0)


def test_repr_counts_names() -> None:
    """What somebody may log has the outcome and counts, and no names of variables."""
    made = Result(
        "loaded", "/w/.envrc", names=(("A", "B"), ("C",)), answered=result.SIDECAR
    )
    text = repr(made)
    assert made.set_names == ("A", "B")
    assert made.unset_names == ("C",)
    for word in ("loaded", "/w/.envrc", "2 set", "1 unset", "sidecar"):
        assert word in text
