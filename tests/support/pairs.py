"""A kernel and the reference shell, side by side over the same folders."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from kernel_client import Client, Result, Settings
from tests.support import planted, reference
from tests.support.worlds import World

_ADVICE = re.compile(r"(direnv: error .* is blocked)\. Run `direnv allow`.*")

NO_COMMAND = "/nonexistent/envwatch"
"""For `Settings.sidecar`: use a sidecar that listens, but never start one."""


class Step(NamedTuple):
    """What one step gave: the client's result, and what the hook said."""

    result: Result
    said: reference.Said


class Kernel:
    """A client with an environment of its own."""

    def __init__(
        self, environ: Mapping[str, str], settings: Settings, name: str = "a message"
    ) -> None:
        self.environ = dict(environ)
        self.lines: list[str] = []
        self.last: Result | None = None
        self._name = name
        self.client = Client(self.environ, output=self._hear, settings=settings)

    def refresh(self) -> Result:
        """Refresh; whatever it says must not hold the planted secret."""
        return self._checked(self.client.refresh())

    def reload(self) -> Result:
        """Reload; the same."""
        return self._checked(self.client.reload())

    def close(self) -> None:
        """Close the client."""
        self.client.close()

    def _hear(self, line: str) -> None:
        self.lines.append(line)
        planted.collect(self._name, line)

    def _checked(self, result: Result) -> Result:
        self.last = result
        planted.collect(self._name, repr(result))
        planted.collect(self._name, "\n".join(result.messages))
        return result


class Pair:
    """A kernel and a reference shell that start with the same environment."""

    def __init__(
        self,
        world: World,
        *,
        socket: Path | None,
        environ: Mapping[str, str] | None = None,
        direnv: str | None = None,
        wait_s: float = 600.0,
        kill_s: float = 3600.0,
    ) -> None:
        self.world = world
        self.socket = socket
        given = world.environ if environ is None else environ
        self.shell = reference.Shell(world.direnv, given)
        self.kernel = Kernel(
            given, settings_of(socket, direnv=direnv, wait_s=wait_s, kill_s=kill_s)
        )

    @property
    def environ(self) -> dict[str, str]:
        """The kernel's environment."""
        return self.kernel.environ

    def set(self, name: str, value: str) -> None:
        """Change a variable on both sides, as a caller does."""
        self.kernel.environ[name] = self.shell.environ[name] = value

    def unset(self, name: str) -> None:
        """Remove a variable on both sides."""
        self.kernel.environ.pop(name, None)
        self.shell.environ.pop(name, None)

    def go(self, folder: str | os.PathLike[str]) -> None:
        """Change the working folder of both."""
        os.chdir(self.world.path(folder))

    def step(
        self,
        folder: str | os.PathLike[str] | None = None,
        *,
        outcome: str | None = None,
        forced: bool = False,
        messages: bool = True,
        own: tuple[str, ...] = (),
        alone: bool | None = False,
    ) -> Step:
        """Let both follow the working folder, and compare all that they have.

        `outcome` is what the client must say it was. `forced`: the hook would miss
        this change, so it is forced. `messages=False`: what is said is known to
        differ, and the caller compares it. `own` are lines that the client must say
        beside direnv's. `alone`: in sidecar mode too, the kernel runs direnv itself; None: it may.
        """
        if folder is not None:
            self.go(folder)
        said = self.shell.forced() if forced else self.shell.prompt()
        result = self.kernel.refresh()
        found = reference.difference(self.environ, self.shell.environ)
        assert not found, (result, said.code, said.lines, found)
        if outcome is not None:
            assert result.outcome == outcome, (result, result.messages)
        if messages:
            overtaken = self.socket is not None
            assert_said(result.messages, said.lines, own, overtaken=overtaken)
        expected = {"stats", "record", "none"}
        if alone is not False or self.socket is None:
            expected.add("direnv")
        if not alone and self.socket is not None:
            expected.add("sidecar")
        assert result.answered in expected, (result, expected)
        return Step(result, said)

    def close(self) -> None:
        """Close the client."""
        self.kernel.close()


def settings_of(
    socket: Path | None,
    *,
    direnv: str | None = None,
    wait_s: float = 600.0,
    kill_s: float = 3600.0,
    fence: str = "auto",
) -> Settings:
    """Give settings that use a sidecar that listens, or (None) none at all."""
    return Settings(
        sidecar="off" if socket is None else NO_COMMAND,
        socket=None if socket is None else str(socket),
        direnv=direnv,
        wait_s=wait_s,
        kill_s=kill_s,
        fence=fence,
    )


def assert_said(
    ours: tuple[str, ...],
    theirs: tuple[str, ...],
    own: tuple[str, ...] = (),
    *,
    overtaken: bool = False,
) -> None:
    """Assert that the client said what direnv said, without advice to allow.

    `own` are lines of the client's own beside them. `overtaken`: a sidecar that
    precomputes may have begun in the middle of what the test did to the files; what
    direnv said then comes first, and the answer that counts comes last.
    """
    rest = list(ours)
    for line in own:
        assert line in rest, (line, ours)
        rest.remove(line)
    if overtaken and len(rest) > len(theirs):
        first, rest = rest[: -len(theirs) or None], rest[len(rest) - len(theirs) :]
        assert all(line.startswith("direnv: ") or line in rest for line in first), ours
    assert len(rest) == len(theirs), (ours, theirs)
    for mine, other in zip(rest, theirs, strict=True):
        advice = _ADVICE.fullmatch(other)
        if advice is None:
            assert mine == other, (ours, theirs)
        else:
            assert mine.startswith(advice[1]), (mine, other)
            assert "direnv allow" not in mine
