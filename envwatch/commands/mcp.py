"""`envwatch mcp wrap|unwrap|status FILE`: an MCP client's local servers in a workspace.

The rows are those of `envwatch.servers`; here they are read, shown and written. A file
is written whole beside itself and renamed, with its mode, behind a link if it is one;
where nothing changes, nothing is written. Exit codes: 0 done, 65 FILE is no MCP client's
configuration (it stays as it is), 69 no `envwatch` command to start servers with, 74
FILE cannot be written (or has several names, which a rename would part), 75 it changed
meanwhile, 77 a server is wrapped already, but otherwise.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat as mode_bits
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import mkstemp

import click

from envwatch import servers
from envwatch.commands.arguments import Folder
from envwatch.errors import BadFile, EnvwatchError, NotWritten, Refused, Temporary
from envwatch.servers import Row, State
from envwatch.text import plain
from kernel_client import wrapping
from kernel_client.environment import is_text
from kernel_client.snapshot import signature

MAX_BYTES = 16 * 1024 * 1024
"""A longer file is no configuration."""

_NOW = {State.LOCAL: "starts as it is", State.WRAPPED: "starts in"}


class NoCommand(EnvwatchError):  # noqa: N818 - named after what there is not
    """There is no `envwatch` command that a client could start."""

    exit_code = 69


file = click.argument(
    "file", metavar="FILE", type=click.Path(exists=True, dir_okay=False)
)


@click.group("mcp", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Start the local servers of an MCP client in a workspace."""


@command.command("wrap")
@file
@click.option(
    "--workspace", metavar="DIR", required=True, type=Folder(), help="The workspace."
)
@click.option(
    "--clear",
    metavar="PREFIX",
    multiple=True,
    help="Names that begin so do not reach the servers. May be repeated.",
)
def wrap(file: str, workspace: str, clear: tuple[str, ...]) -> int:
    """Have every local server of FILE start through `envwatch exec`."""
    if not all(clear):
        raise click.BadParameter("it must not be empty", param_hint="--clear")
    if not is_text(workspace):
        hint = "its path is not UTF-8, so no JSON can name it"
        raise click.BadParameter(hint, param_hint="--workspace")
    if not all(is_text(prefix) for prefix in clear):
        hint = "it is not UTF-8, so no JSON can name it"
        raise click.BadParameter(hint, param_hint="--clear")
    options = tuple(f"--clear={prefix}" for prefix in clear)
    program = _program()
    return _rewrite(
        file,
        lambda text: servers.wrapped(text, program, workspace, options),
        lambda row: servers.is_otherwise(row, workspace, options),
    )


@command.command("unwrap")
@file
def unwrap(file: str) -> int:
    """Have the servers of FILE start as they did before."""
    return _rewrite(file, servers.unwrapped)


@command.command("status")
@file
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def status(file: str, *, as_json: bool) -> int:
    """List the servers of FILE, and which of them start in a workspace."""
    found = _rows(file, _read(file)[0])
    if as_json:
        listed = [
            {
                "name": row.name,
                "state": str(row.state),
                "workspace": row.workspace or None,
                "reason": row.reason or None,
            }
            for row in found
        ]
        click.echo(json.dumps({"file": file, "servers": listed}, indent=2))
    else:
        _show(found)
    return 0


def _show(
    found: list[Row],
    before: list[Row] | None = None,
    is_otherwise: Callable[[Row], bool] = lambda _: False,
) -> None:
    """Write a line for each row; never its command, its arguments or its env."""
    width = max((len(plain(row.name)) for row in found), default=0)
    for row, was in zip(found, before or found, strict=True):
        said = _NOW.get(row.state) or f"left as it is: {row.reason}"
        if row.workspace:
            said += f" {row.workspace}"
        if is_otherwise(row):
            said += ", wrapped otherwise: unwrap first"
        mark = "now " if row.state is not was.state else ""
        click.echo(f"{plain(row.name):<{width}}  {mark}{plain(said)}")
    if not found:
        click.echo("no servers")


def _rewrite(
    file: str,
    change: Callable[[str], str],
    is_otherwise: Callable[[Row], bool] = lambda _: False,
) -> int:
    text, seen = _read(file)
    before = _rows(file, text)
    after = change(text)
    if after != text:
        data = after.encode()
        if len(data) > MAX_BYTES:
            raise BadFile(f"{plain(file)} would be longer than what unwrap reads")
        _replace(file, data, seen)
    found = servers.rows(after)
    _show(found, before, is_otherwise)
    if any(is_otherwise(row) for row in found):
        raise Refused(
            f"{plain(file)} has servers that are wrapped otherwise;"
            " `envwatch mcp unwrap` comes first"
        )
    return 0


def _rows(file: str, text: str) -> list[Row]:
    try:
        return servers.rows(text)
    except BadFile as error:
        raise BadFile(f"{plain(file)}: {error}") from None


def _read(file: str) -> tuple[str, os.stat_result]:
    """Give a file's text as it is, and what the file looked like."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as opened:
            seen = os.fstat(descriptor)
            if not mode_bits.S_ISREG(seen.st_mode) or seen.st_size > MAX_BYTES:
                raise BadFile(f"{plain(file)} is no file, or a very long one")
            return opened.read().decode(), seen
    except OSError as error:
        raise BadFile(f"{plain(file)} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadFile(f"{plain(file)} is not UTF-8") from None


def _replace(file: str, data: bytes, seen: os.stat_result) -> None:
    """Put a new file in the place of the one that was seen.

    Raises:
        NotWritten: it cannot be written.
        Temporary: somebody else has written it since it was read.
    """
    path = Path(file).resolve()
    fresh: str | None = None
    try:
        if seen.st_nlink > 1:
            raise NotWritten(
                f"{plain(file)} has {seen.st_nlink} names (hard links), and a rename"
                " would part them; make it a file of its own, or a symbolic link"
            )
        if not os.access(path, os.W_OK):
            # A rename would not mind; whoever took the right away does.
            raise PermissionError(13, "Permission denied")
        descriptor, fresh = mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(descriptor, "wb") as opened:
            with contextlib.suppress(PermissionError):
                os.fchown(descriptor, seen.st_uid, seen.st_gid)
            os.fchmod(descriptor, mode_bits.S_IMODE(seen.st_mode))
            opened.write(data)
            opened.flush()
            os.fsync(descriptor)
        if signature(path.stat()) != signature(seen):
            raise Temporary(f"{plain(file)} was written meanwhile; try again")
        Path(fresh).rename(path)
        fresh = None
    except OSError as error:
        raise NotWritten(f"{plain(file)} cannot be written: {error.strerror}") from None
    finally:
        if fresh is not None:
            Path(fresh).unlink(missing_ok=True)


def _program() -> str:
    """Give the absolute path of the command that a client is to start."""
    called = sys.argv[0]
    if Path(called).name == "envwatch" and os.access(called, os.X_OK):
        # As it was called: a link on PATH stays right when what it leads to moves.
        return str(Path(called).absolute())
    found = wrapping.envwatch(os.environ)
    if found is None:
        raise NoCommand(
            "there is no envwatch command for a client to start; install it"
        )
    return str(Path(found).absolute())
