"""Kept diffs: bounded by bytes, the least recently used go first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from envwatch.core.events import Key, Result, Snapshot
from kernel_client import outcome

NEVER_KEPT = frozenset(
    {outcome.BROKEN, outcome.CANCELLED, outcome.ABSENT, outcome.TIMEOUT}
)
"""Outcomes that say nothing about the next evaluation."""


@dataclass(slots=True)
class Kept:
    """A result with when it ended (monotonic seconds) and its size in bytes.

    `serial` tells it from an earlier result of the same key; `first` is the
    session that was given it first, `shared` whether another one was too.
    """

    key: Key
    result: Result
    ended: float
    size: int
    serial: int
    first: int | None = None
    shared: bool = False

    def give(self, session: int) -> bool:
        """Note that a session is given it; tells whether another one was too."""
        if self.first is None:
            self.first = session
        elif session != self.first:
            self.shared = True
        return self.shared

    def refresh(self, snapshot: Snapshot, wire: bytes) -> None:
        """Go on with a snapshot that differs only in ctimes."""
        self.result = replace(
            self.result, snapshot=snapshot, wire=wire, watched=snapshot
        )


def keepable(result: Result) -> bool:
    """Tell whether a result can be given to a kernel that asks later."""
    return result.snapshot is not None and result.outcome not in NEVER_KEPT


@dataclass(slots=True)
class Diffs:
    """All kept diffs, by key."""

    max_bytes: int
    size: int = 0
    _kept: OrderedDict[Key, Kept] = field(default_factory=OrderedDict[Key, Kept])

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[Kept]:
        return iter(self._kept.values())

    def get(self, key: Key) -> Kept | None:
        """Give what is kept, and count that as a use."""
        kept = self._kept.get(key)
        if kept is not None:
            self._kept.move_to_end(key)
        return kept

    def put(self, kept: Kept) -> list[Key]:
        """Keep one; gives the keys that had to go for it.

        One that is larger than the bound by itself is not kept.
        """
        self.drop(kept.key)
        if kept.size > self.max_bytes:
            return [kept.key]
        self._kept[kept.key] = kept
        self.size += kept.size
        gone: list[Key] = []
        while self.size > self.max_bytes:
            key, old = self._kept.popitem(last=False)
            self.size -= old.size
            gone.append(key)
        return gone

    def drop(self, key: Key) -> None:
        """Forget one, if it is kept."""
        kept = self._kept.pop(key, None)
        if kept is not None:
            self.size -= kept.size

    def drop_root(self, root: str) -> None:
        """Forget all of a root file."""
        for key in [key for key in self._kept if key.root == root]:
            self.drop(key)

    def of_root(self, root: str) -> int:
        """Tell how many are kept of a root file."""
        return sum(key.root == root for key in self._kept)
