"""`envwatch top`: a live view of the sidecar, or (`--once`) its table for scripts.

It asks for the sidecar's `status` once a second over one connection. The live view
needs Textual, the table does not. Exit codes: 0 left, or printed; 2 the live view is
no terminal's; 69 no Textual, or (`--once`) no sidecar; 129 hung up; 143 ended by
SIGTERM.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping

import click

from envwatch import state
from envwatch.commands import sidecars
from envwatch.commands.programs import direnv_of
from envwatch.errors import NoSidecar, Unavailable
from envwatch.inquiry import Inquiry
from envwatch.views import overview
from kernel_client import direnv as program, messages, sidecar
from kernel_client.errors import SidecarError
from kernel_client.settings import Settings

INSTALL = "pip install 'envwatch[tui]'"
"""What brings what the live view needs."""


@click.command("top")
@click.option("--once", is_flag=True, help="Print the table once, and end.")
def command(*, once: bool) -> int:
    """Watch the sidecar: workspaces, kernels, evaluations, and who answered.

    Keys: r reloads the chosen workspace, a asks whether a blocked one may load, q leaves.
    """
    base = state.base(os.environ)
    if once:
        _print(base)
        return 0
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError("the live view needs a terminal; --once prints a table")
    try:
        from envwatch.commands import conversation
        from envwatch.views.top import Top
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("textual", "rich"):
            raise
        raise Unavailable(f"the live view needs Textual: {INSTALL}") from None
    settings = Settings.of(base)
    view = Top(
        connect=lambda: sidecar.connect(settings, base, None),
        start=lambda: start(settings, base),
        inquire=lambda: inquiry(settings, base),
        home=base.get("HOME", ""),
    )
    return conversation.hold(view)


def start(settings: Settings, base: Mapping[str, str]) -> str:
    """Start a sidecar, because the person said so; tells what was done.

    Raises:
        NoSidecar: it cannot be started from here.
    """
    program = sidecar.command(settings, base)
    if program is None:
        if settings.fd is not None:
            raise NoSidecar(
                "ENVWATCH_FD names the one sidecar; whoever gave it starts it"
            )
        if settings.sidecar in ("off", "listening"):
            how = f"ENVWATCH_SIDECAR is {settings.sidecar}"
            raise NoSidecar(
                f"{how}, so none is started from here; `envwatch serve` is one"
            )
        raise NoSidecar("there is no `envwatch` command at hand to start")
    try:
        sidecar.start(program, settings, base)
    except SidecarError as error:
        raise NoSidecar(str(error)) from None
    return "a sidecar is being started"


def inquiry(settings: Settings, base: Mapping[str, str]) -> Inquiry:
    """Find the direnv that a kernel here would run.

    Raises:
        EnvwatchError: there is none.
        DirenvError: it gives no answer.
    """
    direnv = direnv_of(base)
    version = program.version(direnv, base, limit_s=settings.check_s)
    return Inquiry(direnv, base, version=version)


def _print(base: Mapping[str, str]) -> None:
    with sidecars.reached(base) as link:
        answer = link.request(messages.status(link.number()))
    status = sidecars.status_of(answer)
    home, width = "", None
    if sys.stdout.isatty():
        home, width = base.get("HOME", ""), shutil.get_terminal_size().columns
    for line in overview.table(status, home, width):
        click.echo(line)
