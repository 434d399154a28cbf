"""One workspace inside another (DIRENV.md case 11)."""

from __future__ import annotations

import pytest

from tests.support.pairs import Pair
from tests.support.planted import PLANTED, exports, secret


def test_nearest_only(pair: Pair) -> None:
    """Only the nearest file counts."""
    pair.world.envrc("w", exports("FOO", "OUTER"))
    pair.world.envrc("w/in", exports("FOO", "INNER", tag="in"))

    for folder in ("w", "w/in", "w", "w/in"):
        pair.step(folder, outcome="loaded")
        assert ("OUTER" in pair.environ) is (folder == "w")
    pair.step("", outcome="unloaded")


def test_appears_below(pair: Pair) -> None:
    """A nearer file that appears hides the loaded one, even when it is blocked."""
    pair.world.envrc("w", exports("FOO"))
    pair.world.folder("w/in/deep")
    pair.step("w/in/deep", outcome="loaded")
    pair.world.envrc("w/in", exports("BAR"), allow=False)

    pair.step(outcome="blocked")

    assert "FOO" not in pair.environ
    pair.world.allow("w/in")
    pair.step(outcome="loaded")


def test_appears_above(pair: Pair) -> None:
    """A file that appears above the loaded one changes nothing."""
    pair.world.envrc("w/in", exports("FOO"))
    pair.step("w/in", outcome="loaded")
    pair.world.envrc("w", exports("BAR"))

    pair.step(outcome="unchanged")
    pair.step("w", outcome="loaded")


def test_appears_where_there_was_none(pair: Pair) -> None:
    """A first file that appears above the working folder is found."""
    pair.world.folder("w/in/deep")
    pair.step("w/in/deep", outcome="absent")
    pair.step(outcome="unchanged")
    pair.world.envrc("w", exports("FOO"))

    pair.step(outcome="loaded")


def test_source_up(pair: Pair) -> None:
    """`source_up` loads the file above too, and watches it."""
    pair.world.envrc("w", exports("FOO", "OUTER"))
    pair.world.envrc("w/in", f"source_up\n{exports('FOO', tag='in')}")
    pair.step("w/in", outcome="loaded")
    assert pair.environ["OUTER"] == secret("OUTER")
    pair.world.envrc("w", exports("OUTER", tag="2"))

    pair.step(outcome="loaded")

    assert pair.environ["OUTER"] == secret("OUTER2")
    assert pair.environ["FOO"] == secret("FOOin")


def test_source_up_to_a_file_that_is_not_allowed(pair: Pair) -> None:
    """direnv does not ask whether the file above is allowed, so neither do we."""
    pair.world.envrc("w", exports("OUTER"), allow=False)
    pair.world.envrc("w/in", f"source_up\n{exports('FOO')}")

    pair.step("w/in", outcome="loaded")

    assert pair.environ["OUTER"] == secret("OUTER")
    pair.step("w", outcome="blocked")


def test_source_up_without_a_file_above(pair: Pair) -> None:
    """`source_up` with nothing above says so and goes on."""
    pair.world.envrc("w", f"source_up\n{exports('FOO')}")

    step = pair.step("w", outcome="loaded")

    assert "direnv: No ancestor .envrc found" in step.result.messages


def test_source_up_if_exists(pair: Pair) -> None:
    """`source_up_if_exists` with nothing above is silent."""
    pair.world.envrc("w", f"source_up_if_exists\n{exports('FOO')}")

    step = pair.step("w", outcome="loaded")

    assert len(step.result.messages) == 2


def test_source_env(pair: Pair) -> None:
    """A file that another one sources is watched as well."""
    other = pair.world.write("shared/extra", exports("EXTRA"))
    pair.world.envrc("w", f"source_env {other}\n{exports('FOO')}")
    pair.step("w", outcome="loaded")
    pair.world.write("shared/extra", exports("EXTRA", tag="2"))

    pair.step(outcome="loaded")

    assert pair.environ["EXTRA"] == secret("EXTRA2")


def test_deep_below(pair: Pair) -> None:
    """A file is found from thirty folders below."""
    pair.world.envrc("w", exports("FOO"))
    deep = "w/" + "/".join("d" * 30)
    pair.world.folder(deep)

    pair.step(deep, outcome="loaded")
    pair.step("w", outcome="unchanged")
    pair.step(deep, outcome="unchanged")


@pytest.mark.parametrize("inner", ["allowed", "blocked", "failing"])
def test_from_inner_to_outer_and_out(pair: Pair, inner: str) -> None:
    """From an inner workspace of any kind outwards, each step takes it back."""
    pair.world.envrc("w", exports("FOO", "KEEP"))
    body = exports("KEEP", "BAR", tag="in") + ("exit 4\n" if inner == "failing" else "")
    pair.world.envrc("w/in", body, allow=inner != "blocked")
    pair.step("w/in")
    pair.step("w", outcome="loaded")
    pair.step("w/in")
    pair.step("", outcome="unloaded")

    assert PLANTED not in "".join(pair.environ.values())
