"""Environments as values: base, what is passed to direnv, fingerprint, changes.

Everything here takes mappings of str to str and gives new ones. Text is as
`os.environ` has it: bytes that are not UTF-8 are lone surrogates.
"""

from __future__ import annotations

import sys

from kernel_client import lean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, Optional

    Environment = dict[str, str]
    PutBack = dict[str, Optional[str]]

THE_FOUR = ("DIRENV_DIR", "DIRENV_FILE", "DIRENV_WATCHES", "DIRENV_DIFF")
"""What direnv keeps of a load in the environment itself."""

UNSHARED = frozenset({"PWD", "OLDPWD", "SHLVL", "_"})
"""Names of direnv's ignored keys that say where a process is, not what it is.

The rest of direnv's ignored keys (`SHELL`, `DIRENV_CONFIG`, `DIRENV_BASH`)
change what an evaluation does, so they stay.
"""

WITHHELD = ("JPY_*",)
"""Patterns of per-session names that are withheld from every evaluation."""

QUIET = "DIRENV_WARN_TIMEOUT"
"""Silences direnv's own hint after five seconds; `0` would not (case 30)."""

MAX_VARIABLE_BYTES = 128 * 1024
"""Linux refuses to exec with one `NAME=VALUE` and its NUL longer than this."""


NAMES_ARE_UTF8 = sys.getfilesystemencoding() == "utf-8"
"""Whether names, paths and values are here what they are to direnv."""


def is_text(text: str) -> bool:
    """Tell whether a text came from bytes that are UTF-8."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def as_direnv_writes(path: str) -> str:
    """Give a path as direnv's JSON has it: U+FFFD for each byte that is no UTF-8."""
    if is_text(path):
        return path
    return "".join("\ufffd" if "\ud800" <= each <= "\udfff" else each for each in path)


def is_passable(name: str, value: str) -> bool:
    """Tell whether direnv can be given a variable and hand it back as it is."""
    return (
        bool(name)
        and "=" not in name
        and "\0" not in name
        and "\0" not in value
        and is_text(name)
        and is_text(value)
    )


def is_withheld(name: str, patterns: Iterable[str]) -> bool:
    """Tell whether a name matches one of the withheld patterns."""
    return bool(_matcher(tuple(patterns))(name))


_matchers: dict[tuple[str, ...], Callable[[str], Any]] = {}


def _matcher(patterns: tuple[str, ...]) -> Callable[[str], Any]:
    """Give one test for all patterns: an environment has hundreds of names."""
    found = _matchers.get(patterns)
    if found is None:
        found = _matchers[patterns] = _made(patterns)
    return found


def _made(patterns: tuple[str, ...]) -> Callable[[str], Any]:
    prefixes = tuple(pattern[:-1] for pattern in patterns if pattern[-1:] == "*")
    if len(prefixes) == len(patterns) and not any(
        special in prefix for prefix in prefixes for special in "*?["
    ):
        # Beginnings of names, as most are: importing `re` costs milliseconds.
        return lambda name: name.startswith(prefixes)
    import re
    from fnmatch import translate

    return re.compile("|".join(map(translate, patterns))).match


def take_back(environ: Mapping[str, str], put_back: PutBack | None) -> Environment:
    """Give the base: what was loaded is taken back and the four are gone."""
    base = dict(environ)
    if put_back:
        for name, value in put_back.items():
            if value is None:
                base.pop(name, None)
            else:
                base[name] = value
    for name in THE_FOUR:
        base.pop(name, None)
    return base


def passed(base: Mapping[str, str], withheld: Iterable[str] = ()) -> Environment:
    """Give the part of a base that an evaluation is allowed to see.

    Left out: `UNSHARED`, withheld names, names that no exec can pass on, and
    variables that are not UTF-8 (direnv would hand them back mangled, DIRENV.md case 24).
    """
    keeps_out = _matcher(tuple(withheld))
    return {
        name: value
        for name, value in base.items()
        if name not in UNSHARED and not keeps_out(name) and is_passable(name, value)
    }


def fingerprint(environment: Mapping[str, str]) -> str:
    """Give the SHA-256 in hexadecimal that PROTOCOL.md defines."""
    pairs = sorted(
        (name.encode(), value.encode()) for name, value in environment.items()
    )
    return lean.sha256(b"".join(b"%b=%b\0" % pair for pair in pairs))


def put_back_of(
    base: Mapping[str, str], to_set: Mapping[str, str], unset: Iterable[str]
) -> PutBack:
    """Give what takes a diff back from an environment that it was applied to."""
    return {name: base.get(name) for name in (*to_set, *unset)}


def breaking_name(environment: Mapping[str, str], names: Iterable[str]) -> str | None:
    """Give the first of `names` that no exec could pass on, or None.

    That is: a variable of 128 KiB or more, or one whose name is empty or has a
    `=` or whose text has a NUL.
    """
    for name in names:
        value = environment.get(name)
        if value is None:
            continue
        if not name or "=" in name or "\0" in name or "\0" in value:
            return name
        if len(name) + len(value) < MAX_VARIABLE_BYTES // 4:
            continue
        size = len(name.encode(errors="surrogateescape"))
        size += len(value.encode(errors="surrogateescape")) + 2
        if size > MAX_VARIABLE_BYTES:
            return name
    return None


def size_bytes(environment: Mapping[str, str]) -> int:
    """Give what an exec counts for this environment, its pointers included."""
    return sum(
        len(name.encode(errors="surrogateescape"))
        + len(value.encode(errors="surrogateescape"))
        + 10
        for name, value in environment.items()
    )
