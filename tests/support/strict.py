"""The strict reference: what a fresh hook would leave, whenever anything moved.

The hook by the book is no judge of a long random life: it misses same-second
edits and configuration, and with some versions it keeps what is gone for ever
(DESIGN section 9). So the strict shell decides by itself *whether* to ask, by
comparing everything that direnv said it watches, and its configuration, content
included; and it always asks direnv afresh: what is loaded is taken back as case 39
says, and direnv evaluates from that base. Between two moves it leaves the
environment alone, as the hook does, so that the caller's own changes stay.

Independent of the code under test: none of it is imported here.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support import reference


class StrictShell:
    """An environment kept as a hook would keep it that misses nothing."""

    def __init__(self, direnv: str, environ: Mapping[str, str], config: Path) -> None:
        self.direnv = direnv
        self.environ = dict(environ)
        self.config = config
        self.root: str | None = None
        self._seen: dict[str, Any] | None = None

    def copy(self) -> StrictShell:
        """Give another one in the same state, as a fork does."""
        twin = StrictShell(self.direnv, self.environ, self.config)
        twin.root, twin._seen = self.root, self._seen
        return twin

    def prompt(self, *, dotenv: bool, forced: bool = False) -> None:
        """Follow the working folder."""
        folder = reference.working_folder()
        root = None if folder is None else found(folder, dotenv=dotenv)
        if root is None:
            self._empty()
            return
        unmoved = self._seen is not None and self._look(self._seen) == self._seen
        if root == self.root and unmoved and not forced:
            return
        base = reference.taken_back(self.environ)
        # In the workspace, not in the folder below it: only OLDPWD differs.
        said = reference.run(
            self.direnv, "export", "json", environ=base, folder=os.path.dirname(root)
        )
        if said.changes is None:
            # direnv could not work (rc 1), or found nothing: nothing is loaded.
            self._empty()
            return
        self.environ = reference.applied(base, said.changes)
        assert self.environ["DIRENV_FILE"] == root, (root, self.environ["DIRENV_FILE"])
        self.root = root
        watched = "DIRENV_WATCHES" in self.environ
        paths = reference.watches(self.environ) if watched else None
        self._seen = self._look(paths) if paths else None

    def _empty(self) -> None:
        self.environ = reference.taken_back(self.environ)
        self.root = self._seen = None

    def _look(self, paths: Mapping[str, Any]) -> dict[str, Any]:
        library = self.config / "lib"
        names = [
            self.config / name for name in ("direnv.toml", "config.toml", "direnvrc")
        ]
        if library.is_dir():
            names += sorted(library.glob("*.sh"))
        everything = {*paths, *map(str, names), str(library)}
        return {path: appearance(path) for path in sorted(everything)}


def appearance(path: str) -> Any:
    """Give what a path looks like; a ctime counts only where there are no bytes."""
    try:
        own, seen = os.lstat(path), os.stat(path)
    except OSError:
        return None
    looks = [
        (one.st_mtime_ns, one.st_size, one.st_ino, one.st_dev) for one in (own, seen)
    ]
    if stat.S_ISREG(seen.st_mode):
        return looks, Path(path).read_bytes()
    return looks, seen.st_ctime_ns


def found(folder: str, *, dotenv: bool) -> str | None:
    """Give the nearest file that direnv would take, or None."""
    place = Path(folder)
    for above in (place, *place.parents):
        for name in (".envrc", ".env") if dotenv else (".envrc",):
            path = above / name
            if path.is_file() and os.access(path, os.R_OK):
                return str(path)
    return None
