"""`envwatch completion bash|zsh|fish`: print the completion script of a shell.

eval "$(envwatch completion bash)"              in ~/.bashrc
eval "$(envwatch completion zsh)"               in ~/.zshrc
envwatch completion fish | source               in ~/.config/fish/config.fish
"""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

COMPLETION_VARIABLE = "_ENVWATCH_COMPLETE"
"""Set by the script when it asks the command what fits."""


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the script that completes `envwatch` in a shell.

    For bash: eval "$(envwatch completion bash)" in ~/.bashrc.
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"click has no completion for {shell}")
    # Not source(): it runs bash to ask for its version, and says so when it is old.
    group = context.find_root().command
    script = kind(group, {}, "envwatch", COMPLETION_VARIABLE)
    click.echo(script.source_template % script.source_vars())
