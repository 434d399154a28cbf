"""`envwatch reload [DIR]`: evaluate a workspace afresh, in every kernel.

The sidecar forgets what it keeps of the folder's root file, and every kernel that
has it loaded loads it again at its next run. Exit codes: 0 the sidecar knows, 3 no
root file, 13 one that cannot be read, 69 no direnv or no sidecar.
"""

from __future__ import annotations

import os

import click

from envwatch import state
from envwatch.commands import arguments, sidecars
from envwatch.commands.programs import direnv_of
from envwatch.commands.status import EXIT_CODES
from envwatch.state import State
from envwatch.text import plain
from kernel_client import messages


@click.command("reload")
@arguments.folder
def command(folder: str) -> int:
    """Have every kernel load the workspace of DIR again at its next run."""
    base = state.base(os.environ)
    workspace = state.look(direnv_of(base), folder, base)
    if workspace.root is None or workspace.state is State.UNREADABLE:
        where = plain(workspace.folder)
        click.echo(f"envwatch: there is no .envrc to load in {where}", err=True)
        return EXIT_CODES[workspace.state]
    with sidecars.reached(base) as link:
        answer = link.request(messages.reload(link.number(), root=workspace.root))
    kernels = answer.get("kernels", 0)
    word = "kernel loads" if kernels == 1 else "kernels load"
    click.echo(f"{kernels} {word} {plain(workspace.root)} again at the next run")
    return 0
