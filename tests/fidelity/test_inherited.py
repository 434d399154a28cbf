"""An environment that was loaded before the kernel began (DIRENV.md cases 1, 27, 36)."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from kernel_client.loaded import FILES_CLOCK
from tests.support.daemons import until
from tests.support.pairs import Pair
from tests.support.planted import PLANTED, exports, secret
from tests.support.reference import THE_FOUR, Shell
from tests.support.worlds import World

BODY = exports("FOO", "KEEP") + "PATH_add bin\n"


@pytest.fixture
def loaded(world: World, pair: Pair) -> Iterator[Pair]:
    """Give a pair that begins with what a shell had loaded in `w`."""
    world.envrc("w", BODY)
    shell = Shell(world.direnv, world.environ)
    pair.go("w")
    shell.prompt()
    assert PLANTED in shell.environ["FOO"]
    made = Pair(world, socket=pair.socket, environ=shell.environ)
    yield made
    made.close()


def test_same_workspace(loaded: Pair) -> None:
    """In the same workspace it is adopted, silently and without a process."""
    assert loaded.step("w", outcome="unchanged").result.messages == ()
    loaded.step(outcome="unchanged")


def test_same_workspace_then_left(loaded: Pair) -> None:
    """What was adopted is taken back on leaving."""
    loaded.step("w", outcome="unchanged")

    loaded.step("", outcome="unloaded")

    assert loaded.environ == loaded.world.environ


def test_same_workspace_edited_before(loaded: Pair) -> None:
    """What was edited between the shell and the kernel is blocked at once."""
    loaded.world.envrc("w", exports("BAR"), allow=False)

    loaded.step("w", outcome="blocked")

    assert PLANTED not in "".join(loaded.environ.values())


def test_same_workspace_edited_after(loaded: Pair) -> None:
    """What is edited after it was adopted reloads."""
    loaded.step("w", outcome="unchanged")
    loaded.world.envrc("w", exports("BAR", "KEEP", tag="2"))

    loaded.step(outcome="loaded")

    assert "FOO" not in loaded.environ


def test_subfolder_of_the_workspace(loaded: Pair) -> None:
    """It is adopted from a folder below as well."""
    loaded.world.folder("w/deep")

    loaded.step("w/deep", outcome="unchanged")


def test_other_workspace(loaded: Pair) -> None:
    """In another workspace the inherited one is taken back."""
    loaded.world.envrc("b", exports("BAR"))

    loaded.step("b", outcome="loaded")

    assert "FOO" not in loaded.environ
    assert loaded.environ["KEEP"] == "kept"


def test_nowhere(loaded: Pair) -> None:
    """Where no root file is, an inherited environment is left alone.

    Deliberate (DESIGN 9.4): the hook would unload what the kernel's own parent
    gave it.
    """
    before = dict(loaded.environ)
    loaded.go("")

    assert loaded.shell.prompt().lines == ("direnv: unloading",)
    assert loaded.shell.environ == loaded.world.environ

    result = loaded.kernel.refresh()
    assert result.messages == ()
    assert loaded.environ == before


def test_values_scrubbed(loaded: Pair) -> None:
    """When a host scrubbed the values but not the four, it is loaded afresh.

    Deliberate (DESIGN 9.4): the hook takes "nothing to update" for granted and
    leaves the variables missing.
    """
    for name in ("FOO", "KEEP"):
        loaded.unset(name)
    loaded.go("w")
    loaded.shell.prompt()
    assert "FOO" not in loaded.shell.environ

    result = loaded.kernel.refresh()

    assert result.outcome == "loaded"
    assert loaded.environ["FOO"] == secret("FOO")


def test_scrubbed_values_are_not_resurrected(loaded: Pair) -> None:
    """The old side of a scrubbed DIRENV_DIFF never comes back (DESIGN 9.4).

    The host removed KEEP, which DIRENV_DIFF remembers as it was before: the hook
    puts it back when it unloads.
    """
    for name in ("FOO", "KEEP"):
        loaded.unset(name)
    loaded.world.envrc("b", exports("BAR"))
    loaded.go("b")
    loaded.shell.prompt()
    assert loaded.shell.environ["KEEP"] == "kept"

    assert loaded.kernel.refresh().outcome == "loaded"

    assert "KEEP" not in loaded.environ
    assert loaded.environ["BAR"] == secret("BAR")


def test_four_stripped(loaded: Pair) -> None:
    """Values without the four load as if new, and can never be unloaded."""
    for name in THE_FOUR:
        loaded.unset(name)

    loaded.step("w", outcome="loaded")
    loaded.step("", outcome="unloaded")

    assert loaded.environ["FOO"] == secret("FOO")


def test_diff_without_file(loaded: Pair) -> None:
    """DIRENV_DIFF alone is ignored where there is no root file (case 1)."""
    for name in ("DIRENV_FILE", "DIRENV_DIR", "DIRENV_WATCHES"):
        loaded.unset(name)
    before = dict(loaded.environ)
    loaded.go("")

    assert loaded.shell.prompt().changes is None
    loaded.kernel.refresh()

    assert loaded.environ == before


def test_diff_without_file_in_a_workspace(loaded: Pair) -> None:
    """DIRENV_DIFF without DIRENV_FILE is a full reload in a workspace (section C)."""
    for name in ("DIRENV_FILE", "DIRENV_DIR", "DIRENV_WATCHES"):
        loaded.unset(name)

    loaded.step("w", outcome="loaded")

    assert loaded.environ["KEEP"] == secret("KEEP")
    loaded.step("", outcome="unloaded")


@pytest.mark.parametrize("watches", [None, "", "garbage"])
def test_watches_lost(loaded: Pair, watches: str | None) -> None:
    """Without readable watches it is loaded again (section C)."""
    if watches is None:
        loaded.unset("DIRENV_WATCHES")
    else:
        loaded.set("DIRENV_WATCHES", watches)

    loaded.step("w", outcome="loaded")


def test_diff_is_garbage(loaded: Pair) -> None:
    """A DIRENV_DIFF that cannot be read does not stop a kernel.

    Deliberate: the hook gets rc 1 and no answer, for ever (section C).
    """
    loaded.set("DIRENV_DIFF", "garbage")
    loaded.world.stamp("w/.envrc")
    loaded.go("w")
    assert loaded.shell.prompt().code == 1

    assert loaded.kernel.refresh().outcome == "loaded"

    assert loaded.environ["DIRENV_DIFF"] != "garbage"
    assert loaded.environ["FOO"] == secret("FOO")


def test_root_file_gone_before(loaded: Pair) -> None:
    """What was inherited from a file that is gone is taken back in a workspace."""
    loaded.world.path("w/.envrc").unlink()
    loaded.world.envrc("b", exports("BAR"))

    loaded.step("b", outcome="loaded")

    assert "FOO" not in loaded.environ


def test_loaded_by_another_version(
    world: World, pair: Pair, direnvs: dict[str, str]
) -> None:
    """What one version loaded is kept in place by the other, and left (case 36)."""
    other = direnvs["2.32" if world.is_newer else "2.37"]
    world.envrc("w", BODY)
    pair.go("w")
    shell = Shell(other, world.environ)
    shell.prompt()
    made = Pair(world, socket=pair.socket, environ=shell.environ)
    try:
        made.step("w", outcome="unchanged")
        made.step("", outcome="unloaded")
        assert made.environ == world.environ
    finally:
        made.close()


def test_blocked_inherited(world: World, pair: Pair) -> None:
    """A shell that met a blocked file hands that on: it is not said again."""
    root = world.envrc("w", BODY, allow=False)
    pair.go("w")
    shell = Shell(world.direnv, world.environ)
    shell.prompt()
    # What is of the same tick of the files' clock may have come after the shell.
    until(
        "a tick", lambda: time.clock_gettime_ns(FILES_CLOCK) > root.stat().st_ctime_ns
    )
    made = Pair(world, socket=pair.socket, environ=shell.environ)
    try:
        made.step("w", outcome="unchanged")
        world.allow("w")
        made.step(outcome="loaded")
    finally:
        made.close()


def test_four_removed_while_loaded(pair: Pair) -> None:
    """A host that removes the four in mid-life gets a clean load again.

    Deliberate (DESIGN 9.4): the hook loads on top of the old values, which can
    then never be unloaded (section C, all four dropped).
    """
    pair.world.envrc("w", BODY)
    pair.step("w", outcome="loaded")
    before = dict(pair.environ)
    for name in THE_FOUR:
        pair.unset(name)

    assert pair.kernel.refresh().outcome == "loaded"

    assert pair.environ == before
    pair.go("")
    pair.kernel.refresh()
    assert pair.environ == pair.world.environ


def test_whole_environment_replaced_while_loaded(pair: Pair) -> None:
    """A host that puts its first environment back gets a load afresh."""
    pair.world.envrc("w", BODY)
    pair.step("w", outcome="loaded")
    for side in (pair.kernel.environ, pair.shell.environ):
        side.clear()
        side.update(pair.world.environ)

    pair.step(outcome="loaded")
    pair.step("", outcome="unloaded")


def test_same_workspace_asked_for_before(loaded: Pair) -> None:
    """An answer that was asked for while the kernel started says nothing later."""
    loaded.go("w")
    loaded.kernel.client.prefetch()
    loaded.step(outcome="unchanged")
    loaded.world.envrc("w", exports("BAR"), allow=False)

    step = loaded.step(outcome="blocked")

    assert not [line for line in step.result.messages if "loading" in line]
