"""Who answers: the sidecar where it can be used, else direnv."""

from __future__ import annotations

import os
from typing import Any

import pytest

from kernel_client import sidecar
from kernel_client.answers import Answers, Request
from kernel_client.settings import Settings
from tests.faults.peers import Said, listening
from tests.support.pairs import NO_COMMAND
from tests.support.planted import exports, secret
from tests.support.worlds import World

NEWER = pytest.mark.parametrize("version", ["2.37"])


def request(world: World, **more: str) -> Request:
    """Give the question for a workspace."""
    root = str(world.path("w/.envrc"))
    base = {**world.environ, **more}
    return Request(world.direnv, root, base, ("JPY_*",), ())


def settings(path: object = None, **more: float) -> Settings:
    """Give settings for a socket, or for none."""
    if path is None:
        return Settings(sidecar="off", **more)  # type: ignore[arg-type]
    return Settings(sidecar=NO_COMMAND, socket=str(path), **more)  # type: ignore[arg-type]


@NEWER
def test_question(world: World) -> None:
    """It has what an evaluation may see, and its fingerprint is of that alone."""
    one = request(world, JPY_SESSION="1", PWD="/x")
    other = request(world, JPY_SESSION="2", PWD="/y")
    assert one.environment == other.environment == world.environ
    assert one.fingerprint == other.fingerprint
    assert one.base["JPY_SESSION"] == "1"


def link_of(answers: Answers) -> sidecar.Link | None:
    """Give what it has now, whatever a type checker remembers."""
    return answers.link


def drop_fence(_: dict[str, Any], descriptor: int) -> None:
    """Take a fence, and want none."""
    os.close(descriptor)


@NEWER
def test_withheld_name_in_an_answer(world: World) -> None:
    """That answer is not taken: direnv is asked with the whole environment."""
    world.envrc("w", 'export JPY_MINE="$JPY_SESSION"\n' + exports("FOO"))
    taken: list[str] = []

    def play(said: Said) -> None:
        said.welcome(world.direnv)
        taken.append(said.hear()["fingerprint"])
        said.diff(1, set={"JPY_MINE": "of another kernel"})
        said.gone()

    with listening(play) as peer:
        answers = Answers(settings(peer.path), lambda _: None, drop_fence)
        answer, answered = answers.ask(request(world, JPY_SESSION="7"), forced=False)
        answers.close()
    assert answer is not None
    assert (answered, answer.set["JPY_MINE"]) == ("direnv", "7")
    assert len(taken) == 1


@NEWER
def test_withheld_name_without_a_sidecar(world: World) -> None:
    """Direct mode gives the same."""
    world.envrc("w", 'export JPY_MINE="$JPY_SESSION"\n' + exports("FOO"))
    answers = Answers(settings(), lambda _: None, drop_fence)
    answer, _ = answers.ask(request(world, JPY_SESSION="7"), forced=False)
    assert answer is not None
    assert answer.set["JPY_MINE"] == "7"
    assert answers.link is None


@NEWER
def test_prefetched_answer_is_used(world: World) -> None:
    """One question for both, and no second one for the same base."""
    asked: list[str] = []

    def play(said: Said) -> None:
        said.welcome(world.direnv)
        while True:
            frame = said.hear()
            asked.append(frame["type"])
            if frame["type"] == "export":
                said.diff(frame["id"], set={"FOO": secret("FOO")})

    with listening(play) as peer:
        answers = Answers(settings(peer.path), lambda _: None, drop_fence)
        answers.prefetch(request(world))
        answers.prefetch(request(world))
        answer, answered = answers.ask(request(world), forced=False)
        assert answer is not None
        assert (answered, answer.set) == ("sidecar", {"FOO": secret("FOO")})
        assert asked == ["export"]
        answers.ask(request(world), forced=True)
        assert asked == ["export", "reload", "export"]
        answers.left("/w/.envrc")
        answers.close()


@NEWER
def test_notices(world: World) -> None:
    """A reload that somebody asked for is told once; a dead sidecar is dropped."""

    def play(said: Said) -> None:
        said.welcome(world.direnv)
        number = said.hear()["id"]
        said.say("changed", root="/a", reason="files")
        said.say("changed", root="/a", reason="reload")
        said.diff(number)

    with listening(play) as peer:
        answers = Answers(settings(peer.path), lambda _: None, drop_fence)
        answers.ask(request(world), forced=False)
        assert answers.reload_wanted("/a")
        assert not answers.reload_wanted("/a")
        assert answers.link is not None
        assert answers.link.poll(10_000)
        answers.hear_notices()
        assert link_of(answers) is None
        answers.left("/a")


@NEWER
def test_reload_after_a_question(world: World) -> None:
    """What was asked for before somebody's reload is not taken for its answer."""
    root = request(world).root
    asked: list[str] = []

    def play(said: Said) -> None:
        said.welcome(world.direnv)
        said.diff(said.hear()["id"], set={"FOO": secret("FOO")})
        said.say("changed", root=root, reason="reload")
        while True:
            frame = said.hear()
            asked.append(frame["type"])
            if frame["type"] == "export":
                said.diff(frame["id"], set={"BAR": secret("BAR")})

    with listening(play) as peer:
        answers = Answers(settings(peer.path), lambda _: None, drop_fence)
        answers.prefetch(request(world))
        wanted = False
        while not wanted:
            assert answers.link is not None
            assert answers.link.poll(10_000)
            answers.hear_notices()
            wanted = answers.reload_wanted(root)
        answer, _ = answers.ask(request(world), forced=False)
        assert answer is not None
        assert answer.set == {"BAR": secret("BAR")}
        assert asked == ["cancel", "export"]
        answers.close()


@NEWER
def test_start_is_tried_once_a_minute(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sidecar that does not come up costs one start, not one for each run."""
    world.envrc("w", exports("FOO"))
    started: list[str] = []
    monkeypatch.setattr(sidecar, "start", lambda program, *_: started.append(program))
    given = Settings(sidecar="/bin/true", socket="/nonexistent/sock")
    answers = Answers(given, lambda _: None, drop_fence)
    for _ in range(3):
        assert answers.ask(request(world), forced=False)[1] == "direnv"
    assert started == ["/bin/true"]


@NEWER
def test_hold_that_ends_first(world: World) -> None:
    """No answer; a line; the same evaluation answers the next question."""
    world.envrc(
        "w", "echo >> runs\nwhile [ ! -e go ]; do sleep 0.02; done\n" + exports("FOO")
    )
    lines: list[str] = []
    answers = Answers(settings(wait_s=0.3), lines.append, drop_fence)
    answer, _ = answers.ask(request(world), forced=False)
    assert answer is None
    assert lines[-1].startswith("envwatch: ")
    world.write("w/go", "")
    until_answer = None
    while until_answer is None:
        until_answer, _ = answers.ask(request(world), forced=False)
    assert until_answer.outcome == "loaded"
    assert world.path("w/runs").read_text() == "\n"
    answers.close()
    assert os.path.exists(world.path("w/go"))
