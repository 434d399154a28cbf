"""From an export to its diff: kept, checked, joined or evaluated.

Before a kept diff is handed out its snapshot is compared; all who wait for one
key share that comparison, or the evaluation that follows when something changed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from envwatch.core import frames
from envwatch.core.bases import Bases
from envwatch.core.diffs import Diffs, Kept, keepable
from envwatch.core.events import (
    Armed,
    Compare,
    Effect,
    Evaluate,
    Key,
    Kill,
    Log,
    NotArmed,
    Result,
    Send,
    Snapshot,
)
from envwatch.core.fences import Fences
from envwatch.core.session import Session, Sessions
from envwatch.core.watchset import WatchSet
from envwatch.core.workspace import Evaluation, Last, Schedule, Waiter, Waiters
from kernel_client import outcome
from kernel_client.wire import MAX_FRAME_BYTES

_FRAME_ROOM_BYTES = 1024

_NOT_RUN = frozenset({outcome.BLOCKED, outcome.DENIED, outcome.ABSENT})
"""Outcomes of evaluations in which the file itself did not run."""

HUSH_S = 0.2
"""Lines of an evaluation that ends sooner are not sent before its diff."""


@dataclass(slots=True)
class Check:
    """A comparison that is under way.

    `by_stat`: it believes no fence; `again` when it may have begun too early, and
    `again_by_stat` when the next one is not to believe a fence either; `later` are
    those who cannot be answered by this one.
    """

    snapshot: Snapshot = field(repr=False)
    by_stat: bool = True
    waiters: Waiters = field(default_factory=dict[Waiter, None])
    later: Waiters = field(default_factory=dict[Waiter, None])
    again: bool = False
    again_by_stat: bool = False


@dataclass(slots=True)
class Answers:
    """Who waits for what, and what is kept. Effects are appended to `out`."""

    sessions: Sessions
    schedule: Schedule
    diffs: Diffs
    max_age_s: float
    precompute: bool
    out: list[Effect]
    watchset: WatchSet
    fences: Fences
    bases: Bases = field(default_factory=Bases)
    _checks: dict[Key, Check] = field(default_factory=dict[Key, Check])
    _untold: set[Key] = field(default_factory=set[Key])
    _serial: int = 0

    # ------------------------------------------------------------ asking

    def ask(self, session: Session, number: int, key: Key, now: float) -> None:
        """Have an export answered, now or later; its base is known."""
        kept = self.diffs.get(key)
        if kept is not None and not self._may_have(session, kept, now):
            self.diffs.drop(key)
            kept = None
        waiter = Waiter(session.number, number)
        if kept is None or kept.result.snapshot is None:
            self._join(key, waiter, now)
            return
        # Who asks again for what it was given has seen something move, and may have
        # seen what no fence tells of.
        by_stat = session.given.get(key) == kept.serial
        check = self._check(key, kept.result.snapshot, by_stat=by_stat)
        waiting = check.later if by_stat and not check.by_stat else check.waiters
        waiting[waiter] = None

    def leave(self, key: Key, waiter: Waiter) -> None:
        """Wait no more; an evaluation that nobody waits for is killed."""
        check = self._checks.get(key)
        if check is not None:
            check.waiters.pop(waiter, None)
            check.later.pop(waiter, None)
        self._tell_rest(key)
        unwanted = self.schedule.of(key.root).leave(key, waiter)
        if unwanted is not None:
            self.out.append(Kill(unwanted.number))

    def start(self, now: float) -> None:
        """Start the evaluations that there is room for."""
        for each in self.schedule.start(now):
            self.out.append(
                Evaluate(
                    each.number,
                    each.key,
                    self.bases.get(each.key.fingerprint) or {},
                    self.schedule.of(each.key.root).known,
                    bool(each.waiters),
                    self.fences.allowance(each.key, now),
                )
            )

    def _may_have(self, session: Session, kept: Kept, now: float) -> bool:
        is_young = now - kept.ended <= self.max_age_s
        return is_young or session.given.get(kept.key) == kept.serial

    def _join(self, key: Key, waiter: Waiter, now: float) -> None:
        running = self.schedule.join(key, waiter)
        if running is not None and running.told:
            lines = running.lines[: running.told]
            data = frames.said(waiter.number, now - running.started, lines)
            self.out.append(Send(waiter.session, data, len(lines)))

    # ------------------------------------------------------------ checking

    def check(self, key: Key, *, by_stat: bool = False) -> None:
        """Find out whether what is watched for a key has changed.

        A quiet fence is believed, but for what no event tells: `by_stat`.
        """
        watched = self.watchset.get(key)
        if watched is None:
            return
        running = self.schedule.of(key.root).running
        if running is not None and running.key == key:
            running.dirty = True
            return
        check = self._checks.get(key)
        if check is not None:
            check.again = True
            check.again_by_stat |= by_stat
            return
        self._check(key, watched.snapshot, by_stat=by_stat)

    def compared(
        self, key: Key, snapshot: Snapshot | None, wire: bytes, now: float
    ) -> None:
        """Go on after a comparison."""
        check = self._checks.pop(key, None)
        if check is None:
            return
        kept = self.diffs.get(key)
        is_current = kept is not None and kept.result.snapshot == check.snapshot
        if snapshot is None:
            self._changed(key, check, now, drop=is_current)
            for waiter in (*check.waiters, *check.later):
                self._again(waiter, key, now)
            return
        if snapshot != check.snapshot:
            self._touched(key, check.snapshot, snapshot)
            if kept is not None and is_current:
                kept.refresh(snapshot, wire)
        for waiter in check.waiters:
            if kept is not None and is_current:
                self._give(kept, waiter, now)
            else:
                self._again(waiter, key, now)
        for waiter in check.later:
            self._again(waiter, key, now)
        if check.again:
            self.check(key, by_stat=check.again_by_stat)

    def _touched(self, key: Key, before: Snapshot, now: Snapshot) -> None:
        """Watch for a snapshot that differs only in ctimes."""
        watched = self.watchset.get(key)
        if watched is not None and watched.snapshot == before:
            self.watchset.put(key, now, watched.folders)

    def _check(self, key: Key, snapshot: Snapshot, *, by_stat: bool = False) -> Check:
        check = self._checks.get(key)
        if check is None:
            fence = None if by_stat else self.fences.get(key, snapshot)
            check = self._checks[key] = Check(snapshot, fence is None)
            if fence is None:
                self.out.append(Compare(key, snapshot))
            else:
                self.out.append(Compare(key, snapshot, fence.number, fence.armed.rest))
        return check

    def _again(self, waiter: Waiter, key: Key, now: float) -> None:
        session = self.sessions.get(waiter.session)
        if session is not None and waiter.number in session.pending:
            self.ask(session, waiter.number, key, now)

    def _changed(self, key: Key, check: Check, now: float, *, drop: bool) -> None:
        """Tell who has it loaded, and have the next diff ready when they ask."""
        watched = self.watchset.get(key)
        if drop:
            self.diffs.drop(key)
        if watched is None or watched.snapshot != check.snapshot:
            return
        self._untold.add(key)
        if check.waiters or check.later:
            # One of a herd has asked, and the rest is about to: a notice now would
            # only wake each of them once more. It comes with the diff.
            return
        self._tell_rest(key)
        if self.precompute:
            self.schedule.want(key, now)

    def _tell_rest(self, key: Key, serial: int | None = None) -> None:
        """Send the notice that is due to those who have not asked meanwhile.

        `serial` is that of the newest diff: who has it needs none.
        """
        if key not in self._untold:
            return
        self._untold.remove(key)
        for session in self.sessions.having(key):
            is_asking = any(each.key == key for each in session.pending.values())
            if not is_asking and (serial is None or session.given.get(key) != serial):
                self.tell(session, key.root, "files")

    def tell(self, session: Session, root: str, reason: str) -> None:
        """Send a notice, unless one of that reason is outstanding."""
        if reason not in session.told:
            session.told.add(reason)
            self.out.append(Send(session.number, frames.changed(root, reason)))

    # ------------------------------------------------------------ evaluating

    def lines(self, number: int, texts: tuple[str, ...], now: float) -> None:
        """Pass lines on to those that wait."""
        running = self.schedule.running.get(number)
        if running is None:
            return
        running.lines += [frames.line(text) for text in texts]
        self.tell_lines(running, now)

    def tell_lines(self, running: Evaluation, now: float) -> None:
        """Send what was said to those that wait, once it is worth their while.

        The lines of a short evaluation come with its diff: frames of their own
        would wake every kernel once more.
        """
        elapsed_s = now - running.started
        lines = running.lines[running.told :]
        if elapsed_s < HUSH_S or not lines:
            return
        running.told = len(running.lines)
        for waiter in running.waiters:
            data = frames.said(waiter.number, elapsed_s, lines)
            self.out.append(Send(waiter.session, data, len(lines)))

    def evaluated(
        self,
        number: int,
        result: Result,
        fence: Armed | NotArmed | None,
        now: float,
    ) -> None:
        """Keep a result, and give it to those that wait for it."""
        ended = self.schedule.end(number)
        if fence is not None:
            is_used = ended is not None and ended.joinable
            self.fences.armed_anew(fence, now, is_used=is_used)
        if ended is None:
            return
        key = ended.key
        workspace = self.schedule.of(key.root)
        self._serial += 1
        size = len(result.body) + len(result.wire) + self.bases.size_of(key.fingerprint)
        kept = Kept(key, result, now, size, self._serial)
        if ended.killed:
            # Nobody waited when it was ended, so it says nothing.
            workspace.last = Last(result.outcome, result.seconds, now, 0, kept.serial)
            self._log(ended, result)
            self._tell_rest(key)
            return
        if result.snapshot is not None:
            workspace.known = tuple(entry[0] for entry in result.snapshot)
        if not ended.forgotten:
            self.diffs.drop(key)
            if keepable(result):
                self.diffs.put(kept)
        if self.sessions.is_loaded(key):
            self.watch(key, result)
        if ended.precomputed:
            workspace.precomputed(now, ran=result.outcome not in _NOT_RUN)
        kept.shared = len(ended.waiters) > 1
        served = len(ended.waiters)
        workspace.last = Last(result.outcome, result.seconds, now, served, kept.serial)
        self._hand_out(kept, ended, now)
        self._tell_rest(key, kept.serial)
        self._log(ended, result)
        if ended.dirty:
            self.check(key)

    def _hand_out(self, kept: Kept, ended: Evaluation, now: float) -> None:
        for waiter in ended.waiters:
            if kept.result.snapshot is None and waiter in ended.late:
                # What cannot be compared may be older than the question.
                self._again(waiter, kept.key, now)
            else:
                self._give(kept, waiter, now)

    def watch(self, key: Key, result: Result) -> None:
        """Watch for a key that is loaded."""
        if result.watched is None:
            self.watchset.remove(key)
        else:
            self.watchset.put(key, result.watched, result.folders)

    def _give(self, kept: Kept, waiter: Waiter, now: float) -> None:
        session = self.sessions.get(waiter.session)
        if session is None or session.pending.pop(waiter.number, None) is None:
            return
        if not session.pending:
            self.sessions.waiting.pop(session.number, None)
        last = self.schedule.of(kept.key.root).last
        if last is not None and last.serial == kept.serial:
            last.shared_by += session.given.get(kept.key) != kept.serial
        session.give(kept.key, kept.serial)
        if session.loaded == kept.key and kept.key not in self.watchset:
            self.watch(kept.key, kept.result)
        body, snapshot = kept.result.body, kept.result.wire
        if len(body) + len(snapshot) + _FRAME_ROOM_BYTES > MAX_FRAME_BYTES:
            data = frames.error(waiter.number, "too_long", "the diff is too long")
        else:
            data = frames.diff(
                waiter.number,
                body=body,
                snapshot=snapshot,
                ago_s=now - kept.ended,
                shared=kept.give(session.number),
            )
        if kept.result.snapshot is not None:
            self.fences.give(session, kept.key, kept.result.snapshot, now)
        self.out.append(Send(session.number, data))

    def _log(self, ended: Evaluation, result: Result) -> None:
        self.out.append(
            Log(
                "evaluated",
                {
                    "root": ended.key.root,
                    "outcome": result.outcome,
                    "seconds": round(result.seconds, 4),
                    "kernels": len(ended.waiters),
                    "names": result.names,
                    "precomputed": ended.precomputed,
                },
            )
        )
