"""What `envwatch exec` costs beside a bare Python and beside `direnv exec`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from bench.findings import CannotRunError, Distribution, Findings, Row
from bench.measures import Middle, in_turn, ratio_of, readable, timed
from bench.worlds import HERE, World
from kernel_client.wrapping import envwatch

TARGET_S = 25e-3
FILE = "export FOO=1\n"
OURS = "envwatch exec, a kept diff"
DIRENVS = "direnv exec, a one-line .envrc"
BARE = "python -c pass, in no workspace"


def programs(world: World, *, quick: bool) -> Findings:
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
    works = {OURS: timed(ours), DIRENVS: timed(direnvs), BARE: timed(bare)}
    found = in_turn(works, turns=20 if quick else 60, limit_s=20.0)
    pairs = list(zip(found[OURS], found[BARE], strict=True))
    more = Middle.of([taken_s - bare_s for taken_s, bare_s in pairs])
    yield Row(
        "exec",
        "envwatch exec with a kept diff, over python -c pass",
        f"<= {readable(TARGET_S)}",
        str(more),
        more.middle <= TARGET_S,
        more.figures(),
    )
    ratio = ratio_of(list(zip(found[OURS], found[DIRENVS], strict=True)))
    yield Row(
        "exec",
        "  beside direnv exec",
        "< 1 x",
        f"{readable(ratio.ours_s)}: {ratio}",
        ratio.middle < 1,
        ratio.figures(),
    )
    for name, samples in found.items():
        yield Distribution("exec", "Starting /bin/true in a workspace", name, samples)


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
