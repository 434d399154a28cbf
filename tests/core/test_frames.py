"""Frames that are put together from pieces are what the whole would be."""

from __future__ import annotations

from typing import Any

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


@pytest.mark.parametrize(
    ("data", "frame"),
    [
        (
            frames.welcome("1.2", 7, {"path": "/d", "version": "2"}, fences=False),
            {
                "type": "welcome",
                "protocol": messages.PROTOCOL,
                "version": "1.2",
                "pid": 7,
                "direnv": {"path": "/d", "version": "2"},
                "capabilities": [],
            },
        ),
        (
            frames.welcome("1.2", 7, None, fences=True),
            {
                "type": "welcome",
                "protocol": messages.PROTOCOL,
                "version": "1.2",
                "pid": 7,
                "direnv": None,
                "capabilities": ["fence"],
            },
        ),
        (
            frames.fence("/w/.envrc", "digest", {"/w/z", "/w/a\udcff"}, "1 2 3"),
            {
                "type": "fence",
                "root": "/w/.envrc",
                "paths": "digest",
                "rest": ["/w/a\udcff", "/w/z"],
                "view": "1 2 3",
            },
        ),
        (frames.need_base(3), {"type": "need_base", "id": 3}),
        (
            frames.progress(3, 1.23456, None),
            {"type": "progress", "id": 3, "elapsed_s": 1.235, "line": None},
        ),
        (
            frames.changed("/w/.envrc", "files"),
            {"type": "changed", "root": "/w/.envrc", "reason": "files"},
        ),
        (frames.done(3, kernels=2), {"type": "done", "id": 3, "kernels": 2}),
        (
            frames.error(None, "order", "no hello"),
            {"type": "error", "id": None, "code": "order", "message": "no hello"},
        ),
    ],
    ids=[
        *("welcome", "welcome-fences", "fence", "need_base"),
        *("progress", "changed", "done", "error"),
    ],
)
def test_a_frame_is_what_the_protocol_says(data: bytes, frame: dict[str, Any]) -> None:
    """Whole and checked, as a kernel reads it."""
    assert [messages.check(each) for each in wire.Decoder().feed(data)] == [frame]


def test_a_splice_is_byte_for_byte_the_encoded_whole() -> None:
    """No other JSON than `wire.encode` makes, but for the order and three decimals."""
    fields = {"outcome": "loaded", "set": {"A": "ü"}, "unset": [], "messages": TEXTS}
    data = frames.diff(
        5,
        body=frames.members(fields),
        snapshot=b'[["/w","1 2 3 4 5",null,null]]',
        ago_s=1.125,
        shared=True,
    )
    head = {"type": "diff", "id": 5, "evaluated_s_ago": 1.125, "shared": True}
    seen = [["/w", "1 2 3 4 5", None, None]]
    assert data == wire.encode({**head, **fields, "snapshot": seen})
