"""The argv that runs a program in a workspace's environment, for hosts.

A host that starts programs for somebody passes `wrap_argv(workspace, argv)` to its
own `exec` or `subprocess` in the place of `argv`. It is a list from end to end: no
path and no argument is ever pasted into a text that a shell would read.
"""

from __future__ import annotations

import os
import sys

from kernel_client.errors import CommandError, SettingError
from kernel_client.settings import OFF, Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, Union

    Path = Union[str, os.PathLike[str]]


def wrap_argv(
    workspace: Path,
    argv: Sequence[str],
    *,
    protect: Iterable[str] = (),
    settings: Settings | None = None,
) -> list[str]:
    """Give the argv that runs `argv` in the environment of a workspace.

    `workspace` is a folder (made absolute here), `protect` are prefixes of names
    whose values stay the host's, `settings` are by default those of `os.environ`;
    where they say that `exec` is `off`, the argv comes back as it is. The program
    is refused, by an exit code of `envwatch exec`, where direnv does not load.

    Raises:
        ValueError: the argv, or the workspace, is empty.
        TypeError: the workspace is bytes, or one text stands for a list of them.
        SettingError: a setting or a prefix that cannot be used.
        CommandError: there is no `envwatch` command to be found.
    """
    if not argv:
        raise ValueError("there is no program to wrap")
    for name, texts in (("argv", argv), ("protect", protect)):
        if isinstance(texts, (str, bytes)):
            raise TypeError(f"{name} must be a list of texts, not one text")
    folder = _folder(workspace)
    if settings is None:
        settings = Settings.of(os.environ)
    if settings.exec == OFF:
        return list(argv)
    program = envwatch(os.environ)
    if program is None:
        raise CommandError(
            "there is no envwatch command beside this Python or on PATH: install it"
        )
    options: list[str] = []
    for prefix in protect:
        if not prefix:
            raise SettingError("a protected prefix must not be empty")
        options += ("--protect", prefix)
    return [program, "exec", *options, "--", folder, *argv]


def _folder(workspace: Any) -> str:
    given = os.fspath(workspace)
    if not isinstance(given, str):
        raise TypeError("the workspace must be a text or a Path, not bytes")
    if not given:
        raise ValueError("the workspace must not be empty")
    return os.path.abspath(given)


def wrap_bash(
    workspace: Path,
    command: str,
    *,
    protect: Iterable[str] = (),
    settings: Settings | None = None,
) -> list[str]:
    """Give the argv of a bash that runs `command` in a workspace's environment.

    No profile and no rc file is read: they could undo what was loaded. Which bash is
    the setting `shell`. The rest is as with `wrap_argv`.
    """
    if settings is None:
        settings = Settings.of(os.environ)
    shell = [settings.shell, "--noprofile", "--norc", "-c", command]
    return wrap_argv(workspace, shell, protect=protect, settings=settings)


def envwatch(environ: Mapping[str, str]) -> str | None:
    """Give the path of the `envwatch` command: beside this Python, or on PATH."""
    import shutil

    beside = os.path.join(os.path.dirname(sys.executable or ""), "envwatch")
    if os.path.isabs(beside) and os.access(beside, os.X_OK):
        return beside
    return shutil.which("envwatch", path=environ.get("PATH", ""))
