"""What kernels send, as a kernel sees it, without a process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from envwatch.core.events import (
    Closed,
    Connected,
    Evaluate,
    Garbled,
    Kill,
    Look,
    Looked,
    Stop,
)
from envwatch.core.fences import Bounds
from kernel_client import messages

Make = Callable[..., Any]


def test_hello_is_answered_by_welcome(play: Make) -> None:
    """A kernel that says hello learns which direnv the sidecar runs."""
    p = play()
    p.give(Connected(1))
    p.send(1, messages.hello(pid=1, client="t", cwd=None))
    (welcome,) = p.heard(1)
    assert messages.check(welcome)["direnv"] == {"path": "/bin/direnv", "version": "1"}


@pytest.mark.parametrize(
    ("mode", "can_pass", "capabilities"),
    [
        ("auto", True, ["fence"]),
        ("always", True, ["fence"]),
        ("off", True, []),
        ("auto", False, []),
    ],
)
def test_welcome_tells_whether_there_are_fences(
    play: Make, mode: str, capabilities: list[str], *, can_pass: bool
) -> None:
    """Only where a descriptor can be sent, and where the person has not said no."""
    p = play(fences=Bounds(mode=mode))
    p.give(Connected(1, can_pass))
    p.send(1, messages.hello(pid=1, client="t", cwd=None))
    assert p.heard(1)[0]["capabilities"] == capabilities


def test_a_folder_that_the_sidecar_does_not_see_ends_the_connection(play: Make) -> None:
    """A kernel in another mount namespace must not use this sidecar."""
    p = play()
    p.give(Connected(1))
    cwd = {"path": "/x", "dev": "1", "ino": "2"}
    p.send(1, messages.hello(pid=1, client="t", cwd=cwd))
    assert p.take(Look) == [Look(1, "/x", "1", "2")]
    p.give(Looked(1, same=False))
    assert p.heard(1)[0]["code"] == "filesystem"
    assert p.is_closed(1)


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ({"type": "status", "id": 1}, "order"),
        ({"type": "nonsense"}, "order"),
        ({**messages.hello(pid=1, client="t", cwd=None), "protocol": 2}, "protocol"),
        ({**messages.hello(pid=1, client="t", cwd=None), "pid": "1"}, "shape"),
        ({**messages.hello(pid=1, client="t", cwd={}), "pid": 1}, "shape"),
    ],
)
def test_a_bad_first_frame_ends_the_connection(
    play: Make, frame: dict[str, Any], code: str
) -> None:
    """Anything but a good hello is refused with its code, and closed."""
    p = play()
    p.give(Connected(1))
    p.send(1, frame)
    assert p.heard(1)[0]["code"] == code
    assert p.is_closed(1)


def test_an_unknown_type_is_an_error_and_the_connection_goes_on(play: Make) -> None:
    """A newer kernel may ask for what this sidecar does not know."""
    p = play()
    p.attach(1)
    p.send(1, {"type": "moat", "id": 7})
    (error,) = p.heard(1)
    assert (error["id"], error["code"]) == (7, "unknown")
    assert not p.is_closed(1)
    p.send(1, messages.status(8))
    assert p.heard(1)[0]["type"] == "done"


@pytest.mark.parametrize(
    "change",
    [
        {"id": 0},
        {"id": 2**53},
        {"id": True},
        {"root": "relative"},
        {"root": "/a\0b"},
        {"environment": []},
        {"environment": None},
        {"environment": {"A": 1}},
        {"environment": {"A": "\udc80"}},
    ],
)
def test_a_bad_export_ends_the_connection(play: Make, change: dict[str, Any]) -> None:
    """A field of a wrong shape is refused; nothing is evaluated."""
    p = play()
    p.attach(1)
    p.export(1, **change)
    assert p.heard(1)[-1]["code"] == "shape"
    assert p.is_closed(1)
    assert not p.take(Evaluate)


def test_a_second_hello_and_an_id_in_use_are_out_of_order(play: Make) -> None:
    """Both end the connection."""
    p = play()
    p.attach(1, 2)
    p.send(1, messages.hello(pid=1, client="t", cwd=None))
    assert p.heard(1)[0]["code"] == "order"
    p.export(2, 5)
    p.export(2, 5)
    assert p.heard(2)[-1]["code"] == "order"


def test_garbage_ends_that_connection_only(play: Make) -> None:
    """The other kernel is not touched."""
    p = play()
    p.attach(1, 2)
    p.give(Garbled(1, "not_json", "a frame is not JSON"))
    assert p.heard(1)[0]["code"] == "not_json"
    assert p.is_closed(1)
    p.export(2)
    assert p.take(Evaluate)


def test_another_direnv_is_refused(play: Make) -> None:
    """The sidecar runs no other direnv than its own, and none when it has none."""
    p = play()
    p.attach(1)
    p.export(1, direnv="/other")
    assert p.heard(1)[0]["code"] == "direnv"
    assert not p.is_closed(1)
    p = play(direnv=None)
    p.attach(1)
    p.export(1)
    assert p.heard(1)[0]["code"] == "direnv"


def test_an_unknown_fingerprint_needs_the_base(play: Make) -> None:
    """The environment travels only when the sidecar does not have it."""
    p = play()
    p.attach(1, 2)
    frame = messages.export(1, root="/w/.envrc", fingerprint="f", direnv="/bin/direnv")
    p.send(1, frame)
    assert p.heard(1) == [{"type": "need_base", "id": 1}]
    p.export(1)
    assert p.take(Evaluate)
    p.export(2, fingerprint="not that")
    assert p.heard(2)[0]["code"] == "fingerprint"
    assert not p.is_closed(2)


def test_cancel_kills_what_nobody_waits_for(play: Make) -> None:
    """The evaluation goes on as long as one kernel waits."""
    p = play()
    p.attach(1, 2)
    p.export(1)
    p.export(2)
    p.send(1, messages.cancel(2, export_id=1))
    assert not p.take(Kill)
    assert p.heard(1)[-1] == {"type": "done", "id": 2}
    p.give(Closed(2))
    assert p.take(Kill) == [Kill(1)]


def test_reload_forgets_and_tells_the_others(play: Make) -> None:
    """The next export evaluates afresh; other kernels get one notice."""
    p = play()
    p.attach(1, 2)
    p.load(1, 2)
    p.send(1, messages.reload(9, root="/w/.envrc"))
    p.send(1, messages.reload(10, root="/w/.envrc"))
    assert p.heard(1)[0] == {"type": "done", "id": 9, "kernels": 2}
    notices = [frame for frame in p.heard(2) if frame["type"] == "changed"]
    assert [each["reason"] for each in notices] == ["reload"]
    p.export(1, 2)
    assert len(p.take(Evaluate)) == 1


def test_stop_tells_those_that_wait(play: Make) -> None:
    """A kernel whose answer will not come goes to direnv itself."""
    p = play()
    p.attach(1, 2)
    p.export(1)
    p.send(2, messages.stop(3))
    assert p.heard(2) == [{"type": "done", "id": 3}]
    assert p.heard(1)[-1]["code"] == "stopping"
    assert p.take(Stop) == [Stop("asked")]
    p.send(2, messages.stop(4))
    assert p.heard(2)[-1] == {"type": "done", "id": 4}
    assert p.take(Stop) == [], "once"
