"""What the fast path compares: each path once, and nothing that a fence covers."""

from __future__ import annotations

from kernel_client import checks
from kernel_client.roots import Walk

STAT = (1, 2, 3, 4, 5)
LINK = (6, 7, 8, 9, 10)
UNGUARDED = (frozenset[str](), None, None)


def test_each_path_once() -> None:
    """Also where the walk and what is loaded name the same one."""
    walk = Walk()
    walk.absent = ["/w/.envrc"]
    walk.config = (("/c", STAT, None, None),)
    held = (("/c", STAT, None, None), ("/w/.envrc", None, None, None))
    found = checks.of(walk, held, UNGUARDED)
    assert found == (("/w/.envrc",), (("/c", *STAT),), (), None, None)


def test_links() -> None:
    """A link is compared with its target; where it dangles, it may get one."""
    held = (("/way", STAT, LINK, None), ("/dangling", None, LINK, None))
    absent, stats, links, _, _ = checks.of(Walk(), held, UNGUARDED)
    assert absent == ("/dangling",)
    assert stats == (("/way", *STAT),)
    assert links == (("/way", LINK), ("/dangling", LINK))


def test_what_a_fence_covers() -> None:
    """It vouches for what is loaded, never for the walk."""
    walk = Walk()
    walk.present = [("/w/.envrc", STAT, None, None)]
    held = (("/a", STAT, None, None), ("/b", STAT, None, None))
    quiet: list[tuple[int, int]] = []
    poll = (lambda: quiet, quiet)
    guard = (frozenset({"/a", "/w/.envrc"}), poll, 10.0)
    found = checks.of(walk, held, guard)
    assert found == ((), (("/w/.envrc", *STAT), ("/b", *STAT)), (), poll, 10.0)
