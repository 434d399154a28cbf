"""What `envwatch exec` costs beside a bare Python and beside `direnv exec`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from bench.measures import CannotRunError, Middle, Row, paired, readable, seconds
from bench.worlds import HERE, World
from kernel_client.wrapping import envwatch

TARGET_S = 25e-3
FILE = "export FOO=1\n"


def programs(world: World, *, quick: bool) -> Iterator[Row]:
    """Row 10: whole processes in turn; the `.envrc` is the cheapest for direnv."""
    command = envwatch(os.environ)
    if command is None:
        raise CannotRunError("there is no envwatch command")
    folder = world.workspace("w", FILE)
    environ = {**world.environ, "PYTHONPATH": str(HERE)}
    world.serve()
    ours = _starting([command, "exec", str(folder), "/bin/true"], environ)
    bare = _starting([sys.executable, "-c", "pass"], environ)
    direnvs = _starting([world.direnv, "exec", str(folder), "/bin/true"], environ)
    ours()  # the sidecar keeps the diff from here on
    count = 20 if quick else 60
    bare()
    more = Middle.of([seconds(ours) - seconds(bare) for _ in range(count)])
    yield Row(
        "exec",
        "envwatch exec with a kept diff, over python -c pass",
        f"<= {readable(TARGET_S)}",
        str(more),
        more.middle <= TARGET_S,
        more.figures(),
    )
    ratio = paired(ours, direnvs, pairs=count)
    yield Row(
        "exec",
        "the same beside direnv exec",
        "< 1 x",
        f"{readable(ratio.ours_s)}: {ratio}",
        ratio.middle < 1,
        ratio.figures(),
    )


def _starting(command: list[str], environ: Mapping[str, str]) -> Callable[[], object]:
    def start() -> None:
        subprocess.run(
            command,
            env=environ,
            cwd=Path("/"),
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
        )

    return start
