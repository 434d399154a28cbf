"""Waiting for an answer: from direnv here, or from the sidecar."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any, cast

import pytest

from kernel_client import hold, messages, outcome
from kernel_client.errors import SidecarError
from kernel_client.hold import Asked, Direct
from kernel_client.sidecar import Link
from tests.faults.peers import marked
from tests.support.children import forked
from tests.support.daemons import until
from tests.support.planted import exports, secret
from tests.support.processes import gone
from tests.support.worlds import World


def direct(world: World, **more: Any) -> Direct:
    """Start an evaluation."""
    root = str(world.path("w/.envrc"))
    return Direct(world.direnv, root, {**world.environ, **more}, known=(), kill_s=30.0)


def nothing(_: str) -> None:
    """Hear nothing."""


def test_answer_of_direnv(world: World) -> None:
    """Its lines as they come, and the answer."""
    world.envrc("w", "echo said\n" + exports("FOO"))
    lines: list[str] = []
    answer = direct(world).wait(20, lines.append, nothing)
    assert answer is not None
    assert answer.set["FOO"] == secret("FOO")
    assert lines == answer.messages
    assert "said" in lines


def test_wait_that_ends_first(world: World) -> None:
    """The evaluation goes on; a later wait has its answer."""
    body = "while [ ! -e go ]; do sleep 0.02; done\n"
    world.envrc("w", body + exports("FOO"))
    running = direct(world)
    assert running.wait(0.05, nothing, nothing) is None
    world.write("w/go", "")
    answer = running.wait(20, nothing, nothing)
    assert answer is not None
    assert answer.outcome == outcome.LOADED


def test_cancel_leaves_no_process(world: World) -> None:
    """The whole group is gone when it returns."""
    world.envrc("w", "echo $$ > pid\nwhile :; do sleep 60; done\n")
    marker = f"MARK={world.top.name}"
    running = direct(world, MARK=world.top.name)
    until("it runs", lambda: world.path("w/pid").exists())
    running.cancel()
    until("nothing is left", lambda: not marked(marker))
    assert running not in hold._running


def test_exit_ends_what_runs(world: World) -> None:
    """And a forked child minds nothing of its parent's."""
    world.envrc("w", "echo $$ > pid\nwhile :; do sleep 60; done\n")
    running = direct(world)
    until(
        "it runs",
        lambda: (
            world.path("w/pid").read_text() != ""
            if world.path("w/pid").exists()
            else False
        ),
    )
    pid = int(world.path("w/pid").read_text())
    assert forked(lambda: len(hold._running)) == 0
    assert not gone(pid)
    hold.end_all()
    until("it has gone", lambda: gone(pid))
    assert running not in hold._running


class Pipe:
    """A link that gives what a test puts into it."""

    def __init__(self, *answers: list[dict[str, Any]]) -> None:
        self.sent: list[dict[str, Any]] = []
        self.answers = list(answers)

    def number(self) -> int:
        """Give an id."""
        return 7 + len(self.sent)

    def send(self, frame: dict[str, Any]) -> None:
        """Keep it."""
        self.sent.append(frame)

    def receive(self, _: float) -> list[dict[str, Any]]:
        """Give the next frames; nothing when there are none."""
        return self.answers.pop(0) if self.answers else []


def asked(pipe: Pipe) -> Asked:
    """Ask over a pipe; the question has the id 7."""
    return Asked(cast(Link, pipe), "/r", "f", "/d", {"A": "1"})


def diff(number: int = 7, **fields: Any) -> dict[str, Any]:
    """Give a diff frame."""
    usual: dict[str, Any] = {
        "type": "diff",
        "id": number,
        "outcome": "loaded",
        "set": {"FOO": "1"},
        "unset": ["GONE"],
        "messages": ["one", "two"],
        "snapshot": [["/r", "1 2 3 4 5", None, None]],
        "seconds": 0.1,
        "evaluated_s_ago": 0,
        "shared": True,
    }
    return messages.check({**usual, **fields})


def test_answer_of_the_sidecar() -> None:
    """The base is sent when asked for; a line that was streamed is not said again."""
    pipe = Pipe(
        [{"type": "need_base", "id": 7}],
        [{"type": "progress", "id": 7, "elapsed_s": 0.1, "line": "one"}],
        [{"type": "progress", "id": 7, "elapsed_s": 1, "line": None}],
        [diff(3), {"type": "changed", "root": "/r", "reason": "files"}, diff()],
    )
    lines: list[str] = []
    others: list[dict[str, Any]] = []
    answer = asked(pipe).wait(5, lines.append, nothing, others.append)
    assert answer is not None
    assert (answer.set, answer.unset) == ({"FOO": "1"}, ("GONE",))
    assert answer.snapshot == (("/r", (1, 2, 3, 4, 5), None, None),)
    assert lines == ["one", "two"]
    assert [frame["type"] for frame in others] == ["changed"]
    bare, whole = pipe.sent
    assert "environment" not in bare
    assert whole == {**bare, "environment": {"A": "1"}}


def test_frames_that_came_before_anybody_waited() -> None:
    """A prefetch: kept, and the base is sent at once."""
    pipe = Pipe()
    question = asked(pipe)
    question.keep({"type": "need_base", "id": 7})
    assert pipe.sent[-1]["environment"] == {"A": "1"}
    question.keep(diff(3))
    question.keep(diff())
    assert question.wait(5, nothing, nothing, lambda _: None) is not None


def test_hold_that_ends_first() -> None:
    """No answer, and no error."""
    assert asked(Pipe()).wait(0, nothing, nothing, lambda _: None) is None


def test_silent_sidecar(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is given up, long before the hold ends."""
    monkeypatch.setattr(hold, "SILENCE_S", 0.05)
    with pytest.raises(SidecarError) as caught:
        asked(Pipe()).wait(60, nothing, nothing, lambda _: None)
    assert caught.value.code == "silent"


def test_refusal() -> None:
    """The code of the error frame is the error's."""
    pipe = Pipe([{"type": "error", "id": 7, "code": "direnv", "message": "another"}])
    with pytest.raises(SidecarError) as caught:
        asked(pipe).wait(5, nothing, nothing, lambda _: None)
    assert caught.value.code == "direnv"


@pytest.mark.parametrize(
    "fields",
    [
        {"set": {"A": 1}},
        {"unset": [1]},
        {"messages": [None]},
        {"snapshot": [1]},
        {"snapshot": [["/r", "1", None, None]]},
        {"snapshot": [["/r", 5, None, None]]},
    ],
    ids=str,
)
def test_diff_of_another_shape(fields: dict[str, Any]) -> None:
    """Nothing of it is taken: the kernel asks direnv."""
    with pytest.raises(SidecarError) as caught:
        asked(Pipe([diff(**fields)])).wait(5, nothing, nothing, lambda _: None)
    assert caught.value.code == "protocol"


def test_cancel_names_the_question() -> None:
    """The sidecar is told which export nobody waits for."""
    pipe = Pipe()
    asked(pipe).cancel()
    assert pipe.sent[-1]["type"] == "cancel"
    assert pipe.sent[-1]["export"] == 7


def test_interrupt_reaches_the_waiting_thread(world: World) -> None:
    """The caller's thread does the waiting, so Ctrl-C ends it."""
    world.envrc("w", "echo > started\nwhile :; do sleep 60; done\n")
    running = direct(world)

    def interrupt() -> None:
        until("it runs", lambda: world.path("w/started").exists())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            running.wait(30, nothing, nothing)
    finally:
        thread.join()
        running.cancel()
