"""`envwatch ipython install|uninstall`: a start-up file for plain `ipython`.

Kernels share IPython's profiles; they are left to `envwatch jupyter`. Exit codes: 0
done, 69 nothing to take back, 74 a file that cannot be written, 77 what is there is
not envwatch's or was edited since.
"""

from __future__ import annotations

import os
from pathlib import Path

import click

from envwatch.hosts import footprint, kernelspecs
from envwatch.text import plain
from kernel_client import launcher

FILE = "50-envwatch.py"

# Run by an IPython that may be in any environment; leaves no name behind.
BODY = """\
# Refreshes before each line; `envwatch ipython uninstall` takes this file back.


def _envwatch(path, command):
    import os
    import runpy
    import sys

    shell = get_ipython()  # noqa: F821 - IPython's own
    if hasattr(shell, "kernel"):
        return
    if not os.path.exists(path):
        sys.stderr.write("envwatch: %s is gone, so no .envrc is loaded\\n" % path)
    elif runpy.run_path(path)["load"](command) is not None:
        shell.extension_manager.load_extension("kernel_client")


try:
    _envwatch(@PATH@, @COMMAND@)
finally:
    del _envwatch
"""


@click.group("ipython")
def command() -> None:
    """Refresh before each line of plain `ipython`: install, uninstall."""


_profile = click.option(
    "--profile",
    metavar="NAME",
    default="default",
    show_default=True,
    help="The IPython profile.",
)


@command.command("install")
@_profile
def install(profile: str) -> None:
    """Write the start-up file into a profile."""
    path = _path(profile)
    where = str(Path(launcher.__file__).resolve())
    body = BODY.replace("@PATH@", ascii(where))
    footprint.put_file(
        path, body.replace("@COMMAND@", ascii(kernelspecs.command_beside()))
    )
    click.echo(f"{plain(str(path))} is read by every new `ipython` of that profile")


@command.command("uninstall")
@_profile
def uninstall(profile: str) -> None:
    """Take the start-up file back; one that was edited since stays."""
    path = _path(profile)
    footprint.take_file(path)
    click.echo(f"{plain(str(path))} is gone")


def _path(profile: str) -> Path:
    if "/" in profile or not profile:
        raise click.BadParameter("a profile is named without slashes")
    named = os.environ.get("IPYTHONDIR")
    top = Path(named).expanduser() if named else Path("~/.ipython").expanduser()
    return top.absolute() / f"profile_{profile}" / "startup" / FILE
