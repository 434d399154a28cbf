"""What an installation leaves behind: written whole or not at all, taken back exactly.

A folder has a record of each file's SHA-256 beside the files, a single file has it
in its first line. What has no record is not ours, what differs from its record was
edited: both stay. The record also has the folders that had to be made, so that they
go again when they are empty.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from envwatch.errors import NotWritten, Refused, Unavailable

RECORD = "envwatch.json"
_MARK = "# envwatch: "


def put_folder(folder: Path, fill: Callable[[Path], None]) -> None:
    """Put a folder in its place; `fill` writes into an empty one.

    One of ours that nobody has edited is replaced.

    Raises:
        Refused: something else is there, or it was edited.
        NotWritten: it cannot be written; everything is as it was.
    """
    old = _checked_folder(folder) if os.path.lexists(folder) else None
    with _writing(folder):
        made = _made(folder.parent)
        fresh = None
        try:
            fresh = Path(tempfile.mkdtemp(prefix=".envwatch-", dir=folder.parent))
            fill(fresh)
            record = {
                "files": _digests(fresh),
                "folders": made if old is None else old["folders"],
            }
            (fresh / RECORD).write_text(json.dumps(record, indent=1) + "\n")
            fresh.chmod(0o755)
            _swap(fresh, folder)
        except BaseException:
            if fresh is not None:
                shutil.rmtree(fresh, ignore_errors=True)
            _unmade(made)
            raise


def take_folder(folder: Path) -> None:
    """Take back a folder that `put_folder` has written.

    Raises:
        Unavailable: it is not there.
        Refused: it is not ours, or was edited; it stays.
        NotWritten: it cannot be removed.
    """
    record = _checked_folder(folder)
    with _writing(folder):
        # Out of sight in one step, so that nobody meets half of it.
        gone = Path(tempfile.mkdtemp(prefix=".envwatch-", dir=folder.parent))
        try:
            folder.replace(gone)
        except BaseException:
            gone.rmdir()
            raise
        shutil.rmtree(gone)
        _unmade(record["folders"])


def put_file(path: Path, body: str) -> None:
    """Put a file of Python in its place, as `put_folder` does with a folder."""
    old = _checked_file(path) if os.path.lexists(path) else None
    with _writing(path):
        made = _made(path.parent)
        record = {
            "sha256": sha256(body.encode()).hexdigest(),
            "folders": made if old is None else old["folders"],
        }
        fresh = None
        try:
            descriptor, fresh = tempfile.mkstemp(prefix=".envwatch-", dir=path.parent)
            with open(descriptor, "w", encoding="utf-8") as file:
                file.write(f"{_MARK}{json.dumps(record)}\n{body}")
            Path(fresh).chmod(0o644)
            Path(fresh).replace(path)
        except BaseException:
            if fresh is not None:
                Path(fresh).unlink(missing_ok=True)
            _unmade(made)
            raise


def take_file(path: Path) -> None:
    """Take back a file that `put_file` has written, as `take_folder` does."""
    record = _checked_file(path)
    with _writing(path):
        path.unlink()
        _unmade(record["folders"])


def _checked_folder(folder: Path) -> dict[str, Any]:
    if not os.path.lexists(folder):
        raise Unavailable(f"there is no {folder}: nothing to take back")
    try:
        record = json.loads((folder / RECORD).read_bytes())
        files, folders = record["files"], record["folders"]
        if not isinstance(files, dict) or folder.is_symlink():
            raise TypeError
    except (OSError, ValueError, KeyError, TypeError):
        raise Refused(f"{folder} is not envwatch's: it stays as it is") from None
    try:
        found = _digests(folder)
    except OSError as error:
        raise NotWritten(f"{folder} cannot be read: {error.strerror}") from None
    found.pop(RECORD)
    for name in sorted({*found, *files}):
        if found.get(name) != files.get(name):
            raise Refused(
                f"{folder / name} was changed since: remove or move {folder} by hand"
            )
    return {"folders": _texts(folders)}


def _checked_file(path: Path) -> dict[str, Any]:
    if not os.path.lexists(path):
        raise Unavailable(f"there is no {path}: nothing to take back")
    try:
        if path.is_symlink():
            raise TypeError
        first, _, body = path.read_text(encoding="utf-8").partition("\n")
        record = json.loads(first.removeprefix(_MARK))
        digest, folders = record["sha256"], record["folders"]
    except (OSError, ValueError, KeyError, TypeError):
        raise Refused(f"{path} is not envwatch's: it stays as it is") from None
    if sha256(body.encode()).hexdigest() != digest:
        raise Refused(f"{path} was changed since: remove or move it by hand")
    return {"folders": _texts(folders)}


def _texts(value: object) -> list[str]:
    """Give the strings of a list; a record is a file that anybody can write."""
    return (
        [text for text in value if isinstance(text, str)]
        if isinstance(value, list)
        else []
    )


def _digests(folder: Path) -> dict[str, str]:
    """Give the SHA-256 of each file below a folder; other things by their kind."""
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found[name] = f"link:{os.readlink(path)}"
        elif path.is_file():
            found[name] = sha256(path.read_bytes()).hexdigest()
        elif not path.is_dir():
            found[name] = "other"
    return found


def _swap(fresh: Path, folder: Path) -> None:
    """Put the fresh folder in place of the old one, which is empty of news."""
    old = None
    if os.path.lexists(folder):
        old = Path(tempfile.mkdtemp(prefix=".envwatch-", dir=folder.parent))
        folder.replace(old)
    try:
        fresh.rename(folder)
    except BaseException:
        if old is not None:
            old.rename(folder)
        raise
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)


def _made(folder: Path) -> list[str]:
    """Make a folder and those above it; give those that were not there, deepest last."""
    missing = [
        each for each in (*reversed(folder.parents), folder) if not each.is_dir()
    ]
    made: list[str] = []
    try:
        for each in missing:
            each.mkdir()
            made.append(str(each))
    except BaseException:
        _unmade(made)
        raise
    return made


def _unmade(folders: list[str]) -> None:
    """Remove the folders that were made, as far as they are empty."""
    for folder in reversed(folders):
        with suppress(OSError):
            Path(folder).rmdir()


@contextmanager
def _writing(path: Path) -> Generator[None]:
    """Give an OSError its exit code and its line."""
    try:
        yield
    except (OSError, shutil.Error) as error:
        why = getattr(error, "strerror", None) or "not everything could be copied"
        raise NotWritten(f"{path} cannot be written: {why}") from None
