"""From an export to its diff: kept, checked, joined or evaluated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from envwatch.core.events import (
    Closed,
    Compare,
    Compared,
    Evaluate,
    Evaluated,
    FoldersChanged,
    Lines,
    Tick,
    Unsure,
)
from envwatch.core.workspace import FREE_RUNS
from kernel_client import messages
from tests.core.conftest import result_of, snapshot_of

Make = Callable[..., Any]

CHANGED = FoldersChanged(frozenset({"/w"}))


def types(frames: list[dict[str, Any]]) -> list[str]:
    """Give the types of frames."""
    return [frame["type"] for frame in frames]


def test_those_that_wait_for_one_key_share_one_evaluation(play: Make) -> None:
    """All get the diff, each under its own id."""
    p = play()
    p.attach(*range(1, 21))
    for session in range(1, 21):
        p.export(session, session + 100)
    p.evaluate()
    for session in range(1, 21):
        (diff,) = p.heard(session)
        assert messages.check(diff)["id"] == session + 100
        assert diff["shared"]
    assert not p.take(Evaluate)


def test_a_late_one_hears_what_was_said(play: Make) -> None:
    """Lines so far come at once, and all lines in their order."""
    p = play()
    p.attach(1, 2)
    p.export(1)
    p.now = 1.0
    p.give(Lines(1, ("one",)))
    p.export(2, 7)
    p.give(Lines(1, ("two",)))
    assert [frame["line"] for frame in p.heard(1)] == ["one", "two"]
    assert [(f["id"], f["line"]) for f in p.heard(2)] == [(7, "one"), (7, "two")]


def test_lines_of_a_short_evaluation_are_not_sent_by_themselves(play: Make) -> None:
    """They come with the diff, or at the next tick when there is none by then."""
    p = play()
    p.attach(1, 2)
    p.export(1)
    p.give(Lines(1, ("one",)))
    p.export(2, 7)
    assert not p.heard(1)
    p.now = 0.8
    p.give(Tick())
    for session in (1, 2):
        assert [frame["line"] for frame in p.heard(session)] == ["one", None]


def test_who_waits_hears_something_each_second(play: Make) -> None:
    """In a queue as well: a silent sidecar would be given up."""
    p = play(concurrency=1)
    p.attach(1, 2)
    p.export(1)
    p.export(2, root="/v/.envrc")
    p.now = 1.0
    p.give(Tick())
    for session in (1, 2):
        (progress,) = p.heard(session)
        assert (progress["type"], progress["line"]) == ("progress", None)
        assert progress["elapsed_s"] == 1.0


def test_a_kept_diff_is_handed_out_only_after_a_comparison(play: Make) -> None:
    """It is never older than its files; ids and ages are each kernel's own."""
    p = play()
    p.attach(1, 2, 3)
    p.load(1)
    p.now = 5.0
    p.export(2, 9)
    p.export(3, 9)
    assert not p.heard(2)
    p.compare(same=True)
    (diff,) = p.heard(2)
    assert (diff["id"], diff["evaluated_s_ago"], diff["shared"]) == (9, 5.0, True)
    assert types(p.heard(3)) == ["diff"]
    assert not p.take(Evaluate)


def test_a_change_found_by_asking_costs_one_evaluation(play: Make) -> None:
    """All who waited for the comparison wait for that evaluation."""
    p = play()
    p.attach(1, 2, 3)
    p.load(1)
    p.export(2)
    p.export(3)
    p.compare(same=False)
    p.evaluate(result_of(mtime=2))
    assert types(p.heard(2)) == types(p.heard(3)) == ["diff"]


def test_a_change_found_by_asking_is_told_with_the_diff(play: Make) -> None:
    """To those who have the old one and have not asked meanwhile; to nobody twice."""
    p = play()
    p.attach(1, 2, 3)
    p.load(1)
    p.export(3)
    p.compare(same=True)
    p.heard(3)
    p.export(2)
    p.compare(same=False)
    p.export(3, 7)
    assert p.heard(1) == []
    p.evaluate(result_of(mtime=2))
    assert types(p.heard(1)) == ["changed"]
    assert types(p.heard(2)) == types(p.heard(3)) == ["diff"]
    p.export(2, 8)
    p.compare(same=True)
    assert p.heard(1) == []


def test_a_change_found_by_one_who_left_is_told(play: Make) -> None:
    """Nobody evaluates it then; it has changed all the same."""
    p = play()
    p.attach(1, 2)
    p.load(1)
    p.export(2)
    p.compare(same=False)
    p.give(Closed(2))
    assert types(p.heard(1)) == ["changed"]


def test_a_moved_ctime_goes_on_with_the_newer_snapshot(play: Make) -> None:
    """The diff is kept; its snapshot is the one that was found."""
    p = play()
    p.attach(1, 2)
    p.load(1)
    newer = snapshot_of("/w/.envrc", mtime=3)
    p.export(2)
    (compare,) = p.take(Compare)
    p.give(Compared(compare.key, newer, b'["newer"]'))
    assert p.heard(2)[-1]["snapshot"] == ["newer"]
    p.export(2, 2)
    assert p.take(Compare) == [Compare(compare.key, newer)]


def test_an_old_diff_goes_only_to_who_had_it(play: Make) -> None:
    """Its kernel may keep it; a kernel that never had it gets a new one."""
    p = play(max_age_s=100, sweep_s=10**6)
    p.attach(1, 2)
    p.load(1)
    p.now = 101.0
    p.export(1, 2)
    p.compare(same=True)
    assert types(p.heard(1)) == ["diff"]
    p.export(2)
    p.evaluate()
    assert p.heard(2)[-1]["evaluated_s_ago"] == 0


@pytest.mark.parametrize("outcome", ["broken", "cancelled", "absent", "timeout"])
def test_outcomes_that_say_nothing_are_not_kept(play: Make, outcome: str) -> None:
    """The next one that asks gets an evaluation of its own."""
    p = play()
    p.attach(1, 2)
    p.load(1, result=result_of(outcome))
    p.export(2)
    assert p.take(Evaluate)


@pytest.mark.parametrize("outcome", ["blocked", "denied", "failed", "degraded"])
def test_outcomes_that_hold_are_kept(play: Make, outcome: str) -> None:
    """A blocked file is asked about once, however many kernels there are."""
    p = play()
    p.attach(1, 2)
    p.load(1, result=result_of(outcome))
    p.export(2)
    assert not p.take(Evaluate)
    assert p.take(Compare)


def test_a_change_is_told_once_and_precomputed(play: Make) -> None:
    """Found by comparing, not by the event alone; ready when the kernel asks."""
    p = play()
    p.attach(1, 2)
    p.load(1, 2)
    p.give(CHANGED)
    p.compare(same=True)
    assert not p.heard(1)
    assert not p.take(Evaluate)
    p.give(CHANGED)
    p.compare(same=False)
    (evaluate,) = p.take(Evaluate)
    assert not evaluate.waiting
    assert types(p.heard(1)) == types(p.heard(2)) == ["changed"]
    p.give(Evaluated(evaluate.evaluation, result_of(mtime=2)))
    p.now = 5.0
    p.give(CHANGED)
    p.compare(same=False)
    assert not p.heard(1), "one notice is outstanding"
    p.evaluate(result_of(mtime=3))
    p.export(1, 2)
    p.compare(same=True)
    assert types(p.heard(1)) == ["diff"]
    p.now = 10.0
    p.give(CHANGED)
    p.compare(same=False)
    assert types(p.heard(1)) == ["changed"], "after an export notices come again"


def test_without_precompute_the_notice_stays(play: Make) -> None:
    """Nothing is evaluated that nobody asked for."""
    p = play(precompute=False)
    p.attach(1)
    p.load(1)
    p.give(CHANGED)
    p.compare(same=False)
    assert types(p.heard(1)) == ["changed"]
    assert not p.take(Evaluate)
    p.export(1, 2)
    p.evaluate()
    assert types(p.heard(1)) == ["diff"]


def test_any_number_of_changes_during_a_run_cost_one_more(play: Make) -> None:
    """They are looked at when it has ended."""
    p = play()
    p.attach(1)
    p.load(1)
    p.give(CHANGED)
    p.compare(same=False)
    (running,) = p.take(Evaluate)
    for _ in range(5):
        p.give(CHANGED)
    assert not p.take(Compare)
    p.give(Evaluated(running.evaluation, result_of(mtime=2)))
    p.now = 2.0
    p.compare(same=False)
    p.give(Tick())
    assert len(p.take(Evaluate)) == 1


def test_a_file_that_changes_what_it_watches_is_run_ever_later(play: Make) -> None:
    """Some runs are free; then at most one a second, then every two, up to thirty."""
    p = play(sweep_s=10**6)
    p.attach(1)
    p.load(1)
    times = []
    for mtime in range(2, 10 + FREE_RUNS):
        p.give(CHANGED)
        p.compare(same=False)
        while not (found := p.take(Evaluate)):
            p.now += 0.5
            p.give(Tick())
        times.append(p.now)
        p.give(Evaluated(found[0].evaluation, result_of(mtime=mtime)))
        p.now += 0.1
    gaps = [b - a for a, b in pairwise(times)]
    assert max(gaps[:FREE_RUNS]) < 0.5
    assert gaps[FREE_RUNS:] == pytest.approx([1, 2, 4, 8, 16, 30, 30], abs=0.75)


def test_a_blocked_file_does_not_delay_the_allowed_one(play: Make) -> None:
    """An edit and an allow in quick steps are both looked at at once."""
    p = play()
    p.attach(1)
    p.load(1)
    p.give(CHANGED)
    p.compare(same=False)
    p.evaluate(result_of("blocked", mtime=2))
    p.now = 0.05
    p.give(CHANGED)
    p.compare(same=False)
    assert p.take(Evaluate)


def test_who_asks_does_not_wait_for_the_delay(play: Make) -> None:
    """The delay is for precomputing only."""
    p = play()
    p.attach(1)
    p.load(1)
    for mtime in range(2, 3 + FREE_RUNS):
        p.give(CHANGED)
        p.compare(same=False)
        p.evaluate(result_of(mtime=mtime))
    p.give(CHANGED)
    p.compare(same=False)
    assert not p.take(Evaluate), "too soon"
    p.export(1, 2)
    (evaluate,) = p.take(Evaluate)
    assert evaluate.waiting


def test_an_evaluation_that_began_before_a_reload_is_not_kept(play: Make) -> None:
    """Who asked before gets it; who asks after gets another one."""
    p = play()
    p.attach(1, 2)
    p.export(1)
    (first,) = p.take(Evaluate)
    p.send(2, messages.reload(1, root="/w/.envrc"))
    p.export(2, 2)
    assert not p.take(Evaluate), "one at a time for each root file"
    p.give(Evaluated(first.evaluation, result_of()))
    assert types(p.heard(1)) == ["changed", "diff"]
    assert types(p.heard(2)) == ["done"]
    p.evaluate(result_of(mtime=2))
    assert types(p.heard(2)) == ["diff"]


def test_a_reload_during_a_run_leaves_nothing_kept(play: Make) -> None:
    """Its result may be older than what the reload is about."""
    p = play()
    p.attach(1, 2)
    p.export(1)
    (first,) = p.take(Evaluate)
    p.send(2, messages.reload(1, root="/w/.envrc"))
    p.give(Evaluated(first.evaluation, result_of()))
    p.export(2, 2)
    assert p.take(Evaluate)
    assert not p.take(Compare)


def test_who_comes_after_the_kill_gets_an_evaluation_of_its_own(play: Make) -> None:
    """The one that is being killed gives nothing to anybody."""
    p = play()
    p.attach(1, 2)
    p.export(1)
    (first,) = p.take(Evaluate)
    p.send(1, messages.cancel(2, export_id=1))
    p.export(2)
    p.give(Evaluated(first.evaluation, result_of("cancelled")))
    assert not p.heard(2)
    p.evaluate()
    assert types(p.heard(2)) == ["diff"]
    assert types(p.heard(1)) == ["done"]


def test_what_was_given_up_is_not_begun_again_by_itself(play: Make) -> None:
    """Whoever asks next would be held by it again; the question begins a new one."""
    p = play()
    p.attach(1)
    p.load(1)
    p.export(1, 2)
    p.compare(same=False)
    (first,) = p.take(Evaluate)
    p.send(1, messages.cancel(3, export_id=2))
    p.give(Evaluated(first.evaluation, result_of("cancelled")))
    p.give(CHANGED)
    p.compare(same=False)
    assert not p.take(Evaluate)
    p.export(1, 4)
    p.evaluate(result_of(mtime=2))
    assert types(p.heard(1))[-1] == "diff"
    p.give(CHANGED)
    p.compare(same=False)
    assert p.take(Evaluate), "asked for again, it is precomputed again"


def test_after_lost_events_everything_in_use_is_compared(play: Make) -> None:
    """Overflow, a new watcher, and every sweep."""
    p = play(sweep_s=30)
    p.attach(1)
    p.load(1)
    p.give(Unsure())
    p.compare(same=True)
    p.now = 30.0
    p.give(Tick())
    p.compare(same=True)
    p.now = 31.0
    p.give(Tick())
    assert not p.take(Compare)


def test_a_change_during_a_comparison_is_compared_again(play: Make) -> None:
    """The comparison may have passed the path already."""
    p = play()
    p.attach(1)
    p.load(1)
    p.give(CHANGED)
    (compare,) = p.take(Compare)
    p.give(CHANGED)
    assert not p.take(Compare)
    p.give(Compared(compare.key, compare.snapshot))
    assert p.take(Compare)


def test_no_value_shows_in_a_repr(play: Make) -> None:
    """Events and effects can end in a traceback or a log."""
    p = play()
    p.environment = {"HOME": "/h", "TOKEN": "not-to-be-said"}
    p.attach(1)
    p.export(1)
    (evaluate,) = p.take(Evaluate)
    assert "not-to-be-said" not in repr(evaluate)
    assert "not-to-be-said" not in repr(p.hub.sidecar.answers)


def test_who_joins_late_never_gets_what_cannot_be_compared(play: Make) -> None:
    """It may be older than the question, and the kernel could not tell."""
    p = play()
    p.attach(1, 2)
    p.export(1)
    (first,) = p.take(Evaluate)
    p.export(2)
    incomparable = replace(result_of(), snapshot=None, watched=None)
    p.give(Evaluated(first.evaluation, incomparable))
    assert types(p.heard(1)) == ["diff"]
    assert not p.heard(2)
    p.evaluate(incomparable)
    assert types(p.heard(2)) == ["diff"]
