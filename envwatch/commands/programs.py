"""Which direnv the commands run, and how to get one where there is none."""

from __future__ import annotations

from collections.abc import Mapping

from envwatch.errors import EnvwatchError
from kernel_client import direnv as program
from kernel_client.settings import Settings

INSTALL = "install it: `sudo apt install direnv`, `brew install direnv`, or direnv.net"
"""What to do where there is no direnv."""


class NoDirenv(EnvwatchError):  # noqa: N818 - named after what there is not
    """There is no direnv to ask."""

    exit_code = 69


def direnv_of(environ: Mapping[str, str]) -> str:
    """Give the absolute path of the direnv that a kernel would run.

    Raises:
        NoDirenv: there is none; the message says how to install it.
    """
    name = Settings.of(environ).direnv
    found = program.find(environ, name or "direnv")
    if found is not None:
        return found
    if name:
        raise NoDirenv(f"ENVWATCH_DIRENV is {name}, which cannot be run; {INSTALL}")
    raise NoDirenv(f"there is no direnv on PATH; {INSTALL}")
