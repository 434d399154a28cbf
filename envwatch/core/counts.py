"""What kernels counted, added up: how their refreshes were answered."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from envwatch.core.events import Frame
from kernel_client import messages
from kernel_client.errors import ProtocolError

Answered = dict[str, int]
"""How many refreshes were answered, by each of those who can."""


def none_yet() -> Answered:
    """Begin with none."""
    return dict.fromkeys(messages.ANSWERS, 0)


@dataclass(slots=True)
class Counts:
    """Totals since the sidecar began: of all kernels, and of each root file.

    `received` and `sent` are whole frames from and to all who are connected.
    """

    received: int = 0
    sent: int = 0
    total: Answered = field(default_factory=none_yet)
    _by_root: dict[str, Answered] = field(default_factory=dict[str, Answered])

    def take(self, frame: Frame, known: Collection[str]) -> None:
        """Take in what a frame brings along; what it says of no `known` root file is
        counted in the total alone, so that nobody can fill the memory with names.

        Raises:
            ProtocolError: it has another shape; nothing of it was counted.
        """
        if "answered" not in frame or frame["type"] not in messages.COUNTING:
            return
        for root, name, count in list(_read(frame)):
            self.total[name] += count
            if root in known and root is not None:
                self._by_root.setdefault(root, none_yet())[name] += count

    def of_root(self, root: str) -> Answered:
        """Give the totals of a root file."""
        return dict(self._by_root.get(root) or none_yet())

    def keep_only(self, known: Collection[str]) -> None:
        """Forget root files that are not known any more; the total stays."""
        for root in self._by_root.keys() - set(known):
            del self._by_root[root]


def _read(frame: Frame) -> Iterator[tuple[str | None, str, int]]:
    entries = frame["answered"]
    if not isinstance(entries, list):
        raise _misshapen(frame)
    for entry in entries:
        if not isinstance(entry, dict):
            raise _misshapen(frame)
        root = entry.get("root")
        if not isinstance(root, (str, type(None))):
            raise _misshapen(frame)
        for name in messages.ANSWERS:
            count = entry.get(name, 0)
            if isinstance(count, bool) or not isinstance(count, int):
                raise _misshapen(frame)
            if not 0 <= count <= messages.MAX_COUNT:
                raise _misshapen(frame)
            if count:
                yield root, name, count


def _misshapen(frame: Frame) -> ProtocolError:
    return ProtocolError("shape", f"{frame['type']}: answered is of another shape")
