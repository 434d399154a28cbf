"""Which evaluation runs next."""

from __future__ import annotations

from envwatch.core.events import Key
from envwatch.core.workspace import Schedule, Waiter


def key(root: str, fingerprint: str = "f") -> Key:
    """Give a key."""
    return Key("/d", root, fingerprint)


def test_one_at_a_time_for_each_root_file() -> None:
    """Another base of the same file waits; another file does not."""
    schedule = Schedule(4)
    schedule.join(key("/a", "1"), Waiter(1, 1))
    schedule.join(key("/a", "2"), Waiter(2, 1))
    schedule.join(key("/b"), Waiter(3, 1))
    started = list(schedule.start(0.0))
    assert [each.key for each in started] == [key("/a", "1"), key("/b")]
    assert schedule.of("/a").state == "dirty"
    schedule.end(started[0].number)
    assert [each.key for each in schedule.start(0.0)] == [key("/a", "2")]


def test_no_more_than_the_bound_at_once() -> None:
    """Over all root files."""
    schedule = Schedule(2)
    for number in range(5):
        schedule.join(key(f"/{number}"), Waiter(number, 1))
    assert len(list(schedule.start(0.0))) == 2
    schedule.end(1)
    assert len(list(schedule.start(0.0))) == 1


def test_kernels_that_wait_go_before_precomputing() -> None:
    """Whatever came first; and one place stays free for them."""
    schedule = Schedule(2)
    for root in ("/p1", "/p2"):
        schedule.want(key(root), 0.0)
    schedule.join(key("/w1"), Waiter(1, 1))
    assert [each.key.root for each in schedule.start(0.0)] == ["/w1", "/p1"]
    schedule.end(1)
    assert not list(schedule.start(0.0)), "the last place is for kernels that wait"
    schedule.join(key("/w2"), Waiter(1, 1))
    assert [each.key.root for each in schedule.start(0.0)] == ["/w2"]


def test_who_asks_takes_over_what_was_to_be_precomputed() -> None:
    """It runs once."""
    schedule = Schedule(1)
    schedule.join(key("/x"), Waiter(9, 1))
    list(schedule.start(0.0))
    schedule.want(key("/a"), 0.0)
    schedule.join(key("/a"), Waiter(1, 1))
    schedule.end(1)
    (started,) = schedule.start(0.0)
    assert list(started.waiters) == [Waiter(1, 1)]
    schedule.end(started.number)
    assert not list(schedule.start(0.0))


def test_root_files_take_turns() -> None:
    """One with many bases does not keep the others waiting."""
    schedule = Schedule(1)
    for fingerprint in "123":
        schedule.join(key("/a", fingerprint), Waiter(1, 1))
    schedule.join(key("/b"), Waiter(2, 1))
    order = []
    while started := list(schedule.start(0.0)):
        order.append(started[0].key.root)
        schedule.end(started[0].number)
    assert order == ["/a", "/b", "/a", "/a"]
