"""What one `refresh()` did, without any value of a variable."""

from __future__ import annotations

UNCHANGED = "unchanged"
UNLOADED = "unloaded"
OFF = "off"

STATS = "stats"
RECORD = "record"
SIDECAR = "sidecar"
DIRENV = "direnv"
NOBODY = "none"


class Result:
    """What a refresh came to.

    outcome
        `unchanged`, `unloaded`, `off` (no direnv), or the outcome of an
        evaluation: `loaded`, `blocked`, `denied`, `failed`, `degraded`,
        `timeout`, `cancelled`, `broken`, `absent`.
    root_file
        Path of the root file that the environment now comes from, or None.
    set_names, unset_names
        Names that this refresh set or removed in the environment, sorted,
        without the four `DIRENV_*` of direnv's own.
    messages
        The lines that were shown.
    answered
        Who answered: `stats` (nothing had changed), `record` (taken back from
        memory), `sidecar`, `direnv`, or `none`.
    seconds
        How long the refresh took; 0.0 for `unchanged` by stats, which takes no
        time to measure time.
    """

    __slots__ = (
        "answered",
        "messages",
        "outcome",
        "root_file",
        "seconds",
        "set_names",
        "unset_names",
    )

    def __init__(
        self,
        outcome: str,
        root_file: str | None = None,
        *,
        names: tuple[tuple[str, ...], tuple[str, ...]] = ((), ()),
        answered: str = NOBODY,
    ) -> None:
        self.outcome = outcome
        self.root_file = root_file
        self.set_names, self.unset_names = names
        self.messages: tuple[str, ...] = ()
        self.answered = answered
        self.seconds = 0.0

    def __repr__(self) -> str:
        return (
            f"<Result {self.outcome}: root_file={self.root_file!r},"
            f" {len(self.set_names)} set, {len(self.unset_names)} unset,"
            f" answered={self.answered}, {self.seconds:.4f} s>"
        )
