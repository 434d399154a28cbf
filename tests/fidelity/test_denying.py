"""Files that the person has denied; 2.32 cannot tell them from blocked (case 6)."""

from __future__ import annotations

import pytest

from tests.support.pairs import Pair
from tests.support.planted import PLANTED, exports, secret
from tests.support.reference import run


def held(pair: Pair) -> bool:
    """Tell whether any planted value is in the kernel's environment."""
    return any(PLANTED in value for value in pair.environ.values())


@pytest.fixture
def denying(pair: Pair) -> Pair:
    """Give a pair whose direnv has denials."""
    if not pair.world.is_newer:
        pytest.skip("2.32 has no denials")
    return pair


def test_denied_while_loaded(pair: Pair) -> None:
    """Denying takes the values away; silently where direnv has denials."""
    pair.world.envrc("w", exports("FOO", "KEEP"))
    pair.step("w", outcome="loaded")
    pair.world.deny("w")

    step = pair.step(outcome="denied" if pair.world.is_newer else "blocked")

    assert not held(pair)
    assert bool(step.result.messages) is not pair.world.is_newer
    pair.step(outcome="unchanged")


def test_denied_before_it_was_met(denying: Pair) -> None:
    """A denied file is denied at the first visit, without a word."""
    denying.world.envrc("w", exports("FOO"), allow=False)
    denying.world.deny("w")

    result = denying.step("w", outcome="denied").result

    assert result.messages == ()
    assert not held(denying)


def test_denied_stays_through_edits(denying: Pair) -> None:
    """An edited file stays denied."""
    denying.world.envrc("w", exports("FOO"))
    denying.world.deny("w")
    denying.step("w", outcome="denied")
    denying.world.envrc("w", exports("BAR"), allow=False)

    assert denying.step(outcome="denied").result.messages == ()


def test_denied_after_blocked(denying: Pair) -> None:
    """Denying a blocked file is noticed."""
    denying.world.envrc("w", exports("FOO"), allow=False)
    denying.step("w", outcome="blocked")
    denying.world.deny("w")

    denying.step(outcome="denied")


def test_allow_lifts_a_denial(denying: Pair) -> None:
    """Allowing a denied file loads it."""
    denying.world.envrc("w", exports("FOO"))
    denying.world.deny("w")
    denying.step("w", outcome="denied")
    denying.world.allow("w")

    denying.step(outcome="loaded")

    assert denying.environ["FOO"] == secret("FOO")


def test_denial_deleted_by_hand(denying: Pair) -> None:
    """A denial that is deleted by hand leaves a file that is blocked."""
    denying.world.envrc("w", exports("FOO"))
    denying.world.deny("w")
    denying.step("w", outcome="denied")
    denying.world.denial("w").unlink()

    denying.step(outcome="blocked")


def test_denied_does_not_fall_through(pair: Pair) -> None:
    """A denied file hides the allowed one above it."""
    pair.world.envrc("w", exports("FOO"))
    pair.world.envrc("w/in", exports("BAR"))
    pair.world.deny("w/in")

    pair.step("w", outcome="loaded")
    pair.step("w/in", outcome="denied" if pair.world.is_newer else "blocked")

    assert not held(pair)
    pair.step("w", outcome="loaded")


def test_allowed_by_an_older_direnv(denying: Pair, direnvs: dict[str, str]) -> None:
    """An older direnv's `allow` does not lift a denial that it does not know."""
    denying.world.envrc("w", exports("FOO"))
    denying.world.deny("w")
    folder = str(denying.world.path("w"))
    said = run(direnvs["2.32"], "allow", environ=denying.world.environ, folder=folder)
    assert said.code == 0

    denying.step("w", outcome="denied")


def test_deny_without_denials(pair: Pair) -> None:
    """2.32 cannot deny what was never allowed: its deny fails, and it is blocked."""
    if pair.world.is_newer:
        pytest.skip("only 2.32 has no denials")
    pair.world.envrc("w", exports("FOO"), allow=False)

    assert pair.world.call("deny", folder=pair.world.path("w")).code == 1
    pair.step("w", outcome="blocked")
