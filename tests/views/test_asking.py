"""The question from within the view, with the real direnv and a real kernel."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from envwatch.commands.top import inquiry
from envwatch.errors import Unavailable
from envwatch.inquiry import Inquiry
from envwatch.views.asking import Asking
from envwatch.views.question import QuestionView
from envwatch.views.top import Top
from kernel_client import Settings, sidecar
from tests.conftest import NEWER
from tests.e2e.kernels import KernelProcess, environ_of
from tests.support.daemons import Daemon
from tests.support.pairs import NO_COMMAND
from tests.support.screenful import see, text_of
from tests.support.worlds import World

pytestmark = [
    pytest.mark.parametrize("anyio_backend", ["asyncio"]),
    pytest.mark.parametrize("version", [NEWER], indirect=True),
]

SIZE = (80, 24)


@pytest.fixture
def kernel(world: World, daemon: Daemon) -> Iterator[KernelProcess]:
    """Give a kernel whose file is blocked, and which knows."""
    world.envrc("a", "export A=1\n", allow=False)
    environ = environ_of(world, listening=daemon.socket)
    made = KernelProcess(environ, world.path("a"))
    assert made.refresh()["outcome"] == "blocked"
    yield made
    made.close()


@pytest.fixture
def make(world: World, daemon: Daemon) -> Callable[..., Top]:
    """Give what makes the view."""
    settings = Settings(sidecar=NO_COMMAND, socket=str(daemon.socket))

    def viewed(inquire: Callable[[], Inquiry] | None = None) -> Top:
        return Top(
            connect=lambda: sidecar.connect(settings, world.environ, None),
            start=lambda: "",
            inquire=inquire or (lambda: inquiry(settings, world.environ)),
            home=str(world.top),
            every_s=0.05,
        )

    return viewed


async def answerable(pilot: Any) -> None:
    """Wait until the question can be answered: all was shown, for long enough."""
    await see(pilot, "is blocked: new", "y allows this file")
    question = pilot.app.screen.query_one(QuestionView).question
    question._quiet_until = 0.0


async def test_y_allows_and_the_kernel_loads(
    world: World, kernel: KernelProcess, make: Callable[..., Top]
) -> None:
    """The file is shown, and what came of it is said in the view."""
    async with make().run_test(size=SIZE) as pilot:
        await see(pilot, "blocked", "a ask whether it may load")
        await pilot.press("a")
        await answerable(pilot)
        assert "export A=1" in text_of(pilot.app)
        await pilot.press("y")
        await see(pilot, "is allowed; kernels load it at their next run")
        assert kernel.refresh()["outcome"] == "loaded"
        await see(pilot, "loaded", gone=("a ask whether",))


@pytest.mark.parametrize("key", ["n", "escape"])
async def test_n_leaves_it_blocked(
    world: World, kernel: KernelProcess, make: Callable[..., Top], key: str
) -> None:
    """And the view goes on; the keys of the view mean nothing meanwhile."""
    app = make()
    async with app.run_test(size=SIZE) as pilot:
        await see(pilot, "a ask whether it may load")
        await pilot.press("a")
        await answerable(pilot)
        await pilot.press("q", "r", "a")
        assert isinstance(app.screen, Asking)
        app.screen.query_one(QuestionView).question._quiet_until = 0.0
        await pilot.press(key)
        await see(pilot, "stays blocked", "a ask whether it may load")
        assert len(app.screen_stack) == 1
        assert kernel.refresh()["outcome"] != "loaded"


async def test_what_is_not_blocked_any_more(
    world: World, kernel: KernelProcess, make: Callable[..., Top]
) -> None:
    """The kernel has not run since; nothing is asked, and why is said."""
    async with make().run_test(size=SIZE) as pilot:
        await see(pilot, "a ask whether it may load")
        world.allow("a")
        await pilot.press("a")
        await see(pilot, ".envrc is allowed", gone=("at their next run",))


async def test_what_was_denied_is_not_asked(
    world: World, kernel: KernelProcess, make: Callable[..., Top]
) -> None:
    """No key for it, once the kernel knows."""
    async with make().run_test(size=SIZE) as pilot:
        await see(pilot, "a ask whether it may load")
        world.deny("a")
        await pilot.press("a")
        await see(pilot, ".envrc is denied")
        kernel.refresh()
        await see(pilot, "  denied ", gone=("a ask whether it may load",))


async def test_a_folder_that_is_gone(
    world: World, kernel: KernelProcess, make: Callable[..., Top]
) -> None:
    """It is said, and the view goes on."""
    async with make().run_test(size=SIZE) as pilot:
        await see(pilot, "a ask whether it may load")
        os.unlink(world.path("a/.envrc"))
        await pilot.press("a")
        await see(pilot, ".envrc is none")


async def test_without_direnv(
    world: World, kernel: KernelProcess, make: Callable[..., Top]
) -> None:
    """There is nobody to ask; the line says so."""

    def inquire() -> Inquiry:
        raise Unavailable("there is no direnv on PATH")

    async with make(inquire).run_test(size=SIZE) as pilot:
        await see(pilot, "a ask whether it may load")
        await pilot.press("a")
        await see(pilot, "there is no direnv on PATH")
