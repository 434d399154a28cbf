"""What goes when nobody uses it, and what must stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from envwatch.core import sweep
from envwatch.core.events import Closed, Evaluate, Evaluated, FoldersChanged
from kernel_client import environment as env, messages
from tests.core.conftest import ROOT, result_of

Make = Callable[..., Any]


def test_an_environment_stays_while_anything_uses_it(play: Make) -> None:
    """A run, a kernel that has it loaded, a kept diff: one after the other."""
    p = play()
    p.attach(1)
    fingerprint = env.fingerprint(p.environment)
    p.export(1)
    sweep.drop_unused(p.hub.answers, p.now)
    (evaluate,) = p.take(Evaluate)
    assert evaluate.environment == p.environment
    p.give(Evaluated(evaluate.evaluation, result_of()))
    sweep.drop_unused(p.hub.answers, p.now)
    assert fingerprint in p.hub.answers.bases
    p.give(Closed(1))
    sweep.drop_unused(p.hub.answers, p.now)
    assert fingerprint in p.hub.answers.bases
    p.hub.answers.diffs.drop_root(ROOT)
    sweep.drop_unused(p.hub.answers, p.now)
    assert fingerprint not in p.hub.answers.bases


def test_an_environment_stays_while_it_is_precomputed_for_nobody(play: Make) -> None:
    """The kernel unloaded meanwhile; the result is still one that can be kept."""
    p = play()
    p.attach(1)
    p.load(1)
    p.give(FoldersChanged(frozenset({"/w"})))
    p.compare(same=False)
    (evaluate,) = p.take(Evaluate)
    p.send(1, messages.left(ROOT))
    sweep.drop_unused(p.hub.answers, p.now)
    p.give(Evaluated(evaluate.evaluation, result_of(mtime=2)))
    fingerprint = env.fingerprint(p.environment)
    (kept,) = p.hub.answers.diffs
    assert fingerprint in p.hub.answers.bases
    assert kept.size >= p.hub.answers.bases.size > 0


def test_a_kernel_that_comes_back_in_time_keeps_the_diffs(play: Make) -> None:
    """The ten minutes begin when the last one has gone."""
    p = play()
    p.attach(1, 2)
    p.load(1)
    p.give(Closed(1))
    p.now = sweep.GONE_S - 1
    p.export(2)
    p.compare(same=True)
    p.now = sweep.GONE_S * 2
    sweep.drop_unused(p.hub.answers, p.now)
    assert p.hub.answers.diffs.of_root(ROOT) == 1
    p.give(Closed(2))
    p.now += sweep.GONE_S
    sweep.drop_unused(p.hub.answers, p.now)
    assert p.hub.answers.diffs.of_root(ROOT) == 0
    assert not p.hub.schedule.workspaces
