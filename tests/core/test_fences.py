"""Fences: for which keys one is armed, who holds it, and when another must go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from envwatch.core.events import (
    Allowance,
    Arm,
    Burnt,
    Closed,
    Compare,
    Compared,
    Connected,
    Evaluate,
    Evaluated,
    Fenced,
    FoldersChanged,
    Key,
    Kill,
    Mounted,
    NotArmed,
    Pass,
    Received,
    Retire,
    Tick,
    Unsure,
)
from envwatch.core.fences import (
    CALM_S,
    CLEAR_AFTER_S,
    FIRST_PAUSE_S,
    IN_USE_S,
    LAST_PAUSE_S,
    Bounds,
)
from kernel_client import environment as env, messages
from tests.core.conftest import DIRENV, ROOT, Play, armed_of, result_of, snapshot_of

Make = Callable[..., Play]

A, B, C, D = (f"/{name}/.envrc" for name in "abcd")
CHANGED = FoldersChanged(frozenset({"/w"}))
LIMIT = "2 fences are the limit"


def bounds(mode: str = "auto", **more: int) -> Bounds:
    """Give bounds that are easy to reach."""
    given = {"max_fences": 2, "max_held": 4, "max_watches": 100, **more}
    return Bounds(mode=mode, **given)


@pytest.fixture
def guarded(play: Callable[..., Play]) -> Make:
    """Give what makes a hub that gives fences; the sweep is out of the way."""

    def make(mode: str = "auto", **more: int) -> Play:
        return play(fences=bounds(mode, **more), sweep_s=10**6, idle_s=10**6)

    return make


def load(
    p: Play, session: int, root: str = ROOT, watches: int | None = 3, mtime: int = 1
) -> int | None:
    """Have a kernel load a root file with a fence; gives what it was passed."""
    p.export(session, root=root)
    p.evaluate(result_of(root=root, mtime=mtime), watches=watches)
    return passed(p, session)


def passed(p: Play, session: int) -> int | None:
    """Give the number of the one fence that came just before the last diff."""
    *before, diff = p.heard(session)
    assert diff["type"] == "diff"
    fences = [each["passed"] for each in before if each["type"] == "fence"]
    assert len(fences) <= 1
    assert not fences or before[-1]["type"] == "fence"
    return fences[0] if fences else None


def ask(p: Play, session: int, root: str = ROOT) -> None:
    """Ask for a fence as a kernel that has none."""
    p.send(session, messages.fence(root, held=False))


def tell(p: Play, session: int, root: str = ROOT) -> None:
    """Tell as a kernel that its fence is in use."""
    p.send(session, messages.fence(root, held=True))


def tick(p: Play, now: float) -> None:
    """Have it be a time."""
    p.now = now
    p.give(Tick())


def fences_of(p: Play) -> dict[str, Any]:
    """Give what status tells of fences."""
    p.attach(99)
    p.send(99, messages.status(1))
    told: dict[str, Any] = p.heard(99)[0]["status"]["fences"]
    p.give(Closed(99))
    return told


def change(p: Play, *, folder: str = "/w") -> Evaluate:
    """Have a change be found; gives the evaluation that is to precompute."""
    p.give(FoldersChanged(frozenset({folder})))
    p.compare(same=False)
    (evaluate,) = p.take(Evaluate)
    return evaluate


# ------------------------------------------------------------------ allowances


@pytest.mark.parametrize(
    ("mode", "can_pass", "capabilities"),
    [("off", True, ["fence"]), ("auto", True, []), ("auto", False, ["fence"])],
    ids=["off", "no-capability", "no-way"],
)
def test_no_fence_where_nobody_could_take_it(
    guarded: Make, mode: str, capabilities: list[str], *, can_pass: bool
) -> None:
    """Neither with the evaluation nor when it is asked for, and none is passed."""
    p = guarded(mode)
    p.give(Connected(1, can_pass))
    hello = messages.hello(pid=1, client="t", cwd=None, capabilities=capabilities)
    p.send(1, hello)
    p.heard(1)
    p.export(1)
    (evaluate,) = p.take(Evaluate)
    assert evaluate.fence is None
    p.give(Evaluated(evaluate.evaluation, result_of()))
    assert passed(p, 1) is None
    ask(p, 1)
    tick(p, 100.0)
    assert not p.take(Arm)
    assert len(p.hub.sidecar.fences) == 0


@pytest.mark.parametrize(("mode", "least"), [("auto", 16), ("always", 1)])
def test_an_allowance_tells_what_is_left(guarded: Make, mode: str, least: int) -> None:
    """Its number, the fewest paths (one, where always), and the watches left."""
    p = guarded(mode)
    p.attach(1, 2, 3, fences=True)
    p.export(1, root=A)
    assert p.evaluate(watches=30).fence == Allowance(1, least, 100)
    p.export(2, root=B)
    assert p.evaluate(watches=None).fence == Allowance(2, least, 70)
    ask(p, 2, B)
    assert p.arm(watches=20).fence == Allowance(3, least, 70)
    told = fences_of(p)
    assert (told["armed"], told["watches"], told["reason"]) == (2, 50, None)


def test_one_capable_kernel_is_enough(guarded: Make) -> None:
    """The others that have it loaded go on with stats."""
    p = guarded()
    p.attach(1)
    p.attach(2, fences=True)
    p.export(1)
    assert p.take(Evaluate)[0].fence is None, "nobody can take it yet"
    p.give(Evaluated(1, result_of()))
    p.export(2)
    p.compare(same=True)
    assert change(p).fence is not None


def test_a_capable_kernel_over_another_base_is_not_enough(guarded: Make) -> None:
    """It could not use a fence of this key, nor ask for one here."""
    p = guarded()
    p.attach(1, fences=True)
    load(p, 1, watches=None)
    p.environment = {"HOME": "/h", "OTHER": "base"}
    p.attach(2)
    p.export(2)
    assert p.evaluate().fence is None


def test_a_kernel_without_the_capability_is_not_heard(guarded: Make) -> None:
    """Also where another one could be given what it asks for."""
    p = guarded()
    p.attach(1)
    p.attach(2, fences=True)
    for session in (1, 2):
        p.export(session)
    p.evaluate()
    ask(p, 1)
    assert not p.take(Arm)
    ask(p, 2)
    p.arm()
    assert [each.session for each in p.take(Pass)] == [2]


def test_one_at_a_time_is_armed_for_a_key(guarded: Make) -> None:
    """What is armed already is waited for, whoever began it."""
    p = guarded()
    p.attach(1, fences=True)
    load(p, 1, watches=None)
    ask(p, 1)
    (arm,) = p.take(Arm)
    evaluate = change(p)
    assert evaluate.fence is None
    p.give(Fenced(armed_of(arm.fence.number, arm.snapshot)))
    p.give(Evaluated(evaluate.evaluation, result_of(mtime=2)))
    p.heard(1)
    # The other way round: an evaluation arms when a kernel asks.
    p.now = 100.0
    evaluate = change(p)
    assert evaluate.fence is not None
    p.give(Burnt(arm.fence.number))
    ask(p, 1)
    tick(p, 200.0)
    assert not p.take(Arm)
    seen = snapshot_of(ROOT, mtime=3)
    fence = armed_of(evaluate.fence.number, seen)
    p.give(Evaluated(evaluate.evaluation, result_of(mtime=3), fence))
    passes = [each.fence for each in p.take(Pass)]
    assert passes == [arm.fence.number, fence.number]
    tick(p, 300.0)
    assert not p.take(Arm), "it was given what it had asked for"


# ------------------------------------------------------------------ giving


def test_a_fence_goes_before_its_diff(guarded: Make) -> None:
    """To each kernel that can take it, and to no other."""
    p = guarded()
    p.attach(1, 2, fences=True)
    p.attach(3)
    for session in (1, 2, 3):
        p.export(session)
    p.evaluate(watches=3)
    assert [passed(p, session) for session in (1, 2, 3)] == [1, 1, None]
    assert len(p.hub.sidecar.fences) == p.hub.sidecar.fences.of_root(ROOT) == 1
    assert p.hub.sidecar.fences.of_root(A) == 0


def test_who_asks_later_is_given_the_same_fence(guarded: Make) -> None:
    """A kept diff comes with the fence that was armed for it; a kernel once."""
    p = guarded()
    p.attach(1, 2, fences=True)
    assert load(p, 1) == 1
    p.export(2, 7)
    p.compare(same=True)
    assert passed(p, 2) == 1
    assert not p.take(Arm)
    assert len(p.take(Pass)) == 2


def test_a_fence_is_not_passed_twice_unasked(guarded: Make) -> None:
    """Two exports of one kernel are answered with one fence, a new one with another."""
    p = guarded()
    p.attach(1, fences=True)
    p.export(1, 1)
    p.export(1, 2)
    p.evaluate(watches=3)
    assert [f["type"] for f in p.heard(1)] == ["fence", "diff", "diff"]
    # What was armed for an edit is passed with its diff, not before.
    evaluate = change(p)
    assert evaluate.fence is not None
    fence = armed_of(evaluate.fence.number, snapshot_of(ROOT, mtime=2))
    p.give(Evaluated(evaluate.evaluation, result_of(mtime=2), fence))
    assert [f["type"] for f in p.heard(1)] == ["changed"]
    assert len(p.hub.sidecar.fences) == 1
    p.export(1, 3)
    p.compare(same=True)
    assert passed(p, 1) == fence.number


def test_only_the_very_snapshot_has_the_fence(guarded: Make) -> None:
    """Where only a ctime moved the diff goes on, and its fence does not."""
    p = guarded()
    p.attach(1, 2, fences=True)
    load(p, 1)
    newer = snapshot_of(ROOT, mtime=7)
    p.export(2)
    (compare,) = p.take(Compare)
    assert compare.fence == 1
    p.give(Compared(compare.key, newer, b"[]"))
    assert passed(p, 2) is None
    p.give(CHANGED)
    assert p.take(Compare) == [Compare(compare.key, newer)]


def test_a_diff_that_cannot_be_compared_has_no_fence(guarded: Make) -> None:
    """There is nothing that it could stand for."""
    p = guarded()
    p.attach(1, fences=True)
    p.export(1)
    p.evaluate(replace(result_of(), snapshot=None), watches=3)
    assert passed(p, 1) is None
    assert len(p.hub.sidecar.fences) == 0


def test_prefetched_diffs_bring_their_own_fences(guarded: Make) -> None:
    """A kernel holds one at a time: the last that it was passed."""
    p = guarded()
    p.attach(1, 2, fences=True)
    load(p, 2, A)
    p.export(1, 1, root=A)
    p.export(1, 2, root=B)
    p.compare(same=True)
    assert passed(p, 1) == 1
    p.evaluate(watches=3)
    assert passed(p, 1) == 2
    p.give(Closed(2))
    assert p.take(Retire) == [Retire(1, clear=False)], "nobody holds the first"


# ------------------------------------------------------------------ asking


def test_many_askers_get_one_fence(guarded: Make) -> None:
    """It is armed once, for what is watched now, and passed to each once."""
    p = guarded()
    p.attach(1, 2, 3, fences=True)
    for session in (1, 2, 3):
        p.export(session)
    p.evaluate()
    for session in (1, 2, 3, 1):
        ask(p, session)
    arm = p.arm()
    assert arm.snapshot == snapshot_of(ROOT)
    assert [(e.session, e.fence) for e in p.take(Pass)] == [(1, 2), (2, 2), (3, 2)]
    # One that comes later is passed what is there.
    p.attach(4, fences=True)
    p.export(4)
    p.compare(same=True)
    assert passed(p, 4) == 2
    assert not p.take(Arm)


def test_a_kernel_that_has_gone_is_passed_nothing(guarded: Make) -> None:
    """Nor one that has left the root file, or loaded another one, meanwhile."""
    p = guarded(max_fences=8, max_held=9)
    p.attach(1, 2, 3, 4, fences=True)
    for session in (1, 2, 3, 4):
        p.export(session)
    p.evaluate()
    for session in (1, 2, 3, 4):
        ask(p, session)
    p.give(Closed(1))
    p.send(2, messages.left(ROOT))
    p.export(3, 2, root=A)
    p.arm()
    assert [each.session for each in p.take(Pass)] == [4]


def test_kernels_are_armed_for_ever_later(guarded: Make) -> None:
    """While fences do not last; what is asked for meanwhile waits for a tick."""
    p = guarded(max_held=1000)
    p.attach(1, fences=True)
    load(p, 1, watches=None)
    times: list[float] = []
    while len(times) < 7:
        ask(p, 1)
        while not p.take(Arm):
            tick(p, p.now + 0.5)
        times.append(p.now)
        p.give(Fenced(NotArmed(len(times) + 1, "changed", "something changed")))
        ask(p, 1)
        p.now += 0.1
    gaps = [b - a for a, b in pairwise(times)]
    assert gaps == pytest.approx([1, 2, 4, 8, 16, 30], abs=0.6)
    assert gaps[0] >= FIRST_PAUSE_S
    assert gaps[-1] >= LAST_PAUSE_S


def test_a_fence_that_burns_soon_is_not_armed_again_at_once(guarded: Make) -> None:
    """One that has lasted is."""
    p = guarded()
    p.attach(1, fences=True)
    load(p, 1, watches=None)

    def burn(after_s: float, number: int) -> float:
        """Have one armed, and burnt after a time; gives when the next is armed."""
        ask(p, 1)
        while not (arms := p.take(Arm)):
            tick(p, p.now + 0.5)
        fence = armed_of(arms[0].fence.number, arms[0].snapshot)
        assert fence.number == number
        p.give(Fenced(fence))
        armed = p.now
        p.now += after_s
        p.give(Burnt(number))
        return armed

    first, second, third = burn(0.1, 2), burn(0.1, 3), burn(0.1, 4)
    assert second - first >= FIRST_PAUSE_S
    assert third - second >= 2 * (second - first)
    # The next ones last: then the pace is the first again.
    burn(100.0, 5)
    p.now = 1000.0
    assert burn(CALM_S, 6) == 1000.0, "at once"
    assert burn(0.1, 7) == 1000.0 + CALM_S
    waited = burn(0.1, 8) - 1000.0 - CALM_S
    assert waited == pytest.approx(FIRST_PAUSE_S, abs=0.6)


def test_an_evaluation_begins_anew(guarded: Make) -> None:
    """What did not last belonged to the diff before."""
    p = guarded()
    p.attach(1, fences=True)
    load(p, 1, watches=None)
    for number in range(2, 7):
        tick(p, p.now + LAST_PAUSE_S)
        ask(p, 1)
        (arm,) = p.take(Arm)
        p.give(Fenced(NotArmed(number, "changed", "something changed")))
        assert arm.fence.number == number
    ask(p, 1)
    tick(p, p.now + FIRST_PAUSE_S)
    assert not p.take(Arm)
    p.send(1, messages.reload(9, root=ROOT))
    load(p, 1, watches=None, mtime=2)
    ask(p, 1)
    assert p.take(Arm)


def test_a_fence_is_passed_once_more(guarded: Make) -> None:
    """A kernel that asks though it was passed one may not have got it."""
    p = guarded()
    p.attach(1, 2, fences=True)
    assert load(p, 1) == 1
    p.export(2)
    p.compare(same=True)
    ask(p, 1)
    passes = [(each.session, each.fence) for each in p.take(Pass)]
    assert passes == [(1, 1), (2, 1), (1, 1)]
    assert not p.take(Retire), "the other one uses it"


def test_a_burnt_fence_that_is_wanted_is_armed_anew(guarded: Make) -> None:
    """It was found burnt when it was to be sent: the next one goes to who asked."""
    p = guarded()
    p.attach(1, fences=True)
    assert load(p, 1) == 1
    p.now = 1.0
    ask(p, 1)
    p.give(Burnt(1, 1))
    assert p.take(Retire) == [Retire(1, clear=False)]
    arm = p.arm()
    assert arm.fence.number == 2
    assert p.take(Pass)[-1].fence == 2
    p.give(Burnt(9, 1))
    p.give(Burnt(2, 7))
    assert not p.take(Arm)


def test_who_has_an_older_fence_is_passed_the_new_one(guarded: Make) -> None:
    """It asks, and nothing is armed for it."""
    p = guarded()
    p.attach(1, 2, fences=True)
    for session in (1, 2):
        p.export(session)
    p.evaluate(watches=3)
    p.give(Burnt(1))
    ask(p, 1)
    p.arm()
    p.take(Pass)
    assert not p.take(Retire)
    ask(p, 2)
    assert p.take(Pass)[0].fence == 2
    assert p.take(Retire) == [Retire(1, clear=False)], "the second has let go"
    assert not p.take(Arm)


@pytest.mark.parametrize(
    "frame",
    [{"type": "fence", "root": ROOT}, {"type": "fence", "root": ROOT, "held": 1}],
    ids=["missing", "number"],
)
def test_a_bad_fence_frame_ends_the_connection(
    guarded: Make, frame: dict[str, Any]
) -> None:
    """`held` must be there, and be true or false."""
    p = guarded()
    p.attach(1, fences=True)
    p.send(1, frame)
    assert p.heard(1)[-1]["code"] == "shape"
    assert p.is_closed(1)


def test_what_is_not_loaded_here_is_not_armed(guarded: Make) -> None:
    """Before any export, of another root file, and after it was left."""
    p = guarded()
    p.attach(1, 2, fences=True)
    ask(p, 1)
    load(p, 1, watches=None)
    ask(p, 1, A)
    ask(p, 2)
    p.send(1, messages.left(ROOT))
    ask(p, 1)
    tick(p, 100.0)
    assert not p.take(Arm)
    assert not p.said


def test_nothing_is_armed_where_nothing_is_watched(guarded: Make) -> None:
    """An outcome that tells nothing has no snapshot to arm for."""
    p = guarded()
    p.attach(1, fences=True)
    p.export(1)
    p.evaluate(replace(result_of(), snapshot=None, watched=None))
    ask(p, 1)
    tick(p, 100.0)
    assert not p.take(Arm)
    assert p.hub.sidecar.fences._asked == {}


# ------------------------------------------------------------------ bounds


def three(p: Play) -> None:
    """Have two kernels hold fences, and a third one there."""
    p.attach(1, 2, 3, fences=True)
    assert load(p, 1, A) == 1
    assert load(p, 2, B) == 2


def test_at_the_limit_what_is_in_use_stays(guarded: Make) -> None:
    """The next one gets none, and status says why."""
    p = guarded()
    three(p)
    p.now = IN_USE_S - 0.1
    assert load(p, 3, C) is None
    told = fences_of(p)
    assert (told["armed"], told["limit"], told["reason"]) == (2, 2, LIMIT)
    assert not p.take(Retire)
    # Who asks in vain asks again: nothing is armed for it unasked.
    ask(p, 3, C)
    p.give(Closed(1))
    tick(p, IN_USE_S)
    assert not p.take(Arm)
    ask(p, 3, C)
    assert p.arm().key.root == C


def test_at_the_limit_the_one_that_is_not_used_goes(guarded: Make) -> None:
    """Its watches go at once, for a kernel may hold it; a fence that is told of stays."""
    p = guarded()
    three(p)
    p.now = 1.0
    tell(p, 1, A)
    p.now = IN_USE_S
    assert load(p, 3, C) == 3
    assert p.take(Retire) == [Retire(2, clear=True)]
    told = fences_of(p)
    assert (told["armed"], told["watches"], told["reason"]) == (2, 6, None)
    # It was cleared: nothing is left to do when its kernel lets go.
    p.give(Closed(2))
    tick(p, 1000.0)
    assert not p.take(Retire)


def test_a_fence_that_nobody_holds_is_closed_for_another(guarded: Make) -> None:
    """There is nobody whose copy must be cleared."""
    p = guarded()
    three(p)
    p.attach(4)
    p.export(4, root=A)
    p.compare(same=True)
    p.give(Closed(1))
    assert not p.take(Retire), "a kernel has it loaded still"
    p.now = IN_USE_S
    assert load(p, 3, C) == 3
    assert p.take(Retire) == [Retire(1, clear=False)]


def test_of_those_that_are_not_used_the_oldest_goes(guarded: Make) -> None:
    """By when it was used, not by when it was armed."""
    p = guarded()
    three(p)
    p.now = 1.0
    tell(p, 1, A)
    p.now = 10 * IN_USE_S
    load(p, 3, C)
    assert p.take(Retire) == [Retire(2, clear=True)]


def test_giving_is_using(guarded: Make) -> None:
    """A fence that was passed a moment ago is not the next to go."""
    p = guarded()
    three(p)
    p.attach(4, fences=True)
    p.now = 5.0
    p.export(4, root=A)
    p.compare(same=True)
    assert passed(p, 4) == 1
    p.now = IN_USE_S
    load(p, 3, C)
    assert p.take(Retire) == [Retire(2, clear=True)]


def test_the_limit_counts_what_is_being_armed(guarded: Make) -> None:
    """Two fences at most, also when all are asked for before one is armed."""
    p = guarded()
    p.attach(1, 2, 3, fences=True)
    for session, root in ((1, A), (2, B), (3, C)):
        p.export(session, root=root)
    evaluates = p.take(Evaluate)
    assert [each.fence is not None for each in evaluates] == [True, True, False]
    assert fences_of(p)["reason"] == LIMIT


def test_a_limit_of_none_is_no_fence(guarded: Make) -> None:
    """Where the user's limits leave no room, everything else goes on."""
    p = guarded(max_fences=0, max_held=0)
    p.attach(1, fences=True)
    assert load(p, 1) is None


def test_a_renewal_does_not_make_room(guarded: Make) -> None:
    """What is evicted while another one is armed for its key frees no place."""
    p = guarded(max_fences=1)
    p.attach(1, 2, fences=True)
    load(p, 1)
    p.now = IN_USE_S
    renewal = change(p)
    assert renewal.fence is not None
    p.export(2, root=A)
    (evaluate,) = p.take(Evaluate)
    seen = snapshot_of(ROOT, mtime=2)
    fence = armed_of(renewal.fence.number, seen)
    p.give(Evaluated(renewal.evaluation, result_of(mtime=2), fence))
    if evaluate.fence is not None:
        fence = armed_of(evaluate.fence.number, snapshot_of(A))
        p.give(Evaluated(evaluate.evaluation, result_of(root=A), fence))
    assert len(p.hub.sidecar.fences) == 1


def test_a_renewal_needs_no_place_of_its_own(guarded: Make) -> None:
    """At the limit a key that has a fence gets its next one."""
    p = guarded()
    three(p)
    fence = change(p, folder="/a").fence
    assert fence is not None
    assert not p.take(Retire)


def test_what_kernels_have_not_given_up_is_bounded(guarded: Make) -> None:
    """At the limit none is evicted when too many are held that are of no use."""
    p = guarded(max_held=3)
    p.attach(1, 2, 3, 4, fences=True)
    load(p, 1, A)
    p.give(Burnt(1))
    load(p, 2, B)
    load(p, 3, C)
    p.now = IN_USE_S
    assert load(p, 4, D) is None
    assert fences_of(p)["reason"] == LIMIT
    p.send(1, messages.left(A))
    p.send(4, messages.left(D))
    p.send(4, messages.reload(9, root=D))
    p.heard(4)
    assert load(p, 4, D) is not None


def test_burnt_fences_count_while_they_are_held(guarded: Make) -> None:
    """Below the limit too: each takes an instance until all have closed it."""
    p = guarded(max_fences=2, max_held=3)
    p.attach(*range(1, 7), fences=True)
    for session in range(1, 7):
        number = load(p, session, f"/{session}/.envrc")
        if number is not None:
            p.give(Burnt(number))
    holding = [s for s in range(1, 7) if _session_fence(p, s) is not None]
    assert holding == [1, 2, 3]


def _session_fence(p: Play, number: int) -> int | None:
    session = p.hub.sidecar.sessions.get(number)
    assert session is not None
    return session.fence


def test_watches_are_a_budget_of_all_together(guarded: Make) -> None:
    """What is used up comes back when a fence goes."""
    p = guarded(max_fences=8, max_held=9, max_watches=10)
    p.attach(1, 2, 3, fences=True)
    load(p, 1, A, watches=6)
    p.export(2, root=B)
    allowance = p.evaluate(watches=4).fence
    assert allowance is not None
    assert allowance.max_watches == 4
    p.export(3, root=C)
    assert p.evaluate().fence is None
    told = fences_of(p)
    assert told["watches"] == 10
    assert "max_user_watches" in told["reason"]
    p.give(Burnt(1))
    assert fences_of(p)["watches"] == 10, "a kernel holds it"
    tick(p, CLEAR_AFTER_S)
    assert fences_of(p)["watches"] == 4
    ask(p, 3, C)
    assert p.arm(watches=1).fence.max_watches == 6
    told = fences_of(p)
    assert (told["watches"], told["reason"]) == (5, None)


def test_two_at_once_do_not_use_more_than_the_budget(guarded: Make) -> None:
    """However much each of them was allowed."""
    p = guarded(max_watches=10)
    p.attach(1, 2, fences=True)
    p.export(1, root=A)
    p.export(2, root=B)
    for each in p.take(Evaluate):
        fence = None
        root = each.key.root
        if each.fence is not None:
            number, most = each.fence.number, each.fence.max_watches
            fence = armed_of(number, snapshot_of(root), watches=most)
        p.give(Evaluated(each.evaluation, result_of(root=root), fence))
    assert 0 < p.hub.sidecar.fences.watches <= 10


@pytest.mark.parametrize(
    ("code", "is_told"),
    [
        ("instances", True),
        ("watches", True),
        ("inotify", True),
        ("changed", False),
        ("few", False),
        ("filesystem", False),
    ],
)
def test_what_runs_short_is_told(guarded: Make, code: str, *, is_told: bool) -> None:
    """With its message, until one was armed; what is no shortage is not."""
    p = guarded()
    p.attach(1, fences=True)
    p.export(1)
    (evaluate,) = p.take(Evaluate)
    assert evaluate.fence is not None
    fence = NotArmed(evaluate.fence.number, code, "this is why")
    p.give(Evaluated(evaluate.evaluation, result_of(), fence))
    assert passed(p, 1) is None
    assert fences_of(p)["reason"] == ("this is why" if is_told else None)
    ask(p, 1)
    (arm,) = p.take(Arm)
    p.give(Fenced(NotArmed(arm.fence.number, code, "still")))
    assert fences_of(p)["reason"] == ("still" if is_told else None)
    ask(p, 1)
    tick(p, 100.0)
    p.arm()
    assert fences_of(p)["reason"] is None


# ------------------------------------------------------------------ ends


def test_a_burnt_fence_that_nobody_holds_is_closed(guarded: Make) -> None:
    """At once, and once."""
    p = guarded()
    p.attach(1, 2, fences=True)
    load(p, 1)
    p.attach(3)
    p.export(3)
    p.compare(same=True)
    p.send(1, messages.left(ROOT))
    assert not p.take(Retire), "a kernel without a fence has it loaded"
    p.give(Burnt(1))
    assert p.take(Retire) == [Retire(1, clear=False)]
    p.give(Burnt(1))
    tick(p, 100.0)
    assert not p.take(Retire)
    assert fences_of(p)["watches"] == 0


def test_a_burnt_fence_is_cleared_when_it_is_held_for_long(guarded: Make) -> None:
    """A kernel that runs nothing does not notice; its copy must not cost watches."""
    p = guarded()
    p.attach(1, fences=True)
    load(p, 1)
    p.now = 1.0
    p.give(Burnt(1))
    tick(p, 1.0 + CLEAR_AFTER_S - 0.1)
    assert not p.take(Retire)
    assert fences_of(p)["watches"] == 3
    tick(p, 1.0 + CLEAR_AFTER_S)
    assert p.take(Retire) == [Retire(1, clear=True)]
    assert fences_of(p)["watches"] == 0
    tick(p, 100.0)
    p.give(Closed(1))
    assert not p.take(Retire)


def export_again(p: Play, session: int) -> None:
    """Ask for the same again."""
    p.export(session, 9)


def close(p: Play, session: int) -> None:
    """Go."""
    p.give(Closed(session))


def leave(p: Play, session: int) -> None:
    """Unload."""
    p.send(session, messages.left(ROOT))


@pytest.mark.parametrize("let_go", [close, leave, export_again, ask])
def test_a_burnt_fence_is_closed_when_the_last_one_lets_go(
    guarded: Make, let_go: Callable[[Play, int], None]
) -> None:
    """Whatever the way; not when one of two does."""
    p = guarded()
    p.attach(1, 2, fences=True)
    for session in (1, 2):
        p.export(session)
    p.evaluate(watches=3)
    p.give(Burnt(1))
    let_go(p, 1)
    assert not p.take(Retire)
    let_go(p, 2)
    assert p.take(Retire) == [Retire(1, clear=False)]
    tick(p, 100.0)
    assert not p.take(Retire)


def test_a_burnt_fence_is_given_to_nobody(guarded: Make) -> None:
    """Its diff may still be good, as after a touch that was taken back."""
    p = guarded()
    p.attach(1, 2, fences=True)
    load(p, 1)
    p.give(Burnt(1))
    p.export(2)
    assert p.compare(same=True).fence is None
    assert passed(p, 2) is None


def test_after_a_mount_everything_is_compared(guarded: Make) -> None:
    """All fences are burnt: what lies below a path may be another file."""
    p = guarded()
    three(p)
    p.export(3, root=C)
    p.evaluate()
    p.give(Mounted())
    compares = p.take(Compare)
    assert sorted(each.key.root for each in compares) == [A, B, C]
    assert [each.fence for each in compares] == [None] * 3
    assert len(p.hub.sidecar.fences) == 0
    p.give(Closed(1))
    tick(p, CLEAR_AFTER_S)
    assert p.take(Retire) == [Retire(1, clear=False), Retire(2, clear=True)]


def test_a_fence_ends_with_the_last_kernel_that_has_its_key_loaded(
    guarded: Make,
) -> None:
    """Not before, though only others hold it."""
    p = guarded()
    p.attach(1, 2, fences=True)
    for session in (1, 2):
        p.export(session)
    p.evaluate(watches=3)
    p.give(Closed(1))
    assert not p.take(Retire)
    p.export(2, 3, root=A)
    assert p.take(Retire) == [Retire(1, clear=False)]
    assert len(p.hub.sidecar.fences) == 0


def test_what_is_armed_too_late_is_closed(guarded: Make) -> None:
    """The key is loaded by nobody now."""
    p = guarded()
    p.attach(1, fences=True)
    load(p, 1, watches=None)
    ask(p, 1)
    (arm,) = p.take(Arm)
    p.give(Closed(1))
    p.give(Fenced(armed_of(arm.fence.number, arm.snapshot)))
    assert p.take(Retire) == [Retire(arm.fence.number, clear=False)]
    p.give(Fenced(armed_of(77, arm.snapshot)))
    assert p.take(Retire) == [Retire(77, clear=False)], "nobody allowed it"


@pytest.mark.parametrize("how", ["killed", "forgotten", "unknown"])
def test_the_fence_of_an_evaluation_that_does_not_count_is_closed(
    guarded: Make, how: str
) -> None:
    """Killed as nobody waited, or older than a reload."""
    p = guarded()
    p.attach(1, 2, fences=True)
    load(p, 1, watches=None)
    p.send(1, messages.reload(8, root=ROOT))
    p.export(2)
    (evaluate,) = p.take(Evaluate)
    assert evaluate.fence is not None
    number = evaluate.evaluation
    if how == "killed":
        p.send(2, messages.cancel(9, export_id=1))
        assert p.take(Kill)
    elif how == "forgotten":
        p.send(1, messages.reload(9, root=ROOT))
    else:
        number += 77
    fence = armed_of(evaluate.fence.number, snapshot_of(ROOT))
    p.give(Evaluated(number, result_of(), fence))
    assert p.take(Retire) == [Retire(fence.number, clear=False)]
    assert not p.take(Pass)
    assert len(p.hub.sidecar.fences) == 0


def test_a_new_fence_takes_the_place_of_the_old_one(guarded: Make) -> None:
    """The old one goes with its last holder."""
    p = guarded()
    p.attach(1, fences=True)
    load(p, 1)
    evaluate = change(p)
    assert evaluate.fence is not None
    fence = armed_of(evaluate.fence.number, snapshot_of(ROOT, mtime=2), watches=5)
    p.give(Evaluated(evaluate.evaluation, result_of(mtime=2), fence))
    assert (len(p.hub.sidecar.fences), p.hub.sidecar.fences.watches) == (1, 8)
    p.export(1, 2)
    assert p.take(Retire) == [Retire(1, clear=False)]
    p.compare(same=True)
    assert passed(p, 1) == fence.number
    assert p.hub.sidecar.fences.watches == 5


def test_nothing_is_left_of_a_key_that_nobody_has_loaded(guarded: Make) -> None:
    """A sidecar lives for months, and every environment makes keys."""
    p = guarded()
    p.attach(1, 2, fences=True)
    load(p, 1)
    p.give(Burnt(1))
    ask(p, 1)
    p.arm()
    p.give(Burnt(2))
    ask(p, 1)
    assert not p.take(Arm), "it has to wait"
    load(p, 2, A)
    p.give(Closed(1))
    p.give(Closed(2))
    fences = p.hub.sidecar.fences
    left = (fences._fences, fences._gone, fences._arming, fences._asked, fences._paces)
    assert left == ({}, {}, {}, {}, {})


# ------------------------------------------------------------------ comparing


def test_a_comparison_is_told_of_the_fence(guarded: Make) -> None:
    """For events and for kernels that ask; the sweep looks at everything."""
    p = guarded()
    p.attach(1, 2, fences=True)
    load(p, 1)
    key = Key(DIRENV, ROOT, env.fingerprint(p.environment))
    seen = snapshot_of(ROOT)
    expected = Compare(key, seen, 1, seen[-1:])
    for event in (CHANGED, Unsure()):
        p.give(event)
        assert p.compare(same=True) == expected
    p.export(2)
    assert p.compare(same=True) == expected
    tick(p, 10.0**6)
    assert p.compare(same=True) == Compare(key, seen)


def test_a_sweep_during_a_comparison_still_looks_at_everything(guarded: Make) -> None:
    """What no event tells of is found by it alone."""
    p = guarded()
    p.attach(1, fences=True)
    load(p, 1)
    p.give(CHANGED)
    (compare,) = p.take(Compare)
    assert compare.fence == 1
    tick(p, 10.0**6)
    p.give(Compared(compare.key, compare.snapshot))
    assert p.compare(same=True).fence is None


def test_the_frame_of_a_closing_connection_is_not_heard(guarded: Make) -> None:
    """It was refused: what it still says asks for nothing."""
    p = guarded()
    p.attach(1, fences=True)
    load(p, 1, watches=None)
    p.send(1, {"type": "nonsense", "id": "x"})
    p.send(1, {"type": "export"})
    assert p.is_closed(1)
    p.give(Received(1, messages.fence(ROOT, held=False)))
    assert not p.take(Arm)


def test_who_asks_again_is_answered_by_stats(guarded: Make) -> None:
    """It has seen something move: perhaps what no fence tells of (a write by mmap)."""
    p = guarded()
    p.attach(1, 2, 3, fences=True)
    load(p, 1)
    p.export(2)
    assert p.compare(same=True).fence is not None
    assert p.heard(2)[-1]["type"] == "diff"
    p.export(3)
    p.export(2, 2)
    p.export(1, 2)
    (fenced,) = p.take(Compare)
    assert fenced.fence is not None, "the third one has not had it yet"
    p.give(Compared(fenced.key, fenced.snapshot))
    assert p.heard(3)[-1]["type"] == "diff"
    assert not p.heard(2), "it waits for the next comparison"
    by_stat = p.compare(same=False)
    assert by_stat.fence is None
    p.evaluate(result_of(mtime=2))
    for session in (1, 2):
        assert p.heard(session)[-1]["type"] == "diff"
