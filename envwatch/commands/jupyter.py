"""`envwatch jupyter install|uninstall`: a Jupyter kernel that follows direnv.

Exit codes: 0 done, 64 a kernel that cannot be extended or a broken kernel.json,
69 no such kernel or no Jupyter, 74 a folder that cannot be written, 77 what is there
is not envwatch's or was edited since.
"""

from __future__ import annotations

import json
import re
import shutil
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from envwatch.hosts import footprint, kernelspecs
from envwatch.text import plain

if TYPE_CHECKING:
    from jupyter_client.kernelspec import KernelSpecManager

_NAME = re.compile(r"[A-Za-z0-9._-]+")


@click.group("jupyter")
def command() -> None:
    """Make a Jupyter kernel that follows direnv: install, uninstall."""


def _place(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say which kernelspec is meant, and where it is."""
    for option in (
        click.option(
            "--name",
            metavar="NEW",
            callback=_checked,
            help="Name of envwatch's kernel; by default NAME-envwatch.",
        ),
        click.option(
            "--kernel",
            metavar="NAME",
            default="python3",
            show_default=True,
            callback=_checked,
            help="Your own kernel, which it is made of.",
        ),
        click.option(
            "--prefix",
            metavar="DIR",
            type=click.Path(file_okay=False, path_type=Path),
            help="In DIR/share/jupyter/kernels.",
        ),
        click.option(
            "--sys-prefix", is_flag=True, help="In the virtual environment of envwatch."
        ),
        click.option("--user", is_flag=True, help="For this user; the default."),
    ):
        function = option(function)
    return function


def _checked(
    context: click.Context,  # noqa: ARG001 - click's signature
    option: click.Parameter,
    value: str | None,
) -> str | None:
    if value is not None and not _NAME.fullmatch(value):
        raise click.BadParameter(
            "a kernel's name has letters, digits, '.', '_' and '-' only", param=option
        )
    return value


@command.command("install")
@_place
@click.option("--display-name", metavar="TEXT", help="What menus show.")
@click.option(
    "--no-provisioner",
    is_flag=True,
    help="Load from the first cell on; the interpreter starts as before.",
)
def install(
    *,
    user: bool,
    sys_prefix: bool,
    prefix: Path | None,
    kernel: str,
    name: str | None,
    display_name: str | None,
    no_provisioner: bool,
) -> None:
    """Write a kernel like NAME that starts and runs in its workspace's environment."""
    specs = kernelspecs.manager()
    place = _place_of(specs, user=user, sys_prefix=sys_prefix, prefix=prefix)
    folder = place / _name(kernel, name)
    found = kernelspecs.find(specs, kernel)
    spec = kernelspecs.extended(
        found,
        command=kernelspecs.command_beside(),
        display_name=display_name,
        provisioned=not no_provisioner,
    )

    def fill(fresh: Path) -> None:
        shutil.copytree(
            found.folder,
            fresh,
            dirs_exist_ok=True,
            ignore=shutil.ignore_patterns("__pycache__", footprint.RECORD),
        )
        # A store of packages may keep its files read-only, folders too.
        for each in (fresh, *fresh.rglob("*")):
            each.chmod(each.stat().st_mode | stat.S_IWUSR)
        path = fresh / "kernel.json"
        path.unlink(missing_ok=True)
        path.write_text(json.dumps(spec, indent=1) + "\n", encoding="utf-8")

    footprint.put_folder(folder, fill)
    click.echo(f"{plain(spec['display_name'])} is in {plain(str(folder))}")
    if str(folder.parent) not in specs.kernel_dirs:
        click.echo(f"Jupyter does not look in {plain(str(folder.parent))} here")


@command.command("uninstall")
@_place
def uninstall(
    *,
    user: bool,
    sys_prefix: bool,
    prefix: Path | None,
    kernel: str,
    name: str | None,
) -> None:
    """Take back exactly what install has written; what was edited since stays."""
    specs = kernelspecs.manager()
    place = _place_of(specs, user=user, sys_prefix=sys_prefix, prefix=prefix)
    folder = place / _name(kernel, name)
    footprint.take_folder(folder)
    click.echo(f"{plain(str(folder))} is gone")


def _name(kernel: str, name: str | None) -> str:
    return (name or f"{kernel}-envwatch").lower()


def _place_of(
    specs: KernelSpecManager, *, user: bool, sys_prefix: bool, prefix: Path | None
) -> Path:
    """Give the folder of kernelspecs that the options name."""
    if user + sys_prefix + (prefix is not None) > 1:
        raise click.UsageError("give one of --user, --sys-prefix and --prefix")
    if sys_prefix:
        prefix = Path(sys.prefix)
    if prefix is None:
        return Path(specs.user_kernel_dir)
    return prefix.resolve() / "share" / "jupyter" / "kernels"
