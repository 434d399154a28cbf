"""Workspaces inside one very large tree of folders."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from bench import clients
from bench.findings import CannotRunError, Distribution, Findings, Row
from bench.measures import in_turn, readable, timed
from bench.processes import rss_kb, watches
from bench.progress import ticking
from bench.worlds import World, wait_until, worn

WORKSPACES = 12
WATCHED = ("x/one", "y/two", "z/three")
TARGET_S = 5e-3


def monorepo(world: World, *, quick: bool) -> Iterator[Row]:
    """Row 8: the same workspaces in a small tree and in a large one."""
    counted: list[int] = []
    beyond: list[float] = []
    folders = 0
    room = world.roomy()
    for name, wide in (("small", 0), ("large", 10 if quick else 100)):
        top = room / name
        folders = _planted(top, wide)
        sidecar = world.serve()
        attached = []
        for number in range(WORKSPACES):
            folder = _workspace(world, f"{top}/{number % 10}/{number // 10}/w{number}")
            with worn(world.environ):
                os.chdir(folder)
                client = clients.quiet(world.settings)
                result = client.refresh()
                if (result.outcome, result.answered) != ("loaded", "sidecar"):
                    raise CannotRunError(
                        f"{result.outcome}, answered by {result.answered}"
                    )
                attached.append(client)
                last = world.of_root(folder)["last"]
                if name == "large":
                    beyond.append(result.seconds - last["seconds"])
            os.chdir("/")
        counted.append(_settled_watches(sidecar.pid))
        status = world.status()["watching"]
        if status["state"] != "ok":
            raise CannotRunError(f"watching is {status['state']}: {status['reason']}")
        for client in attached:
            client.close()
        world.end(sidecar)
    small, large = counted
    bound = WORKSPACES * (len(WATCHED) + 1) + _depth(world) + 10
    yield Row(
        "monorepo",
        f"watches, {WORKSPACES} workspaces among {folders:,} folders in {room.parent}",
        "O(depth + watched files' folders)",
        f"{large} ({small} in a small tree)",
        large <= small and large <= bound,
        {"large": large, "small": small, "bound": bound, "folders": folders},
    )
    beyond.sort()
    middle = statistics.median(beyond)
    yield Row(
        "monorepo",
        "  attaching, beyond the evaluation",
        f"< {readable(TARGET_S)}",
        f"{readable(middle)} ({readable(beyond[0])} to {readable(beyond[-1])},"
        f" {len(beyond)} workspaces)",
        middle < TARGET_S,
        {"middle": middle, "least": beyond[0], "most": beyond[-1]},
    )


def _planted(top: Path, wide: int) -> int:
    """Make ten times ten folders, and ten times `wide` in each; give how many."""
    count = 0
    for first in range(10):
        for second in range(10):
            folder = f"{top}/{first}/{second}"
            os.makedirs(folder)
            for third in range(10 if wide else 0):
                inner = f"{folder}/{third}"
                os.mkdir(inner)
                for fourth in range(wide):
                    os.mkdir(f"{inner}/{fourth}")
                count += wide + 1
            count += 1
        count += 1
    return count


def _workspace(world: World, name: str) -> Path:
    """Make a workspace that watches files in folders of their own."""
    files = " ".join(WATCHED)
    folder = world.workspace(name, f"export FOO=1\nwatch_file {files}\n")
    for each in WATCHED:
        (folder / each).parent.mkdir()
        (folder / each).write_text("")
    return folder


def _depth(world: World) -> int:
    return len(world.top.parts) + 4


def _settled_watches(pid: int) -> int:
    """Give the inotify watches of a process, once they move no more."""
    seen: list[int] = []

    def settled() -> bool:
        seen.append(watches(pid))
        time.sleep(0.1)
        return len(seen) > 5 and len(set(seen[-5:])) == 1 and seen[-1] > 0

    wait_until("its watches settle", settled)
    return seen[-1]


def deep(world: World, *, quick: bool) -> Findings:
    """Many workspaces in one tree, some of them attached; beside a recursive watch.

    Each `.envrc` has `source_up`, `watch_file` and `watch_dir`.
    """
    room = world.roomy()
    folders = _planted(room / "tree", 10 if quick else 100)
    count, attached = (100, 12) if quick else (500, 60)
    top = world.workspace(str(room / "tree"), "export TOP=1\n")
    places = [
        top / str(number % 10) / str(number // 10 % 10) / f"w{number}" / "a" / "b"
        for number in range(count)
    ]
    for number, place in enumerate(ticking(places, "monorepo: allowing")):
        _nested(world, place.parents[1], number)
    sidecar = world.serve()
    before_kb = rss_kb(sidecar.pid)
    beyond: list[float] = []
    attached_clients = []
    every = max(1, count // attached)
    for place in ticking(places[::every][:attached], "monorepo: attaching"):
        place.mkdir(parents=True)
        environ = dict(world.environ)
        os.chdir(place)
        client = clients.quiet(world.settings, environ)
        result = client.refresh()
        if (result.outcome, result.answered) != ("loaded", "sidecar"):
            raise CannotRunError(f"{result.outcome}, answered by {result.answered}")
        last = world.of_root(place.parents[1])["last"]
        beyond.append(result.seconds - last["seconds"])
        attached_clients.append(client)
    used = _settled_watches(sidecar.pid)
    after_kb = rss_kb(sidecar.pid)
    last_client = attached_clients[-1]
    last_client.refresh()
    found = in_turn({"": timed(last_client.refresh)}, turns=300 if quick else 3000)[""]
    chart = f"Inside a tree of {folders:,} folders"
    label = f"refresh() unchanged, depth {len(places[0].parts) - 1}"
    yield Distribution("monorepo", chart, label, found)
    label = "attaching, beyond the evaluation"
    yield Distribution("monorepo", chart, label, tuple(beyond))
    yield Row(
        "monorepo",
        f"{attached} of {count} .envrc attached, {folders:,} folders: watches, memory",
        "-",
        f"{used}, {after_kb / 1024:.1f} MB ({before_kb / 1024:.1f} MB before)",
        figures={"watches": used, "rss_kb": after_kb, "before_kb": before_kb},
    )
    for client in attached_clients:
        client.close()
    world.end(sidecar)
    yield _recursive(world, top, folders)


def _recursive(world: World, top: Path, folders: int) -> Row:
    """What it costs to watch the same tree whole."""
    watcher = world.start(
        "bench.actors.recursive",
        str(top),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    line = watcher.stdout.readline() if watcher.stdout else b""
    found = json.loads(line or b"{}")
    what = f"watchfiles, recursive, {folders:,} folders: watches, memory, start"
    if "seconds" not in found:
        reason = found.get("error", "it ended")
        return Row("monorepo", what, "-", f"cannot run: {reason}")
    used, memory = watches(watcher.pid), rss_kb(watcher.pid)
    measured = f"{used}, {memory / 1024:.1f} MB, {readable(found['seconds'])}"
    figures = {"watches": used, "rss_kb": memory, "seconds": found["seconds"]}
    return Row("monorepo", what, "-", measured, figures=figures)


def _nested(world: World, folder: Path, number: int) -> None:
    text = f"source_up\nexport FOO={number}\nwatch_file one\nwatch_dir src\n"
    world.workspace(str(folder), text)
    (folder / "src").mkdir()
    for name in ("one", "src/two", "src/three"):
        (folder / name).write_text("")
