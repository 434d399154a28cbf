"""Who is attached, and who has loaded what."""

from __future__ import annotations

from envwatch.core.events import Key
from envwatch.core.session import MAX_GIVEN, Pending, Session, Sessions

A = Key("/bin/direnv", "/a/.envrc", "1")
A_OTHER_BASE = Key("/bin/direnv", "/a/.envrc", "2")
B = Key("/bin/direnv", "/b/.envrc", "1")


def test_a_key_is_unused_when_its_last_kernel_leaves() -> None:
    """And not before."""
    sessions = Sessions()
    one, two = sessions.add(1, 0.0), sessions.add(2, 0.0)
    assert sessions.load(one, A) is None
    assert sessions.load(two, A) is None
    assert sessions.load(one, B) is None
    assert sessions.kernels(A.root) == 1
    assert sessions.load(two, None) == A
    assert not sessions.is_loaded(A)
    assert sessions.is_loaded(B)


def test_a_root_file_has_kernels_over_several_bases() -> None:
    """A reload concerns them all, a change each base by itself."""
    sessions = Sessions()
    one, two = sessions.add(1, 0.0), sessions.add(2, 0.0)
    sessions.load(one, A)
    sessions.load(two, A_OTHER_BASE)
    assert sessions.having(A) == [one]
    assert sessions.having_root(A.root) == [one, two]
    assert sessions.having_root(B.root) == []
    assert sessions.kernels(A.root) == 2


def test_loading_the_same_again_changes_nothing() -> None:
    """It is counted once."""
    sessions = Sessions()
    one = sessions.add(1, 0.0)
    for _ in range(2):
        sessions.load(one, A)
    assert sessions.kernels(A.root) == 1
    assert sessions.load(one, None) == A


def test_strangers_are_not_attached() -> None:
    """Only a good hello makes a kernel of a connection."""
    sessions = Sessions()
    sessions.add(1, 0.0)
    assert (len(sessions), sessions.attached) == (1, 0)
    sessions.strangers.pop(1)
    assert sessions.attached == 1
    sessions.remove(1)
    assert (len(sessions), sessions.attached) == (0, 0)
    assert sessions.remove(1) is None


def test_fingerprints_are_those_loaded_and_those_waited_for() -> None:
    """An environment that an export waits with must not go."""
    sessions = Sessions()
    one = sessions.add(1, 0.0)
    sessions.load(one, A)
    one.pending[5] = Pending(A_OTHER_BASE, 0.0)
    sessions.waiting[1] = one
    assert sessions.fingerprints() == {"1", "2"}


def test_only_so_many_given_diffs_are_remembered() -> None:
    """The oldest is forgotten first; giving again makes young."""
    session = Session(1, 0.0)
    keys = [Key("/d", f"/{number}/.envrc", "1") for number in range(MAX_GIVEN + 1)]
    for key in keys[:MAX_GIVEN]:
        session.give(key, 1)
    session.give(keys[0], 2)
    session.give(keys[MAX_GIVEN], 1)
    assert len(session.given) == MAX_GIVEN
    assert session.given[keys[0]] == 2
    assert keys[1] not in session.given


def test_a_session_that_is_removed_is_waited_for_by_nobody() -> None:
    """It goes out of every list, and is given a last time."""
    sessions = Sessions()
    one = sessions.add(1, 0.0)
    one.pending[5] = Pending(A, 0.0)
    sessions.waiting[1] = one
    assert sessions.remove(1) is one
    assert sessions.get(1) is None
    assert (sessions.waiting, sessions.strangers) == ({}, {})
    assert (sessions.fingerprints(), sessions.attached) == (set(), 0)


def test_a_root_file_that_was_left_is_not_counted_again() -> None:
    """Leaving and coming back counts one, over another base too."""
    sessions = Sessions()
    one = sessions.add(1, 0.0)
    for key in (A, None, A, A_OTHER_BASE):
        sessions.load(one, key)
    assert (sessions.kernels(A.root), sessions.having_root(A.root)) == (1, [one])
    assert (sessions.having(A), sessions.having(A_OTHER_BASE)) == ([], [one])
    assert sessions.load(one, None) == A_OTHER_BASE
    assert (sessions.kernels(A.root), sessions.having_root(A.root)) == (0, [])
    assert sessions._by_root == {}
