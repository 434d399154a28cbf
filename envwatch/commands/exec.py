"""`envwatch exec`: what the list of commands and a shell's completion see of it.

The command itself is `envwatch.execution`, which runs before click is imported.
"""

from __future__ import annotations

import click

from envwatch import execution


@click.command(
    "exec",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(arguments: tuple[str, ...]) -> int:
    """Run one program in a workspace's environment."""
    return execution.main(list(arguments))
