"""Talking to a real ipykernel: runs, reports, interrupts, deaths, and its end."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.channels import HBChannel

from envwatch.commands.console import spec_of
from envwatch.core.console import Asked, Heard, Printed, Report, Said, Shown
from envwatch.errors import Unavailable
from envwatch.hosts.kernel import Kernel
from tests.conftest import NEWER
from tests.support import planted
from tests.support.jupyters import Jupyter
from tests.support.planted import exports
from tests.support.worlds import World

pytestmark = [
    pytest.mark.parametrize("anyio_backend", ["asyncio"]),
    pytest.mark.parametrize("version", [NEWER], indirect=True),
    pytest.mark.parametrize("mode", ["direct"], indirect=True),
]

DEADLINE_S = 20.0


class Ears:
    """Hears what a run tells, and lets a test wait for it."""

    def __init__(self) -> None:
        self.heard: list[Heard] = []
        self._came = asyncio.Event()

    def __call__(self, heard: Heard) -> None:
        planted.collect("a kernel", repr(heard))
        self.heard.append(heard)
        self._came.set()

    @property
    def text(self) -> str:
        """All that was printed and shown."""
        kinds = (Printed, Shown)
        return "".join(each.text for each in self.heard if isinstance(each, kinds))

    def has_asked(self, times: int) -> bool:
        """Tell whether so many lines were asked for."""
        return sum(isinstance(each, Asked) for each in self.heard) == times

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until what was heard is as it should be."""
        async with asyncio.timeout(DEADLINE_S):
            while not condition():
                self._came.clear()
                await self._came.wait()


@pytest.fixture
async def kernel(
    world: World, jupyter: Jupyter, anyio_backend: str
) -> AsyncIterator[Kernel]:
    """Give a kernel in the folder `w`."""
    made = Kernel(spec_of(None), jupyter.environ)
    try:
        report = await made.start(str(world.folder("w")))
        assert report == Report(str(world.path("w")), is_on=True)
        yield made
    finally:
        await made.close()


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait until something outside of us is so."""
    async with asyncio.timeout(DEADLINE_S):
        while not await condition():  # noqa: ASYNC110 - nobody tells us
            await asyncio.sleep(0.01)


async def pid_of(kernel: Kernel) -> int:
    """Give the process id of a kernel."""
    ears = Ears()
    assert await kernel.run("__import__('os').getpid()", ears)
    return int(ears.text)


def is_there(pid: int) -> bool:
    """Tell whether a process runs."""
    return Path(f"/proc/{pid}").exists()


async def test_a_run(kernel: Kernel) -> None:
    """What it prints, its result and its error, in their order."""
    ears = Ears()
    code = "import sys; print('a'); print('b', file=sys.stderr, flush=True)\n1 / 1"
    assert await kernel.run(code, ears)
    assert ears.text.replace("b\n", "") == "a\n1.0"
    assert Shown("1.0") in ears.heard
    ears = Ears()
    assert await kernel.run("1 / 0", ears)
    (error,) = ears.heard
    assert isinstance(error, Shown)
    assert "ZeroDivisionError" in error.text
    ears = Ears()
    assert await kernel.run("from IPython.display import *; display(HTML('x'))", ears)
    assert ears.heard == [Shown("<IPython.core.display.HTML object>")]


async def test_what_direnv_says_is_no_output(kernel: Kernel, world: World) -> None:
    """And the report tells what the run was told."""
    world.envrc("w", exports("A"), allow=False)
    ears = Ears()
    assert await kernel.run("'A' in __import__('os').environ", ears)
    said = [each.line for each in ears.heard if isinstance(each, Said)]
    assert len(said) == 1
    assert said[0].startswith("direnv: error ")
    assert ears.text == "False"
    report = await kernel.report()
    assert report is not None
    assert report.is_blocked
    again = await kernel.report()
    assert again is not None
    assert again.outcome is None
    world.allow("w")
    ears = Ears()
    assert await kernel.run("'A' in __import__('os').environ", ears)
    assert ears.text == "True"
    report = await kernel.report()
    assert report is not None
    assert (report.outcome, report.is_blocked) == ("loaded", False)


async def test_no_report(kernel: Kernel) -> None:
    """A person may have broken what we ask; the console goes on without."""
    broken = "import kernel_client.console as c; c.report = lambda: 1 / 0"
    assert await kernel.run(broken, Ears())
    assert await kernel.report() is None
    assert await kernel.run("c.report = lambda: 'no report'", Ears())
    assert await kernel.report() is None


async def test_asking_leaves_no_trace(kernel: Kernel) -> None:
    """Neither in the history nor in the names of the person's."""
    await kernel.report()
    await kernel.move(".")
    ears = Ears()
    assert await kernel.run("[each for each in In if each], len(Out)", ears)
    assert ears.text == "(['[each for each in In if each], len(Out)'], 0)"


async def test_a_move(kernel: Kernel, world: World) -> None:
    """It is the kernel that goes; a folder may have any name."""
    name = 'it\'s a \\ "folder" \u00e9'
    world.folder(f"w/{name}")
    report = await kernel.move(name)
    assert report == Report(str(world.path("w") / name), is_on=True)
    report = await kernel.move("nowhere")
    assert report is not None
    assert (report.folder, report.error) == (
        str(world.path("w") / name),
        "No such file or directory",
    )
    assert await kernel.run("%cd -q ..", Ears())
    assert await kernel.report() == Report(
        str(world.path("w")), is_on=True, outcome="absent"
    )


@pytest.mark.parametrize(
    ("code", "indent"),
    [
        ("1", None),
        ("def f():", "    "),
        ("def f():\n    pass", "    "),
        ("(1,", " "),
        ("!!!", None),
        ("def f():\n    pass\n", None),
    ],
)
async def test_whether_code_is_complete(
    kernel: Kernel, code: str, indent: str | None
) -> None:
    """The kernel itself says; what is wrong is run, and says what is wrong."""
    found = await kernel.indent(code)
    assert (found is None) == (indent is None)


async def test_an_interrupt(kernel: Kernel) -> None:
    """The run ends with its error, and the next one runs."""
    ears = Ears()
    code = "import time; print('begun', flush=True)\nwhile True: time.sleep(1)"
    run = asyncio.create_task(kernel.run(code, ears))
    await ears.until(lambda: "begun" in ears.text)
    await kernel.interrupt()
    assert await run
    assert "KeyboardInterrupt" in ears.text
    ears = Ears()
    assert await kernel.run("1", ears)
    assert ears.text == "1"


async def test_a_line_that_a_run_asks_for(kernel: Kernel) -> None:
    """Its prompt, whether it is a secret, and the end of its input."""
    ears = Ears()
    code = (
        "import getpass\nfor ask in (input, getpass.getpass, input):\n"
        "  try: print(len(ask('your turn: ')))\n  except EOFError: print('end')"
    )
    run = asyncio.create_task(kernel.run(code, ears))
    for number, answer in enumerate(("1", "22", "\x04"), start=1):
        await ears.until(partial(ears.has_asked, number))
        kernel.answer(answer)
    assert await run
    asked = [each for each in ears.heard if isinstance(each, Asked)]
    assert asked == [
        Asked("your turn: "),
        Asked("your turn: ", is_secret=True),
        Asked("your turn: "),
    ]
    assert ears.text == "1\n2\nend\n"


async def test_what_comes_late(kernel: Kernel, world: World) -> None:
    """A thread may print after its cell has ended, and after we have asked."""
    ears = Ears()
    code = (
        "import os, threading, time\n"
        "def late():\n"
        "    while not os.path.exists('gate'): time.sleep(0.01)\n"
        "    print('late', flush=True)\n"
        "threading.Thread(target=late).start()"
    )
    assert await kernel.run(code, ears)
    await kernel.report()
    world.write("w/gate", "")
    await ears.until(lambda: "late" in ears.text)


async def test_a_kernel_that_dies_in_a_run(kernel: Kernel, world: World) -> None:
    """The run ends, and another kernel can be started."""
    assert not await kernel.run("import os; os._exit(1)", Ears())
    assert not kernel.is_running
    assert not await kernel.has_died()
    assert await kernel.report() is None
    assert await kernel.move(".") is None
    assert await kernel.indent("(") is None
    await kernel.interrupt()
    kernel.answer("")
    assert not await kernel.run("1", Ears())
    assert await kernel.start(str(world.path("w"))) is not None
    ears = Ears()
    assert await kernel.run("'os' in globals()", ears)
    assert ears.text == "False"


async def test_a_kernel_that_dies_between_runs(kernel: Kernel) -> None:
    """It is noticed when it is looked at, once."""
    pid = await pid_of(kernel)
    assert not await kernel.has_died()
    os.kill(pid, 9)
    await eventually(kernel.has_died)
    assert not kernel.is_running
    assert not is_there(pid)


STUBBORN = """
import signal, time
for each in (signal.SIGINT, signal.SIGTERM):
    signal.signal(each, lambda *_: 0)
print('begun', flush=True)
while True:
    time.sleep(1000)
"""


@pytest.mark.parametrize(
    "code",
    [
        "1",
        "import time; print('begun', flush=True); time.sleep(1000)",
        STUBBORN,
        "print('begun', flush=True); input()",
    ],
    ids=["idle", "busy", "stubborn", "asking"],
)
async def test_its_end(kernel: Kernel, code: str) -> None:
    """It is gone when `close` returns, whatever it does."""
    pid = await pid_of(kernel)
    ears = Ears()
    run = asyncio.create_task(kernel.run(code, ears))
    await ears.until(lambda: ears.heard)
    begun = time.monotonic()
    await kernel.close()
    assert not is_there(pid)
    assert time.monotonic() - begun < 10
    await run
    assert not kernel.is_running


async def test_its_end_while_we_are_cancelled(kernel: Kernel) -> None:
    """Who closes may be told to stop; the kernel is gone all the same."""
    pid = await pid_of(kernel)
    closing = asyncio.create_task(kernel.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert not is_there(pid)


async def test_its_end_while_it_starts(world: World, jupyter: Jupyter) -> None:
    """Nothing is left of a start that was given up."""
    spec = spec_of(None)
    made = Kernel(spec, {**jupyter.environ, "ENVWATCH_TEST_MARK": str(world.top)})
    starting = asyncio.create_task(made.start(str(world.folder("w"))))

    async def is_on_its_way() -> bool:
        return bool(marked(world.top))

    await eventually(is_on_its_way)
    found = marked(world.top)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert not any(map(is_there, found))
    assert not made.is_running


async def test_no_heartbeat(kernel: Kernel) -> None:
    """A start that is given up before its thread begins would have it run on.

    `HBChannel.stop` is undone by the thread's first lines, which then opens sockets
    until the process has no descriptor left (jupyter_client 8.10).
    """
    threads = threading.enumerate()
    assert not [each for each in threads if isinstance(each, HBChannel)]
    assert kernel.is_running


def marked(top: Path) -> list[int]:
    """Give the processes that have the mark of a world in their environment."""
    mark = b"ENVWATCH_TEST_MARK=" + os.fsencode(top)
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (each / "environ").read_bytes().split(b"\0"):
                found.append(int(each.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["python", "-c", "raise SystemExit('no \\x1b[2J way')"], "no \x1b[2J way"),
        (["/nowhere/python"], "No such file"),
    ],
    ids=["ends", "missing"],
)
async def test_one_that_does_not_start(
    world: World, jupyter: Jupyter, argv: list[str], words: str
) -> None:
    """What it said last is the reason; nothing is left."""
    spec: dict[str, Any] = {**spec_of(None), "argv": argv}
    made = Kernel(spec, jupyter.environ)
    with pytest.raises(Unavailable) as caught:
        await made.start(str(world.folder("w")))
    assert words in str(caught.value)
    assert not made.is_running


async def test_one_without_the_hook(world: World, jupyter: Jupyter) -> None:
    """It runs; that there is no report tells."""
    argv = ["python", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    made = Kernel(
        {**spec_of(None), "argv": argv}, {**jupyter.environ, "PYTHONPATH": ""}
    )
    try:
        report = await made.start(str(world.folder("w")))
        assert report is None or not report.is_on
        ears = Ears()
        assert await made.run("1", ears)
        assert ears.text == "1"
    finally:
        await made.close()
