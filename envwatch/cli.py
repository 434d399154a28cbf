"""The `envwatch` command: its group, which imports a command only to run it.

`status` and `reload` are asked by prompts and editors, so nothing of the runtime
is imported before `serve` itself runs.
"""

from __future__ import annotations

import click

from envwatch import __version__

COMMANDS = {
    "ask": "Show a blocked file and what changed in it, and ask whether to allow it.",
    "completion": "Print the script that completes `envwatch` in a shell.",
    "console": "Talk to a kernel that follows direnv, and answer for a blocked file.",
    "demo": "Show the main job with the real direnv, 20 kernels and a notebook.",
    "doctor": "Check what envwatch needs here, with a remedy for each finding.",
    "exec": "Run one program in the environment of a workspace.",
    "ipython": "Refresh before each line of plain `ipython`: install, uninstall.",
    "jupyter": "Make a Jupyter kernel that follows direnv: install, uninstall.",
    "mcp": "Start the local servers of an MCP client in a workspace.",
    "reload": "Have every kernel load a workspace again at its next run.",
    "serve": "Run the sidecar in the foreground.",
    "status": "Tell what state a workspace and the sidecar are in.",
    "stop": "End the sidecar and wait until it is gone.",
    "top": "Watch the sidecar: workspaces, kernels, evaluations, as they are now.",
}
"""Every command with its one line of help, so that `--help` imports none of them."""


class Commands(click.Group):
    """A group whose commands are modules of `envwatch.commands`."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Name the commands in the order of the help text."""
        return list(COMMANDS)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        cmd_name: str,
    ) -> click.Command | None:
        """Import one command."""
        import importlib

        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"envwatch.commands.{cmd_name}")
        command: click.Command = module.command
        return command

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        formatter: click.HelpFormatter,
    ) -> None:
        """Write the list of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(
    cls=Commands,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, message="envwatch %(version)s")
def cli() -> None:
    """Keep every kernel in the environment that direnv gives a shell there."""
