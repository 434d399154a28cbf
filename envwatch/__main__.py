"""Where the `envwatch` command begins, and where every error gets its exit code.

An error is one line on stderr that says what to do; its class has its exit code:

    2    the command line cannot be understood
    64   a setting or an option has a value that cannot be used
    65   a file is not what it should be
    69   there is no direnv, no sidecar that can be used, no such kernel
    70   a bug of envwatch; ENVWATCH_DEBUG=1 shows where
    74   the output, or a file, cannot be written
    75   something that may work when it is tried again
    77   the socket is unsafe, or something belongs to somebody else
    130  Ctrl-C
    141  whoever read the output has gone

What a command tells with its own exit code is in its module: `commands/status.py`
has the table of states, `execution.py` that of refusals, `commands/doctor.py` and
`commands/demo.py` exit 1.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import click

USAGE = 2
CONFIG = 64
UNAVAILABLE = 69
BUG = 70
NO_OUTPUT = 74
TEMPORARY = 75
REFUSED = 77
INTERRUPTED = 130
NO_READER = 141

_OF_SIDECAR = {"unsafe": REFUSED, "silent": TEMPORARY, "closed": TEMPORARY}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; give its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    # `exec` stands before every program of somebody's: what only the other commands
    # need (click above all) would cost more than its work.
    if given[:1] != ["exec"] or _is_completing():
        return _ended(_run, given)
    code = _ended(_exec, given)
    if sys.flags.inspect:
        # PYTHONINSPECT is the program's; here it would read stdin and lose the code.
        os._exit(code)
    return code


def _ended(run: Callable[[list[str]], int], given: list[str]) -> int:
    try:
        code = run(given)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        _let_go()
        return NO_READER
    except OSError as error:
        _let_go()
        import click

        click.echo(f"envwatch: cannot write the output: {error.strerror}", err=True)
        return NO_OUTPUT
    return code


def _let_go() -> None:
    """Have what is still buffered not fail once more at exit."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _is_completing() -> bool:
    return "_ENVWATCH_COMPLETE" in os.environ


def _exec(given: list[str]) -> int:
    """Put a program in this process's place; give an exit code where it is not run."""
    try:
        from envwatch import execution

        return execution.main(given[1:])
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001 - told below
        return _failed(error)


def _run(given: list[str]) -> int:
    """Do what `cli.main()` does, but for its own ways to say and to exit."""
    import errno

    import click
    from click.shell_completion import shell_complete

    from envwatch.cli import cli
    from envwatch.commands.completion import COMPLETION_VARIABLE

    try:
        asked = os.environ.get(COMPLETION_VARIABLE)
        if asked:
            return shell_complete(cli, {}, "envwatch", COMPLETION_VARIABLE, asked)
        with cli.make_context("envwatch", given) as context:
            code = cli.invoke(context)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return USAGE
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise
        return _failed(error)
    return code if isinstance(code, int) else 0


def _failed(error: Exception) -> int:
    """Say in one line what went wrong; give its exit code."""
    import click

    code, message = told(error)
    click.echo(f"envwatch: {message}", err=True)
    if code == BUG and os.environ.get("ENVWATCH_DEBUG") == "1":
        import traceback

        traceback.print_exception(error)
    return code


def told(error: Exception) -> tuple[int, str]:
    """Give the exit code of an error, and the line that says what to do."""
    import click

    from envwatch.errors import EnvwatchError
    from kernel_client.errors import DirenvError, SettingError, SidecarError

    if isinstance(error, click.ClickException):
        return USAGE, _usage(error)
    if isinstance(error, EnvwatchError):
        return error.exit_code, _line(error)
    if isinstance(error, SettingError):
        return CONFIG, _line(error)
    if isinstance(error, SidecarError):
        return _OF_SIDECAR.get(error.code, UNAVAILABLE), _line(error)
    if isinstance(error, DirenvError):
        return UNAVAILABLE, f"{_line(error)}; `envwatch doctor` tells what is wrong"
    return BUG, (
        f"a bug ({type(error).__name__}); please report it with what"
        " ENVWATCH_DEBUG=1 adds to this line"
    )


def _usage(error: click.ClickException) -> str:
    message = " ".join(error.format_message().split())
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "envwatch"
    return f"{message.rstrip('.')}; `{path} --help` tells how"


def _line(error: Exception) -> str:
    return " ".join(str(error).split())


if __name__ == "__main__":
    sys.exit(main())
