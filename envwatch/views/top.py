"""The live view of `envwatch top`: the sidecar's own `status`, once a second."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Footer, OptionList, Static
from textual.widgets.option_list import Option

from envwatch.errors import EnvwatchError
from envwatch.text import plain
from envwatch.views import overview
from envwatch.views.asking import Asking, Inquire
from envwatch.views.feed import EVERY_S, Feed, Heard, Lost, Reloaded, Told
from envwatch.views.program import Program
from kernel_client.sidecar import Link

_HERE, _ELSEWHERE = "> ", "  "
_SCROLLBAR = 1
_SOMETIMES = ("reload", "start", "ask")


class Came(Message):
    """Something came from the feed."""

    def __init__(self, heard: Heard) -> None:
        super().__init__()
        self.heard = heard


class Top(Program):
    """Workspaces, kernels and evaluations of one sidecar, as they are now.

    `connect` gives a connection, or raises `SidecarError`; `start` starts a sidecar
    and says so, or raises `EnvwatchError`; `inquire` finds the direnv that a question
    is put to; `home` is written `~`.
    """

    TITLE = "envwatch top"
    CSS = """
    Screen { layout: vertical; }
    #heading, #problems, #title, #said { height: auto; }
    #heading, #title { text-wrap: nowrap; text-overflow: ellipsis; }
    #title { text-style: bold; margin-top: 1; }
    #problems { text-style: bold; }
    #workspaces {
        height: 1fr; min-height: 2; border: none; padding: 0;
        scrollbar-size-vertical: 1; text-wrap: nowrap; text-overflow: ellipsis;
    }
    #details { height: auto; max-height: 9; margin-top: 1; }
    #details > Static { height: auto; }
    #details.-empty { display: none; }
    .-low #heading { max-height: 2; }
    .-low #details { display: none; }
    #said { text-style: bold; }
    Footer .footer-key--key { text-style: bold; }
    """
    VERTICAL_BREAKPOINTS = [(0, "-low"), (18, "-high")]  # noqa: RUF012 - as App has it
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "reload", "reload"),
        Binding("s", "start", "start a sidecar"),
        Binding("a", "ask", "ask whether it may load"),
        Binding("q", "quit", "leave"),
    ]

    def __init__(
        self,
        *,
        connect: Callable[[], Link],
        start: Callable[[], str],
        inquire: Inquire,
        home: str = "",
        every_s: float = EVERY_S,
    ) -> None:
        super().__init__()
        self._feed = Feed(connect, self._hear, every_s=every_s)
        self._start = start
        self._inquire = inquire
        self._home = home
        self._pace = overview.Pace()
        self._status: dict[str, Any] | None = None
        self._lost: Lost | None = None
        self._roots: list[str] = []
        self._chosen: str | None = None
        self._offered: dict[str, bool | None] = {}

    def compose(self) -> ComposeResult:
        """Lay out the screen."""
        yield Static("asking the sidecar ...", id="heading", markup=False)
        yield Static(id="problems", markup=False)
        yield Static(id="title", markup=False)
        yield OptionList(id="workspaces", markup=False)
        with VerticalScroll(id="details", can_focus=False):
            yield Static(markup=False)
        yield Static(id="said", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        """Begin to ask."""
        self._feed.open()

    def on_unmount(self) -> None:
        """Ask no more."""
        self._feed.close()

    # ------------------------------------------------------------ what comes

    def _hear(self, heard: Heard) -> None:
        """Take what comes on the feed's thread over to this one."""
        self.post_message(Came(heard))

    def on_came(self, event: Came) -> None:
        """Show what came."""
        match event.heard:
            case Told(status, at):
                if self._status is None and self._lost is not None:
                    self.say("a sidecar is back")
                self._lost, self._status = None, status
                frames = self._pace.of(status, at)
                self._write("#heading", overview.heading(status, frames))
                self._write("#problems", overview.problems(status))
            case Lost() as lost:
                if self._status is not None:
                    # It was said of a sidecar that is not there any more.
                    self.say("")
                self._lost, self._status = lost, None
                self._write("#heading", self._without(lost))
                self._write("#problems", ())
            case Reloaded(root, kernels):
                self._reloaded(root, kernels)
                return
        self._list()
        self._detail()
        self._offer()

    def _without(self, lost: Lost) -> Iterable[str]:
        yield plain(f"No sidecar: {lost.reason}.")
        yield "Kernels go to direnv themselves; nothing is lost."
        if lost.is_absent:
            yield "s starts a sidecar; this view goes on by itself once one listens."
        else:
            yield "This view asks again every second."

    def _reloaded(self, root: str, kernels: int | None) -> None:
        name = overview.named(root, self._home)
        if kernels is None:
            self.say(f"the sidecar was not there to reload {name}")
            return
        word = "kernel loads" if kernels == 1 else "kernels load"
        self.say(f"{kernels} {word} {name} again at the next run")

    # ------------------------------------------------------------ what is shown

    def say(self, text: str) -> None:
        """Say something in the line above the keys, until something else is said."""
        self._write("#said", (plain(text),))

    def _write(self, where: str, lines: Iterable[str]) -> None:
        text = "\n".join(lines)
        widget = self.place(where, Static)
        if widget is not None:
            widget.display = bool(text)
            widget.update(Content(text))

    def on_resize(self) -> None:
        """Cut paths to the new width."""
        self._list()

    def _list(self) -> None:
        """Bring the list up to date; the chosen workspace stays chosen."""
        listed = self.place("#workspaces", OptionList)
        if listed is None:
            return
        if self._status is None:
            self._roots = []
            listed.clear_options()
            self._write("#title", ())
            return
        roots = [row.root for row in overview.rows(self._status)]
        if roots != self._roots:
            before, self._roots = self._roots, roots
            listed.clear_options()
            listed.add_options([Option("") for _ in roots])
            self._choose(before, listed)
        self._fill(listed)

    def _choose(self, before: list[str], listed: OptionList) -> None:
        if not self._roots:
            self._chosen = None
            return
        at = 0
        if self._chosen in self._roots:
            at = self._roots.index(self._chosen)
        elif self._chosen in before:
            # It has gone: what is in its place now.
            at = min(before.index(self._chosen), len(self._roots) - 1)
            self.say(
                f"{overview.named(self._chosen, self._home)} is not there any more"
            )
        self._chosen = self._roots[at]
        listed.highlighted = at

    def _fill(self, listed: OptionList) -> None:
        if self._status is None:
            return
        width = self.size.width - len(_HERE) - _SCROLLBAR
        title, *lines = overview.table(self._status, self._home, width)
        if not lines:
            title = "No workspace yet: no kernel has asked for one."
        self._write("#title", ((_ELSEWHERE if lines else "") + title,))
        for at, (root, line) in enumerate(zip(self._roots, lines, strict=True)):
            text = Content(_ELSEWHERE + line)
            if root == self._chosen:
                marked = overview.padded(_HERE + line, width + len(_HERE))
                text = Content.styled(marked, "reverse")
            listed.replace_option_prompt_at_index(at, text)

    def on_option_list_option_highlighted(
        self, event: OptionList.OptionHighlighted
    ) -> None:
        """Show the details of the workspace that was gone to."""
        if event.option_index < len(self._roots):
            self._chosen = self._roots[event.option_index]
            self._fill(event.option_list)
            self._detail()
            self._offer()

    def _detail(self) -> None:
        lines: Iterable[str] = ()
        if self._status is not None and self._chosen is not None:
            lines = overview.details(self._status, self._chosen, self._home)
        text = "\n".join(lines)
        widget = self.place("#details > Static", Static)
        if widget is not None and widget.parent is not None:
            widget.parent.set_class(not text, "-empty")
            widget.update(Content(text))

    # ------------------------------------------------------------ keys

    def check_action(
        self,
        action: str,
        parameters: tuple[object, ...],  # noqa: ARG002 - Textual's signature
    ) -> bool | None:
        """Offer a key only where it does something."""
        if action == "reload":
            return self._status is not None and self._chosen is not None
        if action == "ask":
            return self._is_blocked
        if action == "start":
            return self._lost is not None and self._lost.is_absent
        return True

    def action_reload(self) -> None:
        """Have every kernel load the chosen workspace again."""
        if self._chosen is not None:
            self._feed.reload(self._chosen)

    def _offer(self) -> None:
        """Bring the keys below up to date; only when they differ, as they blink."""
        offered = {each: self.check_action(each, ()) for each in _SOMETIMES}
        if offered != self._offered:
            self._offered = offered
            self.refresh_bindings()

    @property
    def _is_blocked(self) -> bool:
        """Whether what kernels were told last of the chosen workspace is `blocked`."""
        if self._status is None:
            return False
        found = overview.rows(self._status)
        return any(row.is_blocked for row in found if row.root == self._chosen)

    async def action_ask(self) -> None:
        """Put the question of the chosen workspace to the person."""
        if self._chosen is not None:
            await self.push_screen(Asking(self._chosen, self._inquire), self._asked)

    def _asked(self, text: str | None) -> None:
        self.say(text or "")

    def action_start(self) -> None:
        """Start a sidecar; the feed finds it."""
        try:
            self.say(self._start())
        except EnvwatchError as error:
            self.say(str(error))
