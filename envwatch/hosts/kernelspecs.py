"""Kernelspecs: find the person's own one, and give the one that envwatch makes of it.

The kernel may be in another virtual environment, without envwatch and what that
depends on. So its interpreter is given one line of code that runs
`kernel_client/launcher.py` by its path before ipykernel; that puts nothing on
`sys.path` and nothing into the environment. When the path has gone, the line says
so and the kernel starts as the person's own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from envwatch.errors import ConfigError, Unavailable
from kernel_client import launcher, wrapping

if TYPE_CHECKING:
    from jupyter_client.kernelspec import KernelSpecManager

PROVISIONER = "envwatch"
"""The entry point of `envwatch.hosts.jupyter`."""

LOCAL_PROVISIONER = "local-provisioner"
MODULES = ("ipykernel_launcher", "ipykernel")
MARK = "envwatch"
"""In the metadata of a kernelspec: envwatch has written it."""

# One line, without braces (Jupyter would fill them in). What `python -m` puts first
# on sys.path is kept out while we look for our own modules, and put back for ipykernel.
LINE = (
    "import sys;first=sys.path[:1]==['']and sys.path.pop(0)=='';"
    "import os,runpy;a=sys.argv;path,command,module=a[1:4];del a[1:4];"
    "runpy.run_path(path)['prepare'](a,command)if os.path.exists(path)else "
    "print('envwatch:',path,'is gone; the kernel starts without it',file=sys.stderr);"
    "first and sys.path.insert(0,os.getcwd());"
    "runpy.run_module(module,run_name='__main__',alter_sys=True)"
)


class Found(NamedTuple):
    """A kernelspec of the person's: its folder, its name there, and its content."""

    folder: Path
    name: str
    spec: dict[str, Any]


def manager() -> KernelSpecManager:
    """Give what knows where Jupyter keeps kernelspecs.

    Raises:
        Unavailable: Jupyter is not installed beside envwatch.
    """
    try:
        from jupyter_client.kernelspec import KernelSpecManager
    except ImportError:
        raise Unavailable(
            "jupyter_client is not installed beside envwatch:"
            " pip install jupyter_client ipykernel there"
        ) from None
    return KernelSpecManager()


def find(specs: KernelSpecManager, name: str) -> Found:
    """Give the person's kernelspec of that name, the one that Jupyter would start.

    Those that envwatch has written do not count: they are made of another one.

    Raises:
        Unavailable: there is none.
        ConfigError: its kernel.json cannot be used.
    """
    ours = False
    for place in specs.kernel_dirs:
        for folder in _named(Path(place), name):
            spec = read(folder)
            if MARK not in spec.get("metadata", {}):
                return Found(folder, folder.name, spec)
            ours = True
    own = native() if name.lower() == "python3" else None
    if own is not None:
        return own
    if ours:
        raise ConfigError(f"the kernel {name} is one of envwatch's: name your own one")
    raise Unavailable(
        f"there is no kernel {name} here; `jupyter kernelspec list` names them"
    )


def read(folder: Path) -> dict[str, Any]:
    """Give the content of a kernelspec.

    Raises:
        ConfigError: it cannot be read, or is not the JSON of a kernelspec.
    """
    path = folder / "kernel.json"
    spec: Any
    try:
        spec = json.loads(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise ConfigError(f"{path} is broken: it is no JSON") from None
    argv = spec.get("argv") if isinstance(spec, dict) else None
    if (
        not isinstance(spec, dict)
        or not isinstance(argv, list)
        or not all(isinstance(part, str) for part in argv)
    ):
        raise ConfigError(f"{path} is broken: its argv is no list of strings")
    if not isinstance(spec.get("metadata", {}), dict):
        raise ConfigError(f"{path} is broken: its metadata is no object")
    return dict(spec)


def extended(
    found: Found, *, command: str, display_name: str | None, provisioned: bool
) -> dict[str, Any]:
    """Give the kernelspec that is like the person's plus what envwatch adds.

    `command` is the `envwatch` that starts a sidecar; `provisioned` says whether
    the kernel's interpreter starts in the workspace's environment.

    Raises:
        ConfigError: the kernel is no ipykernel, or has a provisioner of its own.
    """
    spec = found.spec
    metadata = {**spec.get("metadata", {}), MARK: {"kernel": found.name}}
    if provisioned:
        theirs = _provisioner(metadata)
        if theirs is not None:
            raise ConfigError(
                f"the kernel {found.name} has a provisioner of its own ({theirs});"
                " --no-provisioner keeps it, and loads from the first cell on"
            )
        metadata["kernel_provisioner"] = {"provisioner_name": PROVISIONER}
    own = spec.get("display_name") or found.name
    return {
        **spec,
        "argv": _launched(found, command),
        "display_name": display_name or f"{own} (envwatch)",
        "metadata": metadata,
    }


def _launched(found: Found, command: str) -> list[str]:
    argv = list(found.spec["argv"])
    for place, module in enumerate(argv[1:], start=1):
        if module in MODULES and argv[place - 1] == "-m":
            path = str(Path(launcher.__file__).resolve())
            argv[place - 1 : place + 1] = ["-c", LINE, path, command, module]
            return argv
    raise ConfigError(
        f"the kernel {found.name} is not started by `python -m {MODULES[0]}`;"
        " where it is an IPython all the same, `%load_ext kernel_client` will do"
    )


def _provisioner(metadata: Mapping[str, Any]) -> str | None:
    """Give the name of a provisioner that is not Jupyter's own local one."""
    theirs = metadata.get("kernel_provisioner")
    if not theirs:
        return None
    name = theirs.get("provisioner_name") if isinstance(theirs, dict) else "?"
    configured = isinstance(theirs, dict) and theirs.get("config")
    return None if name == LOCAL_PROVISIONER and not configured else str(name)


def _named(place: Path, name: str) -> list[Path]:
    """Give the kernelspec folders of that name; Jupyter takes no note of case."""
    try:
        folders = sorted(place.iterdir())
    except OSError:
        return []
    return [
        folder
        for folder in folders
        if folder.name.lower() == name.lower() and (folder / "kernel.json").is_file()
    ]


def native() -> Found | None:
    """Give the kernel of this interpreter, which Jupyter offers without any file.

    None: ipykernel is not installed beside envwatch.
    """
    try:
        from ipykernel.kernelspec import RESOURCES, get_kernel_dict
    except ImportError:
        return None
    return Found(Path(RESOURCES), "python3", {**get_kernel_dict()})


def command_beside() -> str:
    """Give the `envwatch` command of this installation, or "" when there is none."""
    return wrapping.envwatch(os.environ) or ""
