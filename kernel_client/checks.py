"""What the fast path of a refresh compares in a folder (pure)."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Optional

    from kernel_client.fence import Guard, Poll
    from kernel_client.roots import Walk
    from kernel_client.snapshot import Entry, Stat

    Checks = tuple[
        tuple[str, ...],
        tuple[tuple[str, int, int, int, int, int], ...],
        tuple[tuple[str, Stat], ...],
        Optional[Poll],
        Optional[float],
    ]


def of(walk: Walk, held: Iterable[Entry], guard: Guard) -> Checks:
    """Give it: absent paths, stats, links, the poll, and until when all of it holds.

    `held` are the entries of what is loaded; those that the guard's fence covers
    need no stat. The time is in monotonic seconds, None for ever.
    """
    covered, poll, due = guard
    absent = list(walk.absent)
    stats: list[tuple[str, int, int, int, int, int]] = []
    links: list[tuple[str, Stat]] = []
    own = [entry for entry in held if entry[0] not in covered]
    for path, seen, link, _ in (*walk.present, *walk.config, *own):
        if seen is not None:
            stats.append((path, *seen))
        else:
            # Through a dangling link this asks whether its target appeared.
            absent.append(path)
        if link is not None:
            links.append((path, link))
    return (
        tuple(dict.fromkeys(absent)),
        tuple(dict.fromkeys(stats)),
        tuple(dict.fromkeys(links)),
        poll,
        due,
    )
