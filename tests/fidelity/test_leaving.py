"""Leaving a workspace, and workspaces that go away (DIRENV.md cases 8, 16, 33, 37)."""

from __future__ import annotations

import os
import shutil

import pytest

from tests.support.pairs import Pair
from tests.support.planted import PLANTED, exports
from tests.support.reference import taken_back


def test_left(pair: Pair) -> None:
    """Leaving puts back what was there, without a process."""
    before = dict(pair.environ)
    pair.set("GONE", "here")
    pair.world.envrc("w", f"{exports('FOO', 'KEEP')}unset GONE\nPATH_add bin\n")
    pair.step("w", outcome="loaded")

    result = pair.step("", outcome="unloaded").result

    assert pair.environ == {**before, "GONE": "here"}
    assert result.answered == "record"
    assert result.messages == ("direnv: unloading",)
    assert result.root_file is None
    pair.step(outcome="unchanged")


def test_left_and_met_again(pair: Pair) -> None:
    """Coming back loads as the first time, any number of times."""
    pair.world.envrc("w", exports("FOO"))

    for _ in range(3):
        pair.step("w", outcome="loaded")
        pair.step("", outcome="unloaded")


def test_left_after_edit(pair: Pair) -> None:
    """Leaving a file that was edited meanwhile takes back what was loaded."""
    pair.world.envrc("w", exports("FOO", "KEEP"))
    pair.step("w", outcome="loaded")
    pair.world.envrc("w", exports("BAR"), allow=False)

    pair.step("", outcome="unloaded")


def test_left_after_failure(pair: Pair) -> None:
    """A file that failed leaves only the four, and leaving removes them."""
    before = dict(pair.environ)
    pair.world.envrc("w", f"{exports('FOO')}exit 3\n")
    pair.step("w", outcome="failed")

    pair.step("", outcome="unloaded")

    assert pair.environ == before


def test_the_way_back_is_direnvs(pair: Pair) -> None:
    """Taking back from the record is what DIRENV_DIFF says (case 39)."""
    pair.set("EMPTY", "")
    pair.world.envrc("w", f"{exports('FOO', 'KEEP', 'EMPTY')}PATH_add bin\n")
    pair.step("w", outcome="loaded")
    expected = taken_back(pair.environ)

    pair.step("", outcome="unloaded")

    assert pair.environ == expected


def test_deleted_in_place(pair: Pair) -> None:
    """A deleted file is unloaded; with 2.37 the hook keeps its values for ever.

    Deliberate (DESIGN 9.2): no value of a file that is gone stays.
    """
    path = pair.world.envrc("w", exports("FOO"))
    pair.step("w", outcome="loaded")
    path.unlink()

    if pair.world.is_newer:
        assert pair.shell.prompt().changes is None
        assert PLANTED in pair.shell.environ["FOO"]
    pair.step(outcome="unloaded", forced=pair.world.is_newer)
    pair.step(outcome="unchanged")


def test_deleted_and_left(pair: Pair) -> None:
    """A file that is deleted and left is unloaded (DESIGN 9.2)."""
    path = pair.world.envrc("w", exports("FOO"))
    pair.step("w", outcome="loaded")
    path.unlink()

    pair.step("", outcome="unloaded", forced=pair.world.is_newer)


def test_deleted_below_another(pair: Pair) -> None:
    """A deleted file gives way to the one above it, in one step."""
    pair.world.envrc("w", exports("FOO", "KEEP"))
    path = pair.world.envrc("w/in", exports("BAR", "KEEP", tag="in"))
    pair.step("w/in", outcome="loaded")
    path.unlink()

    pair.step(outcome="loaded")

    assert "BAR" not in pair.environ


def test_deleted_and_gone_elsewhere(pair: Pair) -> None:
    """From a deleted file straight to another project."""
    path = pair.world.envrc("a", exports("FOO", "KEEP"))
    pair.world.envrc("b", exports("BAR"))
    pair.step("a", outcome="loaded")
    path.unlink()

    pair.step("b", outcome="loaded")

    assert pair.environ["KEEP"] == "kept"


def test_deleted_and_made_again(pair: Pair) -> None:
    """A file that is deleted and written again with other content is blocked."""
    path = pair.world.envrc("w", exports("FOO"))
    pair.step("w", outcome="loaded")
    path.unlink()
    pair.step(outcome="unloaded", forced=pair.world.is_newer)
    pair.world.envrc("w", exports("BAR"), allow=False)
    pair.step(outcome="blocked")
    pair.world.envrc("w", exports("FOO"), allow=False)

    pair.step(outcome="loaded")


def test_replaced_by_rename(pair: Pair) -> None:
    """An editor that renames a new file over the old one is noticed."""
    path = pair.world.envrc("w", exports("FOO"))
    pair.step("w", outcome="loaded")
    fresh = pair.world.write("w/.envrc.new", exports("BAR"))
    fresh.rename(path)

    pair.step(outcome="blocked")


def test_link_that_dangles(pair: Pair) -> None:
    """A root file that became a dangling link is unloaded (DESIGN 9.2)."""
    target = pair.world.write("w/real", exports("FOO"))
    pair.world.path("w/.envrc").symlink_to(target)
    pair.world.allow("w")
    pair.step("w", outcome="loaded")
    target.unlink()

    pair.step(outcome="unloaded", forced=pair.world.is_newer)


def test_replaced_by_a_folder(pair: Pair) -> None:
    """A root file that became a folder is unloaded (DESIGN 9.2).

    The hook is forced: what it does by the book with a folder at the loaded path
    differs from version to version.
    """
    path = pair.world.envrc("w", exports("FOO"))
    pair.step("w", outcome="loaded")
    path.unlink()
    path.mkdir()

    pair.step(outcome="unloaded", forced=True)


def test_workspace_deleted_from_outside(pair: Pair) -> None:
    """A workspace that was removed as a whole is unloaded from outside it."""
    pair.world.envrc("w", exports("FOO"))
    pair.step("w", outcome="loaded")
    pair.go("")
    shutil.rmtree(pair.world.path("w"))

    pair.step(outcome="unloaded", forced=pair.world.is_newer)


def test_working_folder_deleted(pair: Pair) -> None:
    """In a deleted folder everything is taken back, with every version.

    Deliberate: 2.32 cannot work there (rc 1) and leaves the values (case 23).
    """
    base = dict(pair.environ)
    pair.world.envrc("w", exports("FOO", "KEEP"))
    pair.world.folder("w/in")
    pair.step("w/in", outcome="loaded")
    os.rmdir(pair.world.path("w/in"))

    said = pair.shell.prompt()
    result = pair.kernel.refresh()

    assert result.outcome == "unloaded"
    assert pair.environ == base
    if pair.world.is_newer:
        assert pair.shell.environ == base
    else:
        assert said.code == 1
        assert PLANTED in pair.shell.environ["FOO"]
    assert pair.kernel.refresh().set_names == ()
    pair.shell.environ = dict(base)
    pair.world.envrc("other", exports("BAR"))
    pair.step("other", outcome="loaded")


def test_working_folder_deleted_with_its_workspace(pair: Pair) -> None:
    """A workspace that was removed around the kernel is taken back (DESIGN 9.2)."""
    base = dict(pair.environ)
    pair.world.envrc("w", exports("FOO", "KEEP"))
    pair.world.folder("w/in")
    pair.step("w/in", outcome="loaded")
    shutil.rmtree(pair.world.path("w"))
    pair.shell.prompt()
    assert PLANTED in pair.shell.environ["FOO"]

    assert pair.kernel.refresh().outcome == "unloaded"

    assert pair.environ == base


def test_working_folder_deleted_first(pair: Pair) -> None:
    """A kernel that starts in a deleted folder has nothing loaded and goes on."""
    pair.world.folder("gone")
    pair.go("gone")
    os.rmdir(pair.world.path("gone"))

    result = pair.kernel.refresh()

    assert result.set_names == ()
    assert pair.environ == pair.world.environ


@pytest.mark.parametrize(
    "forge",
    [
        "unset DIRENV_WATCHES\n",
        "export DIRENV_WATCHES=\n",
        "export DIRENV_WATCHES=xyz\n",
    ],
    ids=["unset", "empty", "garbage"],
)
def test_forged_watches(pair: Pair, forge: str) -> None:
    """A file that forges its watches is asked at every run, and can be left.

    Deliberate: the hook, once outside, leaves its values for ever (case 37).
    """
    base = dict(pair.environ)
    pair.world.envrc("w", exports("FOO") + forge)
    pair.step("w", outcome="loaded")
    pair.step(outcome="loaded")
    pair.go("")

    pair.shell.prompt()
    assert PLANTED in pair.shell.environ["FOO"]

    assert pair.kernel.refresh().outcome == "unloaded"
    assert pair.environ == base
