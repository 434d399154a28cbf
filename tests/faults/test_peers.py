"""Peers on the socket that are older, newer, rude or silent."""

from __future__ import annotations

import time
from typing import Any

import pytest

from kernel_client import hold, sidecar
from tests.faults.peers import Said, Script, listening
from tests.support.pairs import Pair
from tests.support.planted import exports, secret
from tests.support.worlds import World

NEWER = pytest.mark.parametrize("version", ["2.37"])
MIB = 1024 * 1024
BOUND_S = 10.0


def older(said: Said, direnv: str) -> None:
    """Speak protocol 0."""
    said.welcome(direnv, protocol=0)
    said.gone()


def newer(said: Said, direnv: str) -> None:
    """Refuse protocol 1."""
    said.hear()
    said.say("error", id=None, code="protocol", message="this is protocol 2")


def elsewhere(said: Said, direnv: str) -> None:
    """Live in another filesystem view."""
    said.hear()
    said.say("error", id=None, code="filesystem", message="another folder")


def another_direnv(said: Said, direnv: str) -> None:
    """Run another direnv."""
    said.welcome("/another/direnv")
    said.gone()


def no_direnv(said: Said, direnv: str) -> None:
    """Have none."""
    said.welcome(None)
    said.gone()


def garbage(said: Said, direnv: str) -> None:
    """Say no JSON."""
    said.hear()
    said.raw(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def half_a_frame(said: Said, direnv: str) -> None:
    """Say half a welcome, and go."""
    said.hear()
    said.raw(b'{"type":"welcome","proto')


def half_then_silent(said: Said, direnv: str) -> None:
    """Say half a welcome, and stay."""
    said.hear()
    said.raw(b'{"type":"welcome","proto')
    said.gone()


def silent(said: Said, direnv: str) -> None:
    """Take the connection, say nothing."""
    said.gone()


def goes(said: Said, direnv: str) -> None:
    """Hang up at once."""


def too_long(said: Said, direnv: str) -> None:
    """Begin with 17 MiB."""
    said.raw(b"a" * (17 * MIB))
    said.gone()


def welcomes_then_silent(said: Said, direnv: str) -> None:
    """Never answer the question."""
    said.welcome(direnv)
    said.gone()


def welcomes_then_goes(said: Said, direnv: str) -> None:
    """Hang up when asked."""
    said.welcome(direnv)
    said.hear()


def answers_garbage(said: Said, direnv: str) -> None:
    """Answer with no JSON."""
    said.welcome(direnv)
    said.hear()
    said.raw(b"\xff\xfe\n")
    said.gone()


def answers_too_long(said: Said, direnv: str) -> None:
    """Answer with 17 MiB in one line."""
    said.welcome(direnv)
    said.hear()
    said.raw(b'{"type":"diff","x":"')
    said.raw(b"a" * (17 * MIB) + b'"}\n')
    said.gone()


def answers_half(said: Said, direnv: str) -> None:
    """Go in the middle of the answer."""
    said.welcome(direnv)
    said.hear()
    said.raw(b'{"type":"diff","id":1,"outcome":"loaded","set":{"EVIL":"')


def refuses(said: Said, direnv: str) -> None:
    """Answer with an error."""
    said.welcome(direnv)
    said.say("error", id=said.hear()["id"], code="stopping", message="it stops")
    said.gone()


def unknown_type(said: Said, direnv: str) -> None:
    """Use a word of a later protocol."""
    said.welcome(direnv)
    said.hear()
    said.say("fence", id=1)
    said.gone()


def no_shape(said: Said, direnv: str) -> None:
    """Leave out a field of the answer."""
    said.welcome(direnv)
    said.say("diff", id=said.hear()["id"], outcome="loaded", set={"EVIL": "1"})
    said.gone()


def odd_value(said: Said, direnv: str) -> None:
    """Set a variable to a number."""
    said.welcome(direnv)
    said.diff(said.hear()["id"], set={"EVIL": 1})
    said.gone()


def odd_snapshot(said: Said, direnv: str) -> None:
    """Send a stat that is a number."""
    said.welcome(direnv)
    said.diff(said.hear()["id"], set={"EVIL": "1"}, snapshot=[["/", 5, None, None]])
    said.gone()


def broken(said: Said, direnv: str) -> None:
    """Have a direnv that cannot work; a kernel asks its own."""
    said.welcome(direnv)
    said.diff(said.hear()["id"], "broken", snapshot=None)
    said.gone()


def cancelled(said: Said, direnv: str) -> None:
    """Have cancelled it."""
    said.welcome(direnv)
    said.diff(said.hear()["id"], "cancelled", snapshot=None)
    said.gone()


def other_answers(said: Said, direnv: str) -> None:
    """Answer what was not asked, then go."""
    said.welcome(direnv)
    said.diff(said.hear()["id"] + 1000, set={"EVIL": "1"})


SCRIPTS: list[Any] = [
    older,
    newer,
    elsewhere,
    another_direnv,
    no_direnv,
    garbage,
    half_a_frame,
    half_then_silent,
    silent,
    goes,
    too_long,
    welcomes_then_silent,
    welcomes_then_goes,
    answers_garbage,
    answers_too_long,
    answers_half,
    refuses,
    unknown_type,
    no_shape,
    odd_value,
    odd_snapshot,
    broken,
    cancelled,
    other_answers,
]


@NEWER
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_odd_peer(world: World, monkeypatch: pytest.MonkeyPatch, script: Any) -> None:
    """The environment and the words are direnv's own; nobody waits for long."""
    monkeypatch.setattr(hold, "SILENCE_S", 0.3)
    monkeypatch.setattr(sidecar, "_HELLO_S", 0.3)
    world.envrc("w", exports("FOO"))

    def play(said: Said) -> None:
        script(said, world.direnv)

    with listening(play) as peer:
        pair = Pair(world, socket=peer.path)
        try:
            started = time.monotonic()
            pair.step("w", outcome="loaded", alone=True)
            assert pair.environ["FOO"] == secret("FOO")
            assert time.monotonic() - started < BOUND_S
            assert peer.connections >= 1
            pair.step(outcome="unchanged")
            world.envrc("w", exports("BAR"))
            pair.step(outcome="loaded", alone=True)
            pair.step(world.top, outcome="unloaded")
            assert pair.environ == world.environ
        finally:
            pair.close()


@NEWER
def test_peer_that_goes_on_for_ever(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Progress without an end is ended by the hold; the next run asks again."""
    world.envrc("w", exports("FOO"))

    def play(said: Said) -> None:
        said.welcome(world.direnv)
        number = said.hear()["id"]
        while True:
            said.say("progress", id=number, elapsed_s=1.0, line=None)
            time.sleep(0.01)

    script: Script = play
    with listening(script) as peer:
        pair = Pair(world, socket=peer.path, wait_s=0.5)
        try:
            pair.go("w")
            result = pair.kernel.refresh()
            assert result.outcome == "timeout"
            assert pair.environ == world.environ
            assert len(result.messages) == 1
        finally:
            pair.close()
