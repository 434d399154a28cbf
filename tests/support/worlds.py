"""A world: a home, a direnv store and workspaces of its own, and a person in it.

The person writes files and runs `direnv allow`. direnv compares whole seconds, so
every write gets a second of its own, in the past: the hook then sees each edit
without anybody having to wait for the clock.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from hashlib import sha256
from itertools import count
from pathlib import Path

from tests.support import reference

FIRST_SECOND = 1_600_000_000


class World:
    """Folders, an environment for them, and a direnv."""

    def __init__(self, direnv: str, *, is_newer: bool) -> None:
        self.direnv = direnv
        self.is_newer = is_newer
        """Whether this is 2.33 or later: lower-case watches, `deny`."""
        # Short: a socket's path has 108 bytes.
        self.top = Path(tempfile.mkdtemp(prefix="ew-", dir="/tmp")).resolve()
        self._seconds = count(FIRST_SECOND)
        self._kept: dict[Path, int] = {}
        self.home = self.folder("home")
        self.config = self.home / ".config" / "direnv"
        self.data = self.home / ".local" / "share" / "direnv"
        self.environ: dict[str, str] = {
            "HOME": str(self.home),
            "KEEP": "kept",
            "LANG": "C.UTF-8",
            "PATH": f"{os.path.dirname(direnv)}:/usr/bin:/bin",
            "XDG_CACHE_HOME": str(self.home / ".cache"),
            "XDG_CONFIG_HOME": str(self.home / ".config"),
            "XDG_DATA_HOME": str(self.home / ".local" / "share"),
        }

    def close(self) -> None:
        """Remove all folders."""
        shutil.rmtree(self.top, ignore_errors=True)

    def path(self, relative: str | os.PathLike[str]) -> Path:
        """Give a path below the top."""
        return self.top / relative

    def folder(self, relative: str | os.PathLike[str]) -> Path:
        """Give a folder below the top, made when it is missing."""
        path = self.path(relative)
        path.mkdir(parents=True, exist_ok=True)
        return path

    def write(
        self,
        relative: str | os.PathLike[str],
        content: str | bytes,
        *,
        tick: bool = True,
        in_place: bool = False,
    ) -> Path:
        """Write a file; it gets a second of its own, or (not `tick`) its last one.

        It takes its place in one step, as editors do it, so that nobody who watches
        finds it half done; `in_place` writes into it and sets its mtime afterwards.
        """
        path = self.path(relative)
        path.parent.mkdir(parents=True, exist_ok=True)
        data = content.encode() if isinstance(content, str) else content
        if in_place:
            path.write_bytes(data)
            self.stamp(path, tick=tick)
            return path
        fresh = self.top / ".fresh"
        fresh.write_bytes(data)
        if path.exists():
            fresh.chmod(path.stat().st_mode)
        self._stamp(fresh, path, tick=tick)
        os.replace(fresh, path)
        return path

    def stamp(self, relative: str | os.PathLike[str], *, tick: bool = True) -> None:
        """Give a path an mtime: a second of its own, or (not `tick`) its last one."""
        path = self.path(relative)
        self._stamp(path, path, tick=tick)

    def _stamp(self, written: Path, path: Path, *, tick: bool) -> None:
        second = (
            next(self._seconds) if tick or path not in self._kept else self._kept[path]
        )
        self._kept[path] = second
        os.utime(written, (second, second))

    def call(
        self,
        *arguments: str,
        folder: Path | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> reference.Said:
        """Run a direnv command as the person, who has nothing loaded."""
        return reference.run(
            self.direnv,
            *arguments,
            environ=self.environ if environ is None else environ,
            folder=str(folder or self.top),
        )

    def allow(self, relative: str | os.PathLike[str]) -> None:
        """Allow the file of a folder, as the person."""
        said = self.call("allow", folder=self._workspace(relative))
        assert said.code == 0, said.lines

    def deny(self, relative: str | os.PathLike[str]) -> None:
        """Deny the file of a folder; 2.32 only takes its approval away."""
        said = self.call("deny", folder=self._workspace(relative))
        assert said.code == 0, said.lines

    def revoke(self, relative: str | os.PathLike[str]) -> None:
        """Delete the approval of a file as it is now, by hand."""
        self.approval(relative).unlink()

    def approval(self, relative: str | os.PathLike[str]) -> Path:
        """Give where direnv keeps the approval of a file as it is now (case 39)."""
        path = self._file(relative)
        name = sha256(os.fsencode(path) + b"\n" + path.read_bytes()).hexdigest()
        return self.data / "allow" / name

    def denial(self, relative: str | os.PathLike[str]) -> Path:
        """Give where a direnv that has denials keeps the one of a file."""
        name = sha256(os.fsencode(self._file(relative)) + b"\n").hexdigest()
        return self.data / "deny" / name

    def envrc(
        self, relative: str | os.PathLike[str], body: str, *, allow: bool = True
    ) -> Path:
        """Write the `.envrc` of a folder, and allow it."""
        path = self.write(Path(relative) / ".envrc", body)
        if allow:
            self.allow(relative)
        return path

    def toml(self, text: str) -> Path:
        """Write direnv.toml."""
        return self.write(self.config / "direnv.toml", text)

    def _workspace(self, relative: str | os.PathLike[str]) -> Path:
        path = self.path(relative)
        return path if path.is_dir() else path.parent

    def _file(self, relative: str | os.PathLike[str]) -> Path:
        path = self.path(relative)
        return path / ".envrc" if path.is_dir() else path
