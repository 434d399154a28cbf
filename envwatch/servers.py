"""The rows of an MCP client's configuration, and how a local one is wrapped. Pure.

A file has an object `mcpServers` or `servers`; each of its keys is a row. A row that
starts a local program (`command`, with or without `args`, and `type` left out or
`stdio`) is wrapped like this, everything else of the file stays byte for byte:

    "command": "npx",                  "command": "/path/of/envwatch",
    "args": ["-y", "a-server"]         "args": ["exec", "--", "/w", "npx", "-y", "a-server"]

A name of the row's own `env` becomes a `--keep=NAME` before `--`: the client sets it
for this one server, so an `.envrc` does not overrule it. The value stays in `env`.

Everything that was there is still there, so unwrapping needs no memory: the command's
own text is an item of `args`, and the items before it are ours. A row that had no
`args` gets some right after its `command`, written without spaces; that alone tells it
from a row whose `args` were empty.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from posixpath import basename

from envwatch.errors import BadFile
from envwatch.jsonc import JsoncError, Kind, Member, Value, edited, parse
from envwatch.order import UsageError, parsed
from kernel_client.environment import is_text

SECTIONS = ("mcpServers", "servers")
"""Where clients keep their rows."""

_REMOTE = ("url", "serverUrl", "httpUrl")
_STDIO = "stdio"
_EXEC = "exec"

Edit = tuple[int, int, str]


class State(StrEnum):
    """What a row is to us."""

    LOCAL = "local"
    WRAPPED = "wrapped"
    LEFT = "left"


@dataclass(frozen=True, slots=True)
class Row:
    """One row: where it is in the text, and what it is.

    `name` is its key; `reason` tells why it is `LEFT` as it is; `workspace` is the
    folder that a `WRAPPED` one starts in, and `ours` how many of its `args` are ours,
    the original command among them; `words` are these without the command.
    """

    name: str
    value: Value
    state: State
    reason: str = ""
    workspace: str = ""
    ours: int = 0
    words: tuple[str, ...] = ()


def rows(text: str) -> list[Row]:
    """Give the rows of a configuration, in order.

    Raises:
        BadFile: it is no JSON, or has no rows of MCP servers.
    """
    try:
        top = parse(text)
    except JsoncError as error:
        raise BadFile(f"it is not JSON: {error}") from None
    sections = [each.value for each in top.members if each.key.text in SECTIONS]
    if not sections or any(each.kind is not Kind.OBJECT for each in sections):
        raise BadFile("it has no object mcpServers or servers, as an MCP client's has")
    return [_row(each) for section in sections for each in section.members]


def wrapped(text: str, program: str, workspace: str, options: tuple[str, ...]) -> str:
    """Give the text with every local row wrapped; the same text when there is none.

    `program` is the path of the `envwatch` command, `workspace` the folder, both
    absolute; `options` go to `exec` in every row.

    Raises:
        BadFile: as with `rows`.
    """
    edits: list[Edit] = []
    for row in rows(text):
        if row.state is State.LOCAL:
            edits += _wrapping(text, row.value, program, workspace, options)
    return edited(text, edits)


def is_otherwise(row: Row, workspace: str, options: tuple[str, ...]) -> bool:
    """Tell whether a row is wrapped, but not as `wrapped` would do it now."""
    return row.state is State.WRAPPED and row.words != _words(
        row.value, workspace, options
    )


def unwrapped(text: str) -> str:
    """Give the text with every wrapped row as it was before.

    Raises:
        BadFile: as with `rows`.
    """
    edits: list[Edit] = []
    for row in rows(text):
        if row.state is State.WRAPPED:
            edits += _unwrapping(text, row)
    return edited(text, edits)


# ------------------------------------------------------------------ one row


def _row(member: Member) -> Row:
    name, value = member.key.text, member.value
    reason = _not_local(value)
    if reason:
        return Row(name, value, State.LEFT, reason)
    command, args = value.get("command"), value.get("args")
    words = [] if args is None else [item.text for item in args.items]
    is_ours = command is not None and basename(command.text) == "envwatch"
    if not is_ours or words[:1] != [_EXEC]:
        return Row(name, value, State.LOCAL)
    try:
        order = parsed(words[1:])
    except UsageError:
        return Row(name, value, State.LEFT, "an envwatch exec that cannot be read")
    ours = len(words) - len(order.argv) + 1
    before = tuple(words[: ours - 1])
    return Row(name, value, State.WRAPPED, "", order.folder, ours, before)


def _not_local(value: Value) -> str:  # noqa: PLR0911 - one reason each
    """Tell why a row does not start a local program, or ""."""
    if value.kind is not Kind.OBJECT:
        return "not an object"
    keys = [member.key.text for member in value.members]
    if len(set(keys)) < len(keys):
        return "a key is there twice"
    if any(key in keys for key in _REMOTE):
        return "reached by a URL"
    kind = value.get("type")
    if kind is not None and kind.text != _STDIO:
        return "its type is not stdio"
    command = value.get("command")
    if command is None or not command.text:
        return "no command"
    args = value.get("args")
    if args is not None and (
        args.kind is not Kind.ARRAY
        or any(item.kind is not Kind.STRING for item in args.items)
    ):
        return "its args are not a list of strings"
    env = value.get("env")
    if env is not None and env.kind is not Kind.OBJECT:
        return "its env is not an object"
    if env is not None and not all(is_text(each.key.text) for each in env.members):
        return "a name in its env is not UTF-8"
    return ""


def _words(row: Value, workspace: str, options: tuple[str, ...]) -> tuple[str, ...]:
    """Give what stands before a row's own command."""
    env = row.get("env")
    kept = [] if env is None else [each.key.text for each in env.members]
    keeps = [f"--keep={name}" for name in dict.fromkeys(kept) if name]
    return (_EXEC, *options, *keeps, "--", workspace)


def _wrapping(
    text: str, row: Value, program: str, workspace: str, options: tuple[str, ...]
) -> list[Edit]:
    command, args = row.get("command"), row.get("args")
    assert command is not None  # noqa: S101 - a local row has one
    ours = [
        *(_quoted(word) for word in _words(row, workspace, options)),
        text[command.start : command.end],
    ]
    edits = [(command.start, command.end, _quoted(program))]
    if args is None:
        key = next(each.key for each in row.members if each.value is command)
        gap, colon = _style(text, row, key, command)
        added = f',{gap}"args"{colon}[{",".join(ours)}]'
        # Where the command ends: an edit of its own would be over that one.
        return [(command.start, command.end, _quoted(program) + added)]
    if not args.items:
        edits.append((args.start + 1, args.start + 1, ", ".join(ours)))
    else:
        first = args.items[0].start
        key = next(each.key for each in row.members if each.value is args)
        gap = "" if text[key.end : args.start] == ":" else " "
        between = "," + (_line_start(text[args.start + 1 : first]) or gap)
        edits.append((first, first, "".join(item + between for item in ours)))
    return edits


def _unwrapping(text: str, row: Row) -> list[Edit]:
    command, args = row.value.get("command"), row.value.get("args")
    assert command is not None  # noqa: S101 - a wrapped row has both
    assert args is not None  # noqa: S101
    ours, rest = args.items[: row.ours], args.items[row.ours :]
    first, last = ours[0], ours[-1]
    edits = [(command.start, command.end, text[last.start : last.end])]
    if rest:
        edits.append((first.start, rest[0].start, ""))
    elif _is_added(text, row.value, command, args):
        edits.append((command.end, args.end, ""))
    else:
        edits.append((first.start, last.end, ""))
        if args.last_comma is not None:
            edits.append((args.last_comma, args.last_comma + 1, ""))
    return edits


def _is_added(text: str, row: Value, command: Value, args: Value) -> bool:
    """Tell whether these `args` were put there with the wrapping."""
    members = row.members
    places = [each.value for each in members]
    follows = places.index(args) == places.index(command) + 1
    key = members[places.index(args)].key
    compact = "[" + ",".join(text[item.start : item.end] for item in args.items) + "]"
    return (
        follows
        and text[command.end : key.start].strip() == ","
        and text[args.start : args.end] == compact
    )


# ------------------------------------------------------------------ style


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _line_start(trivia: str) -> str:
    """Give the line end and the indent that come before a value, or ""."""
    head, end, tail = trivia.rpartition("\n")
    if not end:
        return ""
    found = re.match(r"[ \t]*", tail)
    indent = "" if found is None else found[0]
    return ("\r\n" if head.endswith("\r") else "\n") + indent


def _style(text: str, row: Value, key: Value, value: Value) -> tuple[str, str]:
    """Give how a row writes (what is before a key, what is after it)."""
    before = max(
        (each.value.end for each in row.members if each.value.end <= key.start),
        default=row.start + 1,
    )
    colon = text[key.end : value.start]
    if colon.strip() != ":":
        colon = ": "
    line_start = _line_start(text[before : key.start])
    return line_start or (" " if colon != ":" else ""), colon
