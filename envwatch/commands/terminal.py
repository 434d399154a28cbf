"""A terminal that gives keys as they are typed, and is put back whatever happens."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
from collections.abc import Generator
from types import FrameType, TracebackType
from typing import Self

ESCAPE_S = 0.05
"""So long after ESC the rest of a key's sequence may still come."""

PASTE = "paste"
_PASTING = b"\x1b[?2004h"
_NOT_PASTING = b"\x1b[?2004l\x1b[0m"
_PASTE_BEGINS = b"\x1b[200~"
_PASTE_ENDS = b"\x1b[201~"
_NAMES = {"\r": "enter", "\n": "enter", "\t": "tab", "\x7f": "backspace"}
_LOCAL_FLAGS = 3
_COLUMNS = 80


class Terminal:
    """Reads keys without echo for as long as the context lasts.

    Ctrl-C interrupts as ever; SIGTERM and SIGHUP end the program with 128 and their
    number. A stop (Ctrl-Z) gives the terminal back, and `fg` takes it again.
    """

    def __init__(self) -> None:
        self._input = sys.stdin.fileno()
        self._output = sys.stdout.fileno()
        self._before: list[int | list[bytes | int]] | None = None
        self._handlers: dict[int, object] = {}
        self._pasted: bytes | None = None
        self._was_away = False

    @staticmethod
    def is_there() -> bool:
        """Tell whether a person is at both ends: input and output."""
        return all(
            stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout)
        )

    def __enter__(self) -> Self:
        """Take the terminal."""
        for number, handler in (
            (signal.SIGTERM, self._ended),
            (signal.SIGHUP, self._ended),
            (signal.SIGTSTP, self._stopped),
        ):
            self._handlers[number] = signal.signal(number, handler)
        try:
            self._take()
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Put the terminal back as it was."""
        self._leave()

    @property
    def columns(self) -> int:
        """How wide it is, whatever COLUMNS says."""
        try:
            return os.get_terminal_size(self._output).columns or _COLUMNS
        except OSError:
            return _COLUMNS

    def forget(self) -> None:
        """Throw away what was typed and not read yet."""
        with contextlib.suppress(termios.error):
            termios.tcflush(self._input, termios.TCIFLUSH)

    def read(self, limit_s: float) -> str | None:
        """Wait for a key: a character, or a name (`named`); None: none in time.

        Several characters at once are a paste, in brackets or not: nobody types so.

        Raises:
            EOFError: the terminal is gone.
        """
        if not select.select([self._input], [], [], limit_s)[0]:
            return None
        data = self._data()
        if data == b"\x1b" and select.select([self._input], [], [], ESCAPE_S)[0]:
            data += self._data()
        if self._pasted is not None or data.startswith(_PASTE_BEGINS):
            # A slow line brings it in pieces, each of which might be a key.
            pasted = (self._pasted or b"") + data
            self._pasted = (
                None if _PASTE_ENDS in pasted else pasted[-len(_PASTE_ENDS) :]
            )
            return PASTE
        return named(data)

    def was_away(self) -> bool:
        """Tell, once, whether the program was stopped and goes on."""
        was, self._was_away = self._was_away, False
        return was

    def _data(self) -> bytes:
        try:
            data = os.read(self._input, 65536)
        except OSError:
            data = b""
        if not data:
            raise EOFError
        return data

    def _take(self) -> None:
        before = termios.tcgetattr(self._input)
        taken = list(before)
        flags = taken[_LOCAL_FLAGS]
        assert isinstance(flags, int)  # noqa: S101 - termios gives it so
        taken[_LOCAL_FLAGS] = flags & ~(termios.ICANON | termios.ECHO)
        self._before = before
        termios.tcsetattr(self._input, termios.TCSADRAIN, taken)
        os.write(self._output, _PASTING)

    def _give(self) -> None:
        # The terminal itself may be gone; then there is nothing to put back.
        with contextlib.suppress(OSError, termios.error):
            os.write(self._output, _NOT_PASTING)
        with contextlib.suppress(OSError, termios.error):
            if self._before is not None:
                # What is typed and not read belongs to no shell that comes after.
                termios.tcsetattr(self._input, termios.TCSAFLUSH, self._before)

    def _leave(self) -> None:
        with _held(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP):
            self._give()
            for number, handler in self._handlers.items():
                signal.signal(number, handler)  # type: ignore[arg-type]

    def _ended(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        raise SystemExit(128 + number)

    def _stopped(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self._give()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        # Here it goes on after SIGCONT.
        signal.signal(signal.SIGTSTP, self._stopped)
        self._take()
        self.forget()
        self._was_away = True


@contextlib.contextmanager
def _held(*numbers: int) -> Generator[None, None, None]:
    """Let signals wait while the terminal is put back."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def named(data: bytes) -> str:
    """Give the character that these bytes are, or a name of several letters."""
    if data == b"\x1b":
        return "escape"
    if data.startswith(b"\x1b"):
        return PASTE if data.startswith(_PASTE_BEGINS) else "sequence"
    text = data.decode("utf-8", "replace")
    if len(text) > 1:
        return PASTE
    return _NAMES.get(text) or (text if text.isprintable() else "control")
