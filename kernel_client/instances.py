"""Inotify instances in this process's hands: how they are given up.

Linux reaps watches in the background, and closing the last copy of an instance
waits for that, 10 ms and more. A forked child gets copies that nobody in it knows
of, also of those that another thread was about to arm or to close.
"""

from __future__ import annotations

import _thread
import os

INOTIFY = "anon_inode:inotify"
"""Where the link of an instance in `/proc/self/fd` leads."""

_held: set[int] = set()


def hold(descriptor: int) -> int:
    """Note an instance; gives its descriptor."""
    _held.add(descriptor)
    return descriptor


def close(descriptor: int) -> None:
    """Close an instance, and wait for Linux; it is noted no more."""
    # Before: the number may be another file's as soon as it is closed.
    _held.discard(descriptor)
    os.close(descriptor)


def close_later(descriptor: int) -> None:
    """Close an instance without waiting."""
    try:
        _thread.start_new_thread(_close, (descriptor,))
    except RuntimeError:
        # No thread any more when the interpreter ends.
        _close(descriptor)


def forget(descriptor: int) -> None:
    """That number is another file's by now."""
    _held.discard(descriptor)


def _close(descriptor: int) -> None:
    if descriptor not in _held:
        return
    try:
        # Somebody may have closed what is not theirs, and the number goes to another.
        is_ours = os.readlink(f"/proc/self/fd/{descriptor}") == INOTIFY
    except OSError:
        is_ours = not os.path.isdir("/proc/self/fd")
    if not is_ours:
        forget(descriptor)
        return
    try:
        close(descriptor)
    except OSError:
        return


def _close_all() -> None:
    """In a forked child: none is its own."""
    while _held:
        _close(next(iter(_held)))


os.register_at_fork(after_in_child=_close_all)
