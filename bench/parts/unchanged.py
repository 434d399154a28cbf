"""An unchanged refresh, by what it may depend on, beside what else people do."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from bench import clients, machine
from bench.findings import CannotRunError, Distribution, Findings, Row
from bench.measures import Timed, in_turn, seconds, timed
from bench.native import Native
from bench.parts.leave import big
from bench.progress import ticking
from bench.worlds import World, wait_until, worn
from kernel_client import Client, Settings
from kernel_client.direnv import find
from kernel_client.fence import MIN_PATHS

WATCHES = (3, 30, 300, 5000)
DEPTHS = (2, 6, 12)
SIZES_KB = (10, 60)
DIRENVS_OWN = 3
"""direnv watches so many files by itself: the root file, allow and deny."""

FENCE_S = 5.0
"""So long a kernel may wait for a fence; it has one within a second, or none."""

FENCED = "refresh(), sidecar"
BY_STATS = "refresh(), no sidecar, no fence"
ITS_OWN = "its calls, bare Python"
BARE = "getcwd, access, stat of all, bare Python"
NATIVE = "the same in C"
SPAWNED = "direnv export json, from Python"
FROM_SHELL = "direnv export json, from sh"
MISE = "mise hook-env, from Python"


def by_watches(
    world: World, *, quick: bool, watches: tuple[int, ...] | None = None
) -> Findings:
    """Latency by the number of watched files; each call is timed by itself."""
    world.serve()
    native, reason = _native(world)
    if reason:
        yield Row("hook", NATIVE, "-", f"cannot run: {reason}")
    for count in ticking(watches or WATCHES, "hook: by watched files"):
        folder = _watching(world, count)
        with worn(world.environ):
            kernels = {
                FENCED: _loaded(world.settings, folder),
                BY_STATS: _loaded(_alone(world), folder),
            }
            if count >= MIN_PATHS + DIRENVS_OWN:
                # Where inotify is not believed, or runs short, there is none.
                with contextlib.suppress(CannotRunError):
                    has_one = partial(clients.is_fenced, kernels[FENCED])
                    wait_until("there is a fence", has_one, limit_s=FENCE_S)
            # In turns with their like: after thousands of stats, or a process, the
            # caches are cold, and nobody's refresh comes after another one's.
            polled = {FENCED: timed(kernels[FENCED].refresh)}
            polled |= bare(kernels[FENCED], None, ITS_OWN)
            environ = clients.environ_of(kernels[FENCED])
            turns = 300 if quick else 3000
            limit_s = 1.0 if quick else 8.0
            found = in_turn(polled, turns=turns, limit_s=limit_s)
            by_stats = {BY_STATS: timed(kernels[BY_STATS].refresh)}
            by_stats |= bare(kernels[BY_STATS], native, BARE)
            found |= in_turn(by_stats, turns=turns, limit_s=limit_s)
            spawned = {SPAWNED: timed(world.hook(environ, folder))}
            found |= in_turn(spawned, turns=turns // 10, limit_s=limit_s)
            for client in kernels.values():
                client.close()
        for name, samples in found.items():
            chart = "An unchanged refresh, by watched files"
            yield Distribution("hook", chart, name, samples, count, "watched files")
        if count == min(watches or WATCHES):
            for name, samples in found.items():
                chart = f"An unchanged refresh, {count} watched files"
                yield Distribution("hook", chart, name, samples)


def by_depth(world: World, *, quick: bool) -> Findings:
    """Latency by how deep the working folder is, with a root file and without."""
    world.serve()
    chart = "An unchanged refresh, by depth of the working folder"
    turns = 300 if quick else 3000
    for depth in ticking(DEPTHS, "hook: by depth"):
        inner = "/".join(str(number) for number in range(depth))
        folder = world.workspace(f"deep{depth}", "export FOO=1\n") / inner
        bare_folder = world.top / f"bare{depth}" / inner
        for each in (folder, bare_folder):
            each.mkdir(parents=True)
        with worn(world.environ):
            client = _loaded(world.settings, folder)
            works = {FENCED: timed(client.refresh)} | bare(client, None, ITS_OWN)
            found = in_turn(works, turns=turns)
            client.close()
            outside = clients.quiet(_alone(world), dict(os.environ))
            os.chdir(bare_folder)
            if outside.refresh().outcome != "absent":
                raise CannotRunError(f"there is a root file above {world.top}")
            found["refresh(), no root file"] = in_turn(
                {"": timed(outside.refresh)}, turns=turns
            )[""]
            outside.close()
        os.chdir("/")
        for name, samples in found.items():
            yield Distribution("hook", chart, name, samples, depth, "folders deep")


def by_size(world: World, *, quick: bool) -> Findings:
    """Latency by the size of the environment, beside every way to spawn."""
    world.serve()
    turns = 20 if quick else 200
    mise = find(os.environ, "mise")
    if mise is None:
        yield Row("hook", MISE, "-", "cannot run: there is no mise on PATH")
    for size in ticking(SIZES_KB, "hook: by size of the environment"):
        folder = world.workspace(f"sized{size}", "export FOO=1\n")
        chart = f"Before each run, in an environment of {size} KB"
        with (
            worn({**world.environ, **big(size * 1000)}),
            contextlib.ExitStack() as ends,
        ):
            client = _loaded(world.settings, folder)
            ends.callback(client.close)
            environ = clients.environ_of(client)
            spawn = world.hook(environ, folder)
            if spawn():
                raise CannotRunError("direnv does not take it for unchanged")
            works = {
                "refresh(), between the others": timed(client.refresh),
                SPAWNED: timed(spawn),
                FROM_SHELL: ends.enter_context(shell(world.direnv, folder, environ)),
            }
            if mise is not None:
                works[MISE] = timed(_mise(mise, folder))
            found = in_turn(works, turns=turns, limit_s=4.0 if quick else 20.0)
            found["refresh(), one after the other"] = in_turn(
                {"": timed(client.refresh)}, turns=turns * 10
            )[""]
        os.chdir("/")
        for name, samples in found.items():
            yield Distribution("hook", chart, name, samples)


def bare(client: Client, native: Native | None, name: str) -> dict[str, Timed]:
    """Give the bare loops of the system calls that this client makes here.

    `name` is what the one in Python is called.
    """
    calls = clients.calls(client)
    loops = {name: timed(calls.bare())}
    if native is not None:
        loops[NATIVE] = native.calls(calls.absent, calls.there, calls.descriptor)
    return loops


def _native(world: World) -> tuple[Native | None, str]:
    try:
        return Native(world.top), ""
    except CannotRunError as error:
        return None, str(error)


def _alone(world: World) -> Settings:
    return Settings(sidecar="off", direnv=world.direnv, fence="off")


def _loaded(settings: Settings, folder: Path) -> Client:
    """Give a client with an environment of its own, for others are beside it."""
    return clients.loaded(settings, folder, dict(os.environ))


def _watching(world: World, count: int) -> Path:
    """Make a workspace with that many watched files, direnv's own among them."""
    more = max(0, count - DIRENVS_OWN)
    text = "watch_dir src\n" if more else ""
    folder = world.workspace(f"watching{count}", f"{text}export FOO=1\n")
    (folder / "src").mkdir(exist_ok=True)
    for number in range(max(0, more - 1)):
        (folder / "src" / str(number)).write_text("")
    return folder


@contextlib.contextmanager
def shell(direnv: str, folder: Path, environ: Mapping[str, str]) -> Iterator[Timed]:
    """Give what a shell's loop needs for one direnv, with the line that asks for it."""
    loop = 'while read -r _; do "$0" export json; echo; done'
    with subprocess.Popen(
        ["/bin/sh", "-c", loop, direnv],
        cwd=folder,
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as started:
        asked, told = started.stdin, started.stdout
        if asked is None or told is None:
            raise CannotRunError("the shell has no pipes")

        def once() -> None:
            asked.write(b"\n")
            asked.flush()
            if told.readline() != b"\n":
                raise CannotRunError("direnv, from sh, does not take it for unchanged")

        try:
            yield lambda: seconds(once)
        finally:
            asked.close()


def _mise(mise: str, folder: Path) -> Callable[[], object]:
    """Give what a kernel does that spawns mise before each run: nothing has changed."""
    (folder / "mise.toml").write_text('[env]\nFOO = "1"\n')
    environ = dict(os.environ)
    _said([mise, "trust", str(folder / "mise.toml")], folder, environ)
    loaded = 'eval "$("$1" hook-env -s bash)" && env -0'
    text = _said(["bash", "-c", loaded, "bash", mise], folder, environ)
    pairs = (entry.partition(b"=") for entry in text.split(b"\0") if entry)
    given = {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}
    if given.get("__MISE_SESSION") is None:
        raise CannotRunError(f"mise {machine.mise_version(mise)} keeps no session")
    return lambda: _said([mise, "hook-env", "-s", "bash"], folder, given)


def _said(command: list[str], folder: Path, environ: Mapping[str, str]) -> bytes:
    return subprocess.run(
        command,
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
        timeout=60,
    ).stdout
