"""What `status` tells."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kernel_client
from envwatch.core import report
from envwatch.core.events import (
    Burnt,
    Closed,
    Connected,
    FoldersChanged,
    WatchingState,
)
from envwatch.core.fences import Bounds
from kernel_client import environment as env
from tests.core.conftest import ROOT, result_of
from tests.support.planted import secret

Make = Callable[..., Any]

PROTOCOL = Path(kernel_client.__file__).parent / "PROTOCOL.md"
OTHER = "/a/.envrc"


def told(p: Any) -> dict[str, Any]:
    """Give the status as a client reads it."""
    status: dict[str, Any] = json.loads(json.dumps(report.status(p.hub.sidecar, p.now)))
    return status


def workspace(p: Any, root: str = ROOT) -> dict[str, Any]:
    """Give what is told of a root file."""
    (found,) = (each for each in told(p)["workspaces"] if each["root"] == root)
    assert isinstance(found, dict)
    return found


def test_it_is_the_object_of_the_protocol(play: Make) -> None:
    """Every field that PROTOCOL.md lists, and no other."""
    text = PROTOCOL.read_text()
    section = text.partition("### `status`")[2].partition("###")[0]
    rows = [row.split("|")[1:3] for row in section.splitlines() if row[:3] == "| `"]
    listed = [name for row in rows for name in re.findall(r"`(\w+)`", row[0])]
    inner = {row[0].strip(" `"): set(re.findall(r'"(\w+)"', row[1])) for row in rows}
    p = play()
    p.attach(1)
    p.load(1)
    status = told(p)
    assert len(listed) > 5
    assert sorted(status) == sorted(listed)
    assert inner["direnv"] == status["direnv"].keys()
    states = {"ok", "degraded", "off"}
    assert inner["watching"] - states == status["watching"].keys()
    modes = {"auto", "always", "off"}
    assert inner["fences"] - modes == status["fences"].keys()
    assert inner["answered"] == status["answered"].keys()
    assert inner["frames"] == status["frames"].keys()
    (each,) = status["workspaces"]
    states = {"idle", "running", "dirty"}
    states |= {"allowed", "blocked", "denied", "none"}
    assert inner["workspaces"] - states == each.keys() | each["last"].keys()
    assert each["answered"].keys() == status["answered"].keys()


def test_a_new_sidecar_has_nothing_to_tell(play: Make) -> None:
    """No workspace, nothing watched, no direnv where there is none."""
    status = told(play(direnv=None))
    assert status["direnv"] is None
    assert status["watching"] == {
        "state": "off",
        "folders": 0,
        "reason": None,
        "remedy": None,
    }
    assert status["fences"] == {
        "mode": "off",
        "armed": 0,
        "limit": 64,
        "watches": 0,
        "reason": None,
    }
    assert status["workspaces"] == []
    assert (status["kernels"], status["evaluations"], status["kept_bytes"]) == (0, 0, 0)


def test_only_those_that_said_hello_are_kernels(play: Make) -> None:
    """A bare connection is none, and one that has gone is none any more."""
    p = play()
    p.attach(1, 2)
    p.give(Connected(3))
    assert told(p)["kernels"] == 2
    p.give(Closed(1))
    assert told(p)["kernels"] == 1


def test_a_state_follows_what_runs(play: Make) -> None:
    """Running, idle, and dirty when one more run will follow."""
    p = play()
    p.attach(1)
    p.export(1)
    assert (workspace(p)["state"], workspace(p)["last"]) == ("running", None)
    p.give(FoldersChanged(frozenset({"/w"})))
    assert workspace(p)["state"] == "running"
    p.evaluate()
    assert (workspace(p)["state"], workspace(p)["kept"]) == ("idle", 1)
    p.give(FoldersChanged(frozenset({"/w"})))
    p.compare(same=False)
    assert (workspace(p)["state"], workspace(p)["kept"]) == ("running", 0)
    p.give(FoldersChanged(frozenset({"/w"})))
    assert workspace(p)["state"] == "dirty"
    p.evaluate(result_of(mtime=2))
    p.compare(same=True)
    assert workspace(p)["state"] == "idle"
    assert told(p)["evaluations"] == 2


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        ("loaded", "allowed"),
        ("failed", "allowed"),
        ("degraded", "allowed"),
        ("blocked", "blocked"),
        ("denied", "denied"),
        ("absent", "none"),
        ("timeout", None),
        ("cancelled", None),
        ("broken", None),
    ],
)
def test_state_of_the_root_file_is_direnv_s_last_word(
    play: Make, outcome: str, expected: str | None
) -> None:
    """It follows from the outcome alone; nobody is asked, and a bound tells nothing."""
    p = play()
    p.attach(1)
    p.export(1)
    assert workspace(p)["root_state"] is None
    p.evaluate(result_of(outcome))
    assert workspace(p)["root_state"] == expected


def test_each_root_file_has_its_own_numbers(play: Make) -> None:
    """In the order of their paths; bases of one root file are counted together."""
    p = play()
    p.attach(1, 2, 3)
    p.load(1)
    p.environment = {"HOME": "/h", "OTHER": "base"}
    p.load(2)
    p.export(3, root=OTHER)
    p.evaluate(result_of("failed", root=OTHER))
    assert [each["root"] for each in told(p)["workspaces"]] == [OTHER, ROOT]
    first, second = told(p)["workspaces"]
    assert (first["kernels"], first["kept"], first["last"]["outcome"]) == (
        1,
        1,
        "failed",
    )
    assert (second["kernels"], second["kept"], second["last"]["outcome"]) == (
        2,
        2,
        "loaded",
    )
    assert told(p)["watching"]["folders"] == 2
    p.give(Closed(3))
    assert (workspace(p, OTHER)["kernels"], workspace(p, OTHER)["kept"]) == (0, 1)
    assert told(p)["watching"]["folders"] == 1


def test_the_last_run_is_told_with_those_it_served(play: Make) -> None:
    """A kernel that is given a kept diff later shares it, but did not wait for it."""
    p = play()
    p.attach(1, 2, 3)
    p.load(1, 2)
    p.now = 1.0
    p.export(3)
    p.compare(same=True)
    assert p.heard(3)[-1]["type"] == "diff"
    assert workspace(p)["last"] == {
        "outcome": "loaded",
        "seconds": 0.1,
        "ago_s": 1.0,
        "served": 2,
        "shared_by": 3,
    }
    assert workspace(p)["kernels"] == 3


def test_bytes_are_those_that_are_kept(play: Make) -> None:
    """They come with a diff, grow with it, and go with it."""
    p = play()
    p.attach(1)
    p.load(1, result=result_of(size=1000))
    smaller = told(p)["kept_bytes"]
    assert smaller == env.size_bytes(p.environment) + sum(
        len(each.result.body) + len(each.result.wire)
        for each in p.hub.sidecar.answers.diffs
    )
    p.export(1)
    p.compare(same=False)
    assert told(p)["kept_bytes"] == 0
    p.evaluate(result_of(mtime=2, size=1500))
    assert told(p)["kept_bytes"] == smaller + 500


def test_fences_are_those_that_are_armed(play: Make) -> None:
    """Of each root file, over all its bases; watches also of those still held."""
    p = play(fences=Bounds(mode="always", max_fences=2, max_watches=50))
    p.attach(1, 2, 3, fences=True)
    p.export(1)
    p.evaluate(watches=7)
    p.environment = {"HOME": "/h", "OTHER": "base"}
    p.export(2)
    p.evaluate(watches=8)
    assert told(p)["fences"] == {
        "mode": "always",
        "armed": 2,
        "limit": 2,
        "watches": 15,
        "reason": None,
    }
    p.export(3, root=OTHER)
    p.evaluate()
    assert told(p)["fences"]["reason"] == "2 fences are the limit"
    assert (workspace(p)["fences"], workspace(p, OTHER)["fences"]) == (2, 0)
    p.give(Burnt(1))
    assert (workspace(p)["fences"], told(p)["fences"]["watches"]) == (1, 15)
    p.give(Closed(1))
    assert told(p)["fences"]["watches"] == 8


@pytest.mark.parametrize(
    ("now", "uptime_s"), [(0.0, 0.0), (1.23456, 1.235), (86400.0004, 86400.0)]
)
def test_times_are_rounded(play: Make, now: float, uptime_s: float) -> None:
    """A person reads them."""
    p = play()
    p.attach(1)
    p.load(1)
    p.now = now
    assert told(p)["uptime_s"] == uptime_s
    assert workspace(p)["last"]["ago_s"] == uptime_s


def test_asking_changes_nothing(play: Make) -> None:
    """Twice gives the same, and what is used last is not used by asking."""
    p = play()
    p.attach(1, 2)
    p.load(1)
    p.export(2, root=OTHER)
    p.evaluate(result_of(root=OTHER))
    p.give(WatchingState("degraded", "why", "what helps"))
    before = [kept.key for kept in p.hub.sidecar.answers.diffs]
    watched = told(p)["watching"]
    assert (watched["reason"], watched["remedy"]) == ("why", "what helps")
    assert told(p) == told(p)
    assert [kept.key for kept in p.hub.sidecar.answers.diffs] == before
    assert len(p.hub.sidecar.schedule.workspaces) == 2


def test_no_value_is_told(play: Make) -> None:
    """Neither of the base nor of the diff, nor what direnv said."""
    value = secret("STATUS")
    p = play()
    p.environment = {"HOME": "/h", "A": value}
    p.attach(1)
    made = result_of()
    body = made.body.replace(b'"A":""', b'"A":"%b"' % value.encode())
    p.export(1)
    p.evaluate(dataclasses.replace(made, body=body))
    assert value in p.heard(1)[-1]["set"]["A"]
    assert value not in json.dumps(told(p))
    assert workspace(p)["kept"] == 1
