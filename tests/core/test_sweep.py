"""What goes when nobody uses it, and what must stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from envwatch.core import sweep
from envwatch.core.events import Closed, Evaluate, Evaluated, Key
from envwatch.core.workspace import Waiter
from kernel_client import environment as env
from tests.core.conftest import DIRENV, ROOT, result_of

Make = Callable[..., Any]


def test_an_environment_stays_while_anything_uses_it(play: Make) -> None:
    """A run, a kernel that has it loaded, a kept diff: one after the other."""
    p = play()
    p.attach(1)
    fingerprint = env.fingerprint(p.environment)
    p.export(1)
    sweep.drop_unused(p.hub.sidecar.answers, p.now)
    (evaluate,) = p.take(Evaluate)
    assert evaluate.environment == p.environment
    p.give(Evaluated(evaluate.evaluation, result_of()))
    sweep.drop_unused(p.hub.sidecar.answers, p.now)
    assert fingerprint in p.hub.sidecar.answers.bases
    p.give(Closed(1))
    sweep.drop_unused(p.hub.sidecar.answers, p.now)
    assert fingerprint in p.hub.sidecar.answers.bases
    p.hub.sidecar.answers.diffs.drop_root(ROOT)
    sweep.drop_unused(p.hub.sidecar.answers, p.now)
    assert fingerprint not in p.hub.sidecar.answers.bases


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
    sweep.drop_unused(p.hub.sidecar.answers, p.now)
    assert p.hub.sidecar.answers.diffs.of_root(ROOT) == 1
    p.give(Closed(2))
    p.now += sweep.GONE_S
    sweep.drop_unused(p.hub.sidecar.answers, p.now)
    assert p.hub.sidecar.answers.diffs.of_root(ROOT) == 0
    assert not p.hub.sidecar.schedule.workspaces


def test_a_run_that_nobody_waits_for_any_more_keeps_its_environment(
    play: Make,
) -> None:
    """And its workspace: it ends there, whoever has gone."""
    p = play()
    p.attach(1)
    p.export(1)
    p.give(Closed(1))
    (evaluate,) = p.take(Evaluate)
    p.now = sweep.GONE_S * 2
    sweep.drop_unused(p.hub.sidecar.answers, p.now)
    assert env.fingerprint(p.environment) in p.hub.sidecar.answers.bases
    p.give(Evaluated(evaluate.evaluation, result_of("cancelled")))
    sweep.drop_unused(p.hub.sidecar.answers, p.now)
    assert p.hub.sidecar.answers.bases.size == 0
    assert not p.hub.sidecar.schedule.workspaces


@pytest.mark.parametrize("waits", [True, False], ids=["waiting", "wanted"])
def test_what_is_queued_keeps_its_environment(play: Make, *, waits: bool) -> None:
    """It is needed when there is room to run."""
    p = play()
    key = Key(DIRENV, ROOT, env.fingerprint(p.environment))
    p.hub.sidecar.answers.bases.add(key.fingerprint, p.environment)
    workspace = p.hub.sidecar.schedule.of(ROOT)
    if waits:
        workspace.join(key, Waiter(1, 1))
    else:
        workspace.want(key, p.now)
    sweep.drop_unused(p.hub.sidecar.answers, p.now)
    assert key.fingerprint in p.hub.sidecar.answers.bases
    assert p.hub.sidecar.schedule.workspaces == {ROOT: workspace}


def test_the_environment_that_just_came_is_not_dropped(play: Make) -> None:
    """Where there are too many bytes of them, those that nobody uses go at once."""
    p = play()
    for name in ("new", "old"):
        environment = {"NAME": name}
        p.hub.sidecar.answers.bases.add(env.fingerprint(environment), environment)
    sweep.drop_bases(p.hub.sidecar.answers, {env.fingerprint({"NAME": "new"})})
    assert env.fingerprint({"NAME": "new"}) in p.hub.sidecar.answers.bases
    assert env.fingerprint({"NAME": "old"}) not in p.hub.sidecar.answers.bases
    assert p.hub.sidecar.answers.bases.size == env.size_bytes({"NAME": "new"})
