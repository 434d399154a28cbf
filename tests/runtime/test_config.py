"""Settings from the environment."""

from __future__ import annotations

import pytest

from envwatch.config import Config
from envwatch.errors import ConfigError


def test_every_setting_is_read() -> None:
    """Each has its variable."""
    config = Config.of(
        {
            "ENVWATCH_SOCKET": "/s/sock",
            "ENVWATCH_DIRENV": "/bin/direnv",
            "ENVWATCH_IDLE_S": "1",
            "ENVWATCH_SWEEP_S": "0.5",
            "ENVWATCH_MAX_AGE_S": "3",
            "ENVWATCH_KILL_S": "4",
            "ENVWATCH_MAX_KEPT_BYTES": "5",
            "ENVWATCH_PRECOMPUTE": "off",
            "ENVWATCH_CONCURRENCY": "6",
            "ENVWATCH_FENCE": "always",
            "ENVWATCH_LOG": "/l",
        }
    )
    assert config == Config(
        socket="/s/sock",
        direnv="/bin/direnv",
        idle_s=1.0,
        sweep_s=0.5,
        max_age_s=3.0,
        kill_s=4.0,
        max_kept_bytes=5,
        precompute=False,
        concurrency=6,
        fence="always",
        log="/l",
    )


def test_nothing_set_is_the_default() -> None:
    """The socket is found as kernels find it; empty counts as not set."""
    config = Config.of({"XDG_RUNTIME_DIR": "/run/user/7", "ENVWATCH_IDLE_S": ""})
    assert config.socket == "/run/user/7/envwatch/envwatch.sock"
    assert (config.idle_s, config.precompute) == (3600.0, True)
    assert config.concurrency >= 1
    assert config.fence == "auto"


@pytest.mark.parametrize("mode", ["auto", "always", "off"])
def test_fences_have_three_modes(mode: str) -> None:
    """The same words as for a kernel."""
    assert Config.of({"ENVWATCH_FENCE": mode}).fence == mode


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ENVWATCH_IDLE_S", "soon"),
        ("ENVWATCH_IDLE_S", "nan"),
        ("ENVWATCH_SWEEP_S", "0"),
        ("ENVWATCH_KILL_S", "-1"),
        ("ENVWATCH_KILL_S", "inf"),
        ("ENVWATCH_CONCURRENCY", "1.5"),
        ("ENVWATCH_MAX_KEPT_BYTES", "64M"),
        ("ENVWATCH_PRECOMPUTE", "maybe"),
        ("ENVWATCH_FENCE", "on"),
        ("ENVWATCH_FENCE", "Always"),
    ],
)
def test_a_bad_value_is_one_clear_line(name: str, value: str) -> None:
    """It names the variable, not the value."""
    with pytest.raises(ConfigError) as caught:
        Config.of({name: value})
    assert f"{name} must be " in str(caught.value)
    assert "\n" not in str(caught.value)
