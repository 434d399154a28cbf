r"""What a person is shown of a root file: its content, or what changed in it.

A file must not be able to paint over its own picture. So every character that is
not plainly visible is written as an escape and marked as such: control characters
(CR, ESC), bytes that are no UTF-8, bidirectional and zero-width controls, letters
that are written from right to left or on top of their neighbour, blanks that are
no space. Lines end at `\n` alone, each begins with a sign of ours, and a long one
is folded with a mark of ours, so that no text of the file stands where a line of
the question could stand.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from typing import NamedTuple

MAX_BYTES = 128 * 1024
MAX_LINES = 1000
"""More than this nobody reads before pressing a key: it is not asked about."""

FOLD = "\\"
"""At the end of a line that goes on in the next one; marked as an escape is."""

MAX_PAIRS = 100_000
"""More equal lines than this, each with each, take seconds to be compared."""

_CONTEXT = 3
_HIDDEN = frozenset("\u115f\u1160\u2800\u3164\uffa0")
_STACKED = ("Mn", "Me", "Mc")
_LEFTWARD = ("R", "AL", "AN")
_TAB = "→   "


class Kind(StrEnum):
    """What a line is."""

    SAME = " "
    ADDED = "+"
    REMOVED = "-"
    PLACE = "@"
    """Where in the file the next lines are."""


class Piece(NamedTuple):
    """A part of a line; `is_escape`: our way to write what cannot be shown."""

    text: str
    is_escape: bool = False


class Line(NamedTuple):
    """One line; its kind is its sign, which the file cannot forge."""

    kind: Kind
    pieces: tuple[Piece, ...]

    @property
    def text(self) -> str:
        """The line without marks, its sign first."""
        return self.kind.value + "".join(piece.text for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class Exhibit:
    """All that is shown of a file.

    `is_whole`: every line of the file is there; otherwise they are those that
    differ from what was allowed. `refusal`: why it cannot be shown in full, and
    then there is no line, and nothing is asked.
    """

    lines: tuple[Line, ...]
    is_whole: bool = True
    refusal: str | None = None


def exhibit(content: bytes, allowed: bytes | None = None) -> Exhibit:
    """Show a file: what changed since `allowed`, or the whole of it."""
    if len(content) > MAX_BYTES:
        return _refused(f"it has more than {MAX_BYTES // 1024} KiB")
    if content.count(b"\n") > MAX_LINES:
        return _refused(f"it has more than {MAX_LINES} lines")
    if allowed is not None and allowed != content:
        lines = _difference(allowed, content)
        if lines is not None:
            return Exhibit(lines, is_whole=False)
    if not content:
        # A view can tell that it was shown, and so can a person.
        return Exhibit((Line(Kind.PLACE, (Piece("@ an empty file @@"),)),))
    return Exhibit(tuple(_lines(Kind.SAME, content)))


def escaped(raw: bytes) -> tuple[Piece, ...]:
    """Write the bytes of one line so that each is seen, whatever shows them."""
    pieces: list[Piece] = []
    plain = ""
    for letter in raw.decode("utf-8", "surrogateescape"):
        if _is_plain(letter):
            plain += letter
            continue
        if plain:
            pieces.append(Piece(plain))
            plain = ""
        pieces.append(Piece(_escape(letter), is_escape=True))
    if plain:
        pieces.append(Piece(plain))
    return tuple(pieces)


def spelled(text: str) -> tuple[Piece, ...]:
    """Write a path or a message on one line in the same way."""
    return escaped(text.encode("utf-8", "surrogateescape"))


def folded(line: Line, width: int) -> Iterator[Line]:
    """Cut a line so that it, with its sign, is at most `width` cells wide.

    Each part has the line's sign, and each but the last ends with `FOLD`.
    """
    room = max(4, width) - len(line.kind.value) - len(FOLD)
    part: list[Piece] = []
    used = 0
    for text, is_escape in line.pieces:
        piece = ""
        for letter in text:
            cells = _cells(letter)
            if used + cells > room:
                if piece:
                    part.append(Piece(piece, is_escape))
                    piece = ""
                part.append(Piece(FOLD, is_escape=True))
                yield Line(line.kind, tuple(part))
                part, used = [], 0
            piece += letter
            used += cells
        if piece:
            part.append(Piece(piece, is_escape))
    yield Line(line.kind, tuple(part))


def _is_plain(letter: str) -> bool:
    return (
        letter.isprintable()
        and letter not in _HIDDEN
        and unicodedata.category(letter) not in _STACKED
        and unicodedata.bidirectional(letter) not in _LEFTWARD
    )


def _escape(letter: str) -> str:
    code = ord(letter)
    if letter == "\t":
        return _TAB
    if 0xDC80 <= code <= 0xDCFF:  # noqa: PLR2004 - what surrogateescape makes of a byte
        return f"\\x{code - 0xDC00:02x}"
    return letter.encode("unicode_escape").decode("ascii")


def _cells(letter: str) -> int:
    # Ambiguous ones take two cells in some terminals: a line may be folded early,
    # but never by the terminal itself, which would put no sign before the rest.
    return 2 if unicodedata.east_asian_width(letter) in "WFA" else 1


def _refused(reason: str) -> Exhibit:
    return Exhibit((), refusal=f"{reason}, which is too much to be read here")


def _lines(kind: Kind, content: bytes) -> Iterator[Line]:
    parts = content.split(b"\n")
    last = parts.pop()
    for part in parts:
        yield Line(kind, escaped(part))
    if last:
        end = Piece("  (no newline at the end)", is_escape=True)
        yield Line(kind, (*escaped(last), end))


def _difference(before: bytes, after: bytes) -> tuple[Line, ...] | None:
    """Give a unified difference; None where the file itself is the shorter text.

    The same where the two have so many equal lines that comparing would take long.
    """
    if len(before) > MAX_BYTES or before.count(b"\n") > MAX_LINES:
        return None
    have = Counter(_split(before))
    if sum(have[line] for line in _split(after)) > MAX_PAIRS:
        return None
    # Without the last newline a last line is another line than with it.
    old, new = list(_lines(Kind.SAME, before)), list(_lines(Kind.SAME, after))
    # On bytes, never on what is shown: two texts may look the same.
    matcher = SequenceMatcher(None, _split(before), _split(after), autojunk=False)
    found: list[Line] = []
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        first, last = group[0], group[-1]
        found.append(_place(first[1], last[2], first[3], last[4]))
        for what, old_from, old_to, new_from, new_to in group:
            if what == "equal":
                found += new[new_from:new_to]
                continue
            found += [Line(Kind.REMOVED, each.pieces) for each in old[old_from:old_to]]
            found += [Line(Kind.ADDED, each.pieces) for each in new[new_from:new_to]]
    return tuple(found) if len(found) <= MAX_LINES else None


def _split(content: bytes) -> list[bytes]:
    parts = content.split(b"\n")
    last = parts.pop()
    return [part + b"\n" for part in parts] + ([last] if last else [])


def _place(old_from: int, old_to: int, new_from: int, new_to: int) -> Line:
    text = f"@ {_range(old_from, old_to)} +{_range(new_from, new_to)[1:]} @@"
    return Line(Kind.PLACE, (Piece(text),))


def _range(start: int, end: int) -> str:
    length = end - start
    first = start + 1 if length else start
    return f"-{first}" if length == 1 else f"-{first},{length}"
