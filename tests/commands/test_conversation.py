"""Whatever ends a console's view, the kernel has ended before we do."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from typing import Any, cast

import pytest

from envwatch.commands import conversation


class View:
    """A view that runs as the test says."""

    def __init__(self, run: Callable[[], Any]) -> None:
        self.error: Exception | None = None
        self.exits: list[int] = []
        self._run = run

    async def run_async(self) -> int | None:
        """Run, and give what the view gives at its end."""
        result: int | None = await self._run()
        return result

    def exit(self, code: int) -> None:
        """Note that the end was asked for."""
        self.exits.append(code)


class Kernel:
    """A kernel that only knows whether it was ended."""

    is_closed = False

    async def close(self) -> None:
        """End it."""
        self.is_closed = True


def held(view: View) -> int:
    """Run a view to its end; the kernel must have ended with it."""
    kernel = Kernel()
    try:
        return conversation.hold(cast("Any", view), cast("Any", kernel))
    finally:
        assert kernel.is_closed
        handlers = {signal.getsignal(number) for number in conversation.ENDING}
        assert handlers == {signal.SIG_DFL}


@pytest.mark.parametrize(("given", "code"), [(0, 0), (None, 0), (3, 3)])
def test_its_exit_code(given: int | None, code: int) -> None:
    """Whoever leaves by another key than ours gives none."""

    async def run() -> int | None:
        return given

    assert held(View(run)) == code


@pytest.mark.parametrize("kind", [OSError, ZeroDivisionError])
def test_a_view_that_fails(kind: type[Exception]) -> None:
    """The error is the caller's to tell."""

    async def run() -> None:
        raise kind

    with pytest.raises(kind):
        held(View(run))


def test_a_mistake_within_the_view() -> None:
    """Textual has ended the view and kept the error."""

    async def run() -> int:
        view.error = ZeroDivisionError()
        return 1

    view = View(run)
    with pytest.raises(ZeroDivisionError):
        held(view)


@pytest.mark.parametrize("error", [None, OSError])
def test_a_view_that_does_not_end_for_a_signal(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception] | None
) -> None:
    """Its terminal may have gone: it is not waited for, whatever it does then."""
    monkeypatch.setattr(conversation, "END_S", 0.05)

    async def run() -> None:
        os.kill(os.getpid(), signal.SIGHUP)
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            if error is None:
                raise
            raise error from None

    view = View(run)
    assert held(view) == 129
    assert view.exits == [129]


def test_the_first_signal_counts() -> None:
    """A second one is heard, and changes nothing."""

    async def run() -> None:
        heard = asyncio.Event()
        loop = asyncio.get_running_loop()
        # Signals are heard in their order, so this one after the others.
        loop.add_signal_handler(signal.SIGUSR1, heard.set)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
            os.kill(os.getpid(), number)
        await heard.wait()
        loop.remove_signal_handler(signal.SIGUSR1)

    view = View(run)
    assert held(view) == 143
    assert view.exits == [143]
