"""Files that the text of a root file names: a hint for the person who reads it.

direnv checks the root file alone; what it pulls in loads with it. Only words are
looked at, nothing is evaluated and nothing depends on it: a name in a variable, or
one that another file pulls in, is not seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MAX_NAMES = 20
MAX_LETTERS = 300
"""So many at most in all names: a hint must leave room for what is asked."""

_PULLS = (
    *("source_env", "source_env_if_exists", "source_up", "source_up_if_exists"),
    *("dotenv", "dotenv_if_exists", "source_url", "source", r"\."),
    *("watch_file", "watch_dir"),
)
_WORDS = re.compile(
    r"(?:^|[;&|(]|\b(?:then|else|do)\s)[ \t]*(?:" + "|".join(_PULLS) + r")"
    r"(?:[ \t]+([^\n;&|()#]*)|[ \t]*$)",
    re.MULTILINE,
)
_BARE = {
    **dict.fromkeys(("source_up", "source_up_if_exists"), ".envrc"),
    **dict.fromkeys(("dotenv", "dotenv_if_exists"), ".env"),
}
_ABOVE = ("source_up", "source_up_if_exists")


def mentions(content: bytes) -> tuple[str, ...]:
    """Give the names that follow `source_env`, `watch_file` and their like.

    Where there are too many, the last entry says how many more.
    """
    found: dict[str, None] = {}
    for match in _WORDS.finditer(content.decode("utf-8", "replace")):
        command = match[0].lstrip(" \t\n;&|(").split()
        command = command[1:] if command[0] in ("then", "else", "do") else command
        words = [word.strip("'\"") for word in (match[1] or "").split()]
        if not words and command[0] in _BARE:
            words = [_BARE[command[0]]]
        above = " in a folder above" if command[0] in _ABOVE else ""
        for word in words:
            if word:
                found[f"{word}{above}"] = None
    return tuple(_bounded(list(found)))


def _bounded(names: list[str]) -> Iterator[str]:
    left = MAX_LETTERS
    for number, name in enumerate(names):
        if number == MAX_NAMES or len(name) > left:
            yield f"and {len(names) - number} more"
            return
        left -= len(name)
        yield name
