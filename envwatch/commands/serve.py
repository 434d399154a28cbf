"""`envwatch serve`: run the sidecar in the foreground.

Options come before the `ENVWATCH_*` variables, which are the settings of a sidecar
that a kernel starts by itself. With systemd's socket activation (`LISTEN_FDS`) it
takes the socket that it is handed.
"""

from __future__ import annotations

import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from kernel_client.settings import FENCE_MODES


class Seconds(click.FloatRange):
    """A span of time; nan, which no range leaves out, is none."""

    def __init__(self) -> None:
        super().__init__(min=0, min_open=True, max=1e9)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Give the number."""
        seconds = super().convert(value, param, ctx)
        if math.isnan(seconds):
            self.fail(f"{value} is no span of time", param, ctx)
        return seconds


_SECONDS = Seconds()
_COUNT = click.IntRange(min=1)


@click.command("serve")
@click.option("--stdio", is_flag=True, help="Serve one kernel on stdin and stdout.")
@click.option("--socket", metavar="PATH", help="Where to listen.")
@click.option("--direnv", metavar="PATH", help="The direnv to run.")
@click.option("--idle-s", type=_SECONDS, help="End after so long without a kernel.")
@click.option("--sweep-s", type=_SECONDS, help="Time between two sweeps.")
@click.option("--max-age-s", type=_SECONDS, help="How old a shared answer may be.")
@click.option("--kill-s", type=_SECONDS, help="How long an evaluation may run.")
@click.option("--max-kept-bytes", type=_COUNT, help="Memory for kept answers.")
@click.option("--concurrency", type=_COUNT, help="Evaluations that run at once.")
@click.option(
    "--precompute/--no-precompute",
    default=None,
    help="Evaluate when something changes, before a kernel asks.",
)
@click.option(
    "--fence",
    type=click.Choice(FENCE_MODES),
    help="Where kernels get a fence in place of stats.",
)
@click.option("--log", metavar="FILE", help="Log to a file in place of stderr.")
def command(*, stdio: bool, **options: Any) -> None:
    """Run the sidecar in the foreground; a kernel does so by itself when needed."""
    from envwatch.config import Config

    given = {name: value for name, value in options.items() if value is not None}
    for name in ("socket", "log"):
        if name in given:
            given[name] = str(Path(str(given[name])).absolute())
    config = replace(Config.of(os.environ), **given)

    from envwatch.runtime import daemon

    daemon.serve(config, stdio=stdio)
