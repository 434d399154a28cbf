"""Brings this package into an interpreter that cannot import it by name.

A kernel in another virtual environment has none of our dependencies, and must not
see the rest of ours: so no folder goes on its `sys.path`, and no variable into its
environment that its own child processes would inherit. This file is run by its
path (`runpy.run_path`), and loads the package that it lies in, and nothing else.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

PACKAGE = "kernel_client"


def prepare(arguments: list[str], command: str) -> None:
    """Have the ipykernel that is started next load the extension.

    `arguments` are those of ipykernel, changed in place; `command` is the
    `envwatch` that belongs to this package. Never raises: a kernel must start.
    """
    if load(command) is not None:
        arguments.append(f"--ext={PACKAGE}")


def load(command: str = "") -> ModuleType | None:
    """Import the package that lies here; says so in one line when it cannot.

    Where one was imported already, that one stays. `command` starts the sidecar
    where the person's settings name no other.
    """
    try:
        package = sys.modules.get(PACKAGE) or _loaded()
        if command:
            _offer(package, command)
    except Exception as error:  # noqa: BLE001 - a kernel must start
        sys.stderr.write(
            f"envwatch: kernel_client cannot be loaded ({type(error).__name__}),"
            " so no .envrc is loaded\n"
        )
        return None
    return package


def _loaded() -> ModuleType:
    from importlib.util import module_from_spec

    folder = os.path.dirname(os.path.abspath(__file__))
    spec = _spec(PACKAGE, folder)
    if spec is None or spec.loader is None:
        raise ImportError(PACKAGE)
    package = module_from_spec(spec)
    sys.modules[PACKAGE] = package
    try:
        spec.loader.exec_module(package)
        # Of the package itself: this file's own namespace ends with its run.
        from kernel_client.launcher import Finder
    except BaseException:
        del sys.modules[PACKAGE]
        raise
    sys.meta_path.append(Finder(folder))
    return package


def _offer(package: ModuleType, command: str) -> None:
    settings = package.default_client().settings
    if settings.sidecar == "auto" and os.access(command, os.X_OK):
        settings.sidecar = command


class Finder:
    """Finds the package again, which `%reload_ext` needs; the last that is asked."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Give the spec of the package, and of nothing else."""
        del path, target
        return _spec(name, self._folder) if name == PACKAGE else None


def _spec(name: str, folder: str) -> ModuleSpec | None:
    from importlib.util import spec_from_file_location

    return spec_from_file_location(
        name,
        os.path.join(folder, "__init__.py"),
        submodule_search_locations=[folder],
    )
