"""Workspaces inside one very large tree of folders."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from bench.measures import CannotRunError, Row, readable
from bench.worlds import World, quiet_client, wait_until, worn

WORKSPACES = 12
WATCHED = ("x/one", "y/two", "z/three")
TARGET_S = 5e-3


def monorepo(world: World, *, quick: bool) -> Iterator[Row]:
    """Row 8: the same workspaces in a small tree and in a large one."""
    watches: list[int] = []
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
                client = quiet_client(world.settings)
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
        watches.append(_settled_watches(sidecar.pid))
        status = world.status()["watching"]
        if status["state"] != "ok":
            raise CannotRunError(f"watching is {status['state']}: {status['reason']}")
        for client in attached:
            client.close()
        world.end(sidecar)
    small, large = watches
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
        seen.append(_watches(pid))
        time.sleep(0.1)
        return len(seen) > 5 and len(set(seen[-5:])) == 1 and seen[-1] > 0

    wait_until("its watches settle", settled)
    return seen[-1]


def _watches(pid: int) -> int:
    count = 0
    for entry in Path(f"/proc/{pid}/fdinfo").iterdir():
        try:
            text = entry.read_text()
        except OSError:
            continue
        count += sum(line.startswith("inotify ") for line in text.splitlines())
    return count
