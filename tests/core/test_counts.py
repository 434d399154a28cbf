"""What kernels counted, added up; and frames."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from envwatch.core import report
from envwatch.core.counts import Counts, none_yet
from envwatch.core.events import Closed, Lines, Tick
from envwatch.core.sweep import GONE_S
from kernel_client import messages
from kernel_client.errors import ProtocolError
from tests.core.conftest import ROOT, result_of

Make = Callable[..., Any]


def left(*answered: Any, root: str = ROOT) -> dict[str, Any]:
    """Give a frame that brings counts along."""
    return {**messages.left(root), "answered": list(answered)}


def test_they_are_added_by_root_and_in_all() -> None:
    """What is left out is 0, and what belongs to no root file is in the total."""
    counts = Counts()
    counts.take(left({"root": "/a", "stats": 3}, {"root": None, "none": 1}), {"/a"})
    counts.take(left({"root": "/a", "stats": 1, "direnv": 2}), {"/a"})
    assert counts.of_root("/a") == {**none_yet(), "stats": 4, "direnv": 2}
    assert counts.total == {**none_yet(), "stats": 4, "direnv": 2, "none": 1}
    assert counts.of_root("/b") == none_yet()


def test_names_that_are_not_known_take_no_memory() -> None:
    """A root file that the sidecar does not know is counted in the total only."""
    counts = Counts()
    counts.take(left({"root": "/b", "sidecar": 1}), {"/a"})
    assert counts.total["sidecar"] == 1
    assert counts._by_root == {}


@pytest.mark.parametrize(
    "answered",
    [
        {"root": "/a", "stats": 1},
        ["stats"],
        [{"root": 1, "stats": 1}],
        [{"root": "/a", "stats": 1}, {"root": "/a", "stats": -1}],
        [{"root": "/a", "stats": True}],
        [{"root": "/a", "stats": 1.5}],
        [{"root": "/a", "stats": 2**53}],
    ],
)
def test_another_shape_is_refused_whole(answered: Any) -> None:
    """Nothing of it is counted."""
    counts = Counts()
    with pytest.raises(ProtocolError) as caught:
        counts.take({**messages.left("/a"), "answered": answered}, {"/a"})
    assert caught.value.code == "shape"
    assert counts.total == none_yet()


def test_other_frames_do_not_have_them() -> None:
    """In a frame that has no such field it is ignored, as every unknown field."""
    counts = Counts()
    counts.take({**messages.status(1), "answered": "nonsense"}, {"/a"})
    assert counts.total == none_yet()


def test_the_hub_adds_up_what_kernels_send(play: Make) -> None:
    """Every frame that may have them; `status` tells, for each workspace and in all."""
    p = play()
    p.attach(1, 2)
    p.load(1, 2)
    answered = [{"root": ROOT, "stats": 10}, {"root": None, "none": 1}]
    p.send(1, {**messages.fence(ROOT, held=True), "answered": answered})
    p.send(1, {**messages.reload(7, root=ROOT), "answered": answered})
    p.send(1, {**messages.cancel(8, export_id=99), "answered": answered})
    p.send(2, {**messages.left(ROOT), "answered": answered})
    p.export(2, 5, answered=answered)
    status = report.status(p.hub.sidecar, p.now)
    assert status["answered"] == {**none_yet(), "stats": 50, "none": 5}
    assert status["workspaces"][0]["answered"] == {**none_yet(), "stats": 50}


def test_a_kernel_with_a_wrong_count_is_turned_away(play: Make) -> None:
    """As with every field of another shape: an error, and only that connection ends."""
    p = play()
    p.attach(1, 2)
    p.load(1, 2)
    p.send(1, left("stats"))
    assert p.heard(1)[-1]["code"] == "shape"
    assert p.is_closed(1)
    assert report.status(p.hub.sidecar, p.now)["kernels"] == 2


def test_what_is_not_known_any_more_is_forgotten(play: Make) -> None:
    """The counts of a workspace go with it; the total stays."""
    p = play()
    p.attach(1)
    p.load(1)
    p.send(1, left({"root": ROOT, "stats": 5}))
    p.give(Closed(1))
    p.now = GONE_S + 60.0
    p.give(Tick())
    status = report.status(p.hub.sidecar, p.now)
    assert status["workspaces"] == []
    assert p.hub.sidecar.counts._by_root == {}
    assert status["answered"]["stats"] == 5


def test_frames_are_counted_both_ways(play: Make) -> None:
    """Each line of direnv's is a frame of its own, also where they leave in one piece."""
    p = play()
    p.attach(1)
    assert report.status(p.hub.sidecar, 0.0)["frames"] == {"received": 1, "sent": 1}
    p.export(1)
    p.now = 1.0
    p.give(Lines(1, ("one", "two", "three")))
    p.give(Tick())
    heard = p.heard(1)
    assert [frame["type"] for frame in heard] == ["progress"] * len(heard)
    assert report.status(p.hub.sidecar, p.now)["frames"]["sent"] == 1 + len(heard)
    p.evaluate(result_of())
    p.send(1, messages.status(3))
    frames = p.heard(1)[-1]["status"]["frames"]
    assert frames == {"received": 3, "sent": 2 + len(heard)}


def test_who_joins_late_hears_all_lines_as_frames(play: Make) -> None:
    """What was said before it joined is counted for it as well."""
    p = play()
    p.attach(1, 2)
    p.export(1)
    p.now = 1.0
    p.give(Lines(1, ("one", "two")))
    p.give(Tick())
    before = p.hub.sidecar.counts.sent
    p.export(2)
    assert len(p.heard(2)) == 2
    assert p.hub.sidecar.counts.sent == before + 2


def test_a_kernel_that_asks_twice_is_one_kernel(play: Make) -> None:
    """`shared_by` counts kernels, not answers; a new evaluation begins anew."""
    p = play()
    p.attach(1, 2)
    p.load(1)
    for session in (1, 2, 2):
        p.export(session, 9)
        p.compare(same=True)
    last = report.status(p.hub.sidecar, p.now)["workspaces"][0]["last"]
    assert (last["served"], last["shared_by"]) == (1, 2)
    p.export(1, 10)
    p.compare(same=False)
    p.evaluate(result_of(mtime=2))
    last = report.status(p.hub.sidecar, p.now)["workspaces"][0]["last"]
    assert (last["served"], last["shared_by"]) == (1, 1)
