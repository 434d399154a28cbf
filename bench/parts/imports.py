"""What `import kernel_client` costs."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from bench.findings import Distribution, Findings, Row
from bench.measures import Middle, readable
from bench.progress import ticking
from bench.worlds import HERE, World

TARGETS = (
    ("where json and socket are loaded", "import json, socket", 5e-3),
    ("in a bare interpreter", "pass", 25e-3),
)

_TIMED = (
    "import sys\n{before}\nfrom time import perf_counter as now\n"
    "a = now()\nimport kernel_client\nb = now()\nsys.stdout.write(str(b - a))"
)


def imports(world: World, *, quick: bool) -> Findings:
    """Row 9: the statement itself, timed in fresh interpreters.

    Whole interpreters with it and without it run in turn beside that: the
    difference has what ending costs, too, and more noise.
    """
    pairs = 10 if quick else 40
    environ = {**world.environ, "PYTHONPATH": str(HERE)}
    for where, before, target_s in TARGETS:
        more: list[float] = []
        inside: list[float] = []
        for turn in ticking(range(pairs + 1), f"import: {where}"):
            without, _ = _spawned(before, environ)
            with_it, _ = _spawned(f"{before}\nimport kernel_client", environ)
            _, said = _spawned(_TIMED.format(before=before), environ)
            if turn:
                more.append(with_it - without)
                inside.append(float(said))
        more_s, within_s = Middle.of(more), Middle.of(inside)
        yield Row(
            "import",
            f"import kernel_client {where}",
            f"<= {readable(target_s)}",
            f"{within_s}; the whole process takes {more_s} more",
            within_s.middle <= target_s,
            {**within_s.figures(), "process": more_s.middle},
        )
        yield Distribution("import", "import kernel_client", where, tuple(inside))


def _spawned(code: str, environ: dict[str, str]) -> tuple[float, bytes]:
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environ,
        cwd=os.sep,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        check=True,
    )
    return time.perf_counter() - started, done.stdout
