"""`.env` files (DIRENV.md case 19)."""

from __future__ import annotations

import pytest

from tests.support.pairs import Pair
from tests.support.planted import PLANTED, exports, secret

ON = "[global]\nload_dotenv = true\n"
ENV = f"FOO={secret('FOO')}\n"


def test_invisible_by_default(pair: Pair) -> None:
    """A `.env` alone is nothing to direnv by default."""
    pair.world.write("w/.env", ENV)

    pair.step("w", outcome="absent")


def test_loaded(pair: Pair) -> None:
    """Switched on and allowed, it is the root file."""
    pair.world.toml(ON)
    path = pair.world.write("w/.env", ENV)
    pair.world.allow("w/.env")

    assert pair.step("w", outcome="loaded").result.root_file == str(path)
    assert pair.environ["FOO"] == secret("FOO")
    pair.step(outcome="unchanged")
    pair.step("", outcome="unloaded")


def test_blocked(pair: Pair) -> None:
    """It needs an approval of its own."""
    pair.world.toml(ON)
    pair.world.write("w/.env", ENV)

    pair.step("w", outcome="blocked")
    pair.world.allow("w/.env")
    pair.step(outcome="loaded")
    pair.world.write("w/.env", f"BAR={secret('BAR')}\n")
    pair.step(outcome="blocked")


def test_envrc_beside_wins(pair: Pair) -> None:
    """An `.envrc` beside it wins, even when it is blocked; without it, `.env` is back."""
    pair.world.toml(ON)
    pair.world.write("w/.env", ENV)
    pair.world.allow("w/.env")
    pair.step("w", outcome="loaded")
    path = pair.world.envrc("w", exports("BAR"), allow=False)
    pair.step(outcome="blocked")
    assert PLANTED not in "".join(pair.environ.values())
    path.unlink()

    pair.step(outcome="loaded")

    assert pair.environ["FOO"] == secret("FOO")


def test_below_an_envrc(pair: Pair) -> None:
    """A nearer `.env` hides the `.envrc` above it."""
    pair.world.toml(ON)
    pair.world.envrc("w", exports("OUTER"))
    pair.world.write("w/in/.env", ENV)
    pair.world.allow("w/in/.env")

    pair.step("w/in", outcome="loaded")

    assert "OUTER" not in pair.environ


def test_bad_line(pair: Pair) -> None:
    """A line that cannot be read leaves no variable, and is said."""
    pair.world.toml(ON)
    pair.world.write("w/.env", f"{ENV}just words\n")
    pair.world.allow("w/.env")

    pair.step("w", messages=False)

    assert "FOO" not in pair.environ


def test_switched_on(pair: Pair) -> None:
    """Switching it on is noticed by the next run."""
    pair.world.write("w/.env", ENV)
    pair.step("w", outcome="absent")
    pair.world.toml(ON)

    pair.step(outcome="blocked")


def test_switched_on_below_a_loaded_file(pair: Pair) -> None:
    """Switched on while a file above is loaded, the nearer `.env` counts."""
    pair.world.envrc("w", exports("OUTER"))
    pair.world.write("w/in/.env", ENV)
    pair.step("w/in", outcome="loaded")
    pair.world.toml(ON)

    pair.step(outcome="blocked", forced=True)


def test_switched_off(pair: Pair) -> None:
    """Switching it off unloads what it loaded."""
    path = pair.world.toml(ON)
    pair.world.write("w/.env", ENV)
    pair.world.allow("w/.env")
    pair.step("w", outcome="loaded")
    path.unlink()

    pair.step(forced=True)

    assert "FOO" not in pair.environ


@pytest.mark.parametrize("word", ["dotenv", "dotenv_if_exists"])
def test_loaded_by_an_envrc(pair: Pair, word: str) -> None:
    """An `.envrc` that loads a `.env` watches it, without any setting."""
    pair.world.write("w/.env", ENV)
    pair.world.envrc("w", f"{word}\n{exports('BAR')}")
    pair.step("w", outcome="loaded")
    pair.world.write("w/.env", f"FOO={secret('FOO2')}\n")

    pair.step(outcome="loaded")

    assert pair.environ["FOO"] == secret("FOO2")
