"""How a question looks."""

from __future__ import annotations

from dataclasses import replace

from envwatch.core.exhibit import exhibit
from envwatch.core.question import Subject
from envwatch.views.painting import head, page, plain

SUBJECT = Subject(
    root="/w\x1b\n/.envrc",
    state="blocked: new",
    fingerprint="",
    exhibit=exhibit(b"[b]A[/b]\x1b\n", b"old\n"),
    origin="the whole file",
    names=("a\x1b",),
)


def test_head() -> None:
    """Path, state, origin and names, none of which can forge a line."""
    assert head(SUBJECT, "not allowed").plain.split("\n") == [
        "not allowed",
        "/w\\x1b\\n/.envrc is blocked: new",
        "the whole file",
        "it names (direnv does not check them): a\\x1b",
    ]
    assert len(head(replace(SUBJECT, names=(), origin="")).plain.split("\n")) == 1


def test_page() -> None:
    """Markup stays text; an escape is reversed, what changed has its colour."""
    painted = page(SUBJECT.exhibit.lines)
    assert painted.plain == "@@ -1 +1 @@\n-old\n+[b]A[/b]\\x1b"
    styles = {
        painted.plain[span.start : span.end]: span.style for span in painted.spans
    }
    assert styles["\\x1b"] == "$text-success reverse"
    assert styles["old"] == "$text-error"


def test_plain() -> None:
    """A path that is no UTF-8 can be written anywhere."""
    assert plain("/\udcff\u202e") == "/\\xff\\u202e"
