"""JSON with comments and trailing commas: where its values are. Pure."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from envwatch.jsonc import MAX_DEPTH, JsoncError, Kind, Value, edited, parse

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def given_back(text: str, value: Value) -> Any:
    """Give what a parsed text says, read from the places of its values."""
    if value.kind is Kind.OBJECT:
        return {each.key.text: given_back(text, each.value) for each in value.members}
    if value.kind is Kind.ARRAY:
        return [given_back(text, item) for item in value.items]
    if value.kind is Kind.STRING:
        assert json.loads(text[value.start : value.end]) == value.text
        return value.text
    return json.loads(text[value.start : value.end])


@given(VALUES, st.sampled_from([None, 0, 2]), st.booleans())
def test_every_json(value: Any, indent: int | None, ascii_only: object) -> None:
    """What json writes is read as json reads it."""
    text = json.dumps(value, indent=indent, ensure_ascii=bool(ascii_only))

    assert given_back(text, parse(text)) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("// a\n[1, /* b, ] */ 2] // c", [1, 2]),
        ("[1,]", [1]),
        ("[ /**/ ]", []),
        ('{"a": 1 /* , */ , }', {"a": 1}),
        ('{"a" /*:*/ : /* x */ 1}', {"a": 1}),
        ('["// no comment", "/* nor */"]', ["// no comment", "/* nor */"]),
        ("\ufeff[]", []),
        ("[\r\n1,\r\n2\r\n]\r\n", [1, 2]),
        ('{"a": 1, "a": 2}', {"a": 2}),
        (r'"\u00e9\ud83d\ude00\/\n"', "é😀/\n"),
        ("// only at the end\n-1.5e3", -1.5e3),
    ],
)
def test_comments_and_commas(text: str, value: Any) -> None:
    """What clients allow beyond JSON."""
    assert given_back(text, parse(text)) == value


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 1, "ends too early"),
        ("\n// x", 2, "ends too early"),
        ("[1\n", 2, "ends too early"),
        ("[1 2]", 1, "comma is missing"),
        ("[,]", 1, "value is missing"),
        ("[1,,]", 1, "value is missing"),
        ("{,}", 1, "key is missing"),
        ("{a: 1}", 1, "key is missing"),
        ("{'a': 1}", 1, "key is missing"),
        ('{"a" 1}', 1, "colon is missing"),
        ('{"a":\n}', 2, "value is missing"),
        ('{"a": 1', 1, "ends too early"),
        ('"a\nb"', 1, "not closed"),
        (r'"\x"', 1, "not valid"),
        ("[1] 2", 1, "follows after the end"),
        ("[1] /* x", 1, "follows after the end"),
        ("01", 1, "value is missing"),
        ("1.", 1, "value is missing"),
        ("nulls", 1, "value is missing"),
        ("NaN", 1, "value is missing"),
        ("\u0661", 1, "value is missing"),
        ("[" * (MAX_DEPTH + 2), 1, "nested too deeply"),
    ],
)
def test_no_json(text: str, line: int, words: str) -> None:
    """The message tells the line, and nothing of the text."""
    with pytest.raises(JsoncError, match=words) as caught:
        parse(text)

    assert caught.value.line == line


@given(st.text(alphabet='{}[]",:/* \n\\a1'))
def test_any_text(text: str) -> None:
    """Any text is read or refused; what json reads is never refused."""
    try:
        parse(text)
    except JsoncError:
        with pytest.raises(json.JSONDecodeError):
            json.loads(text)


def test_last_comma() -> None:
    """Its place is known, and only where it is the last thing."""
    text = "[1, 2 , ]"

    assert parse(text).last_comma == text.rindex(",")
    assert parse("[1, 2]").last_comma is None


def test_edited() -> None:
    """Edits may come in any order; an empty span is an insertion."""
    assert edited("abcdef", [(4, 5, ""), (0, 1, "X"), (2, 2, "--")]) == "Xb--cdf"
    assert edited("abc", []) == "abc"
