"""`%load_ext kernel_client` in a real ipykernel: each cell in its environment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import NEWER, OLDER
from tests.support import planted
from tests.support.daemons import until
from tests.support.jupyters import Cell, Jupyter, Kernel
from tests.support.worlds import World

older = pytest.mark.parametrize("version", [OLDER], indirect=True)
newer = pytest.mark.parametrize("version", [NEWER], indirect=True)
direct = pytest.mark.parametrize("mode", ["direct"], indirect=True)

HANGING = "touch started\nsleep 1000\n"

CHILD = """%%writefile child.py
import os
def foo(_):
    return os.environ.get('FOO')
"""
POOLS = """
import child, multiprocessing as m
for how in 'spawn', 'fork', 'forkserver':
    with m.get_context(how).Pool(1) as pool:
        assert pool.map(child.foo, [0]) == ['1'], how
print(1)
"""
FORK = """
import os
pid = os.fork()
if not pid: os._exit(int(os.environ['FOO']))
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
THREAD = """
import threading
thread = threading.Thread(target=lambda: print(os.environ['FOO']))
thread.start(); thread.join()
"""

FOO = "import os; print(os.environ.get('FOO'))"


@pytest.fixture
def jupyter(world: World, socket: Path | None) -> Jupyter:
    """Give a person's Jupyter, with the sidecar or without one."""
    return Jupyter(world, socket)


@pytest.fixture
def open_kernel(jupyter: Jupyter) -> Iterator[Callable[[], Kernel]]:
    """Start the person's own kernel, which knows nothing of envwatch, in `w`."""
    started: list[Kernel] = []

    def start() -> Kernel:
        kernel = jupyter.kernel("python3")
        started.append(kernel)
        return kernel

    yield start
    for kernel in started:
        kernel.close()


@pytest.fixture
def kernel(world: World, open_kernel: Callable[[], Kernel]) -> Kernel:
    """Give a kernel with the extension in an allowed workspace."""
    world.envrc("w", "export FOO=1\n" + planted.exports("TOKEN"))
    kernel = open_kernel()
    kernel.run("%load_ext kernel_client")
    return kernel


def test_loading_the_extension(world: World, open_kernel: Callable[[], Kernel]) -> None:
    """The cell that loads it has the environment, and says what direnv said."""
    world.envrc("w", "export FOO=1\n")
    kernel = open_kernel()

    cell = kernel.run(f"%load_ext kernel_client\n{FOO}")

    assert cell.out == "1\n"
    assert cell.lines == [
        f"direnv: loading {world.path('w/.envrc')}",
        "direnv: export +FOO",
    ]
    assert kernel.run(f"%load_ext kernel_client\n{FOO}").err == ""


def test_edit_block_allow_leave(world: World, kernel: Kernel) -> None:
    """Each cell says itself what direnv says before it, without advice to allow."""
    assert kernel.run(FOO) == Cell("1\n", "", None)

    world.envrc("w", "export FOO=2\n", allow=False)
    blocked = kernel.run(FOO)
    assert blocked.out == "None\n"
    assert blocked.lines[-1].endswith("is blocked; allowing it is up to the person")
    assert "direnv allow" not in blocked.err
    assert kernel.run(FOO) == Cell("None\n", "", None)

    world.allow("w")
    allowed = kernel.run(FOO)
    assert allowed.out == "2\n"
    assert "direnv: export +FOO" in allowed.lines

    assert kernel.run(f"%cd -q ..\n{FOO}") == Cell("2\n", "", None)
    assert kernel.run(FOO) == Cell("None\n", "direnv: unloading\n", None)


@older
@direct
def test_what_a_cell_starts(kernel: Kernel) -> None:
    """Shell commands, `%%bash`, subprocesses, spawned and forked ones all have it."""
    kernel.run(CHILD)
    for code in (
        "!echo $FOO",
        "%%bash\necho $FOO",
        "import subprocess; print(subprocess.getoutput('echo $FOO'))",
        POOLS,
        FORK,
        THREAD,
    ):
        cell = kernel.run(code)
        assert (cell.out.split(), cell.error) == (["1"], None), (code, cell)


@newer
def test_async_cells_and_threads(world: World, kernel: Kernel) -> None:
    """A cell with `await`, and a thread that outlives its cell, see the change."""
    kernel.run(
        "import asyncio, os, threading, queue\n"
        "asked, told = queue.Queue(), queue.Queue()\n"
        "def work():\n"
        "    while asked.get(): told.put(os.environ.get('FOO'))\n"
        "threading.Thread(target=work, daemon=True).start()"
    )
    world.envrc("w", "export FOO=2\n")

    cell = kernel.run("await asyncio.sleep(0); print(os.environ['FOO'])")
    assert (cell.out, cell.error) == ("2\n", None)
    assert "direnv: export +FOO" in cell.lines
    assert kernel.run("asked.put(1); print(told.get()); asked.put(0)").out == "2\n"


@older
@direct
def test_forked_child_that_runs_cells_of_its_own(world: World, kernel: Kernel) -> None:
    """A child that refreshes and a parent that goes on do not disturb each other."""
    world.envrc("v", "export FOO=7\n")
    cell = kernel.run(
        "import os, sys, kernel_client\n"
        "pid = os.fork()\n"
        "if not pid:\n"
        "    os.chdir('../v'); kernel_client.refresh()\n"
        "    os._exit(int(os.environ['FOO']))\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), os.environ['FOO'])"
    )
    assert cell.out == "7 1\n"
    assert kernel.run(FOO).out == "1\n"


@newer
@pytest.mark.parametrize(
    "code", [FOO, f"await __import__('asyncio').sleep(0); {FOO}"], ids=["sync", "async"]
)
def test_interrupt_during_a_hold(world: World, kernel: Kernel, code: str) -> None:
    """The hold ends, the cell is not run, nothing is loaded, the next cell asks again."""
    world.envrc("w", HANGING)
    number = kernel.start(code)
    until("direnv evaluates", world.path("w/started").exists)
    kernel.interrupt()

    cell = kernel.wait(number)
    assert cell.error == "Interrupted"
    assert "the cell was not run" in cell.err
    assert cell.out == ""
    assert kernel.client.get_shell_msg(timeout=20)["content"]["status"] is not None

    world.envrc("w", "export FOO=3\n")
    cell = kernel.run(code)
    assert (cell.out, cell.error) == ("3\n", None)


@older
@direct
def test_interrupt_of_a_cell_that_cannot_be_parsed(
    world: World, kernel: Kernel
) -> None:
    """It is not run for its own reason; the next one runs."""
    world.envrc("w", HANGING)
    number = kernel.start("1 +")
    until("direnv evaluates", world.path("w/started").exists)
    kernel.interrupt()
    assert kernel.wait(number).error == "SyntaxError"

    world.envrc("w", "export FOO=3\n")
    assert kernel.run(FOO).out == "3\n"


@older
@direct
def test_interrupt_of_the_cell_itself(kernel: Kernel) -> None:
    """It is as without envwatch, and the environment stays."""
    number = kernel.start("print('on'); import time; time.sleep(1000)")
    kernel.wait(number, until="on")
    kernel.interrupt()
    assert kernel.wait(number).error == "KeyboardInterrupt"
    assert kernel.run(FOO) == Cell("1\n", "", None)


@older
@direct
def test_what_direnv_prints_is_streamed(world: World, kernel: Kernel) -> None:
    """A long evaluation is seen while the cell waits for it."""
    world.envrc("w", "echo building\n" + HANGING)
    number = kernel.start(FOO)
    assert "building" in kernel.wait(number, until="building").err
    kernel.interrupt()
    kernel.wait(number)


@older
@direct
def test_runs_without_history_are_runs(world: World, kernel: Kernel) -> None:
    """What a host runs for a person is refreshed; what it asks silently is not."""
    world.envrc("w", "export FOO=2\n")
    kernel.run("pass", silent=True)
    kernel.client.complete("os.env")
    assert kernel.run("", user_expressions={"x": "1"}) == Cell("", "", None)

    cell = kernel.run(FOO, store_history=False)
    assert cell.out == "2\n"
    assert "direnv: export +FOO" in cell.lines


@older
@direct
def test_signal_handler_of_the_person_s_own(world: World, kernel: Kernel) -> None:
    """It is in place again after a hold."""
    kernel.run("import signal; before = signal.getsignal(signal.SIGINT)")
    world.envrc("w", "export FOO=2\n")
    kernel.run("import asyncio; await asyncio.sleep(0)")

    cell = kernel.run("print(signal.getsignal(signal.SIGINT) is before)")
    assert cell.out == "True\n"


def test_magic(world: World, kernel: Kernel) -> None:
    """`%envwatch` tells without values; `off` leaves nothing loaded, `on` loads."""
    status = kernel.run("%envwatch").out
    assert f"root file:   {world.path('w/.envrc')}\n" in status
    assert "held:        loaded\n" in status

    off = kernel.run("%envwatch off")
    assert off.out.startswith("envwatch: off")
    assert kernel.run(FOO) == Cell("None\n", "", None)
    assert "held:        nothing\n" in kernel.run("%envwatch status").out
    assert "off" in kernel.run("%envwatch reload").out

    assert kernel.run(f"%envwatch on\n{FOO}").out.splitlines()[-1] == "1"
    assert kernel.run("%envwatch reload").out == "envwatch: loaded\n"
    usage = kernel.run("%envwatch nonsense")
    assert "%envwatch status|reload|off|on" in usage.err


def test_sidecar_is_told(jupyter: Jupyter, kernel: Kernel, socket: Path | None) -> None:
    """`%envwatch` names who answered, and the sidecar that it is attached to."""
    status = kernel.run("%envwatch").out

    if socket is None:
        assert "last answer: direnv\nsidecar:     none\n" in status
    else:
        assert "last answer: sidecar\nsidecar:     attached, pid " in status


@older
@direct
def test_unloading_the_extension(kernel: Kernel) -> None:
    """Everything is as before; it can be loaded again, and reloaded."""
    assert kernel.run("%unload_ext kernel_client").error is None
    assert kernel.run(FOO) == Cell("None\n", "", None)
    assert "not found" in kernel.run("%envwatch").err

    assert kernel.run(f"%load_ext kernel_client\n{FOO}").out == "1\n"
    assert kernel.run(f"%reload_ext kernel_client\n{FOO}").out == "1\n"
    assert kernel.run(FOO) == Cell("1\n", "", None)


@older
@direct
def test_interrupted_evaluation_leaves_no_process(world: World, kernel: Kernel) -> None:
    """What direnv had started is gone when the kernel is told so."""
    world.envrc("w", "echo $$ > started\nsleep 1000\n")
    number = kernel.start(FOO)
    started = world.path("w/started")
    until("direnv evaluates", lambda: started.exists() and started.read_text() != "")
    kernel.interrupt()
    kernel.wait(number)

    # A zombie has no command line; who is to reap it is the system's affair.
    process = Path("/proc", started.read_text().strip(), "cmdline")
    until("bash is gone", lambda: not process.exists() or not process.read_bytes())
