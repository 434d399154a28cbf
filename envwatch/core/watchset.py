"""Which snapshots are in use, and which folders tell of their changes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from envwatch.core.events import Key, Snapshot


@dataclass(frozen=True, slots=True)
class Watched:
    """What a loaded key looked like, and the folders that tell of a change."""

    snapshot: Snapshot
    folders: frozenset[str]


@dataclass(slots=True)
class WatchSet:
    """Snapshots in use by key, and the folders of all of them together."""

    _watched: dict[Key, Watched] = field(default_factory=dict[Key, Watched])
    _keys: dict[str, set[Key]] = field(default_factory=dict[str, set[Key]])
    _told: frozenset[str] = frozenset()
    _moved: bool = False

    def __contains__(self, key: Key) -> bool:
        return key in self._watched

    def get(self, key: Key) -> Watched | None:
        """Give what is watched for a key."""
        return self._watched.get(key)

    def put(self, key: Key, snapshot: Snapshot, folders: frozenset[str]) -> None:
        """Watch for a key, in place of what was watched for it before."""
        old = self._watched.get(key)
        self._watched[key] = Watched(snapshot, folders)
        if old is not None and old.folders == folders:
            return
        for folder in folders:
            if folder not in self._keys:
                self._keys[folder] = set()
                self._moved = True
            self._keys[folder].add(key)
        if old is not None:
            self._forget(key, old.folders - folders)

    def remove(self, key: Key) -> None:
        """Watch for a key no more."""
        old = self._watched.pop(key, None)
        if old is not None:
            self._forget(key, old.folders)

    def touched(self, folders: Iterable[str]) -> list[Key]:
        """Give the keys that a change in one of these folders may concern."""
        found: dict[Key, None] = {}
        for folder in folders:
            found.update(dict.fromkeys(self._keys.get(folder, ())))
        return list(found)

    def keys(self) -> list[Key]:
        """Give all keys that are watched for."""
        return list(self._watched)

    @property
    def folders(self) -> frozenset[str]:
        """All folders to watch."""
        return frozenset(self._keys)

    def changed(self) -> frozenset[str] | None:
        """Give the folders when they are not those that were given last."""
        if not self._moved:
            return None
        self._moved = False
        if self._keys.keys() == self._told:
            return None
        self._told = frozenset(self._keys)
        return self._told

    def _forget(self, key: Key, folders: Iterable[str]) -> None:
        for folder in folders:
            keys = self._keys[folder]
            keys.discard(key)
            if not keys:
                del self._keys[folder]
                self._moved = True
