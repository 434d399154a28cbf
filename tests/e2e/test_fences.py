"""Fences between real processes: flat, strict, handed over, and given up in time."""

from __future__ import annotations

import json
import mmap
import os
import socket as sockets
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from kernel_client import arming
from tests.e2e.conftest import Start
from tests.e2e.kernels import KernelProcess
from tests.e2e.test_syscalls import COUNT, MARK, STATS, calls
from tests.support.daemons import Daemon, until
from tests.support.persons import Person
from tests.support.planted import exports, secret
from tests.support.worlds import World

NEWER = pytest.mark.parametrize("version", ["2.37"])

FENCED = "answer = kernel_client.default_client()._fences._held is not None"
INOTIFY = """
answer = 0
for each in os.listdir('/proc/self/fd'):
    try:
        answer += os.readlink(f'/proc/self/fd/{each}') == 'anon_inode:inotify'
    except OSError:
        pass
"""


def watching(world: World, folder: str, count: int, tag: str = "1") -> None:
    """Write an allowed root file that watches a folder of so many files."""
    inside = world.folder(f"{folder}/src")
    for number in range(count):
        (inside / str(number)).write_text("")
    world.envrc(folder, "watch_dir src\n" + exports("FOO", tag=tag))


def fenced(kernel: KernelProcess) -> None:
    """Refresh until the kernel has a fence."""

    def has() -> bool:
        kernel.refresh()
        return bool(kernel.run(FENCED))

    until("the kernel has a fence", has, 30.0)


def guarded(world: World, start: Start, socket: Path | None) -> KernelProcess:
    """Give a kernel in `w`, which watches 200 files behind a fence."""
    watching(world, "w", 200)
    kernel = start("w", listening=socket)
    fenced(kernel)
    return kernel


def instances(pid: int) -> int:
    """Count the inotify instances that a process holds."""
    found = 0
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            found += str(each.readlink()) == "anon_inode:inotify"
    return found


@pytest.fixture
def eager(
    direnvs: dict[str, str], version: str, request: pytest.FixtureRequest
) -> Iterator[Daemon]:
    """Give a sidecar of this test alone; `param` is its `--fence`."""
    daemon = Daemon(direnvs[version], "--fence", getattr(request, "param", "auto"))
    try:
        daemon.start()
        yield daemon
    finally:
        daemon.close()


@NEWER
@pytest.mark.parametrize("files", [200, 2000])
def test_flat(
    world: World, start: Start, socket: Path | None, files: int, mode: str
) -> None:
    """1,000 unchanged refreshes: one stat each, whatever is watched."""
    watching(world, "w", files)
    trace = world.path("trace")
    kernel = start(
        "w",
        listening=socket,
        coverage=False,
        before=["strace", "-f", "-qq", "-o", str(trace)],
        more={"ENVWATCH_FENCE": "always"},
    )
    fenced(kernel)
    kernel.run("for _ in range(50): kernel_client.refresh()")
    code = f"import gc; gc.disable()\nbefore = kernel_client.refresh()\n{MARK}"
    code += f"for _ in range({COUNT}): result = kernel_client.refresh()\n{MARK}"
    code += "answer = result is before and result.outcome"
    assert kernel.run(code) == "unchanged"
    found = calls(trace)
    waits = found["epoll_wait"] + found["epoll_pwait"]
    assert found["getcwd"] == waits == COUNT
    stats = sum(found[name] for name in STATS)
    assert stats <= 8 * COUNT, found
    assert set(found) - STATS <= {"getcwd", "epoll_wait", "epoll_pwait"}, found


@NEWER
@pytest.mark.parametrize("what", ["edit", "add", "delete", "rename above"])
def test_each_kernel_after_the_sidecar_was_killed(
    world: World, start: Start, eager: Daemon, what: str
) -> None:
    """A fence outlives the sidecar: all twenty see the next change at once."""
    watching(world, "w", 30)
    kernels = [start("w", listening=eager.socket) for _ in range(20)]
    for kernel in kernels:
        fenced(kernel)
    eager.kill()
    source = world.path("w/src")
    # Whoever is told that the pipe is shut goes on with the fence.
    for kernel in kernels:
        assert kernel.refresh()["outcome"] == "unchanged"
        assert kernel.refresh()["outcome"] == "unchanged"
        assert kernel.run(FENCED)
    if what == "edit":
        (source / "7").write_text("edited")
    elif what == "add":
        (source / "more").write_text("")
    elif what == "delete":
        (source / "7").unlink()
    else:
        source.rename(world.path("w/gone"))
    for kernel in kernels:
        result = kernel.refresh()
        assert (result["outcome"], result["answered"]) == ("loaded", "direnv")


@NEWER
def test_blocked_at_once(
    world: World, start: Start, socket: Path | None, mode: str
) -> None:
    """What is no longer allowed goes, as ever."""
    kernel = guarded(world, start, socket)
    assert kernel.get("FOO") == secret("FOO1")
    world.envrc("w", exports("FOO", tag="2"), allow=False)
    assert kernel.refresh()["outcome"] == "blocked"
    assert kernel.get("FOO") is None


@NEWER
def test_noise_changes_nothing(
    world: World, start: Start, socket: Path | None, mode: str
) -> None:
    """Readable, and nothing changed: stats, and another fence."""
    kernel = guarded(world, start, socket)
    for name in (".envrc", "src/7"):
        file = os.open(world.path(f"w/{name}"), os.O_WRONLY)
        os.close(file)
        assert kernel.refresh()["outcome"] == "unchanged"
        assert not kernel.run(FENCED)
        assert kernel.refresh()["outcome"] == "unchanged"
        fenced(kernel)


@NEWER
def test_mounts(world: World, start: Start, socket: Path | None, mode: str) -> None:
    """A mount over a folder above gives no event, and is seen all the same."""
    kernel = guarded(world, start, socket)
    over = world.path("w/src")
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "none", over], check=False, capture_output=True
    )
    if done.returncode != 0:
        pytest.skip("mount is not allowed here")
    try:
        assert kernel.refresh()["outcome"] == "loaded"
        assert kernel.refresh()["outcome"] == "unchanged"
    finally:
        subprocess.run(["umount", over], check=True)
    assert kernel.refresh()["outcome"] == "loaded"


@NEWER
def test_write_through_a_map(
    world: World, start: Start, socket: Path | None, mode: str
) -> None:
    """No event tells of it; the comparison after `fence_recheck_s` does."""
    watching(world, "w", 200)
    kernel = start("w", listening=socket, more={"ENVWATCH_FENCE_RECHECK_S": "3600"})
    other = start("w", listening=socket, more={"ENVWATCH_FENCE_RECHECK_S": "0.001"})
    path = world.path("w/src/7")
    path.write_bytes(b"x" * 4096)
    for each in (kernel, other):
        fenced(each)
    with path.open("r+b") as file:
        for each in (kernel, other):
            # To open it for writing is noise, here once and for all.
            fenced(each)
        with mmap.mmap(file.fileno(), 0) as mapped:
            mapped[0:1] = b"y"
            mapped.flush()
        assert kernel.refresh()["outcome"] == "unchanged"
        assert other.refresh()["outcome"] == "loaded"


@NEWER
def test_forked_children(
    world: World, start: Start, socket: Path | None, mode: str
) -> None:
    """A child closes the copies, and still sees what changes; so does its parent."""
    kernel = guarded(world, start, socket)
    code = f"""
import json
def child():
    {INOTIFY.strip().replace(chr(10), chr(10) + "    ")}
    told = [answer, refresh()["outcome"]]
    with open("src/7", "a") as file: file.write("more")
    return [*told, refresh()["outcome"], os.environ["FOO"] == {secret("FOO1")!r}]
read, write = os.pipe()
if os.fork() == 0:
    try:
        os.write(write, json.dumps(child()).encode())
    finally:
        os._exit(0)
os.wait()
answer = json.loads(os.read(read, 1000))
"""
    assert kernel.run(code) == [0, "unchanged", "loaded", True]
    assert kernel.run(INOTIFY) == 1
    assert kernel.refresh()["outcome"] == "loaded"


@NEWER
@pytest.mark.timeout(300)
@pytest.mark.parametrize("eager", ["always"], indirect=True)
def test_descriptors_after_a_thousand_reloads(
    world: World, start: Start, eager: Daemon, mode: str
) -> None:
    """None is left behind, on either side; nor when all is unloaded and ended."""
    # Blocked: direnv runs no shell, and a thousand answers take seconds.
    world.envrc("w", exports("FOO"), allow=False)
    listening = eager.socket if mode == "sidecar" else None
    kernel = start(
        "w", listening=listening, coverage=False, more={"ENVWATCH_FENCE": "always"}
    )
    # Nobody reads what it prints until it has ended.
    kernel.run("kernel_client.default_client().output = lambda _: None")
    fenced(kernel)

    def count(pid: int) -> int:
        return len(os.listdir(f"/proc/{pid}/fd"))

    assert eager.process is not None
    pid = eager.process.pid
    own = count(kernel.process.pid)
    code = "answer = sorted({kernel_client.reload().outcome for _ in range(10)})"
    for _ in range(1000 // 10):
        assert kernel.run(code) == ["blocked"]
    # One fence and a watcher, and another watcher while it is built anew.
    until("the sidecar has closed them", lambda: instances(pid) <= 3)
    until("the kernel has closed them", lambda: count(kernel.process.pid) <= own)
    kernel.run(f"os.chdir({str(world.top)!r})")
    assert kernel.refresh()["outcome"] == "unloaded"
    until("the kernel has none", lambda: kernel.run(INOTIFY) == 0)
    # Its own watchers go with the last kernel too.
    until("the sidecar has none", lambda: not instances(pid))


@NEWER
def test_two_hundred_workspaces(
    world: World, start: Start, eager: Daemon, version: str
) -> None:
    """More workspaces than instances: all are right, and `status` tells."""
    limit = min(64, arming.max_user_instances() // 2)
    kernel = start("", listening=eager.socket)
    numbers = range(200)
    for number in numbers:
        watching(world, f"w{number}", 16, tag=str(number))
    code = f"""
from kernel_client import Client
environ = dict(os.environ)
clients, environs = [], []
for number in {list(numbers)}:
    os.chdir({str(world.top)!r} + f"/w{{number}}")
    environs.append(dict(environ))
    clients.append(Client(environs[-1], output=lambda _: None))
    clients[-1].refresh()
answer = [each.outcome for each in clients]
"""
    assert kernel.run(code) == ["loaded"] * 200
    person = Person(world)
    told = person.run(
        "status", "--json", environ={"ENVWATCH_SOCKET": str(eager.socket)}
    )
    fences = json.loads(told.out)["sidecar"]["fences"]
    assert fences["armed"] == fences["limit"] == limit
    assert fences["reason"] == f"{limit} fences are the limit"
    text = person.run("status", environ={"ENVWATCH_SOCKET": str(eager.socket)}).out
    assert f"{limit} of at most {limit}" in text
    assert f"no more: {limit} fences are the limit" in text
    for number in numbers:
        world.path(f"w{number}/src/3").write_text("edited")
    code = f"""
answer = []
for number, client in enumerate(clients):
    os.chdir({str(world.top)!r} + f"/w{{number}}")
    answer.append([client.refresh().outcome, client.refresh().outcome])
    client.close()
"""
    found = Counter(map(tuple, kernel.run(code)))
    assert found == {("loaded", "unchanged"): 200}


@NEWER
def test_a_sidecar_of_another_view(world: World, start: Start, eager: Daemon) -> None:
    """Where mounts could differ, its fence is not used."""
    watching(world, "w", 30)
    kernel = start(
        "w", listening=eager.socket, before=["unshare", "-m"], coverage=False
    )
    for _ in range(3):
        kernel.refresh()
    assert not kernel.run(FENCED)
    world.path("w/src/3").write_text("edited")
    assert kernel.refresh()["outcome"] == "loaded"


@NEWER
def test_fences_are_off(world: World, start: Start, eager: Daemon) -> None:
    """On either side."""
    watching(world, "w", 200)
    kernel = start("w", listening=eager.socket, more={"ENVWATCH_FENCE": "off"})
    for _ in range(3):
        kernel.refresh()
    assert kernel.run(INOTIFY) == 0
    with sockets.socket(sockets.AF_UNIX) as probe:
        probe.connect(str(eager.socket))
