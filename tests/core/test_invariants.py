"""Any order of events: every export is answered once, and nothing is left behind."""

from __future__ import annotations

from typing import Any

from hypothesis import settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
)

from envwatch.core.events import (
    Closed,
    Compare,
    Compared,
    Evaluate,
    Evaluated,
    FoldersChanged,
    Kill,
    Lines,
    Result,
    Tick,
    Unsure,
)
from envwatch.core.sweep import GONE_S
from kernel_client import environment as env, messages
from tests.core.conftest import DIRENV, Play, result_of

ROOTS = ("/a/.envrc", "/b/.envrc", "/b/c/.envrc")
ENVIRONMENTS = ({"HOME": "/h"}, {"HOME": "/h", "X": "1"})
OUTCOMES = ("loaded", "blocked", "failed", "broken", "timeout", "absent", "degraded")
CONCURRENCY = 2

roots = st.sampled_from(ROOTS)
indexes = st.integers(min_value=0, max_value=50)


class HubLife(RuleBasedStateMachine):
    """A hub between kernels that come and go and files that change.

    A file's version is the mtime in the snapshots of its evaluations, so that each
    diff tells how old it is.
    """

    def __init__(self) -> None:
        super().__init__()
        rules = {"sweep_s": 30.0, "max_kept_bytes": 700, "idle_s": 1e9}
        self.play = Play(concurrency=CONCURRENCY, **rules)
        self.by_fingerprint = {env.fingerprint(each): each for each in ENVIRONMENTS}
        self.versions = dict.fromkeys(ROOTS, 1)
        self.last = 0
        # By session: exports that wait, by id, as (root, version then, evaluation
        # that may have begun before).
        self.waiting: dict[int, dict[int, tuple[str, int]]] = {}
        self.told: dict[int, set[str]] = {}
        self.compares: list[Compare] = []
        self.running: dict[int, tuple[Evaluate, int]] = {}
        self.killed: set[int] = set()

    # ------------------------------------------------------------ the world

    def settle(self) -> None:
        """Look at all that the hub asked for and said."""
        for evaluate in self.play.take(Evaluate):
            # The base is the one of the fingerprint, whatever was evicted since.
            expected = self.by_fingerprint[evaluate.key.fingerprint]
            assert evaluate.environment == expected
            version = self.versions[evaluate.key.root]
            self.running[evaluate.evaluation] = (evaluate, version)
        for kill in self.play.take(Kill):
            assert kill.evaluation in self.running
            self.killed.add(kill.evaluation)
        self.compares += self.play.take(Compare)
        for session in list(self.waiting):
            for frame in self.play.heard(session):
                self.hear(session, messages.check(frame))

    def hear(self, session: int, frame: dict[str, Any]) -> None:
        """Take a frame as the kernel would."""
        waiting = self.waiting[session]
        match frame["type"]:
            case "diff":
                root, asked = waiting.pop(frame["id"])
                version = int(frame["set"]["V"])
                assert frame["set"]["R"] == root
                if frame["snapshot"] is None:
                    # It cannot be compared, so it must not be older than asked.
                    assert version >= asked
            case "progress":
                assert frame["id"] in waiting
            case "changed":
                assert frame["reason"] not in self.told[session]
                self.told[session].add(frame["reason"])
            case kind:
                assert kind == "done"

    def session(self, index: int) -> int:
        """Choose a session."""
        return list(self.waiting)[index % len(self.waiting)]

    def result(
        self, evaluate: Evaluate, version: int, outcome: str, *, comparable: bool
    ) -> Result:
        """Give what an evaluation of a version comes to."""
        made = result_of(outcome, mtime=version, root=evaluate.key.root)
        members = (
            f'"outcome":"{outcome}","unset":[],"messages":[],"seconds":0.1,'
            f'"set":{{"V":"{version}","R":"{evaluate.key.root}"}}'
        )
        return Result(
            outcome,
            members.encode(),
            made.snapshot if comparable else None,
            b"[]" if comparable else b"null",
            made.watched if comparable else None,
            made.folders if comparable else frozenset(),
            0.1,
            2,
        )

    # ------------------------------------------------------------ what happens

    @rule()
    def connect(self) -> None:
        """A kernel comes."""
        self.last += 1
        self.play.attach(self.last)
        self.waiting[self.last] = {}
        self.told[self.last] = set()

    @precondition(lambda self: self.waiting)
    @rule(index=indexes)
    def close(self, index: int) -> None:
        """A kernel goes, whatever it waits for."""
        session = self.session(index)
        self.play.give(Closed(session))
        self.settle()
        del self.waiting[session], self.told[session]

    @precondition(lambda self: self.waiting)
    @rule(index=indexes, root=roots, environment=st.sampled_from(ENVIRONMENTS))
    def export(self, index: int, root: str, environment: dict[str, str]) -> None:
        """A kernel asks, with its environment where that is needed."""
        session = self.session(index)
        self.last += 1
        frame = messages.export(
            self.last,
            root=root,
            fingerprint=env.fingerprint(environment),
            direnv=DIRENV,
        )
        # What was said before is heard before: the hub forgets its notices here.
        self.settle()
        self.waiting[session][self.last] = (root, self.versions[root])
        before = set(self.told[session])
        self.told[session].clear()
        self.play.send(session, frame)
        said = self.play.said.get(session, [])
        if said and said[-1] == {"type": "need_base", "id": self.last}:
            said.pop()
            self.told[session] = before
            self.settle()
            self.told[session].clear()
            self.play.send(session, {**frame, "environment": environment})
        self.settle()

    @precondition(lambda self: any(self.waiting.values()))
    @rule(index=indexes)
    def cancel(self, index: int) -> None:
        """A kernel waits no more."""
        all_waiting = [(s, each) for s, some in self.waiting.items() for each in some]
        session, number = all_waiting[index % len(all_waiting)]
        self.last += 1
        self.play.send(session, messages.cancel(self.last, export_id=number))
        self.settle()
        self.waiting[session].pop(number, None)

    @precondition(lambda self: self.waiting)
    @rule(index=indexes, root=roots)
    def leave(self, index: int, root: str) -> None:
        """A kernel unloads."""
        self.play.send(self.session(index), messages.left(root))
        self.settle()

    @precondition(lambda self: self.waiting)
    @rule(index=indexes, root=roots)
    def reload(self, index: int, root: str) -> None:
        """Somebody asks to forget."""
        self.last += 1
        self.play.send(self.session(index), messages.reload(self.last, root=root))
        self.settle()

    @rule(root=roots, seen=st.booleans())
    def change(self, root: str, *, seen: bool) -> None:
        """A file changes; an event may tell of it."""
        self.versions[root] += 1
        if seen:
            self.play.give(FoldersChanged(frozenset({root.rpartition("/")[0]})))
            self.settle()

    @rule()
    def unsure(self) -> None:
        """Events were lost."""
        self.play.give(Unsure())
        self.settle()

    @rule(seconds=st.sampled_from([0.8, 5.0, 31.0, 700.0, 4000.0]))
    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.play.now += seconds
        self.play.give(Tick())
        self.settle()

    @precondition(lambda self: self.compares)
    @rule(index=indexes)
    def compare(self, index: int) -> None:
        """A comparison ends; it tells what is true now."""
        effect = self.compares.pop(index % len(self.compares))
        ((path, seen, _, _),) = effect.snapshot
        assert seen is not None
        is_same = seen[0] == self.versions[path]
        self.play.give(Compared(effect.key, effect.snapshot if is_same else None))
        self.settle()

    @precondition(lambda self: self.running)
    @rule(index=indexes)
    def say(self, index: int) -> None:
        """direnv says something."""
        number = list(self.running)[index % len(self.running)]
        self.play.give(Lines(number, ("one", "two")))
        self.settle()

    @precondition(lambda self: self.running)
    @rule(index=indexes, outcome=st.sampled_from(OUTCOMES), comparable=st.booleans())
    def end(self, index: int, outcome: str, *, comparable: bool) -> None:
        """An evaluation ends: with what it saw when it began."""
        number = list(self.running)[index % len(self.running)]
        evaluate, version = self.running.pop(number)
        if number in self.killed:
            outcome, comparable = "cancelled", False
        result = self.result(evaluate, version, outcome, comparable=comparable)
        self.play.give(Evaluated(number, result))
        self.settle()

    # ------------------------------------------------------------ what holds

    @invariant()
    def one_at_a_time(self) -> None:
        """For each root file one, and no more than the bound over all."""
        keys = [evaluate.key.root for evaluate, _ in self.running.values()]
        assert len(keys) == len(set(keys))
        assert len(keys) <= CONCURRENCY

    @invariant()
    def bounds_hold(self) -> None:
        """Kept bytes are counted right, and bounded."""
        diffs = self.play.hub.answers.diffs
        assert diffs.size == sum(kept.size for kept in diffs) <= diffs.max_bytes
        bases = self.play.hub.answers.bases
        known = [each for each in self.by_fingerprint if each in bases]
        assert bases.size == sum(map(bases.size_of, known))

    @invariant()
    def nobody_is_forgotten(self) -> None:
        """The hub and the kernels agree on who waits for what."""
        for session, waiting in self.waiting.items():
            seen = self.play.hub.sessions.get(session)
            assert seen is not None
            assert seen.pending.keys() == waiting.keys()

    def teardown(self) -> None:
        """Let everything end: all are answered, and nothing stays."""
        self.finish()
        for _ in range(200):
            if not self.compares and not self.running:
                break
            self.finish()
        assert not any(self.waiting.values())
        for session in list(self.waiting):
            self.play.give(Closed(session))
            self.settle()
            del self.waiting[session]
        self.finish()
        for _ in range(2):
            self.play.now += GONE_S + 1
            self.play.give(Tick())
            self.settle()
            self.finish()
        hub = self.play.hub
        assert not hub.schedule.workspaces
        assert not hub.schedule.running
        assert not list(hub.answers.diffs)
        assert not hub.answers.watchset.folders
        assert hub.answers.bases.size == 0
        assert not hub.sessions.fingerprints()
        assert not len(hub.sessions)

    def finish(self) -> None:
        """End what is under way, and what follows from that."""
        for _ in range(100):
            if self.compares:
                self.compare(0)
            elif self.running:
                self.end(0, "loaded", comparable=True)
            else:
                return


HubLife.TestCase.settings = settings(
    max_examples=60, stateful_step_count=50, deadline=None
)
test_any_order_of_events = HubLife.TestCase
