"""What goes into the core and comes out of it, and what a repr of it shows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from envwatch.core import events, frames
from envwatch.core.events import (
    Allowance,
    Armed,
    Burnt,
    Closed,
    Compared,
    Connected,
    Effect,
    Entry,
    Evaluate,
    Evaluated,
    Event,
    Fenced,
    FoldersChanged,
    Frame,
    Garbled,
    Key,
    Lines,
    Log,
    Looked,
    NotArmed,
    Received,
    Result,
    Send,
    Snapshot,
    Stat,
)
from envwatch.core.hub import Hub
from envwatch.core.sidecar import Rules
from kernel_client import environment as env, messages, snapshot
from tests.core.conftest import DIRENV, ROOT, result_of, snapshot_of
from tests.support.planted import secret

Make = Callable[..., Any]

KINDS: tuple[Any, ...] = (
    *get_args(Event),
    *get_args(Effect),
    *(Allowance, Armed, NotArmed, Result),
)

HIDDEN = (bytes, Frame, Mapping[str, str], tuple[str, ...], Snapshot, Snapshot | None)
"""Types of fields that can have a value, a line of direnv's or many paths in them."""

GONE = Key(DIRENV, "/gone/.envrc", "f")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.__name__))
def test_what_can_hold_a_value_does_not_show(kind: Any) -> None:
    """A field of such a type stays out of the repr, in kinds yet to come too."""
    hints = get_type_hints(kind, vars(events))
    for field in dataclasses.fields(kind):
        assert not (field.repr and hints[field.name] in HIDDEN), field.name


def test_no_value_shows_in_a_whole_life() -> None:
    """Of an export and its diff, all but the bytes themselves can be logged."""
    value = secret("EVENT")
    environment = {"HOME": "/h", "A": value}
    export = messages.export(
        1,
        root=ROOT,
        fingerprint=env.fingerprint(environment),
        direnv=DIRENV,
        environment=environment,
    )
    body = frames.members({"outcome": "loaded", "set": {"B": value}})
    result = dataclasses.replace(result_of(), body=body)
    hub = Hub(
        Rules(version="0", pid=1, direnv={"path": DIRENV, "version": "1"}),
        0.0,
    )
    happened: list[Event] = [
        Connected(1),
        Received(1, messages.hello(pid=1, client="t", cwd=None)),
        Received(1, export),
        Lines(1, (f"direnv: {value}",)),
        Evaluated(1, result),
        FoldersChanged(frozenset({"/w"})),
        # An environment of another fingerprint, and one that is none.
        Received(1, {**export, "fingerprint": "f"}),
        Received(1, {**export, "fingerprint": "f", "environment": {"A": [value]}}),
    ]
    asked: list[Effect] = []
    for event in happened:
        assert value not in repr(event)
        asked += hub.handle(event, 1.0 if isinstance(event, Lines) else 0.0)
    # It was there: what was not shown is in what was sent and in what is to be run.
    assert sum(value.encode() in e.data for e in asked if isinstance(e, Send)) == 2
    (evaluate,) = (each for each in asked if isinstance(each, Evaluate))
    assert evaluate.environment == environment
    logged = [each.event for each in asked if isinstance(each, Log)]
    assert logged == ["evaluated", "refused"]
    assert value not in repr(asked)


@pytest.mark.parametrize(
    "event",
    [
        Received(9, {"type": "status", "id": 1}),
        Garbled(9, "not_json", "a frame is not JSON"),
        Closed(9),
        Looked(9, same=False),
        pytest.param(Compared(GONE, None), id="changed"),
        pytest.param(Compared(GONE, snapshot_of(GONE.root)), id="same"),
        Lines(9, ("late",)),
        Evaluated(9, result_of(root=GONE.root)),
        FoldersChanged(frozenset({"/gone"})),
        Fenced(NotArmed(9, "few", "there is little to watch")),
        Burnt(9),
    ],
    ids=lambda event: type(event).__name__,
)
def test_what_comes_too_late_asks_for_nothing(play: Make, event: Event) -> None:
    """The session, the evaluation or the key may have gone while it was under way."""
    p = play()
    p.attach(1)
    p.give(event)
    assert (p.effects, p.said) == ([], {})
    assert not p.hub.sidecar.schedule.workspaces
    assert len(p.hub.sidecar.sessions) == 1


def test_a_snapshot_is_what_the_client_takes(tmp_path: Path) -> None:
    """The shapes are written down twice, as the client's module does I/O."""
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_text("x")
    link.symlink_to(file)
    paths = [str(file), str(link), str(tmp_path / "missing")]
    taken: Snapshot = snapshot.with_digests(snapshot.take(paths))
    assert [entry[0] for entry in taken] == paths
    for entry in taken:
        assert len(entry) == len(get_args(Entry))
        for part, allowed in zip(entry, get_args(Entry), strict=True):
            if isinstance(part, tuple):
                assert Stat in get_args(allowed)
                assert tuple(map(type, part)) == get_args(Stat)
            else:
                assert type(part) in (get_args(allowed) or (allowed,))
    # An entry of each kind: with a stat, with a link's own, and with neither.
    assert [entry[1] is None for entry in taken] == [False, False, True]
    assert [entry[2] is None for entry in taken] == [True, False, True]
