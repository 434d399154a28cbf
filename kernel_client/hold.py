"""A run that waits for an answer: from direnv in this process, or from the sidecar.

Both give lines as they come and one answer at the end; the caller's thread does
the waiting, so that an interrupt reaches it and what is printed lands in its cell.
"""

from __future__ import annotations

import os
import time

from kernel_client import (
    direnv as program,
    evaluation,
    messages,
    outcome,
    snapshot,
    wire,
)
from kernel_client.environment import is_passable
from kernel_client.errors import SidecarError
from kernel_client.sidecar import SILENCE_S

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Optional

    from kernel_client.sidecar import Link

    Say = Callable[[str], None]
    Evaluated = Optional[evaluation.Evaluated]


class Direct:
    """An evaluation in this process, on a thread of its own.

    It goes on when nobody waits any more; a later run can wait again.
    """

    def __init__(
        self,
        direnv: str,
        root: str,
        environment: Mapping[str, str],
        *,
        known: Iterable[str],
        kill_s: float,
    ) -> None:
        import queue
        import threading

        self._cancellation = program.Cancellation()
        self._said: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._answer: Evaluated = None
        self._known = tuple(known)

        def work() -> None:
            try:
                self._answer = evaluation.evaluate(
                    direnv,
                    root,
                    environment,
                    known=self._known,
                    kill_s=kill_s,
                    on_line=self._said.put,
                    cancellation=self._cancellation,
                )
            finally:
                self._said.put(None)

        self._thread = threading.Thread(target=work, name="envwatch", daemon=True)
        if not _running:
            import atexit

            atexit.unregister(end_all)
            atexit.register(end_all)
        _running.append(self)
        self._thread.start()

    def wait(self, timeout_s: float, say: Say, waiting: Say) -> Evaluated:
        """Wait for the answer; None when it has not come in `timeout_s`.

        `say` gets direnv's lines, `waiting` is called now and then with "".
        """
        import queue

        deadline = time.monotonic() + timeout_s
        while True:
            left_s = deadline - time.monotonic()
            try:
                line = self._said.get(timeout=min(1.0, max(left_s, 0.0)))
            except queue.Empty:
                if left_s <= 0:
                    return None
                waiting("")
                continue
            if line is None:
                self._thread.join()
                self.forget()
                return self._answer
            say(line)

    def cancel(self) -> None:
        """Kill the evaluation with its whole process group, and wait for that."""
        self._cancellation.cancel()
        self._thread.join(timeout=2.0)
        self.forget()

    def forget(self) -> None:
        """Take it off the list of what a forked child or an exit must mind."""
        if self in _running:
            _running.remove(self)


_running: list[Direct] = []


def end_all() -> None:
    """Cancel what still runs: nothing is left behind when the kernel ends."""
    for direct in tuple(_running):
        direct.cancel()


# In a forked child the evaluations belong to the parent.
os.register_at_fork(after_in_child=_running.clear)


class Asked:
    """An `export` that was sent to the sidecar."""

    def __init__(
        self,
        link: Link,
        root: str,
        fingerprint: str,
        direnv: str,
        environment: Mapping[str, str],
    ) -> None:
        self.link = link
        self.root = root
        self.fingerprint = fingerprint
        self._direnv = direnv
        self._environment = environment
        self._number = link.number()
        self._kept: list[wire.Frame] = []
        self._streamed = 0
        link.send(self._frame())

    def keep(self, frame: wire.Frame) -> None:
        """Keep a frame that came while nobody waited."""
        if frame.get("id") != self._number:
            return
        if frame["type"] == "need_base":
            self.link.send(self._frame(dict(self._environment)))
        else:
            self._kept.append(frame)

    def wait(
        self,
        timeout_s: float,
        say: Say,
        waiting: Say,
        other: Callable[[wire.Frame], None],
    ) -> Evaluated:
        """Wait for the answer; None when it has not come in `timeout_s`.

        `other` gets the frames that are no answer to this question.

        Raises:
            SidecarError: the sidecar has gone, is silent, or refuses.
        """
        now = time.monotonic()
        deadline = now + timeout_s
        silent_at = now + SILENCE_S
        while True:
            wait_s = min(deadline, silent_at) - now
            frames, self._kept = self._kept, []
            if not frames:
                frames = self.link.receive(min(1.0, max(0.0, wait_s)))
            now = time.monotonic()
            for frame in [frame for frame in frames if frame["type"] == "changed"]:
                other(frame)
            for frame in [frame for frame in frames if frame.get("id") == self._number]:
                silent_at = now + SILENCE_S
                answer = self._take(frame, say)
                if answer is not None:
                    return answer
            if not frames:
                if now >= deadline:
                    return None
                if now >= silent_at:
                    raise SidecarError("silent", "the sidecar does not answer")
                waiting("")

    def _take(self, frame: wire.Frame, say: Say) -> Evaluated:
        """Take one frame of the answer; gives the answer once it is whole."""
        kind = frame["type"]
        if kind == "need_base":
            self.link.send(self._frame(dict(self._environment)))
        elif kind == "progress":
            if frame["line"] is not None:
                self._streamed += 1
                say(frame["line"])
        elif kind == "error":
            raise SidecarError(frame["code"], frame["message"])
        elif kind == "diff":
            answer = _evaluated(frame)
            for line in answer.messages[self._streamed :]:
                say(line)
            return answer
        return None

    def cancel(self) -> None:
        """Tell the sidecar that nobody here waits any more."""
        frame = messages.cancel(self.link.number(), export_id=self._number)
        self.link.send(frame)

    def _frame(self, environment: dict[str, str] | None = None) -> wire.Frame:
        return messages.export(
            self._number,
            root=self.root,
            fingerprint=self.fingerprint,
            direnv=self._direnv,
            environment=environment,
        )


def _evaluated(frame: wire.Frame) -> evaluation.Evaluated:
    try:
        wired = frame["snapshot"]
        texts = (*frame["set"].values(), *frame["unset"], *frame["messages"])
        if not all(isinstance(text, str) for text in texts):
            raise TypeError
        if frame["outcome"] not in outcome.OUTCOMES:
            raise ValueError
        pairs = [*frame["set"].items(), *((name, "") for name in frame["unset"])]
        if not all(is_passable(name, value) for name, value in pairs):
            raise ValueError
        return evaluation.Evaluated(
            frame["outcome"],
            to_set=frame["set"],
            unset=frame["unset"],
            messages=frame["messages"],
            snapshot=None if wired is None else snapshot.from_wire(wired),
            seconds=frame["seconds"],
        )
    except (TypeError, ValueError):
        message = "the sidecar broke the protocol: a diff of another shape"
        raise SidecarError("protocol", message) from None
