"""Workspaces: who waits for which evaluation, and which one runs next.

One evaluation at a time for each root file, a bounded number over all; kernels
that wait go before precomputing. Any number of changes during a run costs one
more run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from envwatch.core.events import Key

FREE_RUNS = 8
"""So many precomputed runs may follow each other closely: a person edits so."""

FIRST_DELAY_S = 1.0
LAST_DELAY_S = 30.0


class Waiter(NamedTuple):
    """An export that waits: its session and its id."""

    session: int
    number: int


Waiters = dict[Waiter, None]


@dataclass(slots=True)
class Evaluation:
    """One that runs.

    `late`: those who joined when it ran already; `lines`: what direnv said so far,
    as JSON; `told`: how many of them were sent to those who wait; `killed`: nobody
    waited any more, so its result counts for nobody;
    `forgotten`: a reload came after it had begun, so its result is not kept;
    `dirty`: something under it may have changed since it began.
    """

    number: int
    key: Key
    started: float
    waiters: Waiters
    precomputed: bool
    late: set[Waiter] = field(default_factory=set[Waiter])
    lines: list[bytes] = field(default_factory=list[bytes], repr=False)
    told: int = 0
    killed: bool = False
    forgotten: bool = False
    dirty: bool = False

    @property
    def joinable(self) -> bool:
        """Whether its result may be given to somebody who asks now."""
        return not self.killed and not self.forgotten


@dataclass(slots=True)
class Last:
    """The last evaluation of a workspace; `ended` in monotonic seconds.

    `served`: how many waited for it; `shared_by`: how many kernels were given what
    it came to, then or later. `serial` is that of its result.
    """

    outcome: str
    seconds: float
    ended: float
    served: int
    serial: int
    shared_by: int = 0


@dataclass(slots=True)
class Workspace:
    """What is going on for one root file.

    `wanted` are keys to be precomputed; `unwanted` those whose evaluation somebody
    gave up: a kernel that was interrupted, say.
    """

    root: str
    running: Evaluation | None = None
    waiting: dict[Key, Waiters] = field(default_factory=dict[Key, Waiters])
    wanted: dict[Key, None] = field(default_factory=dict[Key, None])
    unwanted: set[Key] = field(default_factory=set[Key])
    known: tuple[str, ...] = field(default=(), repr=False)
    last: Last | None = None
    left_at: float | None = None
    due: float = 0.0
    _delay: float = 0.0
    _close: int = 0
    _ran: float | None = None

    @property
    def state(self) -> str:
        """`idle`, `running`, or `dirty`: one more run will follow this one."""
        if self.running is None:
            return "dirty" if self.waiting or self.wanted else "idle"
        if self.running.dirty or self.waiting or self.wanted:
            return "dirty"
        return "running"

    def join(self, key: Key, waiter: Waiter) -> Evaluation | None:
        """Wait for an evaluation of a key; gives the one that runs already."""
        running = self.running
        if running is not None and running.key == key and running.joinable:
            running.waiters[waiter] = None
            running.late.add(waiter)
            return running
        self.wanted.pop(key, None)
        self.unwanted.discard(key)
        self.waiting.setdefault(key, {})[waiter] = None
        return None

    def leave(self, key: Key, waiter: Waiter) -> Evaluation | None:
        """Wait no more; gives the evaluation that nobody waits for now."""
        queued = self.waiting.get(key)
        if queued is not None and waiter in queued:
            del queued[waiter]
            if not queued:
                del self.waiting[key]
            return None
        running = self.running
        if running is None or waiter not in running.waiters:
            return None
        del running.waiters[waiter]
        if running.waiters or running.killed:
            return None
        running.killed = True
        # Somebody gave it up: it is not begun again before somebody asks again,
        # who would be held by it once more.
        self.unwanted.add(key)
        return running

    def want(self, key: Key, now: float) -> None:
        """Ask for a precomputed evaluation of a key that has changed.

        A file that something writes again and again must not loop: after
        `FREE_RUNS`, a change that is found right after a precomputed run of the
        file delays the next one, for longer each time.
        """
        if key in self.waiting or key in self.wanted or key in self.unwanted:
            return
        running = self.running
        if running is not None and running.key == key and running.joinable:
            # The change is found to be one when it has ended.
            running.dirty = True
            return
        self.wanted[key] = None
        if self._ran is None or now - self._ran >= max(FIRST_DELAY_S, self._delay):
            self._close, self._delay = 0, 0.0
        else:
            self._close += 1
            if self._close > FREE_RUNS:
                self._delay = min(LAST_DELAY_S, max(FIRST_DELAY_S, self._delay * 2))
        self.due = now if self._ran is None else max(now, self._ran + self._delay)

    def precomputed(self, now: float, *, ran: bool) -> None:
        """Note the end of a precomputed evaluation, and whether the file ran."""
        self._ran = now if ran else None

    def next(self, now: float, *, precompute: bool) -> tuple[Key, Waiters] | None:
        """Take what is to run next, those that wait first; None: nothing now."""
        if self.running is not None:
            return None
        if self.waiting:
            key = next(iter(self.waiting))
            self.wanted.pop(key, None)
            return key, self.waiting.pop(key)
        if precompute and self.wanted and self.due <= now:
            key = next(iter(self.wanted))
            del self.wanted[key]
            return key, {}
        return None


@dataclass(slots=True)
class Schedule:
    """All workspaces, and what runs in them."""

    concurrency: int
    workspaces: dict[str, Workspace] = field(default_factory=dict[str, Workspace])
    running: dict[int, Evaluation] = field(default_factory=dict[int, Evaluation])
    started: int = 0
    _asking: dict[str, None] = field(default_factory=dict[str, None])
    _wanting: dict[str, None] = field(default_factory=dict[str, None])

    def of(self, root: str) -> Workspace:
        """Give the workspace of a root file, made when it is new."""
        found = self.workspaces.get(root)
        if found is None:
            found = self.workspaces[root] = Workspace(root)
        return found

    def join(self, key: Key, waiter: Waiter) -> Evaluation | None:
        """Wait for an evaluation; gives the one that runs already."""
        running = self.of(key.root).join(key, waiter)
        if running is None:
            self._asking[key.root] = None
        return running

    def want(self, key: Key, now: float) -> None:
        """Ask for a precomputed evaluation."""
        self.of(key.root).want(key, now)
        self._wanting[key.root] = None

    def start(self, now: float) -> Iterator[Evaluation]:
        """Start what can be started now, as long as there is room."""
        while len(self.running) < self.concurrency:
            evaluation = self._start(self._asking, now, precompute=False)
            if evaluation is None and self._has_room_to_precompute():
                evaluation = self._start(self._wanting, now, precompute=True)
            if evaluation is None:
                return
            yield evaluation

    def end(self, number: int) -> Evaluation | None:
        """Take an evaluation that has ended out of what runs."""
        evaluation = self.running.pop(number, None)
        if evaluation is not None:
            self.workspaces[evaluation.key.root].running = None
        return evaluation

    def _has_room_to_precompute(self) -> bool:
        # One place stays free for kernels that wait, where there are several.
        precomputing = sum(not each.waiters for each in self.running.values())
        return precomputing < max(1, self.concurrency - 1)

    def _start(
        self, roots: dict[str, None], now: float, *, precompute: bool
    ) -> Evaluation | None:
        for root in list(roots):
            workspace = self.of(root)
            if not (workspace.wanted if precompute else workspace.waiting):
                del roots[root]
                continue
            found = workspace.next(now, precompute=precompute)
            if found is None:
                continue
            # To the end: roots take turns.
            del roots[root]
            roots[root] = None
            key, waiters = found
            self.started += 1
            evaluation = Evaluation(self.started, key, now, waiters, not waiters)
            workspace.running = evaluation
            self.running[evaluation.number] = evaluation
            return evaluation
        return None
