"""How a view is run to its end: the terminal is put back, and its kernel has ended."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from envwatch.hosts.kernel import Kernel
    from envwatch.views.program import Program

ENDING = (signal.SIGTERM, signal.SIGHUP)
END_S = 4.0
"""So long the view may take for its end, when a signal has asked for it."""


def hold(view: Program, kernel: Kernel | None = None) -> int:
    """Run a view, then end its kernel where it has one; give the exit code."""
    return asyncio.run(_held(view, kernel))


async def _held(view: Program, kernel: Kernel | None) -> int:
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
        if kernel is not None:
            await kernel.close()
        ending.close()
    if ending.number is not None:
        return 128 + ending.number
    if view.error is not None:
        raise view.error
    return code or 0


class _Ending:
    """Has signals end the view, and not us before all is put back."""

    def __init__(self, view: Program, work: asyncio.Future[Any]) -> None:
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
