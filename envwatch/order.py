"""What the command line of `envwatch exec` says. Pure."""

from __future__ import annotations

from envwatch.frozen import Rules
from envwatch.text import plain

USAGE = """\
Usage: envwatch exec [OPTIONS] [--] DIR CMD [ARG]...

  Run CMD in the environment that direnv gives a shell in DIR. Working folder,
  stdin, signals and exit code stay those of the caller. Where direnv does not
  load (blocked, denied, failed, ...), CMD is not run.

Options:
  --protect PREFIX  Names that begin so have the caller's values, whatever an
                    .envrc does to them. May be repeated, as the others.
  --clear PREFIX    Names that begin so do not reach CMD.
  --keep NAME       This name has the caller's value, when the caller has one.
  -h, --help        Show this message and exit.
"""


class UsageError(Exception):
    """A command line that cannot be understood; the message says why."""


class Order:
    """What a command line asks for: rules, DIR as given, CMD with its arguments."""

    __slots__ = ("argv", "folder", "rules")

    def __init__(self, rules: Rules, folder: str, argv: list[str]) -> None:
        self.rules = rules
        self.folder = folder
        self.argv = argv


def parsed(arguments: list[str]) -> Order:
    """Read what stands after `exec`.

    Raises:
        UsageError: it cannot be understood.
    """
    found: dict[str, list[str]] = {"--protect": [], "--clear": [], "--keep": []}
    left = iter(arguments)
    rest: list[str] = []
    for word in left:
        if not word.startswith("-") or word == "-":
            rest = [word, *left]
        elif word == "--":
            rest = [*left]
        else:
            name, has_value, value = word.partition("=")
            if name not in found:
                raise UsageError(f"no such option: {plain(name)}")
            found[name].append(_value(name, value if has_value else next(left, None)))
    if not rest:
        raise UsageError("DIR and CMD are missing")
    if len(rest) == 1:
        raise UsageError("CMD is missing")
    if not rest[0]:
        # Of a variable that is not set: the working folder was not meant.
        raise UsageError("DIR must not be empty")
    rules = Rules(
        protect=tuple(found["--protect"]),
        clear=tuple(found["--clear"]),
        keep=tuple(found["--keep"]),
    )
    return Order(rules, rest[0], rest[1:])


def _value(name: str, value: str | None) -> str:
    if value is None:
        raise UsageError(f"{name} needs a value")
    if not value:
        # It would protect, or clear, every variable there is.
        raise UsageError(f"{name} must not be empty")
    return value
