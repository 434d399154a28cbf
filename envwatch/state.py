"""What state a workspace is in, by direnv's own word.

Whether a file may load is only ever direnv's answer (`direnv status`). What is
added here: why nothing can be loaded where direnv passes over a file in silence,
and whether a blocked file is new or has changed since it was allowed, which
direnv's allow store tells: it has an entry for the path, but not for the content.
"""

from __future__ import annotations

import os
import stat as mode_bits
from collections.abc import Iterable, Iterator, Mapping, Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path  # noqa: TID251 - not of the core: it looks at files

from kernel_client import direnv as program, environment as env, record, roots

DENIALS_SINCE = (2, 33)
"""The first direnv that keeps denials; an older one only takes the approval away."""


class State(StrEnum):
    """What direnv would do with the root file of a folder."""

    ALLOWED = "allowed"
    NEW = "blocked: new"
    CHANGED = "blocked: changed"
    DENIED = "denied"
    NONE = "none"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """A folder with its root file, the state of that, and what else to know.

    `folder` is absolute and without links; `root` is None where there is no root
    file; `notes` are lines for the person.
    """

    folder: str
    root: str | None
    state: State
    notes: tuple[str, ...] = ()


def base(environ: Mapping[str, str]) -> dict[str, str]:
    """Give an environment with everything that direnv loaded taken back.

    A shell that calls may have an `.envrc` loaded that sets HOME or XDG_DATA_HOME;
    direnv must look for its allow store where it did before.
    """
    inherited = record.inherited(environ)
    return env.take_back(environ, None if inherited is None else inherited.put_back)


def look(
    direnv: str, folder: str, environ: Mapping[str, str], *, version: str = ""
) -> Workspace:
    """Give the state of a folder's workspace; `environ` is a base.

    `direnv` is its absolute path, `folder` absolute and without links, `version`
    what direnv says its version is.

    Raises:
        DirenvError: direnv gives no answer.
    """
    skipped = _skipped(folder)
    hanging = next((path for path, is_hanging in skipped if is_hanging), None)
    if hanging is not None:
        # direnv would wait in open() for ever, as every refresh would.
        note = f"{hanging} is no regular file; direnv would hang: move it away"
        return Workspace(
            folder=folder, root=hanging, state=State.UNREADABLE, notes=(note,)
        )
    found = program.status(direnv, folder, environ)
    notes = [
        f"{path} cannot be read as a file, so direnv passes over it"
        for path, _ in skipped
    ]
    if found.root is None or found.allowed is None:
        state = State.UNREADABLE if skipped else State.NONE
        root = skipped[0][0] if skipped else None
        return Workspace(folder=folder, root=root, state=state, notes=tuple(notes))
    root = _found(found.root, folder)
    state = _state(found.allowed, root, environ)
    if state in (State.NEW, State.CHANGED) and not _keeps_denials(version):
        notes.append(f"direnv {version} cannot tell denied from blocked")
    return Workspace(folder=folder, root=root, state=state, notes=tuple(notes))


def was_allowed(root: str, environ: Mapping[str, str]) -> bool:
    """Tell whether the allow store has an entry for this path, of any content."""
    return next(approvals([root], environ), None) is not None


def approvals(paths: Iterable[str], environ: Mapping[str, str]) -> Iterator[str]:
    """Name the allow store's entries for these paths, of any content."""
    store = allow_store(environ)
    wanted = {os.fsencode(path) + b"\n" for path in paths}
    sizes = {len(entry) for entry in wanted}
    if store is None:
        return
    try:
        with os.scandir(store) as entries:
            for each in entries:
                if _entry(Path(each.path), sizes) in wanted:
                    yield each.name
    except OSError:
        return


def allow_store(environ: Mapping[str, str]) -> Path | None:
    """Give the folder of direnv's approvals, or None when there can be none."""
    data = environ.get("XDG_DATA_HOME")
    if data:
        return Path(data, "direnv", "allow")
    home = environ.get("HOME")
    return Path(home, ".local", "share", "direnv", "allow") if home else None


def _entry(path: Path, sizes: AbstractSet[int]) -> bytes | None:
    try:
        return path.read_bytes() if path.stat().st_size in sizes else None
    except OSError:
        return None


def _state(allowed: int, root: str, environ: Mapping[str, str]) -> State:
    if allowed == 0:
        return State.ALLOWED
    if allowed != 1:
        return State.DENIED
    return State.CHANGED if was_allowed(root, environ) else State.NEW


def _found(said: str, folder: str) -> str:
    """Give the path of the root file that direnv has found.

    What it prints has replaced bytes that are no UTF-8, and the text of 2.32 ends
    at a newline; then the file is the one that a kernel would find.
    """
    seen = (roots.walk(folder, dotenv=dotenv).root for dotenv in (False, True))
    nearest = [path for path in seen if path is not None]
    return said if said in nearest or not nearest else nearest[0]


def _keeps_denials(version: str) -> bool:
    numbers = [int(part) for part in version.split(".")[:2] if part.isdigit()]
    # A version that cannot be read is one of somebody's own building: a new one.
    return not numbers or tuple(numbers) >= DENIALS_SINCE


def _skipped(folder: str) -> list[tuple[str, bool]]:
    """Give each `.envrc` that is there but cannot load, and whether it would hang."""
    seen = roots.walk(folder, dotenv=False)
    return [(entry[0], _hangs(entry[0])) for entry in seen.present]


def _hangs(path: str) -> bool:
    try:
        mode = Path(path).stat().st_mode
    except OSError:
        return False
    return mode_bits.S_ISFIFO(mode)
