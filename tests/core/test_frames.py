"""Frames that are put together from pieces are what the whole would be."""

from __future__ import annotations

import pytest

from envwatch.core import frames
from kernel_client import messages, wire

TEXTS = ["", 'a "quoted" \\ line', "tab\tbell\a", "ü \udcff \U0001f600", "\u2028\r"]


def test_lines_are_a_progress_each() -> None:
    """In their order, and nothing of them breaks the framing."""
    data = frames.said(7, 1.25, [frames.line(text) for text in TEXTS])
    heard = wire.Decoder().feed(data)
    assert [messages.check(frame)["line"] for frame in heard] == TEXTS
    assert {(f["type"], f["id"], f["elapsed_s"]) for f in heard} == {
        ("progress", 7, 1.25)
    }


@pytest.mark.parametrize("shared", [True, False])
def test_a_diff_is_spliced_from_what_all_get(*, shared: bool) -> None:
    """The members that are encoded once, and those of one kernel."""
    fields = {
        "outcome": "loaded",
        "set": dict(zip("ABCDE", TEXTS, strict=True)),
        "unset": ["X"],
        "messages": TEXTS,
        "seconds": 0.5,
    }
    data = frames.diff(
        2**53 - 1,
        body=frames.members(fields),
        snapshot=b"null",
        ago_s=-0.1,
        shared=shared,
    )
    (diff,) = wire.Decoder().feed(data)
    assert messages.check(diff) == {
        "type": "diff",
        "id": 2**53 - 1,
        "evaluated_s_ago": 0.0,
        "shared": shared,
        "snapshot": None,
        **fields,
    }
