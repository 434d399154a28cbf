"""Settings from the environment."""

from __future__ import annotations

import pytest

from kernel_client.errors import SettingError
from kernel_client.settings import Settings, usable


def told(settings: Settings) -> dict[str, object]:
    """Give all settings."""
    return {name: getattr(settings, name) for name in Settings.__slots__}


def test_defaults() -> None:
    """Nothing set, or set to nothing, is what the code has."""
    names = [name.upper() for name in Settings.__slots__]
    empty = {f"ENVWATCH_{name}": "" for name in names}
    assert told(Settings.of({})) == told(Settings()) == told(Settings.of(empty))
    assert told(Settings()) == {
        "sidecar": "auto",
        "socket": None,
        "fd": None,
        "direnv": None,
        "wait_s": 600.0,
        "kill_s": 3600.0,
        "withheld": ("JPY_*",),
        "fence": "auto",
        "fence_recheck_s": 10.0,
        "exec": "on",
        "shell": "/bin/bash",
        "check_s": 5.0,
    }


def test_all_are_read() -> None:
    """Each setting has its variable; patterns add to the default."""
    read = Settings.of(
        {
            "ENVWATCH_SIDECAR": "/bin/envwatch",
            "ENVWATCH_SOCKET": "/run/s",
            "ENVWATCH_FD": "7",
            "ENVWATCH_DIRENV": "/bin/direnv",
            "ENVWATCH_WAIT_S": "1.5",
            "ENVWATCH_KILL_S": "20",
            "ENVWATCH_WITHHELD": " AGENT_*, ,SESSION,",
            "ENVWATCH_FENCE": "always",
            "ENVWATCH_FENCE_RECHECK_S": "3",
            "ENVWATCH_EXEC": "off",
            "ENVWATCH_SHELL": "/opt/bash",
            "ENVWATCH_CHECK_S": "2",
        }
    )
    assert told(read) == {
        "sidecar": "/bin/envwatch",
        "socket": "/run/s",
        "fd": 7,
        "direnv": "/bin/direnv",
        "wait_s": 1.5,
        "kill_s": 20.0,
        "withheld": ("JPY_*", "AGENT_*", "SESSION"),
        "fence": "always",
        "fence_recheck_s": 3.0,
        "exec": "off",
        "shell": "/opt/bash",
        "check_s": 2.0,
    }


@pytest.mark.parametrize("word", ["auto", "listening", "off", "/a/b"])
def test_sidecar(word: str) -> None:
    """Four ways to say which sidecar."""
    assert Settings.of({"ENVWATCH_SIDECAR": word}).sidecar == word


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ENVWATCH_SIDECAR", "on"),
        ("ENVWATCH_SIDECAR", "bin/envwatch"),
        ("ENVWATCH_FD", "-1"),
        ("ENVWATCH_FD", "three"),
        ("ENVWATCH_WAIT_S", "0"),
        ("ENVWATCH_WAIT_S", "-1"),
        ("ENVWATCH_WAIT_S", "nan"),
        ("ENVWATCH_WAIT_S", "inf"),
        ("ENVWATCH_WAIT_S", "1e9"),
        ("ENVWATCH_KILL_S", "soon"),
        ("ENVWATCH_EXEC", "maybe"),
        ("ENVWATCH_SHELL", "bash"),
        ("ENVWATCH_CHECK_S", "-1"),
    ],
)
def test_value_that_cannot_be_used(name: str, text: str) -> None:
    """The message names the variable, and not its value."""
    with pytest.raises(SettingError) as caught:
        Settings.of({name: text})
    assert name in str(caught.value)


def test_usable_settings() -> None:
    """Each that cannot be read is said and has its default; the others count."""
    lines: list[str] = []
    read = usable(
        {
            "ENVWATCH_SIDECAR": "off",
            "ENVWATCH_WAIT_S": "soon",
            "ENVWATCH_FENCE": "perhaps",
            "ENVWATCH_KILL_S": "7",
            "HOME": "/h",
        },
        lines.append,
    )
    assert told(read) == {**told(Settings()), "sidecar": "off", "kill_s": 7.0}
    assert [line.split()[1] for line in lines] == ["ENVWATCH_FENCE", "ENVWATCH_WAIT_S"]
    assert all(line.endswith("; the default is used") for line in lines)
