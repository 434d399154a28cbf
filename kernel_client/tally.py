"""How this kernel's refreshes were answered, for whoever watches the sidecar.

Counts wait here until a frame goes out anyway, and travel with it: nothing is ever
sent for them. Without a sidecar they go on waiting, a few numbers for each root file.
"""

from __future__ import annotations

from kernel_client.messages import COUNTING, MAX_COUNT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kernel_client.wire import Frame

MAX_ROOTS = 32
"""Counts of more root files than this go to none of them, so that they stay few."""


class Tally:
    """Counts of refreshes since the sidecar was last told, by root file and answer."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[str | None, dict[str, int]] = {}

    def add(self, root: str | None, answered: str, count: int = 1) -> None:
        """Count refreshes of a root file (None: there was none)."""
        if not count:
            return
        if root not in self._counts and len(self._counts) >= MAX_ROOTS:
            root = None
        counts = self._counts.setdefault(root, {})
        counts[answered] = min(MAX_COUNT, counts.get(answered, 0) + count)

    def join(self, frame: Frame) -> Frame:
        """Give a frame that goes out, with all that was counted where it may have it."""
        if not self._counts or frame["type"] not in COUNTING:
            return frame
        told: list[dict[str, Any]] = [
            {"root": root, **counts} for root, counts in self._counts.items()
        ]
        self.clear()
        return {**frame, "answered": told}

    def clear(self) -> None:
        """Begin again."""
        self._counts.clear()
