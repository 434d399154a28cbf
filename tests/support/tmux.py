"""A real terminal: a program under tmux, keys sent to it, its screen read."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from envwatch.core.question import QUIET_S
from tests.support import planted

DEADLINE_S = 30.0
AGAIN_S = 5.0
"""After how long a key was surely not taken, however slow what it leads to is."""
_TURN_S = 0.02

COLOURS = re.compile(
    r"\x1b\[[0-9;:]*?(?<![0-9])(3[0-7]|4[0-7]|[34]8|9[0-7]|10[0-7])(?=[;:m])"
)
"""Sequences that set another colour than the terminal's own two."""


class Terminal:
    """One program in a terminal of so many columns and lines, of a tmux of its own."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        environ: Mapping[str, str],
        folder: str | Path,
        columns: int = 80,
        lines: int = 24,
    ) -> None:
        # Short: a socket's path has 108 bytes.
        self._folder = Path(tempfile.mkdtemp(prefix="ewt-", dir="/tmp"))
        self._code = self._folder / "code"
        self._turn = 0
        noting = ["sh", "-c", '"$@"; echo $? >"$0"', str(self._code), *command]
        self._environ = {**environ, "LC_ALL": "C.UTF-8"}
        try:
            self._call(
                *("new-session", "-d", "-x", str(columns), "-y", str(lines)),
                *("-c", str(folder), shlex.join(noting), ";"),
                *("set-option", "-g", "remain-on-exit", "on"),
            )
        except BaseException:
            self.close()
            raise

    def type(self, *keys: str) -> None:
        """Press keys, by tmux's names for them."""
        self._call("send-keys", *keys)

    def write(self, text: str) -> None:
        """Type a text, letter by letter."""
        self._call("send-keys", "-l", text)

    def enter(self, text: str) -> None:
        """Type a line, and Enter after it."""
        self.write(text)
        self.type("Enter")

    def command(self, line: str, *texts: str) -> str:
        """Enter a line in a shell; wait until these are on its screen, and no older."""
        self._turn += 1
        # In two words, so that the line itself is not taken for what it prints.
        self.type("C-u")
        self.enter(f"clear; echo turn '{self._turn}.'; {line}")
        return self.see(f"turn {self._turn}.\n", *texts)

    def answer(self, key: str, wanted: str) -> str:
        """Press a key, again when it came too early to answer, until it has."""
        # At a distance that the question takes for an answer.
        due = time.monotonic() + 2 * QUIET_S

        def has_answered(screen: str) -> bool:
            nonlocal due
            if wanted in screen:
                return True
            if time.monotonic() > due:
                self.type(key)
                due = time.monotonic() + AGAIN_S
            return False

        return self.wait(has_answered, f"{wanted}, after {key}")

    def resize(self, columns: int, lines: int) -> None:
        """Give the terminal another size."""
        self._call("resize-window", "-x", str(columns), "-y", str(lines))

    @property
    def screen(self) -> str:
        """What is to be read on the screen now."""
        screen = self._call("capture-pane", "-p")
        planted.collect("a screen", screen)
        return screen

    @property
    def painted(self) -> str:
        """The same with the escape sequences of its colours and styles."""
        return self._call("capture-pane", "-p", "-e")

    @property
    def pid(self) -> int:
        """The process of the program."""
        shell = self._call("display-message", "-p", "#{pane_pid}").strip()
        children = Path(f"/proc/{shell}/task/{shell}/children").read_text()
        return int(children.split()[0])

    @property
    def is_plain(self) -> bool:
        """Whether it is as a shell wants it: one screen, no mouse."""
        # Not the cursor: tmux hides it where the program has gone.
        flags = "#{alternate_on} #{mouse_any_flag}"
        return self._call("display-message", "-p", flags).strip() == "0 0"

    def see(self, *texts: str) -> str:
        """Wait until all of these are on the screen; give it."""
        return self.wait(lambda screen: all(text in screen for text in texts), texts)

    def wait(self, condition: Callable[[str], object], what: object) -> str:
        """Wait until the screen is as it should be; give it."""
        deadline = time.monotonic() + DEADLINE_S
        while not condition(screen := self.screen):
            assert time.monotonic() < deadline, f"never seen: {what}\n{screen}"
            time.sleep(_TURN_S)
        return screen

    @property
    def ended(self) -> int | None:
        """The exit code of the program, or None while it runs."""
        # tmux itself knows it only where it hears of the end before the terminal's.
        said = self._code.read_text() if self._code.exists() else ""
        return int(said) if said.endswith("\n") else None

    def end(self) -> int:
        """Wait until the program has ended; give its exit code."""
        deadline = time.monotonic() + DEADLINE_S
        while (code := self.ended) is None:
            assert time.monotonic() < deadline, f"it has not ended:\n{self.screen}"
            time.sleep(_TURN_S)
        return code

    def close(self) -> None:
        """End the program and its tmux."""
        subprocess.run(self._command("kill-server"), capture_output=True, check=False)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _command(self, *arguments: str) -> list[str]:
        return ["tmux", "-f", "/dev/null", "-S", str(self._folder / "s"), *arguments]

    def _call(self, *arguments: str) -> str:
        return subprocess.run(
            self._command(*arguments),
            env=self._environ,
            check=True,
            capture_output=True,
            encoding="utf-8",
            timeout=DEADLINE_S,
        ).stdout
