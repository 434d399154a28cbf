"""What is shown of a file: all of it, and nothing that paints over it."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given, strategies as st

from envwatch.core.exhibit import (
    FOLD,
    MAX_BYTES,
    MAX_LINES,
    Kind,
    escaped,
    exhibit,
    folded,
)

contents = st.binary(max_size=60) | st.lists(
    st.sampled_from([b"a", b"b", b"\r", b"\x1b[2J", b"+x", b"@@ -1 +1 @@"]), max_size=9
).map(b"\n".join)


def texts(content: bytes, allowed: bytes | None = None) -> list[str]:
    """Give the lines as they are read."""
    return [line.text for line in exhibit(content, allowed).lines]


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"\x1b[2Jx", "\\x1b[2Jx"),
        (b"a\rb", "a\\rb"),
        (b"\x00\x07\x08\x7f", "\\x00\\x07\\x08\\x7f"),
        (b"\xc2\x9b2J", "\\x9b2J"),
        (b"\xff\xfe", "\\xff\\xfe"),
        (b"\xed\xa0\x80", "\\xed\\xa0\\x80"),
        ("\u202eabc\u2066".encode(), "\\u202eabc\\u2066"),
        ("a\u200bb\ufeff".encode(), "a\\u200bb\\ufeff"),
        ("\u05d0\u0627".encode(), "\\u05d0\\u0627"),
        ("e\u0301".encode(), "e\\u0301"),
        ("\u3164\u2800\u00a0\u00ad".encode(), "\\u3164\\u2800\\xa0\\xad"),
        ("\u2028\u0085".encode(), "\\u2028\\x85"),
        ("\U000e0041".encode(), "\\U000e0041"),
        (b"\tx", "→   x"),
        ("é漢😀".encode(), "é漢😀"),
    ],
)
def test_nothing_hides_or_moves_the_cursor(raw: bytes, shown: str) -> None:
    """Each such character is written out, and is marked as our writing."""
    pieces = escaped(raw)
    assert "".join(piece.text for piece in pieces) == shown
    plain = "".join(piece.text for piece in pieces if not piece.is_escape)
    assert plain.isprintable()
    assert "\\" not in plain


def test_what_looks_like_an_escape_is_not_marked() -> None:
    """A backslash of the file's own is no escape."""
    (piece,) = escaped(rb"\x1b[2J")
    assert not piece.is_escape


def test_whole_file() -> None:
    """Every line, each with a sign of ours."""
    assert texts(b"A=1\n+B\n@@ x") == [
        " A=1",
        " +B",
        " @@ x  (no newline at the end)",
    ]
    assert texts(b"") == ["@@ an empty file @@"]


def test_difference() -> None:
    """A unified one, on bytes: what looks the same may differ."""
    before = b"".join(b"%d\n" % number for number in range(20))
    after = before.replace(b"10\n", b"ten\r\n")
    shown = exhibit(after, before)
    assert not shown.is_whole
    assert [line.text for line in shown.lines] == [
        "@@ -8,7 +8,7 @@",
        *(" 7", " 8", " 9", "-10", "+ten\\r", " 11", " 12", " 13"),
    ]
    assert texts(b"A=\\x1b\n", b"A=\x1b\n") == ["@@ -1 +1 @@", "-A=\\x1b", "+A=\\x1b"]
    assert texts(b"a", b"a\n")[1:] == ["-a", "+a  (no newline at the end)"]


def test_what_takes_long_to_compare() -> None:
    """Equal lines over and over: the whole file, at once."""
    before, after = b":\n" * 1000, b":\n#\n" * 500
    shown = exhibit(after, before)
    assert shown.is_whole
    assert len(shown.lines) == 1000
    assert not exhibit(after[:400], before[:400]).is_whole
    # 100,000 pairs of equal lines are the bound.
    assert exhibit(b":\n" * 317 + b"#\n", b":\n" * 317).is_whole
    assert not exhibit(b":\n" * 316 + b"#\n", b":\n" * 316).is_whole


def test_same_content_or_a_long_one_before() -> None:
    """The file itself is shown where a difference would be none, or longer."""
    assert exhibit(b"a\n", b"a\n").is_whole
    assert exhibit(b"a\n", b"b" * (MAX_BYTES + 1)).is_whole
    many = b"".join(b"%d\n" % number for number in range(MAX_LINES))
    assert exhibit(b"a\n", many).is_whole
    assert len(texts(b"a\n", many)) == 1


@pytest.mark.parametrize(
    "content", [b"A" * (MAX_BYTES + 1), b"A\n" * (MAX_LINES + 1), b"A" * 5_000_000]
)
def test_too_much(content: bytes) -> None:
    """It is refused with a reason, and no part of it is shown."""
    shown = exhibit(content, b"A\n")
    assert (shown.lines, shown.is_whole) == ((), True)
    assert shown.refusal is not None
    assert exhibit(b"A\n" * MAX_LINES).refusal is None


@given(before=contents, after=contents)
def test_a_difference_is_the_one_of_difflib(before: bytes, after: bytes) -> None:
    """As many lines added and removed; the whole file can be told from it."""
    if before == after:
        return
    shown = exhibit(after, before)
    kinds = [line.kind for line in shown.lines]
    expected = list(
        difflib.diff_bytes(
            difflib.unified_diff,
            before.split(b"\n") if before else [],
            after.split(b"\n") if after else [],
            lineterm=b"",
        )
    )
    if b"\n" in before[-1:] and b"\n" in after[-1:]:
        assert kinds.count(Kind.ADDED) == sum(x[:1] == b"+" for x in expected[2:])
    assert kinds.count(Kind.ADDED) + kinds.count(Kind.REMOVED) > 0
    for line in shown.lines:
        assert line.text.isprintable()
        assert line.text[0] in " +-@"


@given(content=contents, width=st.integers(min_value=1, max_value=30))
def test_folding_loses_nothing(content: bytes, width: int) -> None:
    """Every part fits, has the sign, and all of them are the line."""
    for line in exhibit(content).lines:
        parts = list(folded(line, width))
        assert all(len(part.text) <= max(4, width) for part in parts)
        assert all(part.kind is line.kind for part in parts)
        bare = [part.text[1:] for part in parts]
        assert all(text.endswith(FOLD) for text in bare[:-1])
        joined = "".join(text.removesuffix(FOLD) for text in bare[:-1]) + bare[-1]
        assert joined == line.text[1:]


def test_wide_characters_take_two_cells() -> None:
    """Nothing is pushed over the edge by them."""
    (line,) = exhibit("漢漢漢漢\n".encode()).lines
    assert [part.text for part in folded(line, 6)] == [" 漢漢\\", " 漢漢"]
    (line,) = exhibit("§§§§\n".encode()).lines
    assert [part.text for part in folded(line, 6)] == [" §§\\", " §§"]
