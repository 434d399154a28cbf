"""The half of envwatch that lives in each kernel; standard library only.

    import kernel_client

    kernel_client.refresh()   # before each run

brings `os.environ` up to date with what direnv would give a shell in the working
folder. A host that wants its own mapping, output or settings makes a `Client`.
"""

from __future__ import annotations

from kernel_client.client import Client
from kernel_client.errors import (
    CommandError,
    DirenvError,
    Error,
    ProtocolError,
    SettingError,
    SidecarError,
)
from kernel_client.result import Result
from kernel_client.settings import Settings
from kernel_client.wrapping import wrap_argv, wrap_bash

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "Client",
    "CommandError",
    "DirenvError",
    "Error",
    "ProtocolError",
    "Result",
    "SettingError",
    "Settings",
    "SidecarError",
    "default_client",
    "load_ipython_extension",
    "prefetch",
    "refresh",
    "reload",
    "unload_ipython_extension",
    "wrap_argv",
    "wrap_bash",
]

_default: list[Client] = []


def default_client() -> Client:
    """Give the client of `os.environ`, made at its first use."""
    if not _default:
        _default.append(Client())
    return _default[0]


def refresh() -> Result:
    """Bring `os.environ` up to date; see `Client.refresh`."""
    return default_client().refresh()


def reload() -> Result:
    """Evaluate this folder's root file again; see `Client.reload`."""
    return default_client().reload()


def prefetch() -> None:
    """Ask for what the first refresh will need; see `Client.prefetch`."""
    default_client().prefetch()


def load_ipython_extension(shell: Any) -> None:
    """Do what `%load_ext kernel_client` asks for; see `kernel_client.ipython`."""
    from kernel_client import ipython

    ipython.load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Do what `%unload_ext kernel_client` asks for."""
    from kernel_client import ipython

    ipython.unload(shell)
