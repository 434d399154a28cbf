"""Every kind of change that direnv would notice, to a small tree of watched paths."""

from __future__ import annotations

import ctypes
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)
_AT_FDCWD = -100
_EXCHANGE = 2


class Tree:
    """A workspace `w` with each kind of watched path, and things to swap in.

    `watched` are the paths that a snapshot of it has; `.envrc` is the first.
    """

    def __init__(self, base: Path) -> None:
        self.base = base
        self.w = base / "w"
        names = (
            ".envrc",
            "file",
            "folder",
            "folder/inner",
            "folder/inner/entry",
            "empty",
            "sub/deep/file",
            "link",
            "way/deep/other",
            "hard",
            "missing",
        )
        self.watched = [str(self.w / name) for name in names]
        self._written = 0
        self._inside: list[int] = []
        self.w.mkdir(parents=True, exist_ok=True)
        self.mend()
        self._open = os.open(self.w / "held", os.O_RDWR | os.O_CREAT)

    def mend(self) -> None:
        """Put back whatever a change took away."""
        self._leave()
        self._away("w.away", "w")
        for name in (
            "",
            "folder",
            "folder/inner",
            "empty",
            "sub",
            "sub/deep",
            "sub2",
            "sub2/deep",
        ):
            self._is(self.w / name, stat.S_ISDIR, Path.mkdir)
        for name in (
            ".envrc",
            "file",
            "file2",
            "folder/inner/entry",
            "sub/deep/file",
            "sub/deep/other",
            "sub2/deep/other",
            "target",
            "target2",
            "hard",
        ):
            self._is(self.w / name, stat.S_ISREG, self._fill)
        for name, target in (("link", "target"), ("way", "sub")):
            self._is_link(self.w / name, target)
        (self.w / "missing").unlink(missing_ok=True)
        other = self.base / "hard"
        if not other.exists() or not other.samefile(self.w / "hard"):
            other.unlink(missing_ok=True)
            os.link(self.w / "hard", other)
        for each in (self.w / "folder/inner").iterdir():
            if each.name != "entry":
                _remove(each)

    def close(self) -> None:
        """Close what is held open."""
        os.close(self._open)
        self._leave()

    # ------------------------------------------------------------ what can happen

    def write(self) -> None:
        """Write in place, as many bytes as before."""
        self._write(self.w / "file", os.O_WRONLY)

    def append(self) -> None:
        """Append."""
        self._write(self.w / "sub/deep/file", os.O_WRONLY | os.O_APPEND)

    def rewrite(self) -> None:
        """Truncate and write, as editors and shells do."""
        self._write(self.w / "file", os.O_WRONLY | os.O_TRUNC)

    def truncate(self) -> None:
        """Cut it off."""
        os.truncate(self.w / "file", self._number() % 7)
        os.truncate(self.w / "file", 9)

    def allocate(self) -> None:
        """Make room behind its end."""
        file = os.open(self.w / "file", os.O_WRONLY)
        os.posix_fallocate(file, 0, 64 + self._number() % 64)
        os.close(file)
        os.utime(self.w / "file")

    def send_file(self) -> None:
        """Have the kernel copy bytes into it."""
        self._fill(self.w / "file2")
        source = os.open(self.w / "file2", os.O_RDONLY)
        target = os.open(self.w / "file", os.O_WRONLY)
        os.sendfile(target, source, 0, 8)
        os.close(source)
        os.close(target)

    def copy_range(self) -> None:
        """The same by another call."""
        self._fill(self.w / "file2")
        source = os.open(self.w / "file2", os.O_RDONLY)
        target = os.open(self.w / "file", os.O_WRONLY)
        os.copy_file_range(source, target, 8)
        os.close(source)
        os.close(target)

    def touch(self) -> None:
        """Another mtime, earlier or later."""
        when = 1_700_000_000_000_000_000 + self._number() * 1_000_003
        os.utime(self.w / "file", ns=(when, when))

    def touch_folder(self) -> None:
        """The same for a watched folder."""
        when = 1_700_000_000_000_000_000 + self._number() * 1_000_003
        os.utime(self.w / "folder/inner", ns=(when, when))

    def replace(self) -> None:
        """Rename another one over it, as careful editors do."""
        self._fill(self.w / "new")
        (self.w / "new").rename(self.w / "file")

    def replace_root(self) -> None:
        """The same for the root file."""
        self._fill(self.w / "new")
        (self.w / "new").rename(self.w / ".envrc")

    def edit_root(self) -> None:
        """Write the root file in place."""
        self._write(self.w / ".envrc", os.O_WRONLY)

    def exchange(self) -> None:
        """Swap two files in one step."""
        self._fill(self.w / "file2")
        _exchange(self.w / "file", self.w / "file2")

    def exchange_folders(self) -> None:
        """Swap two folders above a watched path in one step."""
        self._fill(self.w / "sub2/deep/file")
        _exchange(self.w / "sub", self.w / "sub2")

    def delete(self) -> None:
        """Delete one."""
        (self.w / "sub/deep/file").unlink()

    def become_folder(self) -> None:
        """A folder in place of a file."""
        (self.w / "file").unlink()
        (self.w / "file").mkdir()

    def become_link(self) -> None:
        """A link in place of a file."""
        (self.w / "file").unlink()
        (self.w / "file").symlink_to("file2")

    def by_hard_link(self) -> None:
        """Write through a name that nobody watches."""
        self._write(self.base / "hard", os.O_WRONLY)

    def by_open_file(self) -> None:
        """Write through a descriptor that was open all the time."""
        os.pwrite(self._open, b"%8d" % self._number(), 0)
        (self.w / "held").rename(self.w / "file")
        os.close(self._open)
        self._open = os.open(self.w / "held", os.O_RDWR | os.O_CREAT)

    def appear(self) -> None:
        """What was missing is there."""
        self._fill(self.w / "missing")

    def add_entry(self) -> None:
        """A file more in a watched folder."""
        self._fill(self.w / "folder/inner/more")

    def add_folder(self) -> None:
        """A folder more in it."""
        (self.w / "folder/inner/deeper").mkdir()

    def move_in(self) -> None:
        """Something moves into it."""
        self._fill(self.w / "new")
        (self.w / "new").rename(self.w / "folder/inner/moved")

    def move_out(self) -> None:
        """An entry that is watched moves out of it."""
        (self.w / "folder/inner/entry").rename(self.w / "moved")

    def relink(self) -> None:
        """A link leads elsewhere."""
        (self.w / "new").symlink_to("target2")
        (self.w / "new").rename(self.w / "link")

    def write_target(self) -> None:
        """What a link leads to is written."""
        self._write(self.w / "target", os.O_WRONLY)

    def replace_target(self) -> None:
        """What a link leads to is replaced."""
        self._fill(self.w / "new")
        (self.w / "new").rename(self.w / "target")

    def delete_target(self) -> None:
        """A link dangles."""
        (self.w / "target").unlink()

    def relink_way(self) -> None:
        """A link on the way to a watched path leads elsewhere."""
        (self.w / "new").symlink_to("sub2")
        (self.w / "new").rename(self.w / "way")

    def move_folder(self) -> None:
        """A folder above is renamed."""
        (self.w / "sub").rename(self.w / "gone")

    def replace_folder(self) -> None:
        """A folder above is another one, with the same names in it."""
        (self.w / "sub").rename(self.w / "gone")
        shutil.copytree(self.w / "gone", self.w / "sub")

    def move_workspace(self) -> None:
        """The whole workspace is renamed."""
        self.w.rename(self.base / "w.away")

    def remove_folder(self) -> None:
        """A watched folder goes, and another comes, while somebody is in it."""
        self._enter("folder", "folder/inner")
        shutil.rmtree(self.w / "folder")
        (self.w / "folder/inner").mkdir(parents=True)

    def remove_empty(self) -> None:
        """The same for one that has no entries, which tells nothing."""
        self._enter("empty")
        (self.w / "empty").rmdir()
        (self.w / "empty").mkdir()

    # ------------------------------------------------------------ within

    def _enter(self, *names: str) -> None:
        """Be in these, until the next that is removed, or until all is mended."""
        self._leave()
        for name in names:
            self._inside.append(os.open(self.w / name, os.O_RDONLY))

    def _leave(self) -> None:
        while self._inside:
            os.close(self._inside.pop())

    def _number(self) -> int:
        self._written += 1
        return self._written

    def _write(self, path: Path, flags: int) -> None:
        file = os.open(path, flags)
        os.write(file, b"%8d" % self._number())
        os.close(file)

    def _fill(self, path: Path) -> None:
        self._write_new(path)

    def _write_new(self, path: Path) -> None:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.write(file, b"%8d" % self._number())
        os.close(file)

    def _is(
        self, path: Path, kind: Callable[[int], bool], make: Callable[[Path], None]
    ) -> None:
        try:
            mode = path.lstat().st_mode
        except OSError:
            make(path)
            return
        if not kind(mode):
            _remove(path)
            make(path)

    def _is_link(self, path: Path, target: str) -> None:
        if not path.is_symlink() or str(path.readlink()) != target:
            _remove(path)
            path.symlink_to(target)

    def _away(self, away: str, name: str) -> None:
        if (self.base / away).exists():
            _remove(self.base / name)
            (self.base / away).rename(self.base / name)
        for each in ("gone", "new", "moved"):
            _remove(self.base / name / each)


CHANGES = tuple(
    name
    for name, value in vars(Tree).items()
    if callable(value) and not name.startswith("_") and name not in ("mend", "close")
)
"""Names of all of them."""

WHOLE = frozenset(
    {
        "write",
        "append",
        "rewrite",
        "truncate",
        "allocate",
        "send_file",
        "copy_range",
        "touch",
        "touch_folder",
        "replace",
        "replace_root",
        "edit_root",
        "exchange",
        "by_hard_link",
        "by_open_file",
        "write_target",
        "replace_target",
    }
)
"""Those that leave nothing to mend."""


def _exchange(one: Path, other: Path) -> None:
    names = (os.fsencode(one), _AT_FDCWD, os.fsencode(other))
    if _libc.renameat2(_AT_FDCWD, *names, _EXCHANGE) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
