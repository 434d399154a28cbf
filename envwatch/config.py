"""Every setting of the sidecar, read once from its environment."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from envwatch.errors import ConfigError
from kernel_client.settings import FENCE_MODES
from kernel_client.sidecar import socket_path

T = TypeVar("T")

_ON = frozenset({"on", "yes", "true", "1"})
_OFF = frozenset({"off", "no", "false", "0"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Settings; times are in seconds, sizes in bytes.

    `socket` is the path to listen at; `direnv` a name or a path, looked up on the
    sidecar's own PATH; `idle_s` without a connection ends the sidecar; `sweep_s`
    is the time between two comparisons of everything in use; `max_age_s` how old
    a kept diff may be for a kernel that was not given it before; `kill_s` how long
    an evaluation may run; `max_kept_bytes` bounds the kept diffs; `precompute`
    says whether changes start evaluations; `concurrency` how many evaluations
    run at once; `fence` when fences are armed (`auto`, where there is much to watch;
    `always`; `off`); `log` a file to log to in place of stderr.
    """

    socket: str
    direnv: str = "direnv"
    idle_s: float = 3600.0
    sweep_s: float = 30.0
    max_age_s: float = 3600.0
    kill_s: float = 3600.0
    max_kept_bytes: int = 64 * 1024 * 1024
    precompute: bool = True
    concurrency: int = 1
    fence: str = "auto"
    log: str | None = None

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Config:
        """Read the `ENVWATCH_*` variables of an environment.

        Raises:
            ConfigError: a value cannot be read; the message names the variable.
        """
        defaults = cls(socket="")

        def read(name: str, parse: Callable[[str], T], default: T, needs: str) -> T:
            text = environ.get(name, "")
            if not text:
                return default
            try:
                return parse(text)
            except ValueError:
                raise ConfigError(f"{name} must be {needs}") from None

        def seconds(name: str, default: float) -> float:
            return read(name, _seconds, default, "a number of seconds above 0")

        def count(name: str, default: int) -> int:
            return read(name, _count, default, "a whole number above 0")

        return cls(
            socket=socket_path(environ),
            direnv=environ.get("ENVWATCH_DIRENV") or defaults.direnv,
            idle_s=seconds("ENVWATCH_IDLE_S", defaults.idle_s),
            sweep_s=seconds("ENVWATCH_SWEEP_S", defaults.sweep_s),
            max_age_s=seconds("ENVWATCH_MAX_AGE_S", defaults.max_age_s),
            kill_s=seconds("ENVWATCH_KILL_S", defaults.kill_s),
            max_kept_bytes=count("ENVWATCH_MAX_KEPT_BYTES", defaults.max_kept_bytes),
            precompute=read(
                "ENVWATCH_PRECOMPUTE", _switch, defaults.precompute, "on or off"
            ),
            concurrency=count("ENVWATCH_CONCURRENCY", os.cpu_count() or 1),
            fence=read("ENVWATCH_FENCE", _mode, defaults.fence, "auto, always or off"),
            log=environ.get("ENVWATCH_LOG") or None,
        )


def _seconds(text: str) -> float:
    number = float(text)
    if not math.isfinite(number) or number <= 0:
        raise ValueError
    return number


def _count(text: str) -> int:
    number = int(text)
    if number <= 0:
        raise ValueError
    return number


def _mode(text: str) -> str:
    if text not in FENCE_MODES:
        raise ValueError
    return text


def _switch(text: str) -> bool:
    word = text.lower()
    if word in _ON:
        return True
    if word in _OFF:
        return False
    raise ValueError
