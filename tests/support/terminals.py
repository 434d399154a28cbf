"""A terminal with a command of envwatch in it: what it shows, what is typed."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from collections.abc import Sequence

from tests.support import planted
from tests.support.persons import Person

DEADLINE_S = 30.0
_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


class Terminal:
    """One command in a pseudo-terminal of its own."""

    def __init__(
        self, person: Person, *arguments: str, term: str = "xterm", **more: str
    ) -> None:
        self.end, self._inner = pty.openpty()
        self.before = termios.tcgetattr(self._inner)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "envwatch", *arguments],
            cwd=person.world.top,
            env={**person.environ, "TERM": term, **more},
            stdin=self._inner,
            stdout=self._inner,
            stderr=self._inner,
            start_new_session=True,
        )
        self.raw = ""
        self._from = 0

    def see(self, text: str) -> str:
        """Wait for a text; give all that came since the last one, up to it."""
        deadline = time.monotonic() + DEADLINE_S
        while text not in self.seen[self._from :]:
            left_s = deadline - time.monotonic()
            ready = left_s > 0 and select.select([self.end], [], [], left_s)[0]
            assert ready, (text, self.seen)
            assert self._read(), (text, self.seen)
        end = self.seen.index(text, self._from) + len(text)
        came, self._from = self.seen[self._from : end], end
        return came

    @property
    def seen(self) -> str:
        """All that was shown, without sequences for colours and modes."""
        return _SEQUENCE.sub("", self.raw)

    def answer(self, key: str) -> None:
        """Type a key until it counts: not before the question's quiet time is over."""
        self.see("puts it away")
        deadline = time.monotonic() + 0.35
        while (left_s := deadline - time.monotonic()) > 0:
            # What it shows meanwhile is read; nothing is typed.
            if select.select([self.end], [], [], left_s)[0]:
                self._read()
        self.type(key)

    def type(self, keys: str) -> None:
        """Type keys at once."""
        os.write(self.end, keys.encode())

    def wait(self) -> int:
        """Read to the end of the command; give its exit code."""
        deadline = time.monotonic() + DEADLINE_S
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.seen
            if select.select([self.end], [], [], 0.02)[0]:
                self._read()
        while select.select([self.end], [], [], 0)[0] and self._read():
            pass
        return self.process.returncode

    def is_as_before(self) -> bool:
        """Tell whether the terminal's settings are those that it began with."""
        return termios.tcgetattr(self._inner) == self.before

    def close(self) -> None:
        """End the command, and search what it showed for the secret."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.end)
        os.close(self._inner)

    def said(self, without: Sequence[str] = ()) -> str:
        """Give what was shown, the lines of the file itself left out."""
        kept = [
            line
            for line in self.seen.splitlines()
            if not line.startswith((" export", "+export", "-export"))
        ]
        planted.collect("a terminal", "\n".join(kept))
        return "\n".join(kept)

    def _read(self) -> bool:
        try:
            data = os.read(self.end, 65536)
        except OSError:
            data = b""
        self.raw += data.decode(errors="replace").replace("\r\n", "\n")
        return bool(data)
