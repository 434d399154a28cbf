"""The view of `envwatch console`: turns above, the composer below, the question between.

The kernel is somebody else's: the view starts it, talks to it, and does not end it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from envwatch.core.console import (
    HELP,
    Asked,
    Code,
    Command,
    Doing,
    Heard,
    Mistake,
    Name,
    Report,
    Talk,
    composed,
)
from envwatch.errors import EnvwatchError
from envwatch.text import plain
from envwatch.views import overview
from envwatch.views.asking import Inquire
from envwatch.views.composer import END_OF_FILE, Composer, Reply
from envwatch.views.program import Program
from envwatch.views.question import QuestionView
from envwatch.views.turns import Turn, Turns
from kernel_client.errors import DirenvError

RELOAD = "%envwatch reload"
DIED_EVERY_S = 1.0
"""So often it is looked whether a kernel that runs nothing has died."""

STARTING = "it waits: the kernel is not there yet"
HELD = "it waits, a cell runs: ctrl+c interrupts"
DEAD = "the kernel has died; the next run starts another one"
NO_HOOK = "this kernel has no hook, so no .envrc is loaded in it"
NO_ANSWER = "the kernel gives no answer about its folder"


class Console(Program):
    """One kernel, one folder at a time.

    `inquire` finds the direnv that the question is put to; `status` gives what
    `envwatch status` says of a folder; `home` is written `~`.
    """

    TITLE = "envwatch console"
    CSS = """
    Screen { layout: vertical; }
    Turns { height: 1fr; min-height: 0; }
    #state { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(
        self,
        kernel: Talk,
        folder: str,
        *,
        inquire: Inquire,
        status: Callable[[str], Iterable[str]],
        home: str = "",
    ) -> None:
        super().__init__()
        self._kernel = kernel
        self._folder = folder
        self._inquire = inquire
        self._status = status
        self._home = home
        self._state = "looking"
        self._doing = Doing.STARTING
        self._hint = ""
        self._turns = Turns()
        self._composer = Composer()
        self._view: QuestionView | None = None
        self._asking = Turn()

    def compose(self) -> ComposeResult:
        """Lay out the screen; the question comes when direnv is found."""
        yield self._turns
        yield self._composer
        yield Static(id="state", markup=False)

    def on_mount(self) -> None:
        """Start the kernel, and look at the folder meanwhile."""
        self._composer.focus()
        self._paint()
        self.set_interval(DIED_EVERY_S, self._notice)
        self.run_worker(self._ask(), group="asking")
        self.run_worker(self._begin(), group="kernel")

    # ------------------------------------------------------------ what is composed

    def on_lines_sent(self, event: Composer.Sent) -> None:
        """Do what the composed text says."""
        meaning = composed(event.text)
        match meaning:
            case None:
                return
            case Mistake(reason):
                self.hint(reason)
            case Command(Name.QUIT):
                self.exit(0)
            case Command(Name.HELP):
                self._sent(event.text).tell(f"{key:<12}{HELP[key]}" for key in HELP)
            case Command(Name.STATUS):
                self.run_worker(self._tell(self._sent(event.text)), group="status")
            case _ if self._doing is not Doing.NOTHING:
                self.hint(STARTING if self._doing is Doing.STARTING else HELD)
            case Command(Name.CD, folder):
                self._busy(Doing.MOVING)
                work = self._move(self._sent(event.text), folder)
                self.run_worker(work, group="kernel")
            case Command(_):
                self._busy(Doing.RUNNING)
                work = self._run(self._sent(event.text), RELOAD)
                self.run_worker(work, group="kernel")
            case Code(text):
                self._busy(Doing.RUNNING)
                self.run_worker(self._send(text), group="kernel")

    def on_lines_key(self, event: Composer.Key) -> None:
        """Do what a key of the console's own says."""
        if event.key == "ctrl+d":
            self.exit(0)
        elif event.key == "pageup":
            self._turns.scroll_page_up(animate=False)
        elif event.key == "pagedown":
            self._turns.scroll_page_down(animate=False)
        elif self._doing is Doing.RUNNING:
            self._interrupt()
        elif self._composer.text:
            self._composer.take(self._composer.text)
        else:
            self.hint("ctrl+d or /quit leaves")

    def _interrupt(self) -> None:
        self.hint("interrupting ...")
        self.run_worker(self._kernel.interrupt(), group="interrupt")

    def _sent(self, text: str) -> Turn:
        self._composer.take(text)
        self._composer.earlier.add(text.strip("\n"))
        self.hint("")
        return self._turns.begin(text)

    # ------------------------------------------------------------ the kernel

    async def _begin(self) -> None:
        turn = self._turns.begin()
        if await self._start(turn):
            turn.note(f"a kernel runs in {self._named(self._folder)}; /help helps")
        self.hint("")
        self._busy(Doing.NOTHING)

    async def _start(self, turn: Turn) -> bool:
        self._busy(Doing.STARTING)
        try:
            report = await self._kernel.start(self._folder)
        except EnvwatchError as error:
            turn.note(plain(str(error)))
            return False
        if report is None or not report.is_on:
            turn.note(NO_HOOK)
        return True

    async def _send(self, text: str) -> None:
        indent = await self._kernel.indent(text)
        if indent is not None:
            self._composer.take(text, instead=f"{text}\n{indent}")
            self._busy(Doing.NOTHING)
            return
        await self._run(self._sent(text), text)

    async def _run(self, turn: Turn, code: str) -> None:
        if not await self._is_there(turn):
            self._busy(Doing.NOTHING)
            return
        self._busy(Doing.RUNNING)
        is_alive = await self._kernel.run(code, lambda heard: self._hear(turn, heard))
        await self._asked_no_more()
        if is_alive:
            self._follow(turn, await self._kernel.report())
        else:
            turn.note(DEAD)
            self.check()
        self.hint("")
        self._busy(Doing.NOTHING)

    async def _is_there(self, turn: Turn) -> bool:
        """Start another kernel where there is none any more; gives whether one runs."""
        if await self._kernel.has_died():
            turn.note("the kernel had died")
        if self._kernel.is_running:
            return True
        if not await self._start(turn):
            return False
        turn.note("this is a new kernel: nothing of the last one is in it")
        return True

    async def _move(self, turn: Turn, folder: str) -> None:
        if await self._is_there(turn):
            self._busy(Doing.MOVING)
            report = await self._kernel.move(folder)
            if report is None:
                turn.note(NO_ANSWER)
            elif report.error is not None:
                turn.note(plain(f"cannot go to {folder}: {report.error}"))
            elif report.folder is not None:
                self._folder = report.folder
                turn.note(f"now in {self._named(report.folder)}")
                self.open()
        self._busy(Doing.NOTHING)

    async def _tell(self, turn: Turn) -> None:
        try:
            lines = await asyncio.to_thread(lambda: list(self._status(self._folder)))
        except (EnvwatchError, DirenvError) as error:
            turn.note(plain(str(error)))
        else:
            turn.tell(lines)

    def _follow(self, turn: Turn, report: Report | None) -> None:
        """Go where the run has gone, and ask what it was told is blocked."""
        if report is None:
            return
        if report.folder is None:
            turn.note("the kernel's folder has been deleted")
            return
        has_moved = report.folder != self._folder
        self._folder = report.folder
        if has_moved or report.is_blocked:
            self.open()
        else:
            self.check()

    async def _notice(self) -> None:
        if self._doing is Doing.NOTHING and await self._kernel.has_died():
            self._turns.begin().note(DEAD)
            self._paint()

    # ------------------------------------------------------------ what a run asks

    def _hear(self, turn: Turn, heard: Heard) -> None:
        turn.hear(heard)
        if isinstance(heard, Asked):
            self._asking = turn
            self.call_next(self._reply, heard)

    async def _reply(self, asked: Asked) -> None:
        """Have a line typed for the run; the draft in the composer is kept."""
        await self.query(Reply).remove()
        # A `y` for a program must not be an answer to the question about a file.
        if self._view is not None:
            self._view.follow(None)
        self._composer.display = False
        reply = Reply(is_secret=asked.is_secret)
        await self.mount(reply, after=self._composer)
        reply.focus()
        self._busy(Doing.ASKING)

    async def on_reply_sent(self, event: Reply.Sent) -> None:
        """Give the run its line."""
        reply = self.query_one(Reply)
        is_shown = not reply.password and event.text != END_OF_FILE
        self._asking.tell_on(event.text if is_shown else "")
        await self._asked_no_more()
        self._busy(Doing.RUNNING)
        self._kernel.answer(event.text)

    def on_reply_interrupted(self) -> None:
        """Interrupt the run that asks."""
        self._interrupt()

    async def _asked_no_more(self) -> None:
        if self.query(Reply):
            await self.query(Reply).remove()
            self._composer.display = True
            self._composer.focus()
            if self._view is not None:
                self._view.follow(self._folder)

    # ------------------------------------------------------------ the question

    async def _ask(self) -> None:
        try:
            inquiry = await asyncio.to_thread(self._inquire)
        except (EnvwatchError, DirenvError) as error:
            self._state = "no direnv"
            self._turns.begin().note(plain(str(error)), "nothing is loaded without it")
            self._paint()
            return
        view = QuestionView(inquiry)
        await self.mount(view, before=self._composer)
        self._view = view
        self.open()

    def open(self) -> None:
        """Ask about the folder, where its file is blocked."""
        if self._view is not None:
            self._view.open(self._folder)

    def check(self) -> None:
        """Look at the folder again; what was put away stays away."""
        if self._view is not None:
            self._view.check()

    def on_question_view_looked(self, message: QuestionView.Looked) -> None:
        """Say what state the root file is in."""
        found = message.found
        if found is None:
            self._state = plain(message.reason)
        else:
            root, state = found.workspace.root, str(found.workspace.state)
            self._state = "no root file" if root is None else state
            refusal = found.subject and found.subject.exhibit.refusal
            if refusal:
                self.hint(f"it is not asked about: {refusal}")
        self._paint()

    def on_question_view_answered(self, message: QuestionView.Answered) -> None:
        """Say what came of a `y`; why it did not count, the question says itself."""
        if message.reason is None:
            root = self._named(message.subject.root)
            self._turns.begin().note(f"{root} is allowed; the next run loads it")

    def on_question_view_put_away(self, message: QuestionView.PutAway) -> None:
        """Say that it stays blocked."""
        self._turns.begin().note(f"{self._named(message.subject.root)} stays blocked")

    # ------------------------------------------------------------ the state

    def hint(self, text: str) -> None:
        """Say something in the line below, until the next input."""
        self._hint = plain(text)
        self._paint()

    def on_resize(self) -> None:
        """Give the folder the room that there is now."""
        self._paint()

    def _busy(self, what: Doing) -> None:
        self._doing = what
        self._paint()

    def _paint(self) -> None:
        kernel = str(self._doing)
        if self._doing is Doing.NOTHING and not self._kernel.is_running:
            kernel = "none"
        is_busy = self._doing in (Doing.RUNNING, Doing.ASKING)
        usual = "ctrl+c interrupts" if is_busy else "/help, ctrl+d leaves"
        rest = f" | {self._state} | {self._hint or f'kernel {kernel} | {usual}'}"
        room = max(12, self.size.width - overview.columns(rest))
        folder = overview.shortened(self._named(self._folder), room)
        state = self.place("#state", Static)
        if state is not None:
            state.update(Content(folder + rest))

    def _named(self, path: str) -> str:
        return overview.named(path + "/.envrc", self._home) if path else path
