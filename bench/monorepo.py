"""A large tree: what attaching to a workspace in it costs."""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator
from pathlib import Path

from bench.measures import Row, micro, seconds
from bench.worlds import World


def monorepo(world: World, *, quick: bool) -> Iterator[Row]:
    """Row 8: a workspace at the top, and others deep inside."""
    count = 10_000 if quick else 100_000
    top = world.workspace("m", "export FOO=1\nwatch_file pkg/0/lock\n")
    for outer in range(count // 100):
        folder = top / "pkg" / str(outer)
        folder.mkdir(parents=True)
        for inner in range(99):
            (folder / str(inner)).mkdir()
    (top / "pkg" / "0" / "lock").write_text("")
    world.run("allow", str(top / ".envrc"))
    process = world.serve()
    deep = top / "pkg" / "5" / "7"
    os.chdir(deep)
    over: list[float] = []
    for _ in range(5 if quick else 15):
        world.environ["TURN"] = str(len(over))
        client = world.client(dict(world.environ), shared=True)
        took = seconds(client.refresh)
        last = next(
            each["last"]
            for each in world.status()["workspaces"]
            if each["root"] == str(top / ".envrc")
        )
        over.append(took - last["seconds"])
        client.close()
    client = world.client(dict(world.environ), shared=True)
    client.refresh()
    world.until_watching()
    watches = _watches(process.pid)
    client.close()
    os.chdir("/")
    middle = statistics.median(over)
    yield Row(
        f"{count:,} folders: watches",
        "O(depth + folders of watched files)",
        f"{watches}",
        watches <= 20,
    )
    yield Row(
        "  attaching, beyond the evaluation", "< 5 ms", micro(middle), middle < 5e-3
    )


def _watches(pid: int) -> int:
    found = 0
    for entry in Path(f"/proc/{pid}/fdinfo").iterdir():
        found += entry.read_text().count("inotify wd:")
    return found
