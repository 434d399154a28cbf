"""The sidecar's mind: events in, effects out (PROTOCOL.md is what it speaks)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from envwatch.core import frames, report, sweep
from envwatch.core.answers import Answers
from envwatch.core.counts import Counts
from envwatch.core.diffs import Diffs
from envwatch.core.events import (
    Burnt,
    Close,
    Closed,
    Compared,
    Connected,
    Effect,
    Evaluated,
    Event,
    Fenced,
    FoldersChanged,
    Frame,
    Garbled,
    Key,
    Lines,
    Log,
    Look,
    Looked,
    Mounted,
    Pass,
    Received,
    Send,
    Stop,
    Tick,
    Unsure,
    Watch,
    WatchingState,
)
from envwatch.core.fences import Bounds, Fences
from envwatch.core.session import MAX_PENDING, Pending, Session, Sessions
from envwatch.core.watchset import WatchSet
from envwatch.core.workspace import Schedule, Waiter
from kernel_client import messages
from kernel_client.errors import ProtocolError
from kernel_client.settings import OFF

HELLO_S = 10.0
MAX_BASES_BYTES = 64 * 1024 * 1024
"""More than this in environments: those that nobody uses go at once."""

_FROM_KERNELS = frozenset(
    {"hello", "export", "left", "cancel", "reload", "fence", "status", "stop"}
)
_MAX_ID = 2**53


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the hub must know; times in seconds, sizes in bytes.

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


class Hub:
    """Owns all state of the sidecar. One thread, no I/O."""

    def __init__(self, rules: Rules, now: float) -> None:
        self.rules = rules
        self.started = now
        self.watching = WatchingState("off")
        self.sessions = Sessions()
        self.counts = Counts()
        self.schedule = Schedule(rules.concurrency)
        self._out: list[Effect] = []
        watchset = WatchSet()
        self.fences = Fences(rules.fences, self.sessions, watchset, self._out)
        self.answers = Answers(
            self.sessions,
            self.schedule,
            Diffs(rules.max_kept_bytes),
            rules.max_age_s,
            rules.precompute,
            self._out,
            watchset,
            self.fences,
        )
        self._stopping = False
        self._swept = now
        self._alone_since = now

    def handle(self, event: Event, now: float) -> list[Effect]:
        """Take an event at a time in monotonic seconds; give what is to be done."""
        self._take(event, now)
        if not self._stopping:
            self.answers.start(now)
            folders = self.answers.watchset.changed()
            if folders is not None:
                self._out.append(Watch(folders))
        effects = self._out.copy()
        self._out.clear()
        for effect in effects:
            if isinstance(effect, (Send, Pass)):
                self.counts.sent += effect.frames
        return effects

    def _take(self, event: Event, now: float) -> None:  # noqa: C901, PLR0912 - a branch each
        match event:
            case Received(number, frame):
                self.counts.received += 1
                session = self.sessions.get(number)
                if session is not None and not session.closing:
                    self._received(session, frame, now)
            case Compared(key, snapshot, wire):
                self.answers.compared(key, snapshot, wire, now)
            case Lines(number, texts):
                self.answers.lines(number, texts, now)
            case Evaluated(number, result, fence):
                self.answers.evaluated(number, result, fence, now)
            case Fenced(fence):
                self.fences.armed(fence, now)
            case Burnt(number, wanted_by):
                self.fences.burnt(number, wanted_by, now)
            case Mounted():
                self.fences.burn_all(now)
                self._compare_all()
            case FoldersChanged(folders):
                for key in self.answers.watchset.touched(folders):
                    self.answers.check(key)
            case Unsure():
                self._compare_all()
            case Connected(number, can_pass):
                self.sessions.add(number, now, can_pass=can_pass)
            case Closed(number):
                self._closed(number, now)
            case Garbled(number, code, message):
                session = self.sessions.get(number)
                if session is not None and not session.closing:
                    self._refuse(session, None, code, message)
            case Looked(number, same):
                session = self.sessions.get(number)
                if session is not None and session.looking:
                    self._looked(session, same=same)
            case WatchingState():
                self._watching(event)
            case Tick():
                self._tick(now)

    # ------------------------------------------------------------ frames

    def _received(self, session: Session, frame: Frame, now: float) -> None:
        kind = frame["type"]
        number = _number(frame)
        if not session.greeted and not session.looking and kind != "hello":
            self._refuse(session, number, "order", "the first frame must be a hello")
            return
        if kind not in _FROM_KERNELS:
            self._error(session, number, "unknown", "no kernel sends such a frame")
            return
        try:
            messages.check(frame)
            if "id" in messages.FIELDS[kind] and number is None:
                raise ProtocolError("shape", f"{kind}: the id is out of range")
            self.counts.take(frame, self.schedule.workspaces)
            self._obey(session, kind, frame, now)
        except ProtocolError as error:
            self._refuse(session, number, error.code, str(error))

    def _obey(self, session: Session, kind: str, frame: Frame, now: float) -> None:
        match kind:
            case "hello":
                self._hello(session, frame)
            case "export":
                self._export(session, frame, now)
            case "left":
                if session.loaded is not None and session.loaded.root == frame["root"]:
                    self._load(session, None, now)
            case "cancel":
                self._leave(session, frame["export"])
                self._done(session, frame["id"])
            case "reload":
                self._reload(session, frame)
            case "fence":
                self._fence(session, frame, now)
            case "status":
                status = report.status(self, now)
                self._done(session, frame["id"], status=status)
            case _:
                self._done(session, frame["id"])
                self._stop("asked")

    def _hello(self, session: Session, frame: Frame) -> None:
        if session.greeted or session.looking:
            raise ProtocolError("order", "a second hello")
        if frame["protocol"] != messages.PROTOCOL:
            message = f"this sidecar speaks version {messages.PROTOCOL}"
            raise ProtocolError("protocol", message)
        session.client = frame["client"][:100]
        session.can_fence = session.can_pass and messages.FENCE in frame["capabilities"]
        session.looking = True
        cwd = frame["cwd"]
        if cwd is None:
            self._looked(session, same=True)
            return
        path, dev, ino = cwd.get("path"), cwd.get("dev"), cwd.get("ino")
        if not (
            isinstance(path, str) and isinstance(dev, str) and isinstance(ino, str)
        ):
            raise ProtocolError("shape", "hello: cwd must have path, dev and ino")
        self._out.append(Look(session.number, path, dev, ino))

    def _looked(self, session: Session, *, same: bool) -> None:
        session.looking = False
        if not same:
            message = "the sidecar does not see the same folder at that path"
            self._refuse(session, None, "filesystem", message)
            return
        session.greeted = True
        self.sessions.strangers.pop(session.number, None)
        rules = self.rules
        fences = session.can_pass and rules.fences.mode != OFF
        data = frames.welcome(rules.version, rules.pid, rules.direnv, fences=fences)
        self._out.append(Send(session.number, data))

    def _export(self, session: Session, frame: Frame, now: float) -> None:
        number, root = frame["id"], frame["root"]
        if number in session.pending:
            raise ProtocolError("order", "export: an id that is in use")
        if len(session.pending) >= MAX_PENDING:
            raise ProtocolError("order", "export: too many at once")
        if not root.startswith("/") or "\0" in root:
            raise ProtocolError("shape", "export: the root file is no absolute path")
        if self._stopping:
            self._error(session, number, "stopping", "the sidecar ends")
            return
        direnv = self.rules.direnv
        if direnv is None or direnv["path"] != frame["direnv"]:
            what = "finds no direnv" if direnv is None else "runs another direnv"
            self._error(session, number, "direnv", f"the sidecar {what}")
            return
        key = Key(frame["direnv"], root, frame["fingerprint"])
        if "environment" in frame and not self._add_base(session, frame):
            return
        if key.fingerprint not in self.answers.bases:
            self._out.append(Send(session.number, frames.need_base(number)))
            return
        session.told.clear()
        self.fences.release(session)
        self._load(session, key, now)
        session.pending[number] = Pending(key, now)
        self.sessions.waiting[session.number] = session
        self.answers.ask(session, number, key, now)

    def _add_base(self, session: Session, frame: Frame) -> bool:
        """Take in the environment of an export; tells whether it could be used."""
        fingerprint: str = frame["fingerprint"]
        if not isinstance(frame["environment"], dict):
            raise ProtocolError("shape", "export: environment is no object")
        try:
            self.answers.bases.add(fingerprint, frame["environment"])
        except ProtocolError as error:
            if error.code != "fingerprint":
                raise
            self._error(session, frame["id"], error.code, str(error))
            return False
        if self.answers.bases.size > MAX_BASES_BYTES:
            sweep.drop_bases(self.answers, {fingerprint})
        return True

    def _reload(self, session: Session, frame: Frame) -> None:
        root = frame["root"]
        self.answers.diffs.drop_root(root)
        workspace = self.schedule.workspaces.get(root)
        if workspace is not None and workspace.running is not None:
            workspace.running.forgotten = True
        having = self.sessions.having_root(root)
        for other in having:
            if other is not session:
                self.answers.tell(other, root, "reload")
        self._done(session, frame["id"], kernels=len(having))

    def _fence(self, session: Session, frame: Frame, now: float) -> None:
        if not isinstance(frame.get("held"), bool):
            raise ProtocolError("shape", "fence: held is missing or of a wrong type")
        key = session.loaded
        if session.can_fence and key is not None and key.root == frame["root"]:
            self.fences.heard(session, key, now, held=frame["held"])

    def _load(self, session: Session, key: Key | None, now: float) -> None:
        """Note what a kernel has loaded; what nobody has is watched no more."""
        old = session.loaded
        unused = self.sessions.load(session, key)
        if key is None:
            self.fences.release(session)
        if unused is not None:
            self.fences.drop(unused, now)
            self.answers.watchset.remove(unused)
            self.schedule.of(unused.root).wanted.pop(unused, None)
        if old is not None and not self.sessions.kernels(old.root):
            self.schedule.of(old.root).left_at = now
        if key is not None:
            self.schedule.of(key.root).left_at = None

    def _leave(self, session: Session, number: int) -> None:
        pending = session.pending.pop(number, None)
        if pending is None:
            return
        if not session.pending:
            self.sessions.waiting.pop(session.number, None)
        self.answers.leave(pending.key, Waiter(session.number, number))

    def _done(self, session: Session, number: int, **fields: Any) -> None:
        self._out.append(Send(session.number, frames.done(number, **fields)))

    def _error(
        self, session: Session, number: int | None, code: str, message: str
    ) -> None:
        self._out.append(Send(session.number, frames.error(number, code, message)))

    def _refuse(
        self, session: Session, number: int | None, code: str, message: str
    ) -> None:
        """Say why, and end this connection; nothing else is touched."""
        self._error(session, number, code, message)
        self._out.append(Log("refused", {"session": session.number, "code": code}))
        self._end(session)

    def _end(self, session: Session) -> None:
        session.closing = True
        self._out.append(Close(session.number))

    # ------------------------------------------------------------ coming and going

    def _closed(self, number: int, now: float) -> None:
        session = self.sessions.get(number)
        if session is None:
            return
        for export in list(session.pending):
            self._leave(session, export)
        self._load(session, None, now)
        self.sessions.remove(number)
        if not len(self.sessions):
            self._alone_since = now

    def _stop(self, reason: str) -> None:
        if self._stopping:
            return
        self._stopping = True
        for session in list(self.sessions.waiting.values()):
            for number in list(session.pending):
                self._error(session, number, "stopping", "the sidecar ends")
                self._leave(session, number)
        self._out.append(Stop(reason))

    # ------------------------------------------------------------ time and changes

    def _tick(self, now: float) -> None:
        for running in self.schedule.running.values():
            self.answers.tell_lines(running, now)
        self.fences.tick(now)
        for session in self.sessions.waiting.values():
            for number, pending in session.pending.items():
                data = frames.progress(number, now - pending.since, None)
                self._out.append(Send(session.number, data))
        for session in list(self.sessions.strangers.values()):
            if now - session.since >= HELLO_S and not session.closing:
                self._refuse(session, None, "order", "no hello came in time")
        if now - self._swept >= self.rules.sweep_s:
            self._swept = now
            self._compare_all(by_stat=True)
            folders = self.answers.watchset.folders
            if folders:
                self._out.append(Watch(folders))
            sweep.drop_unused(self.answers, now)
            self.counts.keep_only(self.schedule.workspaces)
        if not len(self.sessions) and now - self._alone_since >= self.rules.idle_s:
            self._stop("idle")

    def _compare_all(self, *, by_stat: bool = False) -> None:
        for key in self.answers.watchset.keys():  # noqa: SIM118 - not a mapping
            self.answers.check(key, by_stat=by_stat)

    def _watching(self, state: WatchingState) -> None:
        if state != self.watching:
            self.watching = state
            fields = {"state": state.state, "reason": state.reason}
            self._out.append(Log("watching", {**fields, "remedy": state.remedy}))


def _number(frame: Frame) -> int | None:
    """Give the id of a frame where it has a good one."""
    number = frame.get("id")
    if isinstance(number, bool) or not isinstance(number, int):
        return None
    return number if 0 < number < _MAX_ID else None
