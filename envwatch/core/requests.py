"""What kernels send (PROTOCOL.md), obeyed or refused."""

from __future__ import annotations

from typing import Any

from envwatch.core import frames, report, sweep
from envwatch.core.events import Close, Frame, Key, Log, Look, Send, Stop
from envwatch.core.session import MAX_PENDING, Pending, Session
from envwatch.core.sidecar import Sidecar
from envwatch.core.workspace import Waiter
from kernel_client import messages
from kernel_client.errors import ProtocolError
from kernel_client.settings import OFF

MAX_BASES_BYTES = 64 * 1024 * 1024
"""More than this in environments: those that nobody uses go at once."""

_FROM_KERNELS = frozenset(
    {"hello", "export", "left", "cancel", "reload", "fence", "status", "stop"}
)
_MAX_ID = 2**53


class Requests:
    """Takes a session's frames, one after the other, and its end."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar

    def received(self, number: int, frame: Frame, now: float) -> None:
        """Do what a frame asks for; one that cannot be taken ends its connection."""
        self._sidecar.counts.received += 1
        session = self._sidecar.sessions.get(number)
        if session is not None and not session.closing:
            self._received(session, frame, now)

    def garbled(self, number: int, code: str, message: str) -> None:
        """End the connection of a session whose bytes are no frames."""
        session = self._sidecar.sessions.get(number)
        if session is not None and not session.closing:
            self.refuse(session, None, code, message)

    def looked(self, number: int, *, same: bool) -> None:
        """Welcome a kernel that sees the same folder at the same path."""
        session = self._sidecar.sessions.get(number)
        if session is not None and session.looking:
            self._looked(session, same=same)

    def closed(self, number: int, now: float) -> None:
        """Forget a session, and what only it had."""
        session = self._sidecar.sessions.get(number)
        if session is None:
            return
        for export in list(session.pending):
            self._leave(session, export)
        self._load(session, None, now)
        self._sidecar.sessions.remove(number)
        if not len(self._sidecar.sessions):
            self._sidecar.alone_since = now

    def refuse(
        self, session: Session, number: int | None, code: str, message: str
    ) -> None:
        """Say why, and end this connection; nothing else is touched."""
        self._error(session, number, code, message)
        self._sidecar.out.append(
            Log("refused", {"session": session.number, "code": code})
        )
        session.closing = True
        self._sidecar.out.append(Close(session.number))

    def stop(self, reason: str) -> None:
        """Begin to end: whoever waits is told, once."""
        if self._sidecar.stopping:
            return
        self._sidecar.stopping = True
        for session in list(self._sidecar.sessions.waiting.values()):
            for number in list(session.pending):
                self._error(session, number, "stopping", "the sidecar ends")
                self._leave(session, number)
        self._sidecar.out.append(Stop(reason))

    # ------------------------------------------------------------ a frame of each kind

    def _received(self, session: Session, frame: Frame, now: float) -> None:
        kind = frame["type"]
        number = _number(frame)
        if not session.greeted and not session.looking and kind != "hello":
            self.refuse(session, number, "order", "the first frame must be a hello")
            return
        if kind not in _FROM_KERNELS:
            self._error(session, number, "unknown", "no kernel sends such a frame")
            return
        try:
            messages.check(frame)
            if "id" in messages.FIELDS[kind] and number is None:
                raise ProtocolError("shape", f"{kind}: the id is out of range")
            self._sidecar.counts.take(frame, self._sidecar.schedule.workspaces)
            self._obey(session, kind, frame, now)
        except ProtocolError as error:
            self.refuse(session, number, error.code, str(error))

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
                status = report.status(self._sidecar, now)
                self._done(session, frame["id"], status=status)
            case _:
                self._done(session, frame["id"])
                self.stop("asked")

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
        self._sidecar.out.append(Look(session.number, path, dev, ino))

    def _looked(self, session: Session, *, same: bool) -> None:
        session.looking = False
        if not same:
            message = "the sidecar does not see the same folder at that path"
            self.refuse(session, None, "filesystem", message)
            return
        session.greeted = True
        self._sidecar.sessions.strangers.pop(session.number, None)
        rules = self._sidecar.rules
        fences = session.can_pass and rules.fences.mode != OFF
        data = frames.welcome(rules.version, rules.pid, rules.direnv, fences=fences)
        self._sidecar.out.append(Send(session.number, data))

    def _export(self, session: Session, frame: Frame, now: float) -> None:
        number, root = frame["id"], frame["root"]
        if number in session.pending:
            raise ProtocolError("order", "export: an id that is in use")
        if len(session.pending) >= MAX_PENDING:
            raise ProtocolError("order", "export: too many at once")
        if not root.startswith("/") or "\0" in root:
            raise ProtocolError("shape", "export: the root file is no absolute path")
        if self._sidecar.stopping:
            self._error(session, number, "stopping", "the sidecar ends")
            return
        direnv = self._sidecar.rules.direnv
        if direnv is None or direnv["path"] != frame["direnv"]:
            what = "finds no direnv" if direnv is None else "runs another direnv"
            self._error(session, number, "direnv", f"the sidecar {what}")
            return
        key = Key(frame["direnv"], root, frame["fingerprint"])
        if "environment" in frame and not self._add_base(session, frame):
            return
        if key.fingerprint not in self._sidecar.answers.bases:
            self._sidecar.out.append(Send(session.number, frames.need_base(number)))
            return
        session.told.clear()
        self._sidecar.fences.release(session)
        self._load(session, key, now)
        session.pending[number] = Pending(key, now)
        self._sidecar.sessions.waiting[session.number] = session
        self._sidecar.answers.ask(session, number, key, now)

    def _add_base(self, session: Session, frame: Frame) -> bool:
        """Take in the environment of an export; tells whether it could be used."""
        fingerprint: str = frame["fingerprint"]
        if not isinstance(frame["environment"], dict):
            raise ProtocolError("shape", "export: environment is no object")
        try:
            self._sidecar.answers.bases.add(fingerprint, frame["environment"])
        except ProtocolError as error:
            if error.code != "fingerprint":
                raise
            self._error(session, frame["id"], error.code, str(error))
            return False
        if self._sidecar.answers.bases.size > MAX_BASES_BYTES:
            sweep.drop_bases(self._sidecar.answers, {fingerprint})
        return True

    def _reload(self, session: Session, frame: Frame) -> None:
        root = frame["root"]
        self._sidecar.answers.diffs.drop_root(root)
        workspace = self._sidecar.schedule.workspaces.get(root)
        if workspace is not None and workspace.running is not None:
            workspace.running.forgotten = True
        having = self._sidecar.sessions.having_root(root)
        for other in having:
            if other is not session:
                self._sidecar.answers.tell(other, root, "reload")
        self._done(session, frame["id"], kernels=len(having))

    def _fence(self, session: Session, frame: Frame, now: float) -> None:
        if not isinstance(frame.get("held"), bool):
            raise ProtocolError("shape", "fence: held is missing or of a wrong type")
        key = session.loaded
        if session.can_fence and key is not None and key.root == frame["root"]:
            self._sidecar.fences.heard(session, key, now, held=frame["held"])

    def _load(self, session: Session, key: Key | None, now: float) -> None:
        """Note what a kernel has loaded; what nobody has is watched no more."""
        old = session.loaded
        unused = self._sidecar.sessions.load(session, key)
        if key is None:
            self._sidecar.fences.release(session)
        if unused is not None:
            self._sidecar.fences.drop(unused, now)
            self._sidecar.answers.watchset.remove(unused)
            self._sidecar.schedule.of(unused.root).wanted.pop(unused, None)
        if old is not None and not self._sidecar.sessions.kernels(old.root):
            self._sidecar.schedule.of(old.root).left_at = now
        if key is not None:
            self._sidecar.schedule.of(key.root).left_at = None

    def _leave(self, session: Session, number: int) -> None:
        pending = session.pending.pop(number, None)
        if pending is None:
            return
        if not session.pending:
            self._sidecar.sessions.waiting.pop(session.number, None)
        self._sidecar.answers.leave(pending.key, Waiter(session.number, number))

    def _done(self, session: Session, number: int, **fields: Any) -> None:
        self._sidecar.out.append(Send(session.number, frames.done(number, **fields)))

    def _error(
        self, session: Session, number: int | None, code: str, message: str
    ) -> None:
        self._sidecar.out.append(
            Send(session.number, frames.error(number, code, message))
        )


def _number(frame: Frame) -> int | None:
    """Give the id of a frame where it has a good one."""
    number = frame.get("id")
    if isinstance(number, bool) or not isinstance(number, int):
        return None
    return number if 0 < number < _MAX_ID else None
