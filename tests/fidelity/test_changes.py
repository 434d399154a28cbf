"""What the caller changes after a load (DIRENV.md cases 25, 26)."""

from __future__ import annotations

from tests.support.pairs import Pair
from tests.support.planted import PLANTED, exports, secret


def lost(name: str) -> str:
    """Give the line that names a change that was thrown away (DESIGN 9.9)."""
    return f"envwatch: {name} was changed here since it was loaded; that change is gone"


def test_ignored_while_nothing_changes(pair: Pair) -> None:
    """While the workspace is unchanged, the caller's changes stay."""
    pair.world.envrc("w", exports("FOO", "KEEP"))
    pair.step("w", outcome="loaded")
    pair.set("FOO", "mine")
    pair.unset("KEEP")
    pair.set("NEW", "mine")

    pair.step(outcome="unchanged")


def test_path_is_lost_on_leaving(pair: Pair) -> None:
    """A PATH that the caller appended to is put back, and one line says so."""
    pair.world.envrc("w", f"PATH_add bin\n{exports('FOO')}")
    pair.step("w", outcome="loaded")
    pair.set("PATH", pair.environ["PATH"] + ":/mine")

    pair.step("", outcome="unloaded", own=(lost("PATH"),))


def test_path_is_lost_on_reload(pair: Pair) -> None:
    """A reload loses it too."""
    path = pair.world.envrc("w", f"PATH_add bin\n{exports('FOO')}")
    pair.step("w", outcome="loaded")
    pair.set("PATH", pair.environ["PATH"] + ":/mine")
    pair.world.stamp(path)

    pair.step(outcome="loaded", own=(lost("PATH"),))


def test_overwritten_variable(pair: Pair) -> None:
    """A loaded variable that the caller overwrote is removed on leaving."""
    pair.world.envrc("w", exports("FOO"))
    pair.step("w", outcome="loaded")
    pair.set("FOO", "mine")

    pair.step("", outcome="unloaded", own=(lost("FOO"),))

    assert "FOO" not in pair.environ


def test_removed_variable_set_again(pair: Pair) -> None:
    """A variable that the file removed and the caller set again is put back."""
    pair.set("GONE", "here")
    pair.world.envrc("w", f"unset GONE\n{exports('FOO')}")
    pair.step("w", outcome="loaded")
    pair.set("GONE", "mine")

    pair.step("", outcome="unloaded", own=(lost("GONE"),))

    assert pair.environ["GONE"] == "here"


def test_deleted_variable(pair: Pair) -> None:
    """A loaded variable that the caller deleted comes back only with a reload."""
    path = pair.world.envrc("w", exports("FOO", "KEEP"))
    pair.step("w", outcome="loaded")
    pair.unset("FOO")
    pair.unset("KEEP")
    pair.step(outcome="unchanged")
    pair.world.stamp(path)
    pair.step(outcome="loaded")
    assert pair.environ["FOO"] == secret("FOO")
    pair.unset("FOO")

    pair.step("", outcome="unloaded")


def test_variables_of_the_callers_own(pair: Pair) -> None:
    """What the load never touched is the caller's, through reload and unload."""
    path = pair.world.envrc("w", f'export FOO="{PLANTED}${{MINE-}}"\n')
    pair.step("w", outcome="loaded")
    pair.set("MINE", "new")
    pair.unset("LANG")
    pair.world.stamp(path)
    pair.step(outcome="loaded")
    assert pair.environ["FOO"] == f"{PLANTED}new"

    pair.step("", outcome="unloaded")

    assert pair.environ["MINE"] == "new"
    assert "LANG" not in pair.environ


def test_changed_and_then_blocked(pair: Pair) -> None:
    """A block takes the caller's change of a loaded variable with it."""
    pair.world.envrc("w", exports("FOO"))
    pair.step("w", outcome="loaded")
    pair.set("FOO", "mine")
    pair.world.envrc("w", exports("BAR"), allow=False)

    pair.step(outcome="blocked", own=(lost("FOO"),))


def test_base_changed_between_two_kernels(pair: Pair) -> None:
    """Two environments never get each other's answer."""
    pair.world.envrc("w", f'export FOO="{PLANTED}$MINE"\n')
    pair.set("MINE", "1")
    pair.step("w", outcome="loaded")
    other = Pair(
        pair.world, socket=pair.socket, environ={**pair.world.environ, "MINE": "2"}
    )
    try:
        other.step(outcome="loaded")
        assert other.environ["FOO"] == f"{PLANTED}2"
    finally:
        other.close()
    pair.step(outcome="unchanged")
