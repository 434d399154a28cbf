"""direnv's own configuration (DIRENV.md cases 20, 21, 36).

Deliberate (DESIGN 9.3): the hook does not watch it. Every change below reaches us
at the next run in both modes, so the hook is forced wherever it has to follow.
"""

from __future__ import annotations

import pytest

from tests.support.pairs import Pair
from tests.support.planted import PLANTED, exports, secret


def whitelist(kind: str, *paths: object) -> str:
    """Give a direnv.toml that whitelists."""
    return f"[whitelist]\n{kind} = [{', '.join(repr(str(path)) for path in paths)}]\n"


@pytest.mark.parametrize("kind", ["prefix", "exact"])
def test_whitelisted(pair: Pair, kind: str) -> None:
    """A whitelisted file loads without any approval."""
    pair.world.toml(whitelist(kind, pair.world.path("w")))
    pair.world.envrc("w", exports("FOO"), allow=False)

    pair.step("w", outcome="loaded")
    pair.world.envrc("w", exports("BAR"), allow=False)
    pair.step(outcome="loaded")


def test_whitelisted_by_file(pair: Pair) -> None:
    """`exact` takes the path of the file as well."""
    pair.world.toml(whitelist("exact", pair.world.path("w/.envrc")))
    pair.world.envrc("w", exports("FOO"), allow=False)

    pair.step("w", outcome="loaded")


def test_whitelisted_by_plain_prefix(pair: Pair) -> None:
    """A prefix is a prefix of text: `/p` whitelists `/p2`."""
    pair.world.toml(whitelist("prefix", pair.world.path("p")))
    pair.world.envrc("p2", exports("FOO"), allow=False)

    pair.step("p2", outcome="loaded")


def test_whitelisted_file_fails(pair: Pair) -> None:
    """A whitelisted file that fails is told from one that is blocked."""
    pair.world.toml(whitelist("prefix", pair.world.path("w")))
    pair.world.envrc("w", f"{exports('FOO')}exit 3\n", allow=False)

    pair.step("w", outcome="failed")


def test_whitelisted_and_denied(pair: Pair) -> None:
    """A denial beats the whitelist where direnv has denials."""
    pair.world.toml(whitelist("prefix", pair.world.path("w")))
    pair.world.envrc("w", exports("FOO"))
    pair.world.deny("w")

    pair.step("w", outcome="denied" if pair.world.is_newer else "loaded")


def test_whitelist_grows(pair: Pair) -> None:
    """A blocked file that gets whitelisted loads."""
    pair.world.envrc("w", exports("FOO"), allow=False)
    pair.step("w", outcome="blocked")
    pair.world.toml(whitelist("prefix", pair.world.path("w")))
    assert pair.shell.prompt().changes is None

    pair.step(outcome="loaded", forced=True)


def test_whitelist_shrinks(pair: Pair) -> None:
    """A file that is not whitelisted any more loses its values; the hook keeps them."""
    pair.world.toml(whitelist("prefix", pair.world.path("w")))
    pair.world.envrc("w", exports("FOO"), allow=False)
    pair.step("w", outcome="loaded")
    pair.world.toml(whitelist("prefix", "/elsewhere"))
    assert pair.shell.prompt().changes is None

    pair.step(outcome="blocked", forced=True)

    assert PLANTED not in "".join(pair.environ.values())


def test_configuration_goes(pair: Pair) -> None:
    """A direnv.toml that is removed takes its whitelist with it."""
    path = pair.world.toml(whitelist("prefix", pair.world.path("w")))
    pair.world.envrc("w", exports("FOO"), allow=False)
    pair.step("w", outcome="loaded")
    path.unlink()

    pair.step(outcome="blocked", forced=True)


def test_configuration_under_its_other_name(pair: Pair) -> None:
    """config.toml counts as well where direnv reads it."""
    text = whitelist("prefix", pair.world.path("w"))
    pair.world.write(pair.world.config / "config.toml", text)
    pair.world.envrc("w", exports("FOO"), allow=False)

    pair.step("w", outcome="loaded")


@pytest.mark.parametrize("name", ["direnvrc", "lib/own.sh"])
def test_library(pair: Pair, name: str) -> None:
    """Functions of direnvrc and lib/*.sh are there, and a change reaches a loaded file."""
    pair.world.write(
        pair.world.config / name, f"own() {{ {exports('FOO').strip()}; }}\n"
    )
    pair.world.envrc("w", "own\n")
    pair.step("w", outcome="loaded")
    assert pair.environ["FOO"] == secret("FOO")
    pair.world.write(
        pair.world.config / name, f"own() {{ {exports('FOO', tag='2').strip()}; }}\n"
    )
    assert pair.shell.prompt().changes is None

    pair.step(outcome="loaded", forced=True)

    assert pair.environ["FOO"] == secret("FOO2")


@pytest.mark.parametrize(
    "name", [".direnvrc", ".config/direnv/direnvrc", ".config/direnv/lib/x.sh"]
)
def test_library_appears(pair: Pair, name: str) -> None:
    """A library file that was not there before reaches a loaded file."""
    pair.world.envrc("w", exports("FOO"))
    pair.step("w", outcome="loaded")
    pair.world.write(pair.world.home / name, exports("LIB"))

    pair.step(outcome="loaded", forced=True)

    assert pair.environ["LIB"] == secret("LIB")


def test_library_goes(pair: Pair) -> None:
    """A library file that is removed reaches a loaded file."""
    path = pair.world.write(pair.world.config / "lib/x.sh", exports("LIB"))
    pair.world.envrc("w", exports("FOO"))
    pair.step("w", outcome="loaded")
    path.unlink()

    pair.step(outcome="loaded", forced=True)

    assert "LIB" not in pair.environ


def test_library_fails(pair: Pair) -> None:
    """A direnvrc that fails fails every load."""
    pair.world.write(pair.world.config / "direnvrc", "exit 3\n")
    pair.world.envrc("w", exports("FOO"))

    pair.step("w", outcome="failed")


def test_broken_configuration(pair: Pair) -> None:
    """With a direnv.toml that cannot be read nothing stays loaded, and it is said.

    Deliberate (section D, rule 2): direnv answers nothing, so the hook keeps the
    values, also on leaving.
    """
    base = dict(pair.environ)
    pair.world.envrc("w", exports("FOO"))
    pair.step("w", outcome="loaded")
    path = pair.world.toml("this is not toml\n")
    pair.world.stamp("w/.envrc")
    assert pair.shell.prompt().code == 1
    assert PLANTED in pair.shell.environ["FOO"]

    result = pair.kernel.refresh()

    assert result.outcome == "broken"
    assert any("direnv" in line for line in result.messages)
    assert pair.environ == base
    path.unlink()
    pair.step(outcome="loaded", messages=False)


def test_broken_configuration_and_left(pair: Pair) -> None:
    """Leaving needs no direnv, so it works with a broken configuration too."""
    base = dict(pair.environ)
    pair.world.envrc("w", exports("FOO"))
    pair.step("w", outcome="loaded")
    pair.world.toml("this is not toml\n")
    pair.go("")
    assert pair.shell.prompt().code == 1
    assert PLANTED in pair.shell.environ["FOO"]

    assert pair.kernel.refresh().outcome == "unloaded"
    assert pair.environ == base


def test_configuration_elsewhere(pair: Pair) -> None:
    """DIRENV_CONFIG moves direnv.toml and the libraries; approvals stay."""
    folder = pair.world.folder("elsewhere")
    pair.set("DIRENV_CONFIG", str(folder))
    pair.world.write(folder / "direnvrc", exports("LIB"))
    pair.world.envrc("w", exports("FOO"))

    pair.step("w", outcome="loaded")
    assert pair.environ["LIB"] == secret("LIB")
    pair.world.write(folder / "direnvrc", exports("LIB", tag="2"))
    pair.step(outcome="loaded", forced=True)
    assert pair.environ["LIB"] == secret("LIB2")


def test_approvals_elsewhere(pair: Pair) -> None:
    """With another XDG_DATA_HOME the approvals are not there: blocked."""
    pair.set("XDG_DATA_HOME", str(pair.world.folder("other-data")))
    pair.world.envrc("w", exports("FOO"))

    pair.step("w", outcome="blocked")
