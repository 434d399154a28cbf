"""Inotify instances are given up without waiting, and never a file of somebody's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kernel_client import arming, instances
from tests.support.children import forked
from tests.support.daemons import until


def test_close_later() -> None:
    """It is closed soon, and noted no more."""
    number = arming.arm([], 1).descriptor
    assert number in instances._held
    instances.close_later(number)
    until("it is closed", lambda: not Path(f"/proc/self/fd/{number}").is_symlink())
    assert number not in instances._held


@pytest.mark.parametrize("is_reused", [True, False])
def test_closed_by_somebody(*, is_reused: bool) -> None:
    """Nothing is closed that is another file's by now, and nothing is raised."""
    number = arming.arm([], 1).descriptor
    if is_reused:
        null = os.open("/dev/null", os.O_RDONLY)
        os.dup2(null, number)
        os.close(null)
    else:
        os.close(number)
    instances.close_later(number)
    until("it is noted no more", lambda: number not in instances._held)
    if is_reused:
        assert os.readlink(f"/proc/self/fd/{number}") == "/dev/null"
        os.close(number)


def test_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the end of an interpreter there are none: it is closed here and now."""

    def refuse(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr("_thread.start_new_thread", refuse)
    number = arming.arm([], 1).descriptor
    instances.close_later(number)
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(number)


def test_forked_child() -> None:
    """It has none, whoever was about to do whatever with them; its parent has all."""
    kept = [arming.arm([], 1).descriptor for _ in range(3)]

    def open_ones() -> list[int]:
        return [each for each in kept if Path(f"/proc/self/fd/{each}").is_symlink()]

    assert forked(open_ones) == []
    assert open_ones() == kept
    for each in kept:
        instances.close(each)
