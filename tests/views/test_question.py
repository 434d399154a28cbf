"""The question in a Textual program of ten lines, driven by keys."""

from __future__ import annotations

import pytest
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding

from envwatch.core.question import QUIET_S
from envwatch.inquiry import Inquiry
from envwatch.state import State
from envwatch.views.question import QuestionFirst, QuestionView
from tests.support.worlds import World
from tests.views.conftest import Chat, Clock, Line, Lines, MadeUp, settled

pytestmark = pytest.mark.parametrize("anyio_backend", ["asyncio"])

SIZE = (60, 24)
ASKING = "-asking"
composers = pytest.mark.parametrize("composer", [Line, Lines])


@composers
async def test_y_allows_what_was_shown(clock: Clock, composer: type) -> None:
    """It is asked as the view opens; `y` allows it, and the question goes."""
    inquiry = MadeUp()
    app = Chat(inquiry, clock, composer)
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        assert app.view.display
        clock.now += QUIET_S
        await pilot.press("y")
        await settled(pilot)
        assert inquiry.allowed == [b"export A=1\n"]
        assert not app.view.has_class(ASKING)
        assert app.draft == ""
    answers = [said for said in app.said if isinstance(said, QuestionView.Answered)]
    assert [answer.reason for answer in answers] == [None]


@composers
@pytest.mark.parametrize("key", ["n", "escape"])
async def test_put_away(clock: Clock, composer: type, key: str) -> None:
    """It stays away when it is looked at again, until the view is opened again."""
    inquiry = MadeUp()
    app = Chat(inquiry, clock, composer)
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        clock.now += QUIET_S
        await pilot.press(key)
        await settled(pilot)
        inquiry.content = b"export B=1\n"
        app.view.check()
        await settled(pilot)
        assert not app.view.has_class(ASKING)
        await pilot.press("y")
        assert app.draft == "y"
        app.view.open("/w")
        await settled(pilot)
        assert app.view.has_class(ASKING)
    assert inquiry.allowed == []


async def test_put_away_and_followed(clock: Clock) -> None:
    """To go to another folder and back is not to open the view."""
    app = Chat(MadeUp(), clock, Line)
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        app.view.follow(None)
        await settled(pilot)
        assert not app.view.has_class(ASKING)
        app.view.follow("/w")
        await settled(pilot)
        assert app.view.has_class(ASKING)
        clock.now += QUIET_S
        await pilot.press("n")
        for folder in (None, "/w"):
            app.view.follow(folder)
            await settled(pilot)
            assert not app.view.has_class(ASKING)
        app.view.open("/w")
        await settled(pilot)
        assert app.view.has_class(ASKING)


@composers
async def test_letters_are_held_back_and_a_draft_types(
    clock: Clock, composer: type
) -> None:
    """Of the letters none reaches an empty composer; a draft gets every one."""
    inquiry = MadeUp()
    app = Chat(inquiry, clock, composer)
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        clock.now += QUIET_S
        await pilot.press("a", "Y", "N", "z", "enter")
        assert app.draft.strip() == ""
        app.composer.clear()
        clock.now += QUIET_S
        await pilot.press("1", "y", "n")
        clock.now += QUIET_S
        await pilot.press("y", "escape")
        assert app.draft == "1yny"
        assert app.view.has_class(ASKING)
    assert inquiry.allowed == []


@composers
async def test_paste_is_a_draft(clock: Clock, composer: type) -> None:
    """A pasted `y` is text."""
    inquiry = MadeUp()
    app = Chat(inquiry, clock, composer)
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        clock.now += QUIET_S
        app.post_message(events.Paste("y"))
        await settled(pilot)
        assert app.draft == "y"
        assert app.view.has_class(ASKING)
        # Right behind it, whatever the composer has made of it.
        app.composer.clear()
        await pilot.press("y")
        assert app.draft == "y"
    assert inquiry.allowed == []


async def test_key_that_was_on_its_way(clock: Clock) -> None:
    """What is typed as the question appears does not answer it."""
    inquiry = MadeUp()
    app = Chat(inquiry, clock, Line)
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        clock.now += QUIET_S - 0.01
        await pilot.press("y", "n")
        await settled(pilot)
        assert app.view.has_class(ASKING)
    assert inquiry.allowed == []


async def test_changed_between_showing_and_answering(clock: Clock) -> None:
    """The answer is void; the new content is shown, and asked about like the first."""
    inquiry = MadeUp()
    app = Chat(inquiry, clock, Line)

    def edit() -> None:
        inquiry.content = b"export EVIL=1\n"

    inquiry.before_allowing = edit
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        clock.now += QUIET_S
        await pilot.press("y")
        await settled(pilot)
        assert inquiry.allowed == []
        subject = app.view.question.subject
        assert subject is not None
        assert subject.content == b"export EVIL=1\n"
        await pilot.press("y")
        await settled(pilot)
        assert inquiry.allowed == []
        clock.now += QUIET_S
        await pilot.press("y")
        await settled(pilot)
        assert inquiry.allowed == [b"export EVIL=1\n"]


async def test_long_file_is_read_to_its_end_first(clock: Clock) -> None:
    """`y` is held back until the last line was on the screen."""
    inquiry = MadeUp(b"".join(b"export A%d=1\n" % number for number in range(50)))
    app = Chat(inquiry, clock, Line)
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        clock.now += QUIET_S
        await pilot.press("y")
        await settled(pilot)
        assert inquiry.allowed == []
        for _ in range(12):
            assert not app.view.question.is_ready or inquiry.allowed == []
            await pilot.press("pagedown")
            await settled(pilot)
        assert app.view.question.is_ready
        clock.now += QUIET_S
        await pilot.press("up", "down")
        clock.now += QUIET_S
        await pilot.press("y")
        await settled(pilot)
    assert len(inquiry.allowed) == 1


async def test_jump_to_the_end_is_no_reading(clock: Clock) -> None:
    """Lines that were jumped over were not shown."""
    inquiry = MadeUp(b"".join(b"export A%d=1\n" % number for number in range(90)))
    app = Chat(inquiry, clock, Line)
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        app.view._body.scroll_end(animate=False)
        await settled(pilot)
        assert app.view._body.scroll_y > 0
        clock.now += QUIET_S
        await pilot.press("y")
        await settled(pilot)
    assert inquiry.allowed == []


async def test_no_room_to_show_it(clock: Clock) -> None:
    """Where the view is squeezed to nothing, `y` answers nothing."""
    inquiry = MadeUp()
    app = Chat(inquiry, clock, Line)
    async with app.run_test(size=SIZE) as pilot:
        app.view.styles.height = 0
        await settled(pilot)
        clock.now += QUIET_S
        await pilot.press("y")
        await settled(pilot)
    assert inquiry.allowed == []


@pytest.mark.parametrize("state", [State.DENIED, State.ALLOWED, State.NONE])
async def test_nothing_to_ask(clock: Clock, state: State) -> None:
    """Only a blocked file asks; keys type as ever."""
    inquiry = MadeUp()
    inquiry.state = state
    app = Chat(inquiry, clock, Line)
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        assert not app.view.has_class(ASKING)
        await pilot.press("y", "n", "h")
        assert app.draft == "ynh"
    assert inquiry.allowed == []


async def test_file_changes_while_its_question_stands(clock: Clock) -> None:
    """The new content takes its place; allowed elsewhere, the question goes."""
    inquiry = MadeUp()
    app = Chat(inquiry, clock, Line)
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        inquiry.content = b"export B=1\n"
        await app.view._notice()
        await settled(pilot)
        assert app.view.question.subject is not None
        assert app.view.question.subject.content == b"export B=1\n"
        inquiry.state = State.ALLOWED
        await app.view._notice()
        await settled(pilot)
        assert not app.view.has_class(ASKING)


async def test_workspace_vanishes(clock: Clock) -> None:
    """A folder that is gone takes its question away, and the program is told."""
    inquiry = MadeUp()
    app = Chat(inquiry, clock, Line)
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        inquiry.is_gone = True
        app.view.check()
        await settled(pilot)
        assert not app.view.has_class(ASKING)
        app.view.open(None)
        await settled(pilot)
    last = app.said[-1]
    assert isinstance(last, QuestionView.Looked)
    assert last.found is None
    assert "gone" in last.reason


async def test_with_the_real_direnv(clock: Clock, world: World) -> None:
    """Blocked, shown, edited, void, shown again, allowed; denied is not asked."""
    world.envrc("w", "export A=1\n", allow=False)
    inquiry = Inquiry(world.direnv, world.environ)
    app = Chat(inquiry, clock, Line, str(world.path("w")))
    async with app.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        clock.now += QUIET_S
        world.write("w/.envrc", "")
        await pilot.press("y")
        await settled(pilot)
        assert not (world.data / "allow").exists()
        assert app.view.has_class(ASKING)
        clock.now += QUIET_S
        await pilot.press("y")
        await settled(pilot)
        assert world.approval("w").exists()
        assert not app.view.has_class(ASKING)
        if world.is_newer:
            world.deny("w")
            app.view.open(str(world.path("w")))
            await settled(pilot)
            assert not app.view.has_class(ASKING)
    assert len(list((world.data / "allow").iterdir())) == (not world.is_newer)


async def test_program_without_a_composer(clock: Clock) -> None:
    """The question gets keys before the program's own bindings do."""

    class Top(QuestionFirst, App[None]):
        BINDINGS = [Binding("q", "quit"), Binding("f", "count")]  # noqa: RUF012
        counted = 0
        view = QuestionView(inquiry := MadeUp(), clock=clock)

        def compose(self) -> ComposeResult:
            yield self.view

        def action_count(self) -> None:
            self.counted += 1

    app = Top()
    async with app.run_test(size=SIZE) as pilot:
        app.view.open("/w")
        await settled(pilot)
        clock.now += QUIET_S
        await pilot.press("f", "q")
        assert app.counted == 0
        assert app.is_running
        clock.now += QUIET_S
        await pilot.press("y")
        await settled(pilot)
        assert not app.view.has_class(ASKING)
        await pilot.press("f")
        assert app.counted == 1
    assert app.inquiry.allowed == [b"export A=1\n"]


async def test_what_is_on_the_screen(clock: Clock) -> None:
    """Escapes are written out, whatever the file holds, also markup of Textual's."""
    inquiry = MadeUp(b"A=\x1b[2J\xff [red]x[/red]\n")
    app = Chat(inquiry, clock, Line)
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        seen = app.export_screenshot()
    text = seen.replace("&#160;", " ")
    assert "\\x1b<" in text
    assert "\\xff<" in text
    assert "[red]x[/red]" in text
    assert "other.env" in text


async def test_key_that_comes_up_from_the_composer(clock: Clock) -> None:
    """What a draft had first is not offered once more as if there were none."""

    class Both(QuestionFirst, Chat):
        BINDINGS = [Binding("escape", "count")]  # noqa: RUF012
        counted = 0

        def action_count(self) -> None:
            self.counted += 1

    app = Both(MadeUp(), clock, Line)
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        clock.now += QUIET_S
        await pilot.press("1")
        clock.now += 2 * QUIET_S
        await pilot.press("escape")
        await settled(pilot)
        assert app.draft == "1"
        assert app.counted == 1
        assert app.view.has_class(ASKING)
