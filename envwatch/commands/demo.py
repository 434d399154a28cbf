"""`envwatch demo`: show the main job with the real direnv, 20 kernels and a notebook.

In a folder, a home and a direnv store of its own, with a sidecar of its own; it
prints each step with what it cost beside direnv's hook, measured in the same run.
It ends by itself within seconds and removes what it made. Exit codes: 0 everything
was as it should be, 1 something was not (the last lines say what), 69 no direnv.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

import click

from envwatch import state
from envwatch.commands.demonstration.stage import Stage
from envwatch.commands.demonstration.story import KERNELS, Story
from envwatch.commands.programs import direnv_of
from envwatch.errors import EnvwatchError
from envwatch.text import duration, plain
from kernel_client import direnv as program


@click.command("demo")
def command() -> int:
    """Show the main job with the real direnv, 20 kernels and a notebook."""
    base = state.base(os.environ)
    direnv = direnv_of(base)
    version = program.version(direnv, base)
    signal.signal(signal.SIGTERM, _ended)
    started = time.monotonic()
    stage = Stage(direnv)
    try:
        _say(f"direnv {version} ({plain(direnv)}), {KERNELS} kernels, one sidecar,")
        _say(f"all in {plain(str(stage.top))}")
        _say("")
        story = Story(stage, _say)
        try:
            story.play()
        except EnvwatchError as error:
            story.wrong.append(str(error))
    finally:
        with _undisturbed():
            stage.close()
    _say("")
    for line in story.wrong:
        _say(line)
    took = duration(time.monotonic() - started)
    if story.wrong:
        _say(f"not everything was as it should be ({took})")
        return 1
    _say(f"everything was as it should be ({took}); nothing is left behind")
    return 0


def _say(line: str) -> None:
    click.echo(line)
    sys.stdout.flush()


@contextmanager
def _undisturbed() -> Generator[None]:
    """Let no second Ctrl-C end the clean-up half way."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, signal.SIG_IGN) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def _ended(number: int, _: FrameType | None) -> None:
    """End as the signal would, after the demo's processes."""
    raise SystemExit(128 + number)
