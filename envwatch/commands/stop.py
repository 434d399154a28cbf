"""`envwatch stop`: end the sidecar, and wait until it is gone.

Kernels lose nothing: they ask direnv directly, and start a new sidecar when they
need one. Exit codes: 0 it is gone, 69 there was none, 75 it is still there.
"""

from __future__ import annotations

import os

import click

from envwatch import state
from envwatch.commands import sidecars
from envwatch.errors import Temporary
from kernel_client import messages

_DEADLINE_S = 5.0


@click.command("stop")
def command() -> None:
    """End the sidecar and wait until it is gone."""
    base = state.base(os.environ)
    with sidecars.reached(base) as link:
        pid = link.pid
        link.request(messages.stop(link.number()))
    if not sidecars.wait_gone(base, pid, deadline_s=_DEADLINE_S):
        raise Temporary(
            f"the sidecar has not ended after {_DEADLINE_S:g} s; `kill -9 {pid}` does"
        )
    click.echo(f"the sidecar has ended (pid {pid})")
