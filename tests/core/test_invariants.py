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
    Allowance,
    Arm,
    Armed,
    Burnt,
    Closed,
    Compare,
    Compared,
    Evaluate,
    Evaluated,
    Fenced,
    FoldersChanged,
    Kill,
    Lines,
    Mounted,
    NotArmed,
    Pass,
    Result,
    Retire,
    Snapshot,
    Tick,
    Unsure,
)
from envwatch.core.fences import Bounds
from envwatch.core.sweep import GONE_S
from kernel_client import environment as env, messages
from tests.core.conftest import DIRENV, Play, armed_of, result_of

ROOTS = ("/a/.envrc", "/b/.envrc", "/b/c/.envrc")
ENVIRONMENTS = ({"HOME": "/h"}, {"HOME": "/h", "X": "1"})
OUTCOMES = ("loaded", "blocked", "failed", "broken", "timeout", "absent", "degraded")
CONCURRENCY = 2
FENCES = Bounds(mode="always", max_fences=2, max_held=4, max_watches=20, min_paths=1)

roots = st.sampled_from(ROOTS)
indexes = st.integers(min_value=0, max_value=50)
# How many of the allowed watches a fence takes, or why there is none.
fences = st.one_of(
    st.integers(min_value=1, max_value=20),
    st.sampled_from(["few", "changed", "watches", "instances"]),
)


class HubLife(RuleBasedStateMachine):
    """A hub between kernels that come and go and files that change.

    A file's version is the mtime in the snapshots of its evaluations, so that each
    diff tells how old it is. A fence is burnt only when that is told, so that it
    may be quiet though a file has changed: nothing but cost rests on it.
    """

    def __init__(self) -> None:
        super().__init__()
        rules = {"sweep_s": 30.0, "max_kept_bytes": 700, "idle_s": 1e9}
        self.play = Play(concurrency=CONCURRENCY, fences=FENCES, **rules)
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
        # What is being armed, and the watches of what was armed and not retired;
        # by session, the fence that a kernel was passed last.
        self.arms: list[Arm] = []
        self.allowed: set[int] = set()
        self.fences: dict[int, int] = {}
        self.can_fence: set[int] = set()
        self.holds: dict[int, int] = {}

    # ------------------------------------------------------------ the world

    def settle(self) -> None:
        """Look at all that the hub asked for and said."""
        for evaluate in self.play.take(Evaluate):
            # The base is the one of the fingerprint, whatever was evicted since.
            expected = self.by_fingerprint[evaluate.key.fingerprint]
            assert evaluate.environment == expected
            version = self.versions[evaluate.key.root]
            if evaluate.fence is not None:
                self.allow(evaluate.fence)
            self.running[evaluate.evaluation] = (evaluate, version)
        for kill in self.play.take(Kill):
            assert kill.evaluation in self.running
            self.killed.add(kill.evaluation)
        self.compares += self.play.take(Compare)
        self.settle_fences()
        for session in list(self.waiting):
            for frame in self.play.heard(session):
                self.hear(session, messages.check(frame))

    def settle_fences(self) -> None:
        """Pass and close fences, in the order in which that was asked for."""
        asked = self.play.effects
        self.play.effects = [e for e in asked if not isinstance(e, Pass | Retire)]
        for effect in asked:
            match effect:
                case Pass(session, _, number):
                    assert number in self.fences, "it was retired, or never armed"
                    assert session in self.can_fence
                    assert self.holds.get(session) != number, "it has that one"
                    self.holds[session] = number
                case Retire(number, clear):
                    del self.fences[number]
                    assert clear == (number in self.held())
                case _:
                    pass
        for arm in self.play.take(Arm):
            self.allow(arm.fence)
            self.arms.append(arm)

    def allow(self, allowance: Allowance) -> None:
        """Take in leave to arm a fence."""
        assert allowance.number not in self.allowed
        assert 0 < allowance.max_watches <= FENCES.max_watches
        self.allowed.add(allowance.number)

    def held(self) -> set[int]:
        """Give the fences that the hub takes to be held."""
        sessions = map(self.play.hub.sidecar.sessions.get, self.waiting)
        found = {each.fence for each in sessions if each is not None}
        return {number for number in found if number is not None}

    def fence(
        self, allowance: Allowance, seen: Snapshot | None, chosen: int | str
    ) -> Armed | NotArmed:
        """Give what comes of leave to arm a fence."""
        if seen is None or isinstance(chosen, str):
            code = chosen if isinstance(chosen, str) else "few"
            return NotArmed(allowance.number, code, "that is why")
        watches = min(chosen, allowance.max_watches)
        self.fences[allowance.number] = watches
        return armed_of(allowance.number, seen, watches=watches)

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
            case "fence":
                assert frame["passed"] in self.allowed
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

    @rule(can_fence=st.booleans())
    def connect(self, *, can_fence: bool) -> None:
        """A kernel comes."""
        self.last += 1
        self.play.attach(self.last, fences=can_fence)
        if can_fence:
            self.can_fence.add(self.last)
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
        self.holds.pop(session, None)

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
        # Whatever it holds is of no use to it now, unless it is passed again.
        held = self.holds.pop(session, None)
        self.play.send(session, frame)
        said = self.play.said.get(session, [])
        if said and said[-1] == {"type": "need_base", "id": self.last}:
            said.pop()
            self.told[session] = before
            if held is not None:
                self.holds[session] = held
            self.settle()
            self.holds.pop(session, None)
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
    @rule(index=indexes, root=roots, held=st.booleans())
    def tell_fence(self, index: int, root: str, *, held: bool) -> None:
        """A kernel tells that its fence is in use, or that it needs one."""
        session = self.session(index)
        if not held:
            loaded = self.play.hub.sidecar.sessions.get(session)
            assert loaded is not None
            if loaded.loaded is not None and loaded.loaded.root == root:
                self.holds.pop(session, None)
        self.play.send(session, messages.fence(root, held=held))
        self.settle()

    @precondition(lambda self: self.arms)
    @rule(index=indexes, chosen=fences)
    def arm(self, index: int, chosen: int | str) -> None:
        """A fence was armed, or could not be."""
        arm = self.arms.pop(index % len(self.arms))
        self.play.give(Fenced(self.fence(arm.fence, arm.snapshot, chosen)))
        self.settle()

    @precondition(lambda self: self.fences)
    @rule(index=indexes)
    def burn(self, index: int) -> None:
        """Something happens under a fence."""
        self.play.give(Burnt(list(self.fences)[index % len(self.fences)]))
        self.settle()

    @rule()
    def mount(self) -> None:
        """The table of mounts changes."""
        self.play.give(Mounted())
        self.settle()
        assert not len(self.play.hub.sidecar.fences)

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
    @rule(
        index=indexes,
        outcome=st.sampled_from(OUTCOMES),
        comparable=st.booleans(),
        chosen=fences,
    )
    def end(
        self, index: int, outcome: str, chosen: int | str, *, comparable: bool
    ) -> None:
        """An evaluation ends: with what it saw when it began."""
        number = list(self.running)[index % len(self.running)]
        evaluate, version = self.running.pop(number)
        if number in self.killed:
            outcome, comparable = "cancelled", False
        result = self.result(evaluate, version, outcome, comparable=comparable)
        fence = None
        if evaluate.fence is not None:
            fence = self.fence(evaluate.fence, result.snapshot, chosen)
        self.play.give(Evaluated(number, result, fence))
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
        diffs = self.play.hub.sidecar.answers.diffs
        assert diffs.size == sum(kept.size for kept in diffs) <= diffs.max_bytes
        bases = self.play.hub.sidecar.answers.bases
        known = [each for each in self.by_fingerprint if each in bases]
        assert bases.size == sum(map(bases.size_of, known))

    @invariant()
    def fences_are_bounded(self) -> None:
        """In use, held, and in watches; each is in use or still held."""
        fences = self.play.hub.sidecar.fences
        assert len(fences) <= FENCES.max_fences
        assert sum(self.fences.values()) == fences.watches <= FENCES.max_watches
        in_use = {each.number for each in fences}
        assert in_use <= self.fences.keys() <= in_use | self.held()
        assert len(in_use | self.held()) <= FENCES.max_held

    @invariant()
    def holders_are_known(self) -> None:
        """What a kernel was passed last is what the hub takes it to hold."""
        for session in self.waiting:
            seen = self.play.hub.sidecar.sessions.get(session)
            assert seen is not None
            assert seen.fence in (None, self.holds.get(session))
        for fence in self.play.hub.sidecar.fences:
            held = {s for s, number in self.holds.items() if number == fence.number}
            assert fence.holders <= held

    @invariant()
    def nobody_is_forgotten(self) -> None:
        """The hub and the kernels agree on who waits for what."""
        for session, waiting in self.waiting.items():
            seen = self.play.hub.sidecar.sessions.get(session)
            assert seen is not None
            assert seen.pending.keys() == waiting.keys()

    def teardown(self) -> None:
        """Let everything end: all are answered, and nothing stays."""
        self.finish()
        for _ in range(200):
            if not self.compares and not self.running and not self.arms:
                break
            self.finish()
        assert not any(self.waiting.values())
        for session in list(self.waiting):
            self.play.give(Closed(session))
            self.settle()
            del self.waiting[session]
            self.holds.pop(session, None)
        self.finish()
        for _ in range(2):
            self.play.now += GONE_S + 1
            self.play.give(Tick())
            self.settle()
            self.finish()
        hub = self.play.hub
        assert not hub.sidecar.schedule.workspaces
        assert not hub.sidecar.schedule.running
        assert not list(hub.sidecar.answers.diffs)
        assert not hub.sidecar.answers.watchset.folders
        assert hub.sidecar.answers.bases.size == 0
        assert not hub.sidecar.sessions.fingerprints()
        assert not len(hub.sidecar.sessions)
        assert self.fences == {}
        fences = hub.sidecar.fences
        assert not len(fences)
        assert not fences._gone
        assert not fences._arming
        assert not fences._asked
        assert not fences._paces

    def finish(self) -> None:
        """End what is under way, and what follows from that."""
        for _ in range(100):
            if self.compares:
                self.compare(0)
            elif self.running:
                self.end(0, "loaded", 3, comparable=True)
            elif self.arms:
                self.arm(0, 3)
            else:
                return


HubLife.TestCase.settings = settings(
    max_examples=60, stateful_step_count=50, deadline=None
)
test_any_order_of_events = HubLife.TestCase
