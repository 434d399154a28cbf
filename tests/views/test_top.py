"""The live view at 80 x 24, driven by Textual's pilot, over a real sidecar."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from envwatch.errors import NoSidecar
from envwatch.inquiry import Inquiry
from envwatch.views.top import Top
from kernel_client import Settings, sidecar
from tests.conftest import NEWER
from tests.e2e.kernels import KernelProcess, environ_of
from tests.support.daemons import Daemon
from tests.support.pairs import NO_COMMAND
from tests.support.planted import exports
from tests.support.screenful import see
from tests.support.worlds import World

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("version", [NEWER], indirect=True),
]

SIZE = (80, 24)


@pytest.fixture
def anyio_backend() -> str:
    """Textual is asyncio's."""
    return "asyncio"


@pytest.fixture
def start(world: World, daemon: Daemon) -> Iterator[Callable[[str], KernelProcess]]:
    """Give what starts a kernel in a folder of the world, and refreshes it once."""
    running: list[KernelProcess] = []

    def started(folder: str) -> KernelProcess:
        environ = environ_of(world, listening=daemon.socket)
        kernel = KernelProcess(environ, world.path(folder))
        running.append(kernel)
        kernel.refresh()
        return kernel

    yield started
    for kernel in running:
        kernel.close()


def viewed(world: World, socket: Path, **changes: Any) -> Top:
    """Give the view of a sidecar."""
    settings = Settings(sidecar=NO_COMMAND, socket=str(socket))
    given: dict[str, Any] = {
        "connect": lambda: sidecar.connect(settings, world.environ, None),
        "start": lambda: "a sidecar is being started",
        "inquire": lambda: Inquiry("/direnv", {}),
        "home": str(world.top),
        "every_s": 0.05,
        **changes,
    }
    return Top(**given)


async def test_all_of_it_is_on_one_screen(
    world: World, daemon: Daemon, start: Callable[[str], KernelProcess]
) -> None:
    """80 x 24: the sidecar, a table, one workspace's details, the keys."""
    world.envrc("a", exports("A"))
    world.envrc("b", exports("B"), allow=False)
    start("a").run("answer = [refresh() for _ in range(9)] and None")
    start("a")
    start("b")
    async with viewed(world, daemon.socket).run_test(size=SIZE) as pilot:
        screen = await see(pilot, "per second", "q leave")
        lines = screen.splitlines()
        assert len(lines) == 24
        assert max(map(len, lines)) <= 80
        assert lines[0].startswith("sidecar     0.1.0, pid ")
        assert lines[2].startswith("kernels     3 attached, 2 evaluations so far")
        assert lines[5].startswith("watching    ok, ")
        assert lines[7].split() == [
            *("WORKSPACE", "STATE", "KERNELS", "OUTCOME", "ENDED", "TOOK", "SHARED")
        ]
        assert lines[8].startswith("> ~/a        idle   2        loaded ")
        assert lines[8].endswith("  2")
        assert lines[9].startswith("  ~/b        idle   1        blocked ")
        assert "root file   ~/a/.envrc" in screen
        assert "shared by 2 kernels" in screen
        assert "r reload" in lines[23]
        assert "q leave" in lines[23]


async def test_going_to_another_workspace_shows_its_details(
    world: World, daemon: Daemon, start: Callable[[str], KernelProcess]
) -> None:
    """Where one is, is said by a sign, not by a colour alone; it stays there."""
    for name in ("a", "b", "c"):
        world.envrc(name, exports("A"))
        start(name)
    async with viewed(world, daemon.socket).run_test(size=SIZE) as pilot:
        await see(pilot, "> ~/a", "root file   ~/a/.envrc")
        await pilot.press("down")
        await see(pilot, "> ~/b", "  ~/a", "root file   ~/b/.envrc")
        world.envrc("0", exports("A"))
        start("0")
        screen = await see(pilot, "  ~/0", "> ~/b", "root file   ~/b/.envrc")
        assert screen.count("> ") == 1


async def test_what_comes_while_the_view_is_taken_apart(
    world: World, daemon: Daemon, start: Callable[[str], KernelProcess]
) -> None:
    """From the feed's thread, say: nothing shows it, and nothing fails."""
    world.envrc("a", exports("A"))
    start("a")
    app = viewed(world, daemon.socket)
    async with app.run_test(size=SIZE) as pilot:
        await see(pilot, "> ~/a")
        await app.screen.query("*").remove()
        app.on_resize()
        app.say("nobody sees it")
        before = app._status
        while app._status is before:
            await pilot.pause()
    assert app.error is None


async def test_counters_come_with_the_next_frame(
    world: World, daemon: Daemon, start: Callable[[str], KernelProcess]
) -> None:
    """How refreshes were answered, as soon as a kernel has something to send."""
    world.envrc("a", exports("A"))
    kernel = start("a")
    async with viewed(world, daemon.socket).run_test(size=SIZE) as pilot:
        await see(pilot, "none told so far")
        kernel.run("answer = [refresh() for _ in range(9)] and None")
        world.envrc("a", exports("B"))
        kernel.refresh()
        screen = await see(pilot, "stats 9 (90 %), record 0, sidecar 1, direnv 0")
        assert screen.count("stats 9 (90 %)") == 2


async def test_frames_per_second_are_those_of_others(
    world: World, daemon: Daemon, start: Callable[[str], KernelProcess]
) -> None:
    """While kernels are silent there are none, though the view asks all the time."""
    world.envrc("a", exports("A"))
    kernel = start("a")
    async with viewed(world, daemon.socket).run_test(size=SIZE) as pilot:
        await see(pilot, "frames      0.0 in and 0.0 out per second")
        kernel.tell(
            "[kernel_client.reload() for _ in range(60)]; answer = 1",
        )
        await see(pilot, "per second", gone=("0.0 in", "0.0 out"))
        assert kernel.answer() == 1
        await see(pilot, "frames      0.0 in and 0.0 out per second")


async def test_r_reloads(
    world: World, daemon: Daemon, start: Callable[[str], KernelProcess]
) -> None:
    """The workspace that is chosen, in every kernel, with its next run."""
    world.envrc("a", exports("A"))
    world.envrc("b", exports("A"))
    first, second = start("b"), start("b")
    start("a")
    async with viewed(world, daemon.socket).run_test(size=SIZE) as pilot:
        await see(pilot, "> ~/a")
        await pilot.press("down", "r")
        await see(pilot, "2 kernels load ~/b again at the next run")
        await pilot.press("up", "r")
        await see(pilot, "1 kernel loads ~/a again at the next run")
    assert [first.refresh()["outcome"], second.refresh()["outcome"]] == ["loaded"] * 2


async def test_q_leaves(world: World, daemon: Daemon) -> None:
    """And nothing is left of the view: its thread has ended."""
    app = viewed(world, daemon.socket)
    async with app.run_test(size=SIZE) as pilot:
        await see(pilot, "No workspace yet")
        await pilot.press("q")
    assert app.return_code == 0
    assert not app._feed._thread.is_alive()


async def test_without_a_sidecar(world: World) -> None:
    """It says so, and offers to start one; what needs one is not offered."""
    async with viewed(world, world.path("none/sock")).run_test(size=SIZE) as pilot:
        screen = await see(
            pilot, "No sidecar: no sidecar listens at ", "s starts a", "s start a"
        )
        assert screen.splitlines()[-1].split("  ")[0] == " s start a sidecar"
        assert "reload" not in screen
        await pilot.press("r", "s")
        await see(pilot, "a sidecar is being started")


async def test_one_that_cannot_be_started(world: World) -> None:
    """Why not is said in the view."""

    def start() -> str:
        raise NoSidecar("ENVWATCH_SIDECAR is off")

    app = viewed(world, world.path("none/sock"), start=start)
    async with app.run_test(size=SIZE) as pilot:
        await see(pilot, "s starts a")
        await pilot.press("s")
        await see(pilot, "ENVWATCH_SIDECAR is off")


async def test_a_socket_that_is_not_safe(world: World) -> None:
    """To start another one beside it would be no help, so it is not offered."""
    world.folder("run").chmod(0o777)
    world.write("run/sock", "")
    async with viewed(world, world.path("run/sock")).run_test(size=SIZE) as pilot:
        screen = await see(pilot, "can be written by others")
        assert "start a sidecar" not in screen


async def test_a_sidecar_that_dies_and_comes_back(
    world: World, daemon: Daemon, start: Callable[[str], KernelProcess]
) -> None:
    """The view says so, shows nothing that is not true any more, and goes on."""
    world.envrc("a", exports("A"))
    kernel = start("a")
    async with viewed(world, daemon.socket).run_test(size=SIZE) as pilot:
        await see(pilot, "> ~/a")
        daemon.kill()
        await see(pilot, "No sidecar: ", gone=("~/a", "WORKSPACE", "reload"))
        daemon.start()
        await see(pilot, "a sidecar is back", "No workspace yet")
        world.envrc("a", exports("B"))
        kernel.refresh()
        await see(pilot, "> ~/a", "root file   ~/a/.envrc")


async def test_a_workspace_that_vanishes(world: World) -> None:
    """What is in its place is chosen, and it is said."""
    roots = ["/a/.envrc", "/b/.envrc", "/c/.envrc"]

    class Link:
        """A sidecar whose workspaces are those of the list above."""

        pid = 1
        number = staticmethod(lambda: 1)
        close = staticmethod(lambda: None)

        def request(self, frame: dict[str, Any], timeout_s: float) -> dict[str, Any]:
            """Answer a status."""
            workspaces = [
                {"root": root, "kernels": 1, "state": "idle", "last": None}
                for root in roots
            ]
            return {"status": {"workspaces": workspaces, "direnv": None}}

    app = viewed(world, world.top, connect=Link)
    async with app.run_test(size=SIZE) as pilot:
        await see(pilot, "> /a", "  /c", "no direnv: this sidecar evaluates nothing")
        await pilot.press("down")
        await see(pilot, "> /b")
        roots.remove("/b/.envrc")
        await see(pilot, "> /c", "/b is not there any more")
        roots.remove("/c/.envrc")
        await see(pilot, "> /a", "/c is not there any more")
        roots.remove("/a/.envrc")
        await see(pilot, "No workspace yet", gone=("root file",))
        roots.append("/d/.envrc")
        await see(pilot, "> /d", "root file   /d/.envrc")


async def test_a_folder_s_name_forges_nothing(
    world: World, daemon: Daemon, start: Callable[[str], KernelProcess]
) -> None:
    """Neither a terminal's escapes nor Textual's own markup."""
    name = os.fsdecode(b"[red]x[/red]\x1b[2J\n\xff")
    world.envrc(name, exports("A"))
    start(name)
    async with viewed(world, daemon.socket).run_test(size=SIZE) as pilot:
        # Whether its first letters have room depends on how long direnv took.
        screen = await see(pilot, "[red]x[/red]\\x1b[2J\\n\\udcff  idle")
        assert "root file   ~/[red]x[/red]\\x1b[2J\\n\\udcff/.envrc" in screen
        assert "\x1b" not in screen


async def test_another_size(
    world: World, daemon: Daemon, start: Callable[[str], KernelProcess]
) -> None:
    """Paths get the room that there is; a narrow terminal breaks nothing."""
    folder = "a/" + "long/" * 20 + "end"
    world.envrc(folder, exports("A"))
    start(folder)
    async with viewed(world, daemon.socket).run_test(size=SIZE) as pilot:
        await see(pilot, "> …", "root file")
        await pilot.resize_terminal(200, 24)
        await see(pilot, f"> ~/{folder}  idle")
        await pilot.resize_terminal(30, 10)
        await see(pilot, "> …ng/long/end", "sidecar ", "q leave", gone=("root file",))


async def test_many_workspaces_scroll(
    world: World, daemon: Daemon, start: Callable[[str], KernelProcess]
) -> None:
    """All of them can be gone to, and the details stay on the screen."""
    for number in range(20):
        world.envrc(f"w{number:02}", exports("A"))
    kernel = start("w00")
    for number in range(1, 20):
        kernel.run(f"os.chdir('../w{number:02}'); answer = refresh()['outcome']")
    async with viewed(world, daemon.socket).run_test(size=SIZE) as pilot:
        await see(pilot, "> ~/w00")
        await pilot.press("end")
        await see(pilot, "> ~/w19", "root file   ~/w19/.envrc", gone=("~/w00",))


@pytest.mark.parametrize("name", ["NO_COLOR", "COLORTERM"])
async def test_without_colours_it_says_the_same(
    world: World,
    daemon: Daemon,
    start: Callable[[str], KernelProcess],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    """Every style is the terminal's own foreground on its own background."""
    monkeypatch.setenv(name, "1")
    world.envrc("a", exports("A"), allow=False)
    start("a")
    async with viewed(world, daemon.socket).run_test(size=SIZE) as pilot:
        await see(pilot, "> ~/a", "blocked")
        strips = pilot.app.screen._compositor.render_strips()
        colours = {
            str(colour.name)
            for strip in strips
            for segment in strip
            if segment.style is not None
            for colour in (segment.style.color, segment.style.bgcolor)
            if colour is not None
        }
        assert colours <= {"default"}
