"""What comes into the core, and what it asks for.

An event says what happened, an effect what is to be done. Nothing that can have
a value of an environment variable in it shows in a repr.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

Frame = dict[str, Any]

# The same shapes as in kernel_client.snapshot, which does I/O and so stays out.
Stat = tuple[int, int, int, int, int]
Entry = tuple[str, Stat | None, Stat | None, str | None]
Snapshot = tuple[Entry, ...]


class Key(NamedTuple):
    """What an evaluation depends on: direnv's path, root file, fingerprint."""

    direnv: str
    root: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Result:
    """What an evaluation came to.

    `body` is the JSON of the diff's members that every kernel gets alike, without
    braces and snapshot; `snapshot` is for the kernel (None: ask at every run) and
    `wire` its JSON; `watched` is what tells of a change while the kernel has it
    loaded (None: nothing does), `folders` are those to watch for it; `seconds`
    how long it took, `names` how many variables it sets and unsets.
    """

    outcome: str
    body: bytes = field(repr=False)
    snapshot: Snapshot | None = field(repr=False)
    wire: bytes = field(repr=False)
    watched: Snapshot | None = field(repr=False)
    folders: frozenset[str] = field(repr=False)
    seconds: float
    names: int


@dataclass(frozen=True, slots=True)
class Armed:
    """A fence that was armed for a snapshot, which still held afterwards.

    `frame` is what a kernel is sent with the descriptor; `rest` the part of the
    snapshot that still needs stats.
    """

    number: int
    snapshot: Snapshot = field(repr=False)
    rest: Snapshot = field(repr=False)
    frame: bytes = field(repr=False)
    watches: int


@dataclass(frozen=True, slots=True)
class NotArmed:
    """Why there is no fence: a code of `FenceError` and its message."""

    number: int
    code: str
    message: str


# ---------------------------------------------------------------- events


@dataclass(frozen=True, slots=True)
class Connected:
    """A peer of our own user is there; sessions are numbered from 1.

    `can_pass`: descriptors can be sent to it.
    """

    session: int
    can_pass: bool = False


@dataclass(frozen=True, slots=True)
class Received:
    """A whole frame came."""

    session: int
    frame: Frame = field(repr=False)


@dataclass(frozen=True, slots=True)
class Garbled:
    """Bytes came that are no frame; `code` and `message` are for the peer."""

    session: int
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Closed:
    """The peer is gone."""

    session: int


@dataclass(frozen=True, slots=True)
class Looked:
    """The peer's working folder was looked at (answers `Look`)."""

    session: int
    same: bool


@dataclass(frozen=True, slots=True)
class Compared:
    """A snapshot was compared; None when something changed (answers `Compare`)."""

    key: Key
    snapshot: Snapshot | None = field(repr=False)
    wire: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Lines:
    """direnv said these lines."""

    evaluation: int
    texts: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Evaluated:
    """An evaluation ended (answers `Evaluate`).

    `fence`: what was armed for it, or the code and message of why not; None
    where none was asked for.
    """

    evaluation: int
    result: Result
    fence: Armed | NotArmed | None = None


@dataclass(frozen=True, slots=True)
class Fenced:
    """A fence was armed, or could not be (answers `Arm`)."""

    fence: Armed | NotArmed


@dataclass(frozen=True, slots=True)
class Burnt:
    """A fence tells that something may have changed.

    `wanted_by`: the session that it was to be sent to (answers `Pass`).
    """

    number: int
    wanted_by: int | None = None


@dataclass(frozen=True, slots=True)
class FoldersChanged:
    """Something happened in these folders."""

    folders: frozenset[str]


@dataclass(frozen=True, slots=True)
class Unsure:
    """Events may have been lost: a watcher was (re)built, or its queue overflowed."""


@dataclass(frozen=True, slots=True)
class Mounted:
    """The table of mounts has changed: a path may lead elsewhere."""


@dataclass(frozen=True, slots=True)
class WatchingState:
    """How watching goes: `ok`, `degraded` or `off`, why, and what helps."""

    state: str
    reason: str | None = None
    remedy: str | None = None


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed; comes at least once a second."""


Event = (
    Connected
    | Received
    | Garbled
    | Closed
    | Looked
    | Compared
    | Lines
    | Evaluated
    | Fenced
    | Burnt
    | Mounted
    | FoldersChanged
    | Unsure
    | WatchingState
    | Tick
)

# ---------------------------------------------------------------- effects


@dataclass(frozen=True, slots=True)
class Allowance:
    """Leave to arm a fence: its number, the fewest paths, the most watches."""

    number: int
    min_paths: int
    max_watches: int


@dataclass(frozen=True, slots=True)
class Send:
    """Send these bytes, whole frames, to a peer; `frames`: so many."""

    session: int
    data: bytes = field(repr=False)
    frames: int = 1


@dataclass(frozen=True, slots=True)
class Pass:
    """Send a frame with the descriptor of a fence, if it goes out at once."""

    session: int
    data: bytes = field(repr=False)
    fence: int
    frames: ClassVar[int] = 1


@dataclass(frozen=True, slots=True)
class Close:
    """End a connection after what was sent to it."""

    session: int


@dataclass(frozen=True, slots=True)
class Look:
    """Look whether a folder has this device and inode here too."""

    session: int
    path: str
    dev: str
    ino: str


@dataclass(frozen=True, slots=True)
class Compare:
    """Compare a snapshot with the paths as they are now.

    While the fence of that number is quiet, `rest` says as much.
    """

    key: Key
    snapshot: Snapshot = field(repr=False)
    fence: int | None = None
    rest: Snapshot = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Evaluate:
    """Evaluate a root file; `known` are paths that it was known to watch.

    `fence`: arm one as well, if there is enough to watch.
    """

    evaluation: int
    key: Key
    environment: Mapping[str, str] = field(repr=False)
    known: tuple[str, ...] = field(repr=False)
    waiting: bool
    fence: Allowance | None = None


@dataclass(frozen=True, slots=True)
class Arm:
    """Arm a fence for what a key's snapshot covers."""

    key: Key
    snapshot: Snapshot = field(repr=False)
    fence: Allowance


@dataclass(frozen=True, slots=True)
class Retire:
    """Close a fence; `clear` when kernels may hold it, so that its watches go."""

    number: int
    clear: bool


@dataclass(frozen=True, slots=True)
class Kill:
    """Nobody waits for this evaluation any more."""

    evaluation: int


@dataclass(frozen=True, slots=True)
class Watch:
    """Watch exactly these folders; the same set again: make sure of them."""

    folders: frozenset[str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Log:
    """Log an event; fields never have values or direnv's lines in them."""

    event: str
    fields: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Stop:
    """End the sidecar."""

    reason: str


Effect = (
    Send
    | Pass
    | Close
    | Look
    | Compare
    | Evaluate
    | Kill
    | Arm
    | Retire
    | Watch
    | Log
    | Stop
)
