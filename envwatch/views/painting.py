"""How a question looks in Textual; nothing of a file is taken for markup."""

from __future__ import annotations

from collections.abc import Iterable

from textual.content import Content

from envwatch.core.exhibit import Kind, Line, spelled
from envwatch.core.output import Line as OutputLine, Span
from envwatch.core.question import Subject

_STYLES = {
    Kind.SAME: "",
    Kind.ADDED: "$text-success",
    Kind.REMOVED: "$text-error",
    Kind.PLACE: "dim",
}
_ESCAPE_STYLE = "reverse"


def head(subject: Subject, note: str = "") -> Content:
    """Say what is asked about; `note` is what came of the last answer."""
    about = f"{plain(subject.root)} is {subject.state}"
    rows = (note, about, subject.origin, plain(subject.named))
    return Content("\n".join(row for row in rows if row))


def page(lines: Iterable[Line]) -> Content:
    """Give the lines of a file, what changed and what is escaped in their styles."""
    return Content("\n").join(_styled(line) for line in lines)


def printed(lines: Iterable[OutputLine]) -> Content:
    """Give the lines of a run's output, in the terminal's own colours."""
    return Content("\n").join(
        Content.assemble(*((span.text, _style(span)) for span in line))
        for line in lines
    )


def plain(text: str) -> str:
    """Give a path or a message on one line, everything unseen in it escaped."""
    return "".join(piece.text for piece in spelled(text))


def _style(span: Span) -> str:
    colour, is_bold, is_underlined = span.style
    words = {
        f"ansi_{colour}": bool(colour),
        "bold": is_bold,
        "underline": is_underlined,
        _ESCAPE_STYLE: span.is_escape,
    }
    return " ".join(word for word, is_meant in words.items() if is_meant)


def _styled(line: Line) -> Content:
    style = _STYLES[line.kind]
    parts: list[str | tuple[str, str]] = [(line.kind.value, style)]
    for text, is_escape in line.pieces:
        parts.append((text, f"{style} {_ESCAPE_STYLE}" if is_escape else style))
    return Content.assemble(*parts)
