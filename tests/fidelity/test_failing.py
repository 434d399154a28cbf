"""Files that fail, wholly or in part (DIRENV.md case 12)."""

from __future__ import annotations

import pytest

from tests.support.pairs import Pair
from tests.support.planted import PLANTED, exports, secret

FAILING = {
    "exit": "exit 3\n",
    "exit 255": "exit 255\n",
    "set -e": "set -e\nfalse\n",
    "strict_env": "strict_env\nfalse\n",
    "unset variable": 'strict_env\nexport X="$NOT_THERE"\n',
    "kill -9": "kill -9 $$\n",
    "kill -TERM": "kill -TERM $$\n",
    "writes to fd 3": "echo hello >&3\n",
}
PARTLY = {
    "exit 0": "exit 0\n",
    "return 1": "return 1\n",
    "syntax error": "if then fi\n",
    "unclosed quote": 'echo "\n',
    "command not found": "no_such_command\n",
    "failing last command": "false\n",
}
LOST = {
    "exec": "exec true\n",
    "trap": "trap - EXIT\n",
    "closed fd 3": "exec 3>&-\n",
}


@pytest.mark.parametrize("body", FAILING.values(), ids=FAILING)
def test_failed(pair: Pair, body: str) -> None:
    """A file that fails leaves no variable, and is said once."""
    pair.world.envrc("w", exports("FOO") + body)

    pair.step("w", outcome="failed")

    assert "FOO" not in pair.environ
    pair.step(outcome="unchanged")
    assert pair.kernel.client.outcome == "failed"


@pytest.mark.parametrize("body", FAILING.values(), ids=FAILING)
def test_failed_after_it_was_loaded(pair: Pair, body: str) -> None:
    """A file that begins to fail takes its old values with it."""
    pair.world.envrc("w", exports("FOO", "KEEP"))
    pair.step("w", outcome="loaded")
    pair.world.envrc("w", exports("FOO", "KEEP") + body)

    pair.step(outcome="failed")

    assert pair.environ["KEEP"] == "kept"
    assert "FOO" not in pair.environ


@pytest.mark.parametrize("body", PARTLY.values(), ids=PARTLY)
def test_loaded_in_part(pair: Pair, body: str) -> None:
    """Exit code 0 is direnv's word: what came before the error is loaded."""
    pair.world.envrc("w", exports("FOO") + body + exports("LATER"))

    pair.step("w", outcome="loaded")

    assert pair.environ["FOO"] == secret("FOO")
    pair.step(outcome="unchanged")


@pytest.mark.parametrize("body", LOST.values(), ids=LOST)
def test_lost_all_variables(pair: Pair, body: str) -> None:
    """A file that cuts off direnv's own end loads without any variable."""
    pair.world.envrc("w", exports("FOO") + body)

    pair.step("w")

    assert "FOO" not in pair.environ
    pair.step(outcome="unchanged")


@pytest.mark.parametrize("body", LOST.values(), ids=LOST)
def test_lost_all_variables_while_loaded(pair: Pair, body: str) -> None:
    """The old values go when the new file loads without any."""
    pair.world.envrc("w", exports("FOO"))
    pair.step("w", outcome="loaded")
    pair.world.envrc("w", exports("FOO") + body)

    pair.step()

    assert PLANTED not in "".join(pair.environ.values())


def test_mended(pair: Pair) -> None:
    """A failed file that is mended and allowed loads."""
    pair.world.envrc("w", exports("FOO") + "exit 3\n")
    pair.step("w", outcome="failed")
    pair.world.envrc("w", exports("FOO"))

    pair.step(outcome="loaded")


def test_watches_of_a_failed_file(pair: Pair) -> None:
    """What a file wanted to watch is lost when it fails: only an edit asks again."""
    pair.world.envrc("w", f"watch_file need\n[ -e need ] || exit 5\n{exports('FOO')}")
    pair.step("w", outcome="failed")
    pair.step(outcome="unchanged")
    pair.world.write("w/need", "")
    pair.step(outcome="unchanged")
    pair.world.stamp("w/.envrc")

    pair.step(outcome="loaded")


@pytest.mark.parametrize(
    ("body", "code"),
    [("if then fi\n", 2), ("no_such_command\n", 127)],
    ids=["syntax", "missing"],
)
def test_strict_env_in_the_configuration(pair: Pair, body: str, code: int) -> None:
    """`strict_env = true` turns half-loaded files into failures."""
    pair.world.toml("[global]\nstrict_env = true\n")
    pair.world.envrc("w", exports("FOO") + body)

    step = pair.step("w", outcome="failed")

    assert step.result.messages[-1] == f"direnv: error exit status {code}"


def test_carriage_returns(pair: Pair) -> None:
    """A file with CRLF line ends: its values keep the CR."""
    pair.world.envrc("w", f"export FOO={PLANTED}\r\nexport BAR={PLANTED}\r\n")

    pair.step("w", outcome="loaded")

    assert pair.environ["FOO"] == f"{PLANTED}\r"


def test_nul_bytes(pair: Pair) -> None:
    """NUL bytes in a file are dropped by bash."""
    pair.world.envrc("w", f"export FOO='{PLANTED}a\0b'\n")

    pair.step("w", outcome="loaded")


def test_require_allowed_is_not_known(pair: Pair) -> None:
    """`require_allowed` is unknown to these versions: an error, and it goes on."""
    pair.world.envrc("w", f"require_allowed dep\n{exports('FOO')}")

    pair.step("w", outcome="loaded")

    assert pair.environ["FOO"] == secret("FOO")
