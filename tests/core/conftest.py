"""A hub without a world around it: what it asks for is looked at and answered by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from envwatch.core import frames
from envwatch.core.events import (
    Arm,
    Armed,
    Close,
    Compare,
    Compared,
    Connected,
    Effect,
    Evaluate,
    Evaluated,
    Event,
    Fenced,
    NotArmed,
    Pass,
    Received,
    Result,
    Send,
    Snapshot,
)
from envwatch.core.hub import Hub
from envwatch.core.sidecar import Rules
from kernel_client import environment as env, messages, wire

DIRENV = "/bin/direnv"
ROOT = "/w/.envrc"
E = TypeVar("E", bound=Effect)


def snapshot_of(*paths: str, mtime: int = 1) -> Snapshot:
    """Give a snapshot of made-up files."""
    return tuple((path, (mtime, 1, 1, 1, 1), None, None) for path in paths)


def result_of(
    outcome: str = "loaded", *, mtime: int = 1, root: str = ROOT, size: int = 0
) -> Result:
    """Give a made-up result."""
    seen = snapshot_of(root, mtime=mtime)
    body = frames.members(
        {
            "outcome": outcome,
            "set": {"A": "1" * size},
            "unset": [],
            "messages": [],
            "seconds": 0.1,
        }
    )
    folder = root.rpartition("/")[0]
    return Result(outcome, body, seen, b"[]", seen, frozenset({folder}), 0.1, 1)


def armed_of(number: int, seen: Snapshot, *, watches: int = 3) -> Armed:
    """Give a made-up fence; the last path of its snapshot is not covered."""
    data = frames.fence(seen[0][0], "digest", [], "view")
    return Armed(number, seen, seen[-1:], data, watches)


class Play:
    """Plays everything around a hub: peers, direnv, files and the clock."""

    def __init__(self, **rules: Any) -> None:
        direnv = {"path": DIRENV, "version": "1"}
        given = {"version": "0", "pid": 1, "direnv": direnv, "concurrency": 4, **rules}
        self.now = 0.0
        self.hub = Hub(Rules(**given), 0.0)
        self.effects: list[Effect] = []
        self.said: dict[int, list[dict[str, Any]]] = {}
        self.environment = {"HOME": "/h"}

    def give(self, event: Event) -> None:
        """Give an event to the hub, and sort what it asks for.

        A frame that is passed with a fence has the fence's number as `passed`.
        """
        for effect in self.hub.handle(event, self.now):
            if isinstance(effect, (Send, Pass)):
                new = wire.Decoder().feed(effect.data)
                if isinstance(effect, Pass):
                    new = [{**frame, "passed": effect.fence} for frame in new]
                self.said.setdefault(effect.session, []).extend(new)
            if not isinstance(effect, Send):
                self.effects.append(effect)

    def take(self, kind: type[E]) -> list[E]:
        """Take the effects of one kind that were asked for."""
        found: list[E] = [each for each in self.effects if isinstance(each, kind)]
        self.effects = [each for each in self.effects if not isinstance(each, kind)]
        return found

    def heard(self, session: int) -> list[dict[str, Any]]:
        """Take the frames that a session was sent."""
        return self.said.pop(session, [])

    def attach(self, *sessions: int, fences: bool = False) -> None:
        """Attach kernels, with hello and welcome; `fences`: they can take them."""
        capabilities = [messages.FENCE] if fences else []
        for session in sessions:
            self.give(Connected(session, can_pass=fences))
            self.send(
                session,
                messages.hello(pid=1, client="t", cwd=None, capabilities=capabilities),
            )
            (welcome,) = self.heard(session)
            assert welcome["type"] == "welcome"

    def send(self, session: int, frame: dict[str, Any]) -> None:
        """Send a frame as a kernel."""
        self.give(Received(session, frame))

    def export(
        self, session: int, number: int = 1, *, root: str = ROOT, **changes: Any
    ) -> None:
        """Ask for a diff, the environment included."""
        frame = messages.export(
            number,
            root=root,
            fingerprint=env.fingerprint(self.environment),
            direnv=DIRENV,
            environment=self.environment,
        )
        self.send(session, {**frame, **changes})

    def evaluate(
        self, result: Result | None = None, *, watches: int | None = None
    ) -> Evaluate:
        """End the one evaluation that was asked for; `watches`: of its fence."""
        (effect,) = self.take(Evaluate)
        result = result or result_of(root=effect.key.root)
        allowance, fence = effect.fence, None
        if allowance is not None:
            fence = self.fence(allowance.number, result.snapshot, watches)
        self.give(Evaluated(effect.evaluation, result, fence))
        return effect

    def fence(
        self, number: int, seen: Snapshot | None, watches: int | None
    ) -> Armed | NotArmed:
        """Give what comes of an allowance; without watches there is no fence."""
        if watches is None or seen is None:
            return NotArmed(number, "few", "there is little to watch")
        return armed_of(number, seen, watches=watches)

    def arm(self, *, watches: int | None = 3) -> Arm:
        """Answer the one Arm that was asked for."""
        (effect,) = self.take(Arm)
        fence = self.fence(effect.fence.number, effect.snapshot, watches)
        self.give(Fenced(fence))
        return effect

    def compare(self, *, same: bool) -> Compare:
        """Answer the one comparison that was asked for."""
        (effect,) = self.take(Compare)
        self.give(Compared(effect.key, effect.snapshot if same else None))
        return effect

    def load(self, *sessions: int, result: Result | None = None) -> None:
        """Have kernels load the root file, with one evaluation."""
        for session in sessions:
            self.export(session)
        self.evaluate(result)
        for session in sessions:
            assert self.heard(session)[-1]["type"] == "diff"

    def is_closed(self, session: int) -> bool:
        """Tell whether the hub has ended a connection."""
        return Close(session) in self.take(Close)


@pytest.fixture
def play() -> Callable[..., Play]:
    """Give what makes a hub with its own rules."""
    return Play
