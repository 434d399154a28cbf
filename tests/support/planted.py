"""The planted secret: every `.envrc` of the tests exports it, nothing may say it.

What a test run said (messages, exceptions, captured output, logs of daemons) is
collected here and searched for the marker when the session ends.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

PLANTED = "s3cr3t-7f1c94e2b80d5a36"
"""In every value of every `.envrc`; never in a message, a log or an exception."""

_said: list[tuple[str, str]] = []
_logs: list[Path] = []


def secret(name: str) -> str:
    """Give a value that must not be said, safe inside single and double quotes."""
    return f"{PLANTED}.{name}"


def collect(where: str, text: str) -> None:
    """Keep a text that somebody was shown; only texts with the marker stay."""
    if PLANTED in text:
        _said.append((where, text))


def register_log(path: Path) -> None:
    """Have a file searched now, when it is dropped, and at the end of the session."""
    _logs.append(path)


def drop_log(path: Path) -> None:
    """Search a file for the last time, before it is removed."""
    _read(path)
    if path in _logs:
        _logs.remove(path)


def leaks() -> list[str]:
    """Give one line for each place where the marker was said."""
    for path in _logs:
        _read(path)
    found = (
        f"{where}: {line.replace(PLANTED, '<the planted secret>')}"
        for where, text in _said
        for line in text.splitlines()
        if PLANTED in line
    )
    return list(dict.fromkeys(found))


def _read(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        collect(str(path), path.read_text(errors="replace"))


def exports(*names: str, tag: str = "") -> str:
    """Give the body of a file that exports these names, each with a secret value."""
    return "".join(f"export {name}='{secret(name + tag)}'\n" for name in names)
