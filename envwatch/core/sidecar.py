"""All that the sidecar holds; the hub and what kernels send change it."""

from __future__ import annotations

from dataclasses import dataclass, field

from envwatch.core.answers import Answers
from envwatch.core.counts import Counts
from envwatch.core.diffs import Diffs
from envwatch.core.events import Effect, WatchingState
from envwatch.core.fences import Bounds, Fences
from envwatch.core.session import Sessions
from envwatch.core.watchset import WatchSet
from envwatch.core.workspace import Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the sidecar was started with; times in seconds, sizes in bytes.

    `direnv` is {path, version} or None when there is none to run.
    """

    version: str
    pid: int
    direnv: dict[str, str] | None
    idle_s: float = 3600.0
    sweep_s: float = 30.0
    max_age_s: float = 3600.0
    max_kept_bytes: int = 64 * 1024 * 1024
    precompute: bool = True
    concurrency: int = 1
    fences: Bounds = field(default_factory=Bounds)


class Sidecar:
    """Its state, and what is to be done.

    `started` and `alone_since` (without a session) are monotonic seconds; `out` are
    the effects of the event that is being handled.
    """

    def __init__(self, rules: Rules, now: float) -> None:
        self.rules = rules
        self.started = now
        self.alone_since = now
        self.stopping = False
        self.watching = WatchingState("off")
        self.sessions = Sessions()
        self.counts = Counts()
        self.schedule = Schedule(rules.concurrency)
        self.out: list[Effect] = []
        watchset = WatchSet()
        self.fences = Fences(rules.fences, self.sessions, watchset, self.out)
        self.answers = Answers(
            self.sessions,
            self.schedule,
            Diffs(rules.max_kept_bytes),
            rules.max_age_s,
            rules.precompute,
            self.out,
            watchset,
            self.fences,
        )
