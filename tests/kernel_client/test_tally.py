"""How refreshes were answered: counted here, sent with what goes out anyway."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from envwatch.core.counts import Counts
from kernel_client import Client, Settings, messages
from kernel_client.tally import MAX_ROOTS, Tally
from tests.conftest import OLDER
from tests.support.pairs import NO_COMMAND
from tests.support.worlds import World

ROOT = "/w/.envrc"


def answered(frame: dict[str, Any]) -> Any:
    """Give what a frame tells, and expect that the sidecar understands it."""
    told = frame.get("answered")
    Counts().take(frame, {ROOT})
    return told


def test_counts_go_with_one_frame() -> None:
    """All of them with the next one, and then not again."""
    tally = Tally()
    tally.add(ROOT, "stats", 41)
    tally.add(ROOT, "stats")
    tally.add(ROOT, "sidecar")
    tally.add(None, "none")
    assert answered(tally.join(messages.left(ROOT))) == [
        {"root": ROOT, "stats": 42, "sidecar": 1},
        {"root": None, "none": 1},
    ]
    assert answered(tally.join(messages.left(ROOT))) is None


@pytest.mark.parametrize(
    ("frame", "may"),
    [
        (messages.left(ROOT), True),
        (messages.cancel(1, export_id=2), True),
        (messages.reload(1, root=ROOT), True),
        (messages.fence(ROOT, held=True), True),
        (messages.export(1, root=ROOT, fingerprint="", direnv=""), True),
        (messages.hello(pid=1, client="t", cwd=None), False),
        (messages.status(1), False),
        (messages.stop(1), False),
    ],
    ids=lambda value: value["type"] if isinstance(value, dict) else "",
)
def test_only_what_a_kernel_sends_anyway_has_them(
    frame: dict[str, Any],
    may: bool,  # noqa: FBT001 - a parameter
) -> None:
    """What has to go with another frame waits for it."""
    tally = Tally()
    tally.add(ROOT, "stats")
    assert ("answered" in tally.join(frame)) == may
    assert ("answered" in tally.join(messages.left(ROOT))) != may


def test_nothing_is_nothing() -> None:
    """No refresh by stats is no entry, and a frame that has nothing to tell is itself."""
    tally = Tally()
    tally.add(ROOT, "stats", 0)
    frame = messages.left(ROOT)
    assert tally.join(frame) is frame


def test_they_are_bounded() -> None:
    """More root files than that share one entry; numbers stay exact in JSON."""
    tally = Tally()
    for number in range(MAX_ROOTS + 5):
        tally.add(f"/{number}", "sidecar")
    tally.add("/0", "sidecar", messages.MAX_COUNT)
    told = answered(tally.join(messages.left(ROOT)))
    assert len(told) == MAX_ROOTS + 1
    assert told[0] == {"root": "/0", "sidecar": messages.MAX_COUNT}
    assert told[-1] == {"root": None, "sidecar": 5}


# ------------------------------------------------------------------ of a client


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Give what is put into frames, as it goes out."""
    frames: list[dict[str, Any]] = []
    join = Tally.join

    def noted(self: Tally, frame: dict[str, Any]) -> dict[str, Any]:
        frames.append(join(self, frame))
        return frames[-1]

    monkeypatch.setattr(Tally, "join", noted)
    return frames


@pytest.fixture
def make(world: World, daemons: Any, version: str) -> Iterator[Callable[..., Client]]:
    """Give what makes a client of the world; `shared`: with the sidecar."""
    made: list[Client] = []

    def one(*, shared: bool = True) -> Client:
        path = str(daemons[version].socket)
        settings = Settings(sidecar=NO_COMMAND, socket=path)
        if not shared:
            settings = Settings(sidecar="off")
        environ = dict(world.environ)
        made.append(Client(environ, output=lambda _: None, settings=settings))
        return made[-1]

    yield one
    for each in made:
        each.close()


one_version = pytest.mark.parametrize("version", [OLDER], indirect=True)


@one_version
def test_a_client_counts_every_refresh(
    world: World, make: Callable[..., Client], sent: list[dict[str, Any]]
) -> None:
    """By who answered, for the root file that it was about; no frame is for that."""
    root = str(world.envrc("w", "export A=1\n"))
    client = make()
    assert client.refresh().answered == "none"
    os.chdir(world.path("w"))
    assert client.refresh().answered == "sidecar"
    for _ in range(5):
        assert client.refresh().answered == "stats"
    assert {frame["type"] for frame in sent} == {"export"}
    assert [each["answered"] for each in sent if "answered" in each] == [
        [{"root": None, "none": 1}]
    ]
    os.chdir(world.top)
    assert client.refresh().answered == "record"
    assert sent[-1] == {
        "type": "left",
        "root": root,
        "answered": [{"root": root, "sidecar": 1, "stats": 5}],
    }


@one_version
def test_unload_tells_the_last_ones(
    world: World, make: Callable[..., Client], sent: list[dict[str, Any]]
) -> None:
    """A kernel that stops refreshing tells what it counted until then."""
    root = str(world.envrc("w", "export A=1\n"))
    os.chdir(world.path("w"))
    client = make()
    for _ in range(3):
        client.refresh()
    client.unload()
    assert sent[-1]["answered"] == [{"root": root, "sidecar": 1, "stats": 2}]


@one_version
def test_without_a_sidecar_counts_wait(
    world: World, make: Callable[..., Client]
) -> None:
    """What direnv answered is told once there is somebody to tell."""
    root = str(world.envrc("w", "export A=1\n"))
    os.chdir(world.path("w"))
    client = make(shared=False)
    for _ in range(3):
        client.refresh()
    client._count()
    told = answered(client._tally.join(messages.left(root)))
    assert told == [{"root": root, "direnv": 1, "stats": 2}]


@one_version
def test_a_forked_child_counts_its_own(
    world: World, make: Callable[..., Client]
) -> None:
    """What the parent counted is the parent's to tell."""
    world.envrc("w", "export A=1\n")
    os.chdir(world.path("w"))
    client = make(shared=False)
    for _ in range(3):
        client.refresh()
    client.forked()
    client._count()
    assert "answered" not in client._tally.join(messages.left("/"))
