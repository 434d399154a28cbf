"""One built watcher: which folders it watches, and what its events mean.

watchfiles reports one name for each inode and knows nothing of folders that were
deleted and made again (NUMBERS.md section 5), so names are kept here.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from watchfiles._rust_notify import RustNotify

STEP_MS = 20
DEBOUNCE_MS = 50

OVERFLOW_CHANGES = 4000
"""A batch of so many means that the queue of inotify overflowed, silently."""

_MODIFIED = 2

Identity = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Changes:
    """What a batch of events means: folders, and whether to rebuild or to doubt."""

    folders: frozenset[str]
    rebuild: bool
    overflow: bool


@dataclass(slots=True)
class Armed:
    """A running watcher for some folders.

    `names` maps each folder that is registered to all wanted names that it stands
    for: the same inode under other names, and missing folders below it.
    """

    wanted: frozenset[str]
    names: dict[str, set[str]]
    identities: dict[str, Identity]
    notify: RustNotify
    stop: threading.Event = field(default_factory=threading.Event)

    @classmethod
    def build(cls, wanted: frozenset[str]) -> Armed:
        """Build and start a watcher. Blocking, some 60 µs for each folder.

        Raises whatever watchfiles raises.
        """
        names: dict[str, set[str]] = {}
        by_identity: dict[Identity, str] = {}
        identities: dict[str, Identity] = {}
        for name in sorted(wanted):
            folder, identity = standing(name)
            registered = by_identity.setdefault(identity, folder)
            names.setdefault(registered, set()).add(name)
            identities[name] = identity
        notify = RustNotify(
            list(names),
            debug=False,
            force_polling=False,
            poll_delay_ms=0,
            recursive=False,
            ignore_permission_denied=False,
        )
        return cls(wanted, names, identities, notify)

    def wait(self) -> Changes | None:
        """Wait for events; None when it was stopped. Blocking.

        Raises:
            WatchfilesRustInternalError: it is dead.
        """
        found = self.notify.watch(DEBOUNCE_MS, STEP_MS, 0, self.stop)
        return None if isinstance(found, str) else self.read(found)

    def read(self, found: Iterable[tuple[int, str]]) -> Changes:
        """Tell what a batch of (kind, path) means."""
        folders: set[str] = set()
        rebuild = False
        count = 0
        for kind, path in found:
            count += 1
            parent = path.rpartition("/")[0] or "/"
            folders |= self.names.get(parent, set())
            folders |= self.names.get(path, set())
            if path in self.wanted:
                folders.add(path)
                rebuild = rebuild or kind != _MODIFIED
            elif kind != _MODIFIED and parent in self.names:
                # An ancestor of a folder that is missing, on its way back.
                prefix = f"{path}/"
                rebuild = rebuild or any(
                    name.startswith(prefix) for name in self.names[parent]
                )
        return Changes(frozenset(folders), rebuild, count >= OVERFLOW_CHANGES)

    def is_true(self) -> bool:
        """Tell whether every name still leads to the folder that is watched."""
        return all(
            standing(name)[1] == identity for name, identity in self.identities.items()
        )

    def close(self) -> None:
        """Stop it; a `wait` ends within a step."""
        self.stop.set()
        self.notify.close()


def standing(folder: str) -> tuple[str, Identity]:
    """Give the folder, or the nearest one above it that is there."""
    while True:
        try:
            seen = Path(folder).stat()
        except OSError:
            if folder in ("/", ""):
                return "/", (0, 0)
            folder = str(Path(folder).parent)
        else:
            return folder, (seen.st_dev, seen.st_ino)


def unwatchable(folder: str) -> str | None:
    """Tell why watchfiles cannot watch a folder, or None."""
    try:
        folder.encode()
    except UnicodeEncodeError:
        return "a folder has a name that is not UTF-8"
    there, _ = standing(folder)
    if not os.access(there, os.R_OK):
        return "a folder may not be read"
    return None


def has_bad_name(folder: str) -> bool:
    """Tell whether a folder has an entry that would kill its watcher."""
    try:
        for name in os.listdir(folder):  # noqa: PTH208 - names alone, of many
            name.encode()
    except UnicodeEncodeError:
        return True
    except OSError:
        pass
    return False
