"""What importing the client costs."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Iterator

from bench.measures import Row, micro
from bench.worlds import HERE, World

_TIMED = """
import sys, time
sys.path.insert(0, {here!r})
{before}
started = time.perf_counter()
import kernel_client
print(time.perf_counter() - started)
"""


def imports(world: World, *, quick: bool) -> Iterator[Row]:
    """Row 9: beside what a kernel has loaded anyway, and in a bare interpreter."""
    for what, before, limit_s in (
        ("json and socket are loaded", "import json, socket", 0.005),
        ("bare interpreter", "", 0.025),
    ):
        code = _TIMED.format(here=str(HERE), before=before)
        times = [_import_s(code, world) for _ in range(6 if quick else 21)][1:]
        middle = statistics.median(times)
        yield Row(
            f"import kernel_client, {what}",
            f"<= {limit_s * 1e3:g} ms",
            micro(middle),
            middle <= limit_s,
        )


def _import_s(code: str, world: World) -> float:
    ended = subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            "-X",
            f"pycache_prefix={world.top}/pyc",
            "-c",
            code,
        ],
        capture_output=True,
        check=True,
        env={},
    )
    return float(ended.stdout)
