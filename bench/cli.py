"""The command line: which parts, how long, and what comes of it."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NoReturn

from rich.console import Console

from bench import machine
from bench.findings import CannotRunError, Finding, Measuring, Row
from bench.parts import PARTS
from bench.parts.own import own
from bench.progress import stderr
from bench.report import page, table
from bench.report.found import Found
from bench.worlds import INTERRUPTS, World
from envwatch import state

NOT_MET, WRONG_LINE, NO_DIRENV, INTERRUPTED = 1, 2, 69, 130
SCOREBOARD = "scoreboard"
PLAIN_WIDTH = 160
MOST_WATCHES, MOST_KERNELS = 50_000, 2000


def run(arguments: list[str]) -> int:
    """Measure, and tell; gives the exit code."""
    parser = _parser()
    chosen = parser.parse_args(arguments)
    names = list(dict.fromkeys(chosen.parts))
    for name in names:
        if name not in (*PARTS, SCOREBOARD):
            parser.error(f"no part {name}: {', '.join(PARTS)}, or {SCOREBOARD}")
    is_scoreboard = SCOREBOARD in names
    if is_scoreboard and (len(names) > 1 or chosen.workspace):
        parser.error(f"{SCOREBOARD} stands alone")
    if chosen.workspace and names:
        parser.error("--workspace measures that workspace alone: name no parts")
    if chosen.workspace and Path(chosen.output).is_relative_to(chosen.workspace):
        parser.error(
            "--output: the reports would go into that workspace; name a folder"
        )
    try:
        with _interruptible():
            found = _found(chosen, names, is_scoreboard=is_scoreboard)
    except CannotRunError as error:
        print(f"bench: {error}", file=sys.stderr)
        return NO_DIRENV
    except KeyboardInterrupt:
        print("bench: interrupted", file=sys.stderr)
        return INTERRUPTED
    if is_scoreboard:
        found.keep_scored()
    _print(found, chosen)
    if is_scoreboard:
        return 0 if all(row.met for row in found.rows) else NOT_MET
    return _written(found, Path(chosen.output))


def _print(found: Found, chosen: argparse.Namespace) -> None:
    if chosen.json:
        print(json.dumps(found.plain(), indent=1))
        return
    if chosen.markdown:
        print(*table.markdown(found.facts, found.rows), sep="\n")
        return
    console = Console()
    if not console.is_terminal:
        console.width = PLAIN_WIDTH
    console.print(table.of_rows(found.rows))
    if found.distributions:
        console.print(table.of_distributions(found.distributions))
    console.print(found.about(), highlight=False)


def _written(found: Found, folder: Path) -> int:
    files = {
        "bench-report.json": json.dumps(found.plain(), indent=1) + "\n",
        "bench-report.html": page.html(found),
    }
    for name, text in files.items():
        try:
            (folder / name).write_text(text)
        except OSError as error:
            print(f"bench: {folder / name}: {error.strerror}", file=sys.stderr)
            return NOT_MET
    print(f"bench: {' and '.join(files)} are in {folder}", file=sys.stderr)
    return 0


def _found(
    chosen: argparse.Namespace, names: list[str], *, is_scoreboard: bool
) -> Found:
    """Measure whatever was asked for."""
    facts = machine.described(chosen.direnv, os.environ)
    steps: list[tuple[str, Measuring, Callable[[], World]]] = []
    if chosen.workspace:
        base = state.base(os.environ)
        mine = {
            name: value
            for name, value in base.items()
            if not name.startswith("ENVWATCH_")
        }
        folder = Path(chosen.workspace)
        steps.append(
            (
                "workspace",
                partial(own, folder=folder),
                partial(World, chosen.direnv, mine),
            )
        )
    else:
        options = {"by_watches": {"watches": chosen.watches}}
        options["by_count"] = {"kernels": chosen.kernels}
        for name in PARTS if is_scoreboard or not names else names:
            part = PARTS[name]
            for each in part.scored + (() if is_scoreboard else part.more):
                given = partial(each, **options.get(each.__name__, {}))
                steps.append((name, given, partial(World, chosen.direnv)))
    found = Found(facts, is_quick=chosen.quick)
    found.moments.append(machine.moment())
    for name, measuring, made in steps:
        found.hear(name, measuring)
        for finding in _measured(name, measuring, made, quick=chosen.quick):
            found.add(finding)
        found.moments.append(machine.moment())
    return found


def _measured(
    name: str, measuring: Measuring, made: Callable[[], World], *, quick: bool
) -> Iterator[Finding]:
    """Measure in a world of its own; what cannot run says why."""
    if not stderr.is_terminal:
        print(f"bench: {name} ...", file=sys.stderr, flush=True)
    try:
        with made() as world:
            yield from measuring(world, quick=quick)
    except (CannotRunError, OSError, subprocess.SubprocessError) as error:
        yield Row(name, f"{name} (the rest of it)", "?", f"cannot run: {error}")


@contextmanager
def _interruptible() -> Iterator[None]:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in INTERRUPTS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Say what is wrong in one line."""
        self.exit(WRONG_LINE, f"bench: {message}; python -m bench --help\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m bench",
        description="What an environment hook costs here, and what it costs with"
        " envwatch. Writes bench-report.html and bench-report.json.",
        epilog=f"{SCOREBOARD}: the rows with a target alone; ends with 1 when one is"
        " not met, and writes no report.",
    )
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}, or {SCOREBOARD}"
    )
    parser.add_argument("--quick", action="store_true", help="fewer turns: < 2 minutes")
    parser.add_argument(
        "--watches",
        type=_counts(MOST_WATCHES),
        help="how many watched files, as 3,30,300 (hook)",
    )
    parser.add_argument(
        "--kernels",
        type=_counts(MOST_KERNELS),
        help="how many kernels, as 1,10,100 (herd)",
    )
    parser.add_argument(
        "--workspace",
        type=_folder,
        metavar="DIR",
        help="measure this workspace of yours instead; allows and writes nothing in it",
    )
    parser.add_argument(
        "--direnv", type=_program, metavar="PATH", help="another direnv"
    )
    parser.add_argument(
        "--output", type=_folder, default=".", metavar="DIR", help="for the reports"
    )
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--json", action="store_true", help="print the report's JSON")
    shown.add_argument("--markdown", action="store_true", help="print a Markdown table")
    return parser


def _counts(most: int) -> Callable[[str], tuple[int, ...]]:
    def counts(text: str) -> tuple[int, ...]:
        try:
            found = tuple(sorted({int(each) for each in text.split(",")}))
        except ValueError:
            found = ()
        if not found or found[0] < 1 or found[-1] > most:
            message = f"{text!r} is no list of numbers from 1 to {most}, as 3,30,300"
            raise argparse.ArgumentTypeError(message)
        return found

    return counts


def _program(text: str) -> str:
    return os.path.abspath(text) if os.sep in text else text


def _folder(text: str) -> str:
    if not os.path.isdir(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a folder")
    # The working folder changes while something is measured.
    return os.path.realpath(text)
