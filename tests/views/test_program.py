"""How our Textual programs end when something is wrong with them."""

from __future__ import annotations

import pytest
from textual.app import ComposeResult
from textual.widgets import Static

from envwatch.views.program import Program
from envwatch.views.theme import TERMINAL

pytestmark = pytest.mark.parametrize("anyio_backend", ["asyncio"])


class Broken(Program):
    """Fails as soon as it is there."""

    def on_mount(self) -> None:
        """Fail with a value at hand."""
        value = "a value of a variable"
        raise ZeroDivisionError(len(value))


class Fine(Program):
    """Shows a line."""

    def compose(self) -> ComposeResult:
        """Show it."""
        yield Static("here")


async def test_a_mistake_prints_no_variables(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """It is kept for the command, which says it in one line."""
    app = Broken()
    await app.run_async(headless=True)
    assert isinstance(app.error, ZeroDivisionError)
    said = capfd.readouterr()
    assert "value" not in said.out + said.err
    assert "Traceback" not in said.out + said.err


async def test_the_terminal_s_own_colours() -> None:
    """From the first line on."""
    app = Fine()
    async with app.run_test():
        assert app.theme == TERMINAL.name
        assert app.error is None
