"""Symbolic links and things that are no regular files (DIRENV.md case 23)."""

from __future__ import annotations

import os

from tests.support.pairs import Pair
from tests.support.planted import exports, secret


def test_linked_root_file(pair: Pair) -> None:
    """A root file that is a link is allowed with its target's content."""
    pair.world.write("shared/one", exports("FOO"))
    pair.world.folder("w")
    pair.world.path("w/.envrc").symlink_to("../shared/one")
    pair.world.allow("w")

    assert pair.step("w", outcome="loaded").result.root_file == str(
        pair.world.path("w/.envrc")
    )
    pair.step(outcome="unchanged")


def test_link_target_is_edited(pair: Pair) -> None:
    """An edit of the target blocks; allowed, it loads.

    The hook takes the younger mtime of link and target, so it is forced.
    """
    pair.world.write("shared/one", exports("FOO"))
    pair.world.folder("w")
    pair.world.path("w/.envrc").symlink_to("../shared/one")
    pair.world.allow("w")
    pair.step("w", outcome="loaded")
    pair.world.write("shared/one", exports("BAR"))
    pair.step(outcome="blocked", forced=True)
    pair.world.allow("w")

    pair.step(outcome="loaded")


def test_link_to_another_target(pair: Pair) -> None:
    """A link that leads to another file now is noticed."""
    pair.world.write("shared/one", exports("FOO"))
    pair.world.write("shared/two", exports("BAR"))
    pair.world.folder("w")
    link = pair.world.path("w/.envrc")
    link.symlink_to("../shared/one")
    pair.world.allow("w")
    pair.step("w", outcome="loaded")
    link.unlink()
    link.symlink_to("../shared/two")
    os.utime(link, (1_500_000_000, 1_500_000_000), follow_symlinks=False)

    pair.step(outcome="blocked")


def test_linked_folder(pair: Pair) -> None:
    """Through a linked folder the physical path counts."""
    pair.world.envrc("real/w", exports("FOO"))
    pair.world.path("link").symlink_to("real/w")

    step = pair.step("link", outcome="loaded")

    assert step.result.root_file == str(pair.world.path("real/w/.envrc"))
    pair.step("real/w", outcome="unchanged")


def test_stale_pwd(pair: Pair) -> None:
    """A PWD that says something else is ignored."""
    pair.world.envrc("w", exports("FOO"))
    pair.set("PWD", "/somewhere/else")

    pair.step("w", outcome="loaded")

    assert pair.environ["PWD"] == "/somewhere/else"


def test_folder_with_the_name(pair: Pair) -> None:
    """A folder called .envrc is skipped, and the file above counts."""
    pair.world.envrc("w", exports("FOO"))
    pair.world.folder("w/in/.envrc")

    pair.step("w/in", outcome="loaded")
    pair.step("w", outcome="unchanged")


def test_folder_with_the_name_becomes_a_file(pair: Pair) -> None:
    """When the folder called .envrc gives way to a file, that one counts."""
    pair.world.envrc("w", exports("FOO"))
    folder = pair.world.folder("w/in/.envrc")
    pair.step("w/in", outcome="loaded")
    folder.rmdir()
    pair.world.envrc("w/in", exports("BAR"))

    pair.step(outcome="loaded")

    assert "FOO" not in pair.environ


def test_dangling_link(pair: Pair) -> None:
    """A dangling link counts as absent until its target comes."""
    pair.world.envrc("w", exports("FOO"))
    pair.world.folder("w/in")
    pair.world.path("w/in/.envrc").symlink_to("later")
    pair.step("w/in", outcome="loaded")
    pair.world.write("w/in/later", exports("BAR"))
    pair.world.allow("w/in")

    pair.step(outcome="loaded")

    assert pair.environ["BAR"] == secret("BAR")
    assert "FOO" not in pair.environ
