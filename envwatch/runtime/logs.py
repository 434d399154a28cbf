"""The log: JSON lines, or text for a person's terminal. Never a value in it."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from typing import TextIO

from envwatch.errors import ConfigError

# structlog loads rich for its coloured tracebacks where rich is installed: 4 MB and
# 50 ms for what no log of ours has.
_HAD_RICH = "rich" in sys.modules
if not _HAD_RICH:
    sys.modules["rich"] = None  # type: ignore[assignment]
try:
    import structlog
finally:
    if not _HAD_RICH:
        del sys.modules["rich"]


class _Output:
    """Writes whole lines; a full disk or a closed pipe is no reason to end."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def info(self, message: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._file.write(message + "\n")
            self._file.flush()

    warning = error = info


def logger(path: str | None) -> Callable[..., None]:
    """Give what logs an event with fields: to a file, or to stderr.

    Raises:
        ConfigError: the file cannot be written.
    """
    file: TextIO = sys.stderr
    if path is not None:
        try:
            # Only for the person: root files' paths are in it.
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            file = os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8")
        except OSError as error:
            message = f"ENVWATCH_LOG: {path} cannot be written: {error.strerror}"
            raise ConfigError(message) from None
    renderer: structlog.typing.Processor = structlog.processors.JSONRenderer()
    if file.isatty():
        renderer = structlog.processors.KeyValueRenderer(
            key_order=["timestamp", "level", "event"], sort_keys=True
        )
    bound: structlog.BoundLogger = structlog.wrap_logger(
        _Output(file),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            renderer,
        ],
        wrapper_class=structlog.BoundLogger,
        cache_logger_on_first_use=True,
    )

    def log(event: str, **fields: object) -> None:
        bound.info(event, **fields)

    return log
