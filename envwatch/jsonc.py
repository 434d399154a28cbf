"""JSON with comments and trailing commas, read for the places of its values. Pure.

Whoever edits a person's file must leave alone what it does not mean to change. So the
text is never written out again: `parse` gives where each value begins and ends, and
`edited` puts other text in the place of some. Plain JSON is read all the same; only
what no client takes (unclosed strings, missing commas, a key without quotes) is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

MAX_DEPTH = 200
"""Deeper than this is nobody's configuration; and a limit of Python's is near."""

_TRIVIA = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_OTHER = re.compile(
    r"(?:true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)"
    r"(?![\w.+-])"
)


class Kind(Enum):
    """What a value is; `OTHER` is a number, true, false or null."""

    OBJECT = "object"
    ARRAY = "array"
    STRING = "string"
    OTHER = "other"


class JsoncError(Exception):
    """The text is no JSON; `line` counts from 1."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f"line {line}: {message}")
        self.line = line


@dataclass(slots=True)
class Value:
    """One value: the text from `start` up to `end`.

    `text` is what a string says; `members` are an object's, `items` an array's, in
    order; `last_comma` is where a trailing comma stands, or None.
    """

    kind: Kind
    start: int
    end: int
    text: str = ""
    members: list[Member] = field(default_factory=list["Member"])
    items: list[Value] = field(default_factory=list["Value"])
    last_comma: int | None = None

    def get(self, name: str) -> Value | None:
        """Give the value of an object's key; of several the last, as clients do."""
        found = [each.value for each in self.members if each.key.text == name]
        return found[-1] if found else None


@dataclass(slots=True)
class Member:
    """A key of an object, and its value."""

    key: Value
    value: Value


def parse(text: str) -> Value:
    """Read a whole text; a byte order mark before it is passed over.

    Raises:
        JsoncError: it is no JSON, even with comments and trailing commas.
    """
    reader = _Reader(text)
    value = reader.value(0)
    reader.skip()
    if reader.at < len(text):
        raise reader.error("something follows after the end")
    return value


def edited(text: str, edits: Iterable[tuple[int, int, str]]) -> str:
    """Put texts in the place of others: (start, end, text), none over another."""
    pieces: list[str] = []
    at = 0
    for start, end, replacement in sorted(edits):
        pieces += (text[at:start], replacement)
        at = end
    return "".join((*pieces, text[at:]))


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 1 if text.startswith("\ufeff") else 0

    def error(self, message: str) -> JsoncError:
        return JsoncError(self.text.count("\n", 0, self.at) + 1, message)

    def skip(self) -> None:
        """Pass over spaces and comments."""
        found = _TRIVIA.match(self.text, self.at)
        self.at = self.at if found is None else found.end()

    def next(self) -> str:
        """Give the next letter that is no space and in no comment, or ""."""
        self.skip()
        return self.text[self.at : self.at + 1]

    def value(self, depth: int) -> Value:
        """Read one value."""
        if depth > MAX_DEPTH:
            raise self.error("it is nested too deeply")
        letter = self.next()
        if letter == "{":
            return self.object(depth)
        if letter == "[":
            return self.array(depth)
        if letter == '"':
            return self.string()
        found = _OTHER.match(self.text, self.at)
        if found is None:
            raise self.error("a value is missing" if letter else "it ends too early")
        self.at = found.end()
        return Value(Kind.OTHER, *found.span())

    def string(self) -> Value:
        """Read a string."""
        found = _STRING.match(self.text, self.at)
        if found is None:
            raise self.error("a string is not closed, or not valid")
        self.at = found.end()
        return Value(Kind.STRING, *found.span(), text=json.loads(found[0]))

    def object(self, depth: int) -> Value:
        """Read an object."""
        made = Value(Kind.OBJECT, self.at, self.at)
        self.at += 1
        while self.next() != "}":
            if self.next() != '"':
                raise self.error("a key is missing")
            key = self.string()
            if self.next() != ":":
                raise self.error("a colon is missing")
            self.at += 1
            made.members.append(Member(key, self.value(depth + 1)))
            self.comma(made, "}")
        return self.closed(made)

    def array(self, depth: int) -> Value:
        """Read an array."""
        made = Value(Kind.ARRAY, self.at, self.at)
        self.at += 1
        while self.next() != "]":
            made.items.append(self.value(depth + 1))
            self.comma(made, "]")
        return self.closed(made)

    def comma(self, made: Value, end: str) -> None:
        """Pass over the comma after a value, which may be missing before the end."""
        if self.next() == ",":
            comma = self.at
            self.at += 1
            made.last_comma = comma if self.next() == end else None
        elif self.next() != end:
            raise self.error(
                "a comma is missing" if self.next() else "it ends too early"
            )

    def closed(self, made: Value) -> Value:
        """Pass over the closing bracket."""
        self.at += 1
        made.end = self.at
        return made
