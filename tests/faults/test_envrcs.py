"""Files that hang, flood, forge, or set what no kernel can live with.

In both modes and with both versions. The hook itself hangs or breaks with most of
them, so the kernel alone is driven; in every one nothing raises, nothing is stale,
no process is left, and what is said is short.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernel_client import Result
from tests.faults.peers import marked
from tests.support.daemons import Daemon, until
from tests.support.pairs import Pair
from tests.support.planted import exports, secret
from tests.support.processes import gone

MIB = 1024 * 1024


class Lone:
    """A kernel with a value loaded, that meets another file."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.world = pair.world
        self.made: list[Pair] = []

    def meets(self, body: str, *, wait_s: float = 60.0, kill_s: float = 60.0) -> Result:
        """Load OLD, then have this body, allowed, in its place; give its result."""
        world = self.world
        made = Pair(world, socket=self.pair.socket, wait_s=wait_s, kill_s=kill_s)
        self.made.append(made)
        self.pair = made
        world.envrc("w", exports("OLD"))
        made.go("w")
        assert made.kernel.refresh().outcome == "loaded"
        assert made.environ["OLD"] == secret("OLD")
        world.envrc("w", body)
        result = made.kernel.refresh()
        assert "OLD" not in made.environ
        return result

    def again(self) -> Result:
        """Refresh once more."""
        return self.pair.kernel.refresh()

    def loads(self, *names: str) -> None:
        """Another file in its place is loaded as if nothing had been."""
        self.world.envrc("w", exports(*names))
        assert self.again().outcome == "loaded"
        self.holds(*names)
        self.leaves()

    def holds(self, *names: str) -> None:
        """Expect just these values, and that programs can be started."""
        found = {n: v for n, v in self.environ.items() if not n.startswith("DIRENV_")}
        expected = {**self.world.environ, **{name: secret(name) for name in names}}
        assert found == expected
        subprocess.run(["/bin/true"], env=self.environ, check=True)

    def leaves(self) -> None:
        """Outside, the environment is what it was."""
        self.pair.go(self.world.top)
        self.again()
        assert self.environ == self.world.environ

    @property
    def environ(self) -> dict[str, str]:
        """The kernel's environment."""
        return self.pair.environ


@pytest.fixture
def lone(pair: Pair) -> Iterator[Lone]:
    """Give a kernel; afterwards no process of this world may be left."""
    made = Lone(pair)
    try:
        yield made
    finally:
        for each in made.made:
            each.close()
        for pid in marked(f"HOME={pair.world.home}"):
            until(f"process {pid} has gone", lambda pid=pid: gone(pid))  # type: ignore[misc]


def own(result: Result) -> list[str]:
    """Give the lines that envwatch itself said."""
    return [line for line in result.messages if line.startswith("envwatch: ")]


def test_hangs_longer_than_a_run_is_held(lone: Lone) -> None:
    """The run starts without it, one line says so; a later run has its answer."""
    result = lone.meets(
        "while [ ! -e go ]; do sleep 0.02; done\n" + exports("FOO"), wait_s=0.3
    )
    assert result.outcome == "timeout"
    assert len(own(result)) == 1
    lone.holds()
    lone.world.write("w/go", "")
    until("it is loaded", lambda: lone.again().outcome in ("loaded", "unchanged"))
    lone.holds("FOO")
    lone.leaves()


def test_hangs_longer_than_it_may_run(lone: Lone, mode: str) -> None:
    """It is ended with everything it started, said once, and not run again."""
    daemon = Daemon(lone.world.direnv, "--kill-s", "0.5")
    if mode == "sidecar":
        # How long an evaluation may run is the sidecar's own setting there.
        daemon.start()
        lone.pair.socket = daemon.socket
    try:
        body = "echo $$ >> runs\n(echo $BASHPID > child; exec sleep 60) &\nwait\n"
        result = lone.meets(body, kill_s=0.5)
        assert result.outcome == "timeout"
        assert len(own(result)) == 1
        lone.holds()
        for name in ("runs", "child"):
            pid = int(lone.world.path(f"w/{name}").read_text())
            until("it has gone", lambda pid=pid: gone(pid))  # type: ignore[misc]
        assert lone.again().messages == ()
        assert len(lone.world.path("w/runs").read_text().split()) == 1
        lone.loads("FOO")
    finally:
        lone.pair.close()
        daemon.close()


def test_forks_a_daemon_that_keeps_the_pipe(lone: Lone) -> None:
    """It is ended after a grace, one line says so, and the file is loaded."""
    body = "(echo $BASHPID > child; exec sleep 60) &\n" + exports("FOO")
    started = time.monotonic()
    result = lone.meets(body)
    assert result.outcome == "loaded"
    assert time.monotonic() - started < 30
    assert len(own(result)) == 1
    lone.holds("FOO")
    assert gone(int(lone.world.path("w/child").read_text()))
    lone.leaves()


def test_reads_stdin(lone: Lone) -> None:
    """There is nothing to read, and nobody waits."""
    result = lone.meets("read -r LINE; cat > /dev/null\n" + exports("FOO"))
    assert result.outcome == "loaded"
    assert own(result) == []
    lone.holds("FOO")
    lone.leaves()


@pytest.mark.parametrize("version", ["2.37"])
@pytest.mark.parametrize(
    "line", ["yes $(printf %0100d 1)", "cat /dev/zero"], ids=["lines", "one line"]
)
def test_writes_100_mb_to_stderr(
    lone: Lone, line: str, mode: str, daemons: dict[str, Daemon], version: str
) -> None:
    """Bounded memory and messages, one line says that there was more."""
    process = daemons[version].process if mode == "sidecar" else None
    pid = os.getpid() if process is None else process.pid
    before = peak(pid)
    result = lone.meets(f"{line} | head -c 100000000 >&2\n" + exports("FOO"))
    assert result.outcome == "loaded"
    assert sum(map(len, result.messages)) < 2 * MIB
    assert len([each for each in own(result) if "the rest is not shown" in each]) == 1
    assert peak(pid) - before < 40 * MIB
    lone.holds("FOO")
    lone.leaves()


def peak(pid: int) -> int:
    """Give the most memory that a process has had, in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmHWM")


@pytest.mark.parametrize("kind", ["fifo", "folder", "dangling", "deleted"])
def test_is_no_file_any_more(lone: Lone, kind: str) -> None:
    """What was loaded is gone; a file that comes back is loaded again."""
    lone.meets(exports("FOO"))
    path = lone.world.path("w/.envrc")
    path.unlink()
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "dangling":
        path.symlink_to("nowhere")
    result = lone.again()
    assert result.outcome == "unloaded"
    assert lone.environ == lone.world.environ
    assert len(result.messages) == 1
    assert lone.again().messages == ()
    if kind == "folder":
        path.rmdir()
    elif kind != "deleted":
        path.unlink()
    lone.loads("BAR")


def test_touches_its_own_watches(lone: Lone) -> None:
    """Evaluated a few times for a load; the next run does not load it again."""
    body = "echo >> runs\ndate +%N > watched\nwatch_file watched\n"
    assert lone.meets(body + exports("FOO")).outcome == "loaded"
    runs = lone.world.path("w/runs")
    assert len(runs.read_text()) <= 3
    lone.holds("FOO")
    for _ in range(3):
        lone.again()
    assert len(runs.read_text()) <= 3
    lone.leaves()


@pytest.mark.parametrize("allowed", [True, False])
def test_forges_direnv_s_words(lone: Lone, allowed: object) -> None:
    """A line that says "is blocked" blocks nothing, and advises nothing."""
    forged = "direnv: error $PWD/.envrc is blocked. Run `direnv allow` to approve"
    body = f"printf '%s\\n' '{forged}' 'direnv: loading x' >&2\n" + exports("FOO")
    result = lone.meets(body)
    assert result.outcome == "loaded"
    assert not any("direnv allow" in line for line in result.messages)
    lone.holds("FOO")
    if not allowed:
        lone.world.write("w/.envrc", "echo direnv: export +FOO\n" + exports("FOO"))
        result = lone.again()
        assert result.outcome == "blocked"
        assert not any("direnv allow" in line for line in result.messages)
        lone.holds()
    lone.leaves()


@pytest.mark.parametrize(
    "big",
    [
        "export BIG=$(printf '%0200000d' 7)\n",
        "make() { head -c 61440 /dev/urandom | base64 -w0; }; export A=$(make) B=$(make)",
    ],
    ids=["one of 200 KB", "two of 80 KB"],
)
def test_sets_what_no_program_could_be_given(lone: Lone, big: str) -> None:
    """Refused whole: programs can still be started; it is said once."""
    result = lone.meets(exports("FOO") + big)
    assert result.outcome == "degraded"
    lone.holds()
    assert result.messages
    assert lone.again().messages == ()
    lone.loads("BAR")


@pytest.mark.parametrize(
    "line",
    [
        "export HOME=/nonexistent/home",
        "export PATH=",
        "unset PATH",
        "unset HOME",
        "export XDG_DATA_HOME=/nonexistent/data XDG_CONFIG_HOME=/nonexistent/c",
    ],
)
def test_sets_what_direnv_itself_needs(lone: Lone, line: str) -> None:
    """It is loaded as direnv does; edits are still asked for, and leaving works."""
    result = lone.meets(f"{line}\n" + exports("FOO"))
    assert result.outcome == "loaded"
    assert own(result) == []
    assert lone.environ["FOO"] == secret("FOO")
    changed = {"HOME", "PATH", "XDG_DATA_HOME", "XDG_CONFIG_HOME"}
    assert any(lone.environ.get(n) != lone.world.environ.get(n) for n in changed)
    assert lone.again().outcome == "unchanged"
    lone.world.envrc("w", f"{line}\n" + exports("FOO", "BAR"), allow=False)
    assert lone.again().outcome == "blocked"
    lone.holds()
    lone.world.allow("w")
    assert lone.again().outcome == "loaded"
    assert lone.environ["BAR"] == secret("BAR")
    lone.leaves()


@pytest.mark.parametrize("word", ["unset DIRENV_WATCHES", "export DIRENV_WATCHES=x"])
def test_unsets_what_direnv_watches(lone: Lone, word: str) -> None:
    """Loaded, asked for at every run, and unloaded outside (the hook keeps it)."""
    assert lone.meets(f"{word}\n" + exports("FOO")).outcome == "loaded"
    assert lone.environ["FOO"] == secret("FOO")
    lone.world.write("w/.envrc", f"{word}\n" + exports("BAR"))
    assert lone.again().outcome == "blocked"
    assert "FOO" not in lone.environ
    lone.world.allow("w")
    assert lone.again().outcome == "loaded"
    assert lone.environ["BAR"] == secret("BAR")
    lone.leaves()
