"""Time and changes, as they reach the sidecar, without a process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from envwatch.core.events import (
    Closed,
    Connected,
    Stop,
    Tick,
    Watch,
    WatchingState,
)
from kernel_client import messages

Make = Callable[..., Any]


def test_hello_must_come_in_time(play: Make) -> None:
    """A peer that says nothing is closed after ten seconds."""
    p = play()
    p.give(Connected(1))
    p.now = 9.9
    p.give(Tick())
    assert not p.is_closed(1)
    p.now = 10.0
    p.give(Tick())
    assert p.is_closed(1)


def test_the_sidecar_ends_when_nobody_came_for_long(play: Make) -> None:
    """Idle time counts from the last connection's end."""
    p = play(idle_s=100)
    p.attach(1)
    p.now = 500.0
    p.give(Tick())
    p.give(Closed(1))
    p.now = 599.0
    p.give(Tick())
    assert not p.take(Stop)
    p.now = 600.0
    p.give(Tick())
    assert p.take(Stop) == [Stop("idle")]


def test_status_tells_of_workspaces_and_watching(play: Make) -> None:
    """All that PROTOCOL.md lists is there."""
    p = play()
    p.attach(1, 2)
    p.load(1)
    p.give(WatchingState("degraded", "why", "what helps"))
    p.now = 2.0
    p.send(2, messages.status(1))
    status = p.heard(2)[0]["status"]
    assert status["kernels"] == 2
    assert status["watching"] == {
        "state": "degraded",
        "folders": 1,
        "reason": "why",
        "remedy": "what helps",
    }
    (workspace,) = status["workspaces"]
    assert workspace["last"] == {
        "outcome": "loaded",
        "seconds": 0.1,
        "ago_s": 2.0,
        "served": 1,
        "shared_by": 1,
    }
    assert (workspace["kernels"], workspace["kept"]) == (1, 1)
    assert (status["evaluations"], status["uptime_s"]) == (1, 2.0)
    assert status["kept_bytes"] > 0


def test_only_loaded_root_files_are_watched(play: Make) -> None:
    """Folders come with the first kernel, and go with the last."""
    p = play()
    p.attach(1, 2)
    p.load(1, 2)
    assert p.take(Watch) == [Watch(frozenset({"/w"}))]
    p.send(1, messages.left("/w/.envrc"))
    assert not p.take(Watch)
    p.give(Closed(2))
    assert p.take(Watch) == [Watch(frozenset())]


def test_what_is_kept_outlives_its_last_kernel_for_ten_minutes(play: Make) -> None:
    """Then diffs, workspace and environment go."""
    p = play()
    p.attach(1, 2)
    p.load(1)
    p.give(Closed(1))
    p.now = 599.0
    p.give(Tick())
    assert len(p.hub.sidecar.answers.diffs) == 1
    p.now = 640.0
    p.give(Tick())
    assert len(p.hub.sidecar.answers.diffs) == 0
    assert not p.hub.sidecar.schedule.workspaces
    assert p.hub.sidecar.answers.bases.size == 0
