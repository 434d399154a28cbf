"""Loading, reloading and switching (DIRENV.md cases 1 to 3, 7, 9, 10)."""

from __future__ import annotations

import pytest

from tests.support.pairs import Pair
from tests.support.planted import PLANTED, exports, secret


def test_no_root_file(pair: Pair) -> None:
    """Without a root file nothing is done and nothing is said."""
    pair.world.folder("plain")

    step = pair.step("plain", outcome="absent")

    assert step.result.root_file is None
    assert step.result.answered == "none"


def test_first_load(pair: Pair) -> None:
    """A first load sets the four and the variables, and says so."""
    path = pair.world.envrc("w", exports("FOO", "BAR"))

    result = pair.step("w", outcome="loaded").result

    assert result.root_file == str(path)
    assert result.set_names == ("BAR", "FOO")
    assert result.unset_names == ()
    assert pair.environ["FOO"] == secret("FOO")


def test_changed_removed_and_added(pair: Pair) -> None:
    """Variables that are changed, removed and added all arrive, and are named."""
    pair.set("GONE", "here")
    pair.world.envrc("w", f"{exports('FOO', 'KEEP')}unset GONE\nPATH_add bin\n")

    result = pair.step("w", outcome="loaded").result

    assert result.set_names == ("FOO", "KEEP", "PATH")
    assert result.unset_names == ("GONE",)


def test_unchanged(pair: Pair) -> None:
    """An unchanged workspace costs no process and no line, however often."""
    pair.world.envrc("w", exports("FOO"))
    pair.step("w", outcome="loaded")

    for _ in range(3):
        result = pair.step(outcome="unchanged").result

        assert result.answered == "stats"
        assert result.messages == ()


def test_edited_and_allowed(pair: Pair) -> None:
    """An edit that is allowed before the next run is simply loaded."""
    pair.world.envrc("w", exports("FOO", "OLD"))
    pair.step("w", outcome="loaded")
    pair.world.envrc("w", exports("FOO", "NEW", tag="2"))

    result = pair.step(outcome="loaded").result

    assert result.unset_names == ("OLD",)
    assert pair.environ["FOO"] == secret("FOO2")


def test_allowed_again(pair: Pair) -> None:
    """Allowing once more reloads: direnv watches the entry of its allow store."""
    pair.world.envrc("w", exports("FOO"))
    pair.step("w", outcome="loaded")
    pair.world.allow("w")
    pair.world.stamp(pair.world.approval("w"))

    result = pair.step(outcome="loaded").result

    assert result.set_names == ()


def test_touched(pair: Pair) -> None:
    """A touched root file reloads, and what did not change stays."""
    path = pair.world.envrc("w", exports("FOO"))
    pair.step("w", outcome="loaded")
    pair.world.stamp(path)

    assert pair.step(outcome="loaded").result.set_names == ()


def test_other_project(pair: Pair) -> None:
    """Going straight to another project takes the first one back."""
    pair.world.envrc("a", exports("FOO", "ONLY_A", "KEEP"))
    pair.world.envrc("b", exports("FOO", "ONLY_B", tag="b"))
    pair.step("a", outcome="loaded")

    pair.step("b", outcome="loaded")

    assert "ONLY_A" not in pair.environ
    assert pair.environ["KEEP"] == "kept"
    pair.step("a", outcome="loaded")


def test_other_project_that_is_blocked(pair: Pair) -> None:
    """Going to a blocked project takes the first one back and loads nothing."""
    pair.world.envrc("a", exports("FOO"))
    pair.world.envrc("b", exports("BAR"), allow=False)
    pair.step("a", outcome="loaded")

    pair.step("b", outcome="blocked")

    assert PLANTED not in "".join(pair.environ.values())


def test_subfolders(pair: Pair) -> None:
    """A change of folder inside one workspace does nothing."""
    pair.world.envrc("w", exports("FOO"))
    pair.world.folder("w/deep/er")
    pair.step("w", outcome="loaded")

    for folder in ("w/deep", "w/deep/er", "w"):
        pair.step(folder, outcome="unchanged")


def test_started_in_a_subfolder(pair: Pair) -> None:
    """The file is evaluated in its own folder, wherever the kernel stands."""
    pair.world.envrc("w", f'export WHERE="$PWD/{secret("")}"\nPATH_add bin\n')
    pair.world.folder("w/deep/er")

    pair.step("w/deep/er", outcome="loaded")

    assert pair.environ["WHERE"] == f"{pair.world.path('w')}/{secret('')}"


def test_reads_the_callers_variables(pair: Pair) -> None:
    """A file sees the caller's variables as they are when it is evaluated."""
    path = pair.world.envrc("w", f'export FOO="{PLANTED}$MINE"\n')
    pair.set("MINE", "1")
    pair.step("w", outcome="loaded")
    pair.set("MINE", "2")
    pair.step(outcome="unchanged")
    pair.world.stamp(path)

    pair.step(outcome="loaded")

    assert pair.environ["FOO"] == f"{PLANTED}2"


def test_does_not_see_its_own_values(pair: Pair) -> None:
    """A reload starts from the base: nothing is appended twice."""
    path = pair.world.envrc("w", f'export LIST="${{LIST:-}}:{PLANTED}"\nPATH_add bin\n')
    pair.step("w", outcome="loaded")

    for _ in range(3):
        pair.world.stamp(path)
        pair.step(outcome="loaded")

    assert pair.environ["LIST"] == f":{PLANTED}"


def test_changes_nothing(pair: Pair) -> None:
    """A file that exports nothing is loaded, and left again."""
    pair.world.envrc("w", f"local_only='{PLANTED}'\n")

    assert pair.step("w", outcome="loaded").result.set_names == ()
    pair.step("", outcome="unloaded")


def test_empty_file(pair: Pair) -> None:
    """An empty file is loaded when it is allowed."""
    pair.world.envrc("w", "")

    pair.step("w", outcome="loaded")


def test_unset_of_what_is_not_there(pair: Pair) -> None:
    """Unsetting a variable that nobody has changes nothing."""
    pair.world.envrc("w", f"{exports('FOO')}unset NEVER_THERE\n")

    assert pair.step("w", outcome="loaded").result.unset_names == ()


def test_reload(pair: Pair) -> None:
    """`reload()` evaluates again although nothing changed."""
    pair.world.envrc("w", exports("FOO"))
    pair.step("w", outcome="loaded")

    result = pair.kernel.reload()

    assert result.outcome == "loaded"
    assert result.answered in ("direnv", "sidecar")
    said = pair.shell.forced()
    assert result.messages == said.lines
    assert pair.environ == pair.shell.environ
    pair.step(outcome="unchanged")


@pytest.mark.parametrize(
    "name", ["a space", "new\nline", "b\udcffyte", "émoji-🎉", "q'\"$`"]
)
def test_strange_folder(pair: Pair, name: str) -> None:
    """A workspace whose path has strange characters or bytes loads as any other."""
    pair.world.envrc(name, exports("FOO"))
    pair.world.folder(f"{name}/deep")

    step = pair.step(f"{name}/deep")

    if step.said.code == 1:
        # 2.32 cannot quote every path for its bash.
        assert step.result.outcome == "failed"
        assert not pair.world.is_newer
    else:
        assert pair.environ["FOO"] == secret("FOO")
    # 2.37 does not find a path again whose bytes are no text (DESIGN 9.2).
    pair.step("", outcome="unloaded", forced=pair.world.is_newer)
