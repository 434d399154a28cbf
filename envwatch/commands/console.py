"""`envwatch console [DIR]`: a chat with a real kernel that follows direnv.

Exit codes: 0 left; 2 it is no terminal's, or DIR is no folder; 64 a kernel that
cannot be extended; 69 no Textual, no Jupyter or no such kernel; 129 hung up; 143
ended by SIGTERM. Whatever ends it, the kernel is ended first.
"""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING, Any

import click

from envwatch import state
from envwatch.commands import arguments, status, top
from envwatch.commands.terminal import Terminal
from envwatch.errors import Unavailable
from kernel_client.settings import Settings

if TYPE_CHECKING:
    from envwatch.hosts.kernel import Kernel
    from envwatch.views.console import Console

INSTALL = "pip install 'envwatch[tui,jupyter]'"
"""What brings what the console needs."""

ENDING = (signal.SIGTERM, signal.SIGHUP)
END_S = 4.0
"""So long the view may take for its end, when a signal has asked for it."""

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
    return asyncio.run(conversed(view, kernel))


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


async def conversed(view: Console, kernel: Kernel) -> int:
    """Run the view to its end, and end the kernel whatever has ended the view."""
    work = asyncio.ensure_future(view.run_async())
    ending = _Ending(view, work)
    try:
        code = await work
    except (asyncio.CancelledError, OSError):
        # A terminal that is gone may keep the view from its own end.
        if ending.number is None:
            raise
        code = None
    finally:
        await kernel.close()
        ending.close()
    if ending.number is not None:
        return 128 + ending.number
    if view.error is not None:
        raise view.error
    return code or 0


class _Ending:
    """Has signals end the view, and not us before the kernel has ended."""

    def __init__(self, view: Console, work: asyncio.Future[Any]) -> None:
        self.number: int | None = None
        self._view = view
        self._work = work
        self._loop = asyncio.get_running_loop()
        for number in ENDING:
            self._loop.add_signal_handler(number, self._end, number)

    def close(self) -> None:
        for number in ENDING:
            self._loop.remove_signal_handler(number)

    def _end(self, number: int) -> None:
        if self.number is None:
            self.number = number
            self._view.exit(128 + number)
            self._loop.call_later(END_S, self._work.cancel)
