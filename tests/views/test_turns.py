"""Turns as widgets: marks, what belongs together, and how many are kept."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult

from envwatch.core.console import Asked, Printed, Said, Shown
from envwatch.views import turns
from envwatch.views.turns import Turn, Turns
from tests.support.screenful import see

pytestmark = pytest.mark.parametrize("anyio_backend", ["asyncio"])


class Page(App[None]):
    """Nothing but turns."""

    def __init__(self) -> None:
        super().__init__()
        self.turns = Turns()

    def compose(self) -> ComposeResult:
        """Show them."""
        yield self.turns


async def test_marks() -> None:
    """Who says something is a word, or a sign, before it; output is two columns in."""
    app = Page()
    async with app.run_test(size=(60, 24)) as pilot:
        turn = app.turns.begin("a\n  b\n\n")
        turn.hear(Said("direnv: loading ~/w/.envrc"))
        turn.hear(Said("./.envrc: line 1: no\x1b[1m"))
        turn.hear(Said("envwatch: PATH is another"))
        turn.hear(Printed("1"))
        turn.hear(Printed("2\n3"))
        turn.hear(Shown("4"))
        turn.hear(Asked("name? "))
        turn.tell_on("me")
        turn.note("the end")
        screen = await see(pilot, "the end")
    assert [line for line in screen.splitlines() if line] == [
        "> a",
        "    b",
        "direnv: loading ~/w/.envrc",
        "        ./.envrc: line 1: no",
        "envwatch: PATH is another",
        "  12",
        "  3",
        "  4",
        "  name? me",
        "envwatch: the end",
    ]


async def test_what_comes_later_is_painted_too() -> None:
    """To a block that is there already, and to a turn that is not the last."""
    app = Page()
    async with app.run_test(size=(60, 24)) as pilot:
        turn = app.turns.begin("a")
        turn.hear(Printed("1"))
        await see(pilot, "  1")
        app.turns.begin("b").tell(["of b"])
        turn.hear(Printed("2"))
        screen = await see(pilot, "  12", "  of b")
        assert screen.index("> a") < screen.index("12") < screen.index("> b")


async def test_the_oldest_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not grow for ever."""
    monkeypatch.setattr(turns, "MAX_TURNS", 2)
    app = Page()
    async with app.run_test(size=(60, 24)) as pilot:
        for name in "abcd":
            app.turns.begin(name)
            await pilot.pause()
        await see(pilot, "> c", "> d", gone=("> a", "> b"))
        assert len(app.query(Turn)) == 2
