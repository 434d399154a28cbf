"""`python -m bench`: measure section 13 of the design, and print one table."""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

from bench import table
from bench.edits import edit
from bench.fences import fences
from bench.herd import herd
from bench.hook import hook
from bench.idle import idle
from bench.imports import imports
from bench.leave import leave
from bench.measures import CannotRunError, Row
from bench.monorepo import monorepo
from bench.programs import programs
from bench.worlds import INTERRUPTS, World

PARTS: dict[str, Callable[..., Iterator[Row]]] = {
    "hook": hook,
    "fence": fences,
    "leave": leave,
    "edit": edit,
    "herd": herd,
    "idle": idle,
    "monorepo": monorepo,
    "import": imports,
    "exec": programs,
}

NOT_MET = 1
INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> int:
    """Measure; give the exit code."""
    chosen = _parser().parse_args(arguments)
    for each in INTERRUPTS:
        signal.signal(each, _interrupt)
    rows: list[Row] = []
    try:
        for name in chosen.parts or PARTS:
            if name not in PARTS:
                print(f"bench: no part {name}: {', '.join(PARTS)}", file=sys.stderr)
                return 2
        for name in dict.fromkeys(chosen.parts or PARTS):
            print(f"bench: {name} ...", file=sys.stderr, flush=True)
            rows += _measured(name, chosen.direnv, quick=chosen.quick)
    except KeyboardInterrupt:
        print("bench: interrupted", file=sys.stderr)
        return INTERRUPTED
    machine = _machine(chosen.direnv, quick=chosen.quick)
    if chosen.json:
        print(json.dumps({**machine, "rows": [row.plain() for row in rows]}, indent=1))
    else:
        print(", ".join(f"{name} {value}" for name, value in machine.items()))
        print(*table.lines(rows), sep="\n")
    is_met = all(row.met for row in rows)
    return NOT_MET if chosen.check and not is_met else 0


def _measured(name: str, direnv: str | None, *, quick: bool) -> list[Row]:
    """Measure one part in a world of its own; a part that cannot run says why."""
    rows: list[Row] = []
    try:
        with World(direnv) as world:
            rows.extend(PARTS[name](world, quick=quick))
    except (CannotRunError, OSError, subprocess.SubprocessError) as error:
        rows.append(Row(name, f"{name} (the rest of it)", "-", f"cannot run: {error}"))
    return rows


def _machine(direnv: str | None, *, quick: bool) -> dict[str, Any]:
    """Say where the figures are from."""
    try:
        said = subprocess.run(
            [direnv or "direnv", "version"], capture_output=True, text=True, check=False
        ).stdout.strip()
    except OSError:
        said = "missing"
    return {
        "direnv": said,
        "python": platform.python_version(),
        "linux": platform.release(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "quick": quick,
    }


def _program(text: str) -> str:
    """Take a path from here: the parts stand in other folders."""
    return os.path.abspath(text) if os.sep in text else text


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument(
        "--direnv", type=_program, help="the direnv to use (the one on PATH)"
    )
    parser.add_argument("--quick", action="store_true", help="smaller and rougher")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--check", action="store_true", help="exit 1 when a row is not met"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
