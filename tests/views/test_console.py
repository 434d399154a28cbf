"""The console at 80 x 24, driven by Textual's pilot, with a real kernel and direnv."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.pilot import Pilot

from envwatch.commands import status, top
from envwatch.commands.console import spec_of
from envwatch.errors import Unavailable
from envwatch.hosts.kernel import Kernel
from envwatch.inquiry import Inquiry
from envwatch.views import console
from envwatch.views.composer import Reply
from envwatch.views.console import Console
from envwatch.views.question import QuestionView
from envwatch.views.turns import Turns
from kernel_client import Settings
from tests.conftest import NEWER
from tests.support.jupyters import Jupyter
from tests.support.planted import exports
from tests.support.screenful import see, text_of
from tests.support.worlds import World

pytestmark = [
    pytest.mark.parametrize("anyio_backend", ["asyncio"]),
    pytest.mark.parametrize("version", [NEWER], indirect=True),
]

SIZE = (80, 24)
READY, ASKED = "a kernel runs in", "y allows this file"
HAS_A = "'A' in __import__('os').environ"
SLEEP = "print('be' + 'gun', flush=True); __import__('time').sleep(1000)"
View = Callable[..., Console]


@pytest.fixture
async def viewed(
    world: World, anyio_backend: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[View]:
    """Give what makes the view of a kernel of its own, in the folder `w`."""
    monkeypatch.setattr(console, "DIED_EVERY_S", 0.05)
    environ = Jupyter(world, None).environ
    world.folder("w")
    kernels: list[Kernel] = []

    def made(**changes: Any) -> Console:
        kernels.append(Kernel(changes.pop("spec", spec_of(None)), environ))
        given: dict[str, Any] = {
            "inquire": lambda: top.inquiry(Settings(), world.environ),
            "status": lambda folder: status.told(
                folder, {**world.environ, "ENVWATCH_SIDECAR": "off"}
            ),
            "home": str(world.top),
            **changes,
        }
        return Console(kernels[-1], str(world.path("w")), **given)

    yield made
    for kernel in kernels:
        await kernel.close()


async def paste(pilot: Pilot[Any], text: str) -> None:
    """Paste a text into the composer."""
    pilot.app.post_message(events.Paste(text))
    await pilot.pause()


async def enter(pilot: Pilot[Any], text: str) -> None:
    """Paste a text, and press Enter."""
    await paste(pilot, text)
    await pilot.press("enter")


async def answer(pilot: Pilot[Any], key: str) -> None:
    """Answer the question, as somebody who has read it for long enough."""
    await see(pilot, ASKED)
    question = pilot.app.screen.query_one(QuestionView).question
    question._quiet_until = question._draft_until = 0.0
    await pilot.press(key)


def draft(app: Console) -> str:
    """Give what is composed."""
    return app._composer.text


# ------------------------------------------------------------------ runs


async def test_a_run(world: World, viewed: View) -> None:
    """What was run, what direnv said and what was printed, each with its mark."""
    world.envrc("w", exports("A"))
    async with viewed().run_test(size=SIZE) as pilot:
        await see(pilot, READY, "~/w | allowed | kernel idle")
        await enter(pilot, f"print('a\\nb')\n{HAS_A}\n")
        screen = await see(pilot, "  True")
        lines = [line.rstrip() for line in screen.splitlines()]
        assert len(lines) == 24
        at = lines.index("> print('a\\nb')")
        assert lines[at + 1] == f"  {HAS_A}"
        assert lines[at + 2] == f"direnv: loading {world.path('w')}/.envrc"
        assert lines[at + 3] == "        export +A"
        assert lines[at + 4 : at + 7] == ["  a", "  b", "  True"]
        assert draft(pilot.app) == ""  # type: ignore[arg-type]


async def test_an_error_and_what_no_terminal_may_see(viewed: View) -> None:
    """Every other sequence than those of a few styles is an escape on the screen."""
    async with viewed().run_test(size=SIZE) as pilot:
        await see(pilot, READY)
        await enter(
            pilot, r"print('\x1b[2J\x1b[1;1H> forged\x1b[31mred\a[b]')" + "\n1/0"
        )
        screen = await see(pilot, "ZeroDivisionError: division by zero")
        assert "  \\x1b[2J\\x1b[1;1H> forgedred\\x07[b]" in screen
        assert "\x1b" not in screen
        strips = pilot.app.screen._compositor.render_strips()
        (style,) = (
            each.style for strip in strips for each in strip if each.text == "red"
        )
        assert style is not None
        assert style.color is not None
        assert style.color.name == "color(1)"


async def test_nothing_printed_reaches_the_first_column(viewed: View) -> None:
    """There are the marks, which so nobody can forge; folded lines stay in, too."""
    async with viewed().run_test(size=SIZE) as pilot:
        await see(pilot, READY)
        await enter(pilot, "print('direnv: ' * 30 + '\\nenvwatch: x\\n> y')")
        screen = await see(pilot, "  > y")
        shown = screen[screen.index("> print") :].splitlines()[1:-5]
        assert len(shown) == 6
        assert all(line.startswith("  ") for line in shown)


async def test_incomplete_code_goes_on(viewed: View) -> None:
    """The kernel says what is complete; ctrl+j begins a line anywhere."""
    app = viewed()
    async with app.run_test(size=SIZE) as pilot:
        await see(pilot, READY)
        await enter(pilot, "for i in range(3):")
        await see(pilot, "│     ", "kernel idle")
        assert draft(app) == "for i in range(3):\n    "
        await pilot.press(*"print(7", "ctrl+j", *"+i)", "enter")
        await see(pilot, "│ +i)", "│     ", "kernel idle")
        assert draft(app) == "for i in range(3):\n    print(7\n+i)\n"
        await pilot.press("enter")
        await see(pilot, "  7", "  8", "  9")


async def test_what_is_typed_while_the_kernel_is_asked_stays(viewed: View) -> None:
    """No letter is lost, and none is run that was not sent."""
    app = viewed()
    async with app.run_test(size=SIZE) as pilot:
        await see(pilot, READY)
        await paste(pilot, "40 + 2")
        composer = app._composer
        composer.post_message(events.Key("enter", "\r"))
        composer.post_message(events.Key("x", "x"))
        await see(pilot, "> 40 + 2", "  42", "│ x ")
        assert draft(app) == "x"


async def test_a_run_is_interrupted(viewed: View) -> None:
    """While it runs, what is composed waits, and stays."""
    app = viewed()
    async with app.run_test(size=SIZE) as pilot:
        await see(pilot, READY)
        await enter(pilot, SLEEP)
        await see(pilot, "  begun", "kernel running | ctrl+c interrupts")
        await enter(pilot, "1 + 1")
        await see(pilot, console.HELD)
        await pilot.press("ctrl+c")
        await see(pilot, "KeyboardInterrupt", "kernel idle")
        assert draft(app) == "1 + 1"
        await pilot.press("enter")
        await see(pilot, "> 1 + 1", "  2")


async def test_earlier_input(viewed: View) -> None:
    """Up at the first line, down at the last one; the draft is kept."""
    app = viewed()
    async with app.run_test(size=SIZE) as pilot:
        await see(pilot, READY)
        for text in ("1", "a = 2\nb = 3"):
            await enter(pilot, text)
            await see(pilot, f"> {text[:4]}", "kernel idle")
        await paste(pilot, "draft")
        await pilot.press("up")
        assert draft(app) == "a = 2\nb = 3"
        await pilot.press("up")
        assert draft(app) == "a = 2\nb = 3"
        await pilot.press("up")
        assert draft(app) == "1"
        await pilot.press("up", "down", "down")
        assert draft(app) == "draft"


async def test_much_output(viewed: View) -> None:
    """The end is in sight, PgUp goes back, the next run brings the end again."""
    async with viewed().run_test(size=SIZE) as pilot:
        await see(pilot, READY)
        await enter(pilot, "for i in range(3000): print(f'line {i}')\n")
        await see(pilot, "  line 2999", "kernel idle")
        await pilot.press("pageup")
        await see(pilot, "  line 2980", gone=("line 2999",))
        await pilot.press("pagedown")
        await see(pilot, "  line 2999")
        pilot.app.query_one(Turns).scroll_home(animate=False)
        await see(pilot, "(2000 lines before this left out)")
        await enter(pilot, "'end'")
        await see(pilot, "  'end'")


async def test_a_run_that_waits_for_direnv(world: World, viewed: View) -> None:
    """An interrupt ends the wait, and that cell is not run."""
    world.envrc("w", "echo loading >&2\nsleep 1000\n")
    async with viewed().run_test(size=SIZE) as pilot:
        await see(pilot, READY)
        await enter(pilot, "print('r' + 'an')")
        await see(pilot, "direnv: loading", "kernel running")
        await pilot.press("ctrl+c")
        screen = await see(pilot, "the cell was not run", "kernel idle")
        assert "  ran" not in screen


async def test_a_flood(viewed: View) -> None:
    """However much it prints, it can be interrupted."""
    async with viewed().run_test(size=SIZE) as pilot:
        await see(pilot, READY)
        await enter(pilot, "while True: print('x' * 70)\n")
        await see(pilot, "  xxx", "kernel running")
        await pilot.press("ctrl+c")
        await see(pilot, "KeyboardInterrupt", "kernel idle")


# ------------------------------------------------------------------ keys and commands


async def test_leaving(viewed: View) -> None:
    """ctrl+c clears a draft, and says how to leave; ctrl+d leaves without one."""
    app = viewed()
    async with app.run_test(size=SIZE) as pilot:
        await see(pilot, READY)
        await pilot.press(*"ab", "home", "ctrl+d")
        assert draft(app) == "b"
        await pilot.press("ctrl+c")
        assert draft(app) == ""
        await pilot.press("ctrl+c")
        await see(pilot, "ctrl+d or /quit leaves")
        await pilot.press("ctrl+d")
    assert (app.return_code, app.return_value) == (0, 0)


async def test_commands(world: World, viewed: View) -> None:
    """What `/help`, `/status` and `/reload` show, and what is none of them."""
    world.envrc("w", exports("A"))
    app = viewed()
    async with app.run_test(size=SIZE) as pilot:
        await see(pilot, READY)
        await enter(pilot, "/status")
        await see(pilot, "> /status", f"  root file  {world.path('w')}/.envrc")
        await see(pilot, "  state      allowed")
        await enter(pilot, "/reload")
        await see(pilot, "> /reload", "direnv: loading", "  envwatch: loaded")
        await enter(pilot, "/nothing")
        await see(pilot, "there is no command /nothing; /help lists them")
        assert draft(app) == "/nothing"
        await pilot.press("ctrl+c")
        await enter(pilot, "/help")
        await see(pilot, "  /cd DIR     go to", gone=("there is no command",))
        await enter(pilot, "/quit")
    assert app.return_value == 0


async def test_to_another_folder(world: World, viewed: View) -> None:
    """The kernel goes there; its file is asked about; elsewhere it stays."""
    world.envrc("w/deeper", "export A=1\n", allow=False)
    async with viewed().run_test(size=SIZE) as pilot:
        await see(pilot, READY, "~/w | no root file")
        await enter(pilot, "/cd nowhere")
        await see(pilot, "envwatch: cannot go to nowhere: No such file or directory")
        await enter(pilot, "/cd deeper")
        await see(pilot, "envwatch: now in ~/w/deeper", ASKED)
        await answer(pilot, "n")
        await see(pilot, "~/w/deeper/.envrc stays blocked", gone=(ASKED,))
        await enter(pilot, "__import__('os').getcwd()")
        await see(pilot, f"  '{world.path('w/deeper')}'")
        await enter(pilot, "__import__('os').chdir('..')")
        await see(pilot, "~/w | no root file", gone=(ASKED,))


async def test_a_folder_that_is_deleted(world: World, viewed: View) -> None:
    """It is said, and the console goes on."""
    async with viewed().run_test(size=SIZE) as pilot:
        await see(pilot, READY)
        shutil.rmtree(world.path("w"))
        await enter(pilot, "1")
        await see(pilot, "envwatch: the kernel's folder has been deleted")
        await enter(pilot, "/cd ~")
        await see(pilot, "envwatch: now in ~")


# ------------------------------------------------------------------ the question


async def test_asked_and_loaded(world: World, viewed: View) -> None:
    """Letters are held back, Enter answers nothing, `y` does; the next run has it."""
    world.envrc("w", "export A=1\n", allow=False)
    app = viewed()
    async with app.run_test(size=SIZE) as pilot:
        await see(pilot, READY, "is blocked: new", " export A=1", ASKED)
        await pilot.press("p", "enter")
        assert draft(app) == ""
        await enter(pilot, HAS_A)
        await see(pilot, "direnv: error", "  False", ASKED)
        await answer(pilot, "y")
        await see(pilot, "~/w/.envrc is allowed; the next run loads it", gone=(ASKED,))
        await enter(pilot, HAS_A)
        await see(pilot, "  True", "~/w | allowed")


async def test_a_run_that_was_told_asks_again(world: World, viewed: View) -> None:
    """What was put away is asked anew when a run was told, and only then."""
    world.envrc("w", "export A=1\n")
    async with viewed().run_test(size=SIZE) as pilot:
        await see(pilot, READY, "~/w | allowed")
        world.envrc("w", "export A=2\n", allow=False)
        await enter(pilot, HAS_A)
        await see(pilot, "  False", "is blocked: changed")
        await answer(pilot, "n")
        await see(pilot, "stays blocked", gone=(ASKED,))
        await enter(pilot, "'nothing new'")
        await see(pilot, "  'nothing new'", "~/w | blocked: changed", gone=(ASKED,))
        world.envrc("w", "export A=3\n", allow=False)
        await enter(pilot, "'again'")
        await see(pilot, "  'again'", "export A=3", ASKED)


async def test_denied_does_not_ask(world: World, viewed: View) -> None:
    """The state says it."""
    world.envrc("w", "export A=1\n")
    world.deny("w")
    async with viewed().run_test(size=SIZE) as pilot:
        await see(pilot, READY, "~/w | denied", gone=(ASKED,))


async def test_too_large_to_show(world: World, viewed: View) -> None:
    """Why it is not asked about is said."""
    world.envrc("w", "#\n" * 2000, allow=False)
    async with viewed().run_test(size=SIZE) as pilot:
        await see(pilot, "~/w | blocked: new", "it is not asked about: it has more")


async def test_without_direnv(viewed: View) -> None:
    """The console runs, and says so."""

    def inquire() -> Inquiry:
        raise Unavailable("there is no direnv on PATH")

    def told(folder: str) -> list[str]:
        raise Unavailable("there is none for the status either")

    async with viewed(inquire=inquire, status=told).run_test(size=SIZE) as pilot:
        await see(pilot, READY, "envwatch: there is no direnv on PATH", "no direnv |")
        await enter(pilot, "1 + 1")
        await see(pilot, "  2")
        await enter(pilot, "/cd ~")
        await see(pilot, "envwatch: now in ~")
        await enter(pilot, "/status")
        await see(pilot, "envwatch: there is none for the status either")


# ------------------------------------------------------------------ what a run asks


async def test_a_run_asks(world: World, viewed: View) -> None:
    """A `y` for the program allows nothing, and the draft is still there after it."""
    world.envrc("w", "export A=1\n", allow=False)
    app = viewed()
    async with app.run_test(size=SIZE) as pilot:
        await see(pilot, READY, ASKED)
        await enter(pilot, "input('go on? '), input('sure? ')")
        await see(pilot, "  go on?", "kernel asking you", gone=(ASKED,))
        await pilot.press("y", "enter")
        await see(pilot, "  go on? y", "  sure?")
        app._composer.insert("draft")
        await pilot.press("y", "enter")
        await see(pilot, "  sure? y", "('y', 'y')", "│ draft", ASKED)
        await see(pilot, "~/w | blocked: new")
        assert app.focused is app._composer


async def test_a_secret_and_an_end(viewed: View) -> None:
    """A secret is nowhere on the screen; ctrl+d ends the input, ctrl+c the run."""
    async with viewed().run_test(size=SIZE) as pilot:
        await see(pilot, READY)
        await enter(pilot, "len(__import__('getpass').getpass('secret: '))")
        await see(pilot, "  secret:", "kernel asking you")
        await pilot.press(*"hush")
        assert "hush" not in await see(pilot, "••••")
        await pilot.press("enter")
        assert "hush" not in await see(pilot, "  4", "kernel idle")
        for key, error in (("ctrl+d", "EOFError"), ("ctrl+c", "KeyboardInterrupt")):
            await enter(pilot, "input('more? ')")
            await see(pilot, "  more?", "kernel asking you")
            await pilot.press(key)
            await see(pilot, error, "kernel idle")
            assert not pilot.app.query(Reply)


async def test_a_hint_while_the_view_is_taken_apart(viewed: View) -> None:
    """From a timer, say: nothing shows it, and nothing fails."""
    app = viewed()
    async with app.run_test(size=SIZE) as pilot:
        await see(pilot, READY)
        await app.query_one("#state").remove()
        app.hint("nobody sees it")
        await pilot.resize_terminal(60, 20)
    assert app.error is None


# ------------------------------------------------------------------ a kernel's death


async def test_a_kernel_that_dies(viewed: View) -> None:
    """In a run or between runs: it is said, and the next run has another kernel."""
    app = viewed()
    async with app.run_test(size=SIZE) as pilot:
        await see(pilot, READY)
        await enter(pilot, "import os; os._exit(1)")
        await see(pilot, f"envwatch: {console.DEAD}", "kernel none")
        await enter(pilot, "'os' in globals(), __import__('os').getpid()")
        screen = await see(pilot, "this is a new kernel", "  (False, ", "kernel idle")
        pid = int(screen.partition("(False, ")[2].partition(")")[0])
        os.kill(pid, signal.SIGKILL)
        again = f"  (False, {pid})\n\nenvwatch: {console.DEAD}\n"
        await see(pilot, again, "kernel none")
        await enter(pilot, "/cd ~")
        await see(pilot, " now in ~/home", "kernel idle")


async def test_a_kernel_that_does_not_start(viewed: View) -> None:
    """Why is said, each time that it is tried."""
    argv = ["python", "-c", "raise SystemExit('no \\x1b way')"]
    app = viewed(spec={**spec_of(None), "argv": argv})
    async with app.run_test(size=SIZE) as pilot:
        await see(pilot, "the kernel does not start: no \\x1b way", "kernel none")
        await enter(pilot, "1")
        why = "envwatch: the kernel does not start: no \\x1b way\n"
        await see(pilot, f"> 1\n{why}", "kernel none")
        await enter(pilot, "/cd ~")
        await see(pilot, f"> /cd ~\n{why}", "kernel none")


async def test_one_without_the_hook(viewed: View, world: World) -> None:
    """It runs, and nothing is loaded: that is said."""
    argv = ["python", "-Im", "ipykernel_launcher", "-f", "{connection_file}"]
    app = viewed(spec={**spec_of(None), "argv": argv})
    async with app.run_test(size=SIZE) as pilot:
        await see(pilot, READY, f"envwatch: {console.NO_HOOK}")


async def test_input_before_it_has_started(viewed: View) -> None:
    """It waits in the composer."""
    app = viewed()
    async with app.run_test(size=SIZE) as pilot:
        await enter(pilot, "1 + 1")
        assert console.STARTING in text_of(app)
        await see(pilot, READY, "kernel idle")
        assert draft(app) == "1 + 1"
        await pilot.press("enter")
        await see(pilot, "  2")


async def test_a_narrow_terminal(viewed: View, world: World) -> None:
    """The end of the folder is what is kept of it; nothing breaks."""
    world.envrc("w", "export A=1\n", allow=False)
    async with viewed(home="").run_test(size=(40, 12)) as pilot:
        await see(pilot, "blocked: new", "│ y allows this file", "\n│        ")
        await pilot.resize_terminal(60, 24)
        screen = await see(pilot, ASKED, "blocked: new | kernel idle")
        assert screen.splitlines()[-1].startswith("…")
        assert Path(screen.splitlines()[-1].partition(" | ")[0]).name == "w"
