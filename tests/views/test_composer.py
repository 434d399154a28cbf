"""The composer and the reply as widgets of their own."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult

from envwatch.views.composer import END_OF_FILE, Composer, Lines, Reply

pytestmark = pytest.mark.parametrize("anyio_backend", ["asyncio"])


class Page(App[None]):
    """A composer, or a reply, and what they say."""

    def __init__(self, widget: Composer | Reply) -> None:
        super().__init__()
        self.widget = widget
        self.said: list[str] = []

    def compose(self) -> ComposeResult:
        """Show it."""
        yield self.widget

    def on_lines_sent(self, event: Lines.Sent) -> None:
        """Keep it."""
        self.said.append(f"sent {event.text}")

    def on_lines_key(self, event: Lines.Key) -> None:
        """Keep it."""
        self.said.append(event.key)

    def on_reply_sent(self, event: Reply.Sent) -> None:
        """Keep it."""
        self.said.append(f"sent {event.text}")

    def on_reply_interrupted(self) -> None:
        """Keep it."""
        self.said.append("interrupted")


async def test_enter_sends_and_leaves_the_text() -> None:
    """Whoever takes it says what is put in its place."""
    composer = Composer()
    app = Page(composer)
    async with app.run_test() as pilot:
        await pilot.press("a", "enter")
        assert app.said == ["sent a"]
        assert composer.text == "a"
        await pilot.press("b")
        composer.take("x")
        assert composer.text == "ab"
        composer.take("a", instead="c\n")
        assert composer.text == "c\nb"
        await pilot.press("d")
        assert composer.text == "c\nbd"


@pytest.mark.parametrize("key", ["ctrl+j", "shift+enter", "alt+enter"])
async def test_keys_that_begin_a_line(key: str) -> None:
    """Terminals tell them apart, or send ctrl+j."""
    composer = Composer()
    app = Page(composer)
    async with app.run_test() as pilot:
        await pilot.press("a", key, "b")
        assert composer.text == "a\nb"
    assert app.said == []


async def test_keys_of_the_console() -> None:
    """They are said; ctrl+d is one only without a draft, escape is none."""
    composer = Composer()
    app = Page(composer)
    async with app.run_test() as pilot:
        await pilot.press("pageup", "pagedown", "ctrl+c", "ctrl+d", "escape")
        assert app.said == ["pageup", "pagedown", "ctrl+c", "ctrl+d"]
        await pilot.press("a", "home", "ctrl+d")
        assert composer.text == ""
        assert app.said[4:] == []
        assert app.focused is composer


async def test_up_within_a_folded_line() -> None:
    """The lines on the screen count; a line that is folded is more than one."""
    composer = Composer()
    composer.earlier.add("earlier")
    app = Page(composer)
    async with app.run_test(size=(20, 10)) as pilot:
        composer.insert("word " * 6)
        await pilot.pause()
        await pilot.press("up")
        assert composer.text == "word " * 6
        await pilot.press("up")
        assert composer.text == "earlier"
        await pilot.press("down")
        assert composer.text == "word " * 6


async def test_a_reply() -> None:
    """Enter sends it; ctrl+d without one is the end of the input."""
    reply = Reply(is_secret=False)
    app = Page(reply)
    async with app.run_test() as pilot:
        await pilot.press("a", "b", "home", "ctrl+d", "enter", "delete")
        await pilot.press("ctrl+d", "ctrl+c")
    assert app.said == ["sent b", f"sent {END_OF_FILE}", "interrupted"]
