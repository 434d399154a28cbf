"""Which direnv a kernel runs, and which root file it would find.

direnv's own word settles the one thing that cannot be seen by looking: whether
`load_dotenv` is on. It is asked once per state of direnv.toml, and only where a
`.env` is met at all.
"""

from __future__ import annotations

import os

from kernel_client import environment, roots, snapshot
from kernel_client.errors import DirenvError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kernel_client.direnv import Status
    from kernel_client.environment import Environment
    from kernel_client.snapshot import Snapshot

CONFIG_NAMES = ("HOME", "XDG_CONFIG_HOME", "DIRENV_CONFIG")
"""Variables that say where direnv's own settings are."""


class Discovery:
    """Remembers direnv's path and `load_dotenv` for as long as they hold."""

    def __init__(self, name: str | None) -> None:
        self._name = name or "direnv"
        self._path: str | None = None
        self._dotenv: bool | None = None
        self._dotenv_seen: Snapshot = ()

    def direnv(self, base_path: str | None) -> str | None:
        """Give direnv's absolute path; looked up until it is found."""
        if self._path is None:
            from kernel_client import direnv as program

            self._path = program.find({"PATH": base_path or ""}, self._name)
        return self._path

    def forget_direnv(self) -> None:
        """Look it up again next time: it could not be started."""
        self._path = None

    def walk(
        self,
        folder: str | None,
        names: Mapping[str, str],
        base: Callable[[], Environment],
    ) -> roots.Walk:
        """Look from a folder upwards; `names` has `CONFIG_NAMES` of the base.

        A folder of None was deleted: nothing is above it.
        """
        if folder is None:
            return roots.Walk()
        config = roots.config_folder(names)
        watched: list[str] = []
        if config is not None and config.startswith("/"):
            watched = roots.toml_paths(config) if os.path.isdir(config) else [config]
        seen = snapshot.take(watched)
        if all(entry[1] is None for entry in seen):
            found = roots.walk(folder, dotenv=False)
        else:
            if seen != self._dotenv_seen:
                self._dotenv_seen, self._dotenv = seen, None
            found = roots.walk(folder, dotenv=self._dotenv)
            if found.dotenv is not None and self._dotenv is None:
                self._dotenv = self._ask(found.dotenv, base())
                found = roots.walk(folder, dotenv=self._dotenv)
        found.folder = folder
        found.config = seen
        return found

    def allows(self, root: str, environment: Environment) -> bool:
        """Ask direnv whether it would load this root file as it is now."""
        state = self._status(root, environment)
        return state is not None and state.allowed == 0

    def _ask(self, dotenv: str, base: Environment) -> bool | None:
        state = self._status(dotenv, base)
        if state is None or state.root is None:
            return None if state is None else False
        # The text of 2.32 has the bytes as they are, up to a newline.
        return state.root in (
            dotenv.partition("\n")[0],
            environment.as_direnv_writes(dotenv),
        )

    def _status(self, path: str, environment: Environment) -> Status | None:
        """Give what direnv says of a file's folder; None when it does not tell."""
        if self._path is None:
            return None
        from kernel_client import direnv as program

        try:
            return program.status(self._path, os.path.dirname(path), environment)
        except DirenvError:
            return None
