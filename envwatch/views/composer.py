"""The composer of a console: several lines, earlier input, and the question first."""

from __future__ import annotations

from textual import events
from textual.message import Message
from textual.widgets import Input, TextArea

from envwatch.core.console import History
from envwatch.views.question import QuestionFirst

_LINE = ("ctrl+j", "shift+enter", "alt+enter")


END_OF_FILE = "\x04"
"""What a kernel takes for the end of its input."""


class Reply(Input):
    """One line for a run that asks for it, hidden where it is a secret."""

    DEFAULT_CSS = "Reply, Reply:focus { height: 3; border: round $foreground; }"

    class Sent(Message):
        """Enter was pressed, or (`text` is `END_OF_FILE`) ctrl+d."""

        def __init__(self, text: str) -> None:
            self.text = text
            super().__init__()

    class Interrupted(Message):
        """ctrl+c was pressed."""

    def __init__(self, *, is_secret: bool) -> None:
        super().__init__(password=is_secret)

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "enter":
            self.post_message(self.Sent(self.value))
        elif event.key == "ctrl+d" and not self.value:
            self.post_message(self.Sent(END_OF_FILE))
        elif event.key == "ctrl+c":
            self.post_message(self.Interrupted())
        else:
            return
        event.stop()
        event.prevent_default()


class Lines(TextArea):
    """Enter sends, ctrl+j begins a line, up and down bring earlier input back."""

    DEFAULT_CSS = """
    Lines {
        height: auto; max-height: 10; border: round $foreground; padding: 0 1;
        scrollbar-size-vertical: 1;
    }
    Lines:focus { border: round $foreground; }
    """

    class Sent(Message):
        """Enter was pressed; the text stays until somebody takes it (`take`)."""

        def __init__(self, text: str) -> None:
            self.text = text
            super().__init__()

    class Key(Message):
        """A key that is the console's: `ctrl+c`, `ctrl+d`, `pageup`, `pagedown`."""

        def __init__(self, key: str) -> None:
            self.key = key
            super().__init__()

    def __init__(self) -> None:
        super().__init__(
            show_line_numbers=False, highlight_cursor_line=False, tab_behavior="indent"
        )
        self.earlier = History()

    async def _on_key(self, event: events.Key) -> None:
        if self._acts(event.key):
            event.stop()
            event.prevent_default()

    def take(self, sent: str, *, instead: str = "") -> None:
        """Put something in the place of what was sent; what was typed since stays."""
        if self.text.startswith(sent):
            self._put(instead + self.text[len(sent) :])

    def _acts(self, key: str) -> bool:
        if key == "enter":
            self.post_message(self.Sent(self.text))
        elif key in _LINE:
            self.insert("\n")
        elif key in ("pageup", "pagedown", "ctrl+c") or (
            key == "ctrl+d" and not self.text
        ):
            self.post_message(self.Key(key))
        elif key == "up" and self.navigator.is_first_wrapped_line(self.cursor_location):
            return self._bring(self.earlier.older(self.text))
        elif key == "down" and self.navigator.is_last_wrapped_line(
            self.cursor_location
        ):
            return self._bring(self.earlier.newer())
        else:
            # Escape would go on to the next widget; there is none.
            return key == "escape"
        return True

    def _bring(self, text: str | None) -> bool:
        if text is not None:
            self._put(text)
        return text is not None

    def _put(self, text: str) -> None:
        self.text = text
        self.move_cursor(self.document.end)


class Composer(QuestionFirst, Lines):
    """The same, and a question that stands above it gets each key first."""
