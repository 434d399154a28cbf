"""`envwatch console [DIR]`: a chat with a real kernel that follows direnv.

Exit codes: 0 left; 2 it is no terminal's, or DIR is no folder; 64 a kernel that
cannot be extended; 69 no Textual, no Jupyter or no such kernel; 129 hung up; 143
ended by SIGTERM. Whatever ends it, the kernel is ended first.
"""

from __future__ import annotations

import os
from typing import Any

import click

from envwatch import state
from envwatch.commands import arguments, status, top
from envwatch.commands.terminal import Terminal
from envwatch.errors import Unavailable
from kernel_client.settings import Settings

INSTALL = "pip install 'envwatch[tui,jupyter]'"
"""What brings what the console needs."""

_NEEDED = ("textual", "rich", "jupyter_client", "zmq", "traitlets", "ipykernel")


@click.command("console")
@arguments.folder
@click.option(
    "--kernel",
    "name",
    metavar="NAME",
    help="An ipykernel that Jupyter lists; by default that of this interpreter.",
)
def command(folder: str, name: str | None) -> int:
    """Talk to a kernel in DIR: each run starts in the environment of its folder.

    Enter runs, ctrl+j begins a line, ctrl+c interrupts, ctrl+d leaves; /help lists
    the rest. A blocked file is shown above the composer: y allows it, and the next
    run has its environment; n or esc puts it away.

    The exit code is 0 when you leave, 2 without a terminal, 64 or 69 when the kernel
    or what the console needs is not there, 129 or 143 when it was ended by a signal.
    """
    if not Terminal.is_there():
        raise click.UsageError("the console needs a terminal")
    try:
        from envwatch.commands import conversation
        from envwatch.hosts.kernel import Kernel
        from envwatch.views.console import Console
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _NEEDED:
            raise
        raise Unavailable(f"the console needs Textual and Jupyter: {INSTALL}") from None
    kernel = Kernel(spec_of(name), os.environ)
    base = state.base(os.environ)
    settings = Settings.of(base)
    view = Console(
        kernel,
        folder,
        inquire=lambda: top.inquiry(settings, base),
        status=lambda where: status.told(where, base),
        home=base.get("HOME", ""),
    )
    return conversation.hold(view, kernel)


def spec_of(name: str | None) -> dict[str, Any]:
    """Give a kernelspec that has the hook; None: that of this interpreter.

    Raises:
        Unavailable: there is no such kernel.
        ConfigError: it cannot be extended.
    """
    from envwatch.hosts import kernelspecs

    if name is None:
        found = kernelspecs.native()
        if found is None:
            raise Unavailable(f"the console needs an ipykernel: {INSTALL}")
    else:
        found = kernelspecs.find(kernelspecs.manager(), name)
    return kernelspecs.extended(
        found,
        command=kernelspecs.command_beside(),
        display_name=None,
        provisioned=False,
    )
