"""The sidecar's mind: events in, effects out (PROTOCOL.md is what it speaks)."""

from __future__ import annotations

from envwatch.core import frames, sweep
from envwatch.core.events import (
    Burnt,
    Closed,
    Compared,
    Connected,
    Effect,
    Evaluated,
    Event,
    Fenced,
    FoldersChanged,
    Garbled,
    Lines,
    Log,
    Looked,
    Mounted,
    Pass,
    Received,
    Send,
    Tick,
    Unsure,
    Watch,
    WatchingState,
)
from envwatch.core.requests import Requests
from envwatch.core.sidecar import Rules, Sidecar

HELLO_S = 10.0


class Hub:
    """Lets events change the sidecar. One thread, no I/O."""

    def __init__(self, rules: Rules, now: float) -> None:
        self.sidecar = Sidecar(rules, now)
        self._requests = Requests(self.sidecar)
        self._swept = now

    def handle(self, event: Event, now: float) -> list[Effect]:
        """Take an event at a time in monotonic seconds; give what is to be done."""
        sidecar = self.sidecar
        self._take(event, now)
        if not sidecar.stopping:
            sidecar.answers.start(now)
            folders = sidecar.answers.watchset.changed()
            if folders is not None:
                sidecar.out.append(Watch(folders))
        effects = sidecar.out.copy()
        sidecar.out.clear()
        for effect in effects:
            if isinstance(effect, (Send, Pass)):
                sidecar.counts.sent += effect.frames
        return effects

    def _take(self, event: Event, now: float) -> None:  # noqa: C901, PLR0912 - a branch each
        match event:
            case Received(number, frame):
                self._requests.received(number, frame, now)
            case Compared(key, snapshot, wire):
                self.sidecar.answers.compared(key, snapshot, wire, now)
            case Lines(number, texts):
                self.sidecar.answers.lines(number, texts, now)
            case Evaluated(number, result, fence):
                self.sidecar.answers.evaluated(number, result, fence, now)
            case Fenced(fence):
                self.sidecar.fences.armed(fence, now)
            case Burnt(number, wanted_by):
                self.sidecar.fences.burnt(number, wanted_by, now)
            case Mounted():
                self.sidecar.fences.burn_all(now)
                self._compare_all()
            case FoldersChanged(folders):
                for key in self.sidecar.answers.watchset.touched(folders):
                    self.sidecar.answers.check(key)
            case Unsure():
                self._compare_all()
            case Connected(number, can_pass):
                self.sidecar.sessions.add(number, now, can_pass=can_pass)
            case Closed(number):
                self._requests.closed(number, now)
            case Garbled(number, code, message):
                self._requests.garbled(number, code, message)
            case Looked(number, same):
                self._requests.looked(number, same=same)
            case WatchingState():
                self._watching(event)
            case Tick():
                self._tick(now)

    def _tick(self, now: float) -> None:
        for running in self.sidecar.schedule.running.values():
            self.sidecar.answers.tell_lines(running, now)
        self.sidecar.fences.tick(now)
        for session in self.sidecar.sessions.waiting.values():
            for number, pending in session.pending.items():
                data = frames.progress(number, now - pending.since, None)
                self.sidecar.out.append(Send(session.number, data))
        for session in list(self.sidecar.sessions.strangers.values()):
            if now - session.since >= HELLO_S and not session.closing:
                self._requests.refuse(session, None, "order", "no hello came in time")
        if now - self._swept >= self.sidecar.rules.sweep_s:
            self._swept = now
            self._compare_all(by_stat=True)
            folders = self.sidecar.answers.watchset.folders
            if folders:
                self.sidecar.out.append(Watch(folders))
            sweep.drop_unused(self.sidecar.answers, now)
            self.sidecar.counts.keep_only(self.sidecar.schedule.workspaces)
        if (
            not len(self.sidecar.sessions)
            and now - self.sidecar.alone_since >= self.sidecar.rules.idle_s
        ):
            self._requests.stop("idle")

    def _compare_all(self, *, by_stat: bool = False) -> None:
        for key in self.sidecar.answers.watchset.keys():  # noqa: SIM118 - not a mapping
            self.sidecar.answers.check(key, by_stat=by_stat)

    def _watching(self, state: WatchingState) -> None:
        if state != self.sidecar.watching:
            self.sidecar.watching = state
            fields = {"state": state.state, "reason": state.reason}
            self.sidecar.out.append(Log("watching", {**fields, "remedy": state.remedy}))
