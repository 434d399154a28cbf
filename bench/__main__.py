"""`python -m bench [PART …] [--quick] [--direnv PATH] [--json] [--check]`."""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict

from bench import edits, herd, hook, idle, imports, monorepo
from bench.measures import Row
from bench.worlds import World
from kernel_client import direnv as program

PARTS: dict[str, tuple[int, Callable[..., Iterator[Row]]]] = {
    "hook": (1, hook.unchanged),
    "rootless": (2, hook.rootless),
    "leave": (4, hook.leaving),
    "edit": (5, edits.precomputed),
    "herd": (6, herd.herd),
    "idle": (7, idle.idle),
    "monorepo": (8, monorepo.monorepo),
    "import": (9, imports.imports),
}
"""Parts by name, with their row of the targets."""


def main() -> int:
    """Run the parts that were asked for; exit 1 with --check when one is not met."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--quick", action="store_true", help="fewer turns, less sure")
    parser.add_argument("--direnv", help="absolute path of the direnv to compare with")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--check", action="store_true", help="exit 1 on an unmet row")
    given = parser.parse_args()
    unknown = set(given.parts) - PARTS.keys()
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    rows: list[Row] = []
    for name in given.parts or PARTS:
        print(f"bench: {name} …", file=sys.stderr, flush=True)
        with World(given.direnv) as world:
            version = program.version(world.direnv, world.environ)
            rows += PARTS[name][1](world, quick=given.quick)
    machine = f"Linux {platform.release()}, Python {platform.python_version()}"
    machine += f", {os.cpu_count()} processors, direnv {version}"
    if given.json:
        print(json.dumps({"machine": machine, "rows": [asdict(row) for row in rows]}))
    else:
        _table(machine, rows)
    return int(given.check and not all(row.met for row in rows))


def _table(machine: str, rows: list[Row]) -> None:
    print(f"\n{machine}\nMedians; ratios pair by pair, with their quartiles.\n")
    print("| what | target | measured | met |\n|---|---|---|---|")
    for row in rows:
        met = "yes" if row.met else "**no**"
        print(f"| {row.what.strip()} | {row.target} | {row.measured} | {met} |")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
