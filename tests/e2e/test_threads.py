"""Threads, forks and Ctrl-C, in real kernels."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.conftest import Start
from tests.faults.peers import marked
from tests.support.daemons import until
from tests.support.planted import exports, secret
from tests.support.processes import gone
from tests.support.worlds import World

NEWER = pytest.mark.parametrize("version", ["2.37"])
WAITS = "echo $$ > started\nwhile [ ! -e go ]; do sleep 0.02; done\n"

REFRESHERS = """
import threading
stop, failed, outcomes = threading.Event(), [], set()
def work():
    try:
        while not stop.is_set():
            outcomes.add(kernel_client.refresh().outcome)
    except BaseException as error:
        failed.append(repr(error))
threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads: thread.start()
"""

JOIN = """
stop.set()
for thread in threads: thread.join(20)
answer = [failed, sorted(outcomes), any(thread.is_alive() for thread in threads)]
"""


@NEWER
def test_eight_threads_while_files_change(
    world: World, start: Start, socket: Path | None
) -> None:
    """No exception, never a value of a blocked file, and the last state holds."""
    world.envrc("w", exports("FOO", tag="0"))
    kernel = start("w", listening=socket)
    kernel.run(REFRESHERS)
    for number in range(1, 6):
        world.envrc("w", exports("FOO", tag=str(number)), allow=False)
        kernel.run("refresh()")
        assert kernel.get("FOO") is None
        world.allow("w")
        kernel.run("refresh()")
        assert kernel.get("FOO") == secret(f"FOO{number}")
    failed, outcomes, alive = kernel.run(JOIN)
    assert failed == []
    assert not alive
    assert set(outcomes) <= {"unchanged", "loaded", "blocked"}
    kernel.refresh()
    assert kernel.get("FOO") == secret("FOO5")


FORK = """
import json, threading
results = []
holding = threading.Thread(target=lambda: results.append(refresh()))
holding.start()
"""

CHILD = """
reading, writing = os.pipe()
pid = os.fork()
if pid == 0:
    try:
        os.close(reading)
        open("go", "w").close()
        told = refresh()
        told = [told["outcome"], os.environ.get("FOO")]
        told.append(kernel_client.refresh().outcome)
        os.write(writing, json.dumps(told).encode())
    finally:
        os._exit(0)
os.close(writing)
with os.fdopen(reading) as pipe:
    text = pipe.read()
status = os.waitpid(pid, 0)[1]
holding.join(30)
answer = [json.loads(text or "null"), status, results, os.environ.get("FOO")]
"""


@NEWER
def test_fork_while_another_thread_holds_a_refresh(
    world: World, start: Start, socket: Path | None, mode: str
) -> None:
    """The child refreshes alone and gets the right environment.

    The parent's hold is undisturbed, and so is its connection.
    """
    world.envrc("w", WAITS + exports("FOO"))
    kernel = start("w", listening=socket)
    kernel.run(FORK)
    until("the file is evaluated", lambda: world.path("w/started").exists())
    child, status, results, value = kernel.run(CHILD)
    assert child == ["loaded", secret("FOO"), "unchanged"]
    assert status == 0
    answered = "direnv" if mode == "direct" else "sidecar"
    assert [(one["outcome"], one["answered"]) for one in results] == [
        ("loaded", answered)
    ]
    assert value == secret("FOO")
    world.envrc("w", exports("FOO", tag="2"))
    assert kernel.refresh()["answered"] == answered
    assert kernel.get("FOO") == secret("FOO2")


INTERRUPTED = """
try:
    answer = refresh()
except KeyboardInterrupt:
    answer = "interrupted"
"""


@NEWER
def test_ctrl_c_during_a_hold(world: World, start: Start, socket: Path | None) -> None:
    """It comes through; nothing stale stays, no process is left, the next run works."""
    world.envrc("w", exports("OLD"))
    # The evaluation inherits the marker from the kernel's environment.
    marker = f"MARK={world.top.name}"
    kernel = start("w", listening=socket, more={"MARK": world.top.name})
    kernel.refresh()
    assert kernel.get("OLD") == secret("OLD")
    world.envrc("w", WAITS + exports("FOO"))
    kernel.tell(INTERRUPTED)
    started = world.path("w/started")
    until("it is held", lambda: started.exists() and started.read_text() != "")
    pid = int(started.read_text())
    kernel.interrupt()
    assert kernel.answer() == "interrupted"
    left = kernel.all()
    assert left == {**kernel.environ, **{n: left[n] for n in left if n == "LC_CTYPE"}}
    until("the evaluation has gone", lambda: gone(pid))
    until("no process is left", lambda: marked(marker) == [kernel.process.pid])

    world.write("w/go", "")
    assert kernel.refresh()["outcome"] == "loaded"
    assert kernel.get("FOO") == secret("FOO")


@NEWER
def test_kernel_that_ends_leaves_no_evaluation(
    world: World, start: Start, socket: Path | None
) -> None:
    """A hold that was given up goes on, but not longer than its kernel."""
    marker = f"MARK={world.top.name}"
    world.envrc("w", WAITS + exports("FOO"))
    more = {"MARK": world.top.name, "ENVWATCH_WAIT_S": "0.2"}
    kernel = start("w", listening=socket, more=more)
    assert kernel.refresh()["outcome"] == "timeout"
    started = world.path("w/started")
    until("it is evaluated", lambda: started.exists() and started.read_text() != "")
    assert not gone(int(started.read_text()))
    kernel.tell("import atexit; kernel_client.default_client().close()")
    kernel.answer()
    until("no process is left", lambda: marked(marker) == [kernel.process.pid])
