"""What files and direnv say (DIRENV.md cases 13, 30)."""

from __future__ import annotations

import pytest

from tests.support.pairs import Pair
from tests.support.planted import exports


def test_both_streams(pair: Pair) -> None:
    """stdout and stderr of a file are both shown, in order."""
    pair.world.envrc(
        "w", f"echo one\necho two >&2\nlog_status three\n{exports('FOO')}echo four\n"
    )

    lines = pair.step("w", outcome="loaded").result.messages

    assert [
        line for line in lines if line in ("one", "two", "direnv: three", "four")
    ] == [
        "one",
        "two",
        "direnv: three",
        "four",
    ]


def test_colour_is_stripped(pair: Pair) -> None:
    """Colours of a file's own lines are stripped as direnv's are."""
    pair.world.envrc("w", f"printf '\\033[1;31mred\\033[0m\\n'\n{exports('FOO')}")

    assert "red" in pair.step("w", outcome="loaded").result.messages


def test_without_a_last_newline(pair: Pair) -> None:
    """A line that has no newline joins what direnv says next."""
    pair.world.envrc("w", f"printf tail\n{exports('FOO')}")

    pair.step("w", outcome="loaded")


def test_bytes_that_are_not_text(pair: Pair) -> None:
    """Bytes that are not UTF-8 are replaced, never an exception."""
    pair.world.envrc("w", f"printf '\\377\\376 raw\\n'\n{exports('FOO')}")

    pair.step("w", outcome="loaded")


def test_json_on_stdout_is_not_polluted(pair: Pair) -> None:
    """A file that prints JSON does not get it taken for direnv's answer."""
    pair.world.envrc("w", f'echo \'{{"EVIL": "1"}}\'\n{exports("FOO")}')

    pair.step("w", outcome="loaded")

    assert "EVIL" not in pair.environ


def test_says_is_blocked(pair: Pair) -> None:
    """A file that prints direnv's own words decides nothing with them."""
    pair.world.envrc("w", f"echo 'direnv: error x is blocked.'\n{exports('FOO')}")

    pair.step("w", outcome="loaded")


def test_a_lot(pair: Pair) -> None:
    """Two megabytes are read, but only the first 256 KiB are shown, and that is said.

    Deliberate (DESIGN 4: stderr has a cap; direnv has no limit).
    """
    pair.world.envrc(
        "w", f"head -c 2000000 /dev/zero | tr '\\0' x | fold -w 100\n{exports('FOO')}"
    )

    step = pair.step("w", outcome="loaded", messages=False)

    assert sum(map(len, step.said.lines)) >= 2_000_000
    assert sum(map(len, step.result.messages)) < 300_000
    assert any("256 KiB" in line for line in step.result.messages)


def test_same_text_on_every_load(pair: Pair) -> None:
    """What a file says is said at each of its loads."""
    pair.world.envrc("w", f"echo hello\n{exports('FOO')}")

    for _ in range(2):
        assert "hello" in pair.step("w", outcome="loaded").result.messages
        pair.step("", outcome="unloaded")


@pytest.mark.parametrize("toml", [False, True], ids=["no toml", "toml"])
def test_log_format_is_empty(pair: Pair, *, toml: bool) -> None:
    """A person who silenced direnv's lines hears nothing of them here either."""
    if toml:
        pair.world.toml("")
    pair.set("DIRENV_LOG_FORMAT", "")
    pair.world.envrc("w", exports("FOO"))

    pair.step("w", outcome="loaded")
    pair.step("", outcome="unloaded", messages=False)


@pytest.mark.parametrize(
    "toml",
    [
        "[global]\nhide_env_diff = true\n",
        '[global]\nlog_format = "[%s]"\n',
        '[global]\nlog_filter = "^export"\n',
        '[global]\nwarn_timeout = "0s"\n',
    ],
    ids=["hide_env_diff", "log_format", "log_filter", "warn_timeout"],
)
def test_logging_in_the_configuration(pair: Pair, toml: str) -> None:
    """direnv's own settings for its lines hold here too."""
    if "warn_timeout" in toml and not pair.world.is_newer:
        pytest.skip("2.32: toml beats the environment, and 0 fires at once (case 30)")
    pair.world.toml(toml)
    pair.world.envrc("w", exports("FOO"))

    pair.step("w", outcome="loaded")


@pytest.mark.parametrize("term", ["dumb", "xterm-256color"])
def test_terminal(pair: Pair, term: str) -> None:
    """TERM changes direnv's colours, never the text or the environment."""
    pair.set("TERM", term)
    pair.world.toml("")
    pair.world.envrc("w", exports("FOO"))
    pair.world.envrc("b", exports("BAR"), allow=False)

    pair.step("w", outcome="loaded")
    pair.step("b", outcome="blocked")


def test_home_is_shown_as_a_tilde(pair: Pair) -> None:
    """Paths below HOME are shown as direnv shows them."""
    pair.world.envrc("home/w", exports("FOO"))

    step = pair.step("home/w", outcome="loaded")

    assert step.result.messages[0] == "direnv: loading ~/w/.envrc"
