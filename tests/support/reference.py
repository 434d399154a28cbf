"""The reference shell: what direnv's own hook leaves in an environment.

An environment and the real `direnv export json`, by the book: stdin is
/dev/null, the folder is the working folder, no PWD; the difference is applied to
the environment that was passed, also when the exit code is 1 (DIRENV.md section D,
rule 1). Nothing here uses the code under test.
"""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import tempfile
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

THE_FOUR = ("DIRENV_DIR", "DIRENV_FILE", "DIRENV_WATCHES", "DIRENV_DIFF")

COLOUR = re.compile(r"\x1b\[[0-9;]*m")

DEADLINE_S = 30.0
"""No direnv of a test runs longer; those that hang are asked with less."""


class Said(NamedTuple):
    """What one call of direnv gave: exit code, stdout, stderr's lines in plain."""

    code: int
    stdout: bytes
    lines: tuple[str, ...]

    @property
    def changes(self) -> dict[str, str | None] | None:
        """What direnv printed, or None when it printed nothing."""
        return json.loads(self.stdout) if self.stdout else None


def run(
    direnv: str,
    *arguments: str,
    environ: Mapping[str, str],
    folder: str | None = None,
    deadline_s: float = DEADLINE_S,
) -> Said:
    """Run direnv in a folder (None: the working folder, deleted or not)."""
    passed = {name: value for name, value in environ.items() if name != "PWD"}
    # A file for stderr: a background child of the .envrc may hold a pipe open.
    with tempfile.TemporaryFile() as stderr:
        done = subprocess.run(
            [direnv, *arguments],
            check=False,
            cwd=folder,
            env=passed,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            timeout=deadline_s,
        )
        stderr.seek(0)
        said = stderr.read().decode(errors="replace")
    lines = said.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return Said(
        done.returncode, done.stdout, tuple(COLOUR.sub("", line) for line in lines)
    )


def decode(text: str) -> Any:
    """Give what direnv packed into DIRENV_DIFF or DIRENV_WATCHES (case 39)."""
    return json.loads(zlib.decompress(base64.urlsafe_b64decode(text)))


def encode(value: Any) -> str:
    """Pack a value as direnv does."""
    return base64.urlsafe_b64encode(zlib.compress(json.dumps(value).encode())).decode()


def watches(environ: Mapping[str, str]) -> dict[str, bool]:
    """Give the watched paths of an environment and whether each exists."""
    entries = decode(environ["DIRENV_WATCHES"])
    lower = [{name.lower(): field for name, field in one.items()} for one in entries]
    return {one["path"]: bool(one.get("exists")) for one in lower}


def taken_back(environ: Mapping[str, str]) -> dict[str, str]:
    """Give the environment with what DIRENV_DIFF says was loaded taken back."""
    base = dict(environ)
    if "DIRENV_DIFF" in base:
        diff = decode(base["DIRENV_DIFF"])
        for name in diff["n"]:
            base.pop(name, None)
        base.update(diff["p"])
    for name in THE_FOUR:
        base.pop(name, None)
    return base


def applied(
    environ: Mapping[str, str], changes: Mapping[str, str | None]
) -> dict[str, str]:
    """Give the environment with a difference of direnv's applied."""
    after = dict(environ)
    for name, value in changes.items():
        if value is None:
            after.pop(name, None)
        else:
            after[name] = value
    return after


class Shell:
    """An environment that direnv's hook keeps."""

    def __init__(self, direnv: str, environ: Mapping[str, str]) -> None:
        self.direnv = direnv
        self.environ = dict(environ)

    def prompt(self) -> Said:
        """Do what the hook does before a prompt: one call, by the book."""
        said = run(self.direnv, "export", "json", environ=self.environ)
        if said.changes is not None:
            self.environ = applied(self.environ, said.changes)
        return said

    def forced(self) -> Said:
        """Do a prompt that cannot take anything for unchanged (section C, rule 4).

        For scenarios where the hook is known to miss a change: same-second edits,
        mtimes put back, configuration, and with 2.37 a file that is gone.
        """
        if "DIRENV_DIFF" not in self.environ:
            return self.prompt()
        passed = {
            **self.environ,
            "DIRENV_FILE": "/dev/null",
            "DIRENV_WATCHES": encode([]),
        }
        said = run(self.direnv, "export", "json", environ=passed)
        if said.changes is not None:
            self.environ = applied(passed, said.changes)
        return said


def difference(ours: Mapping[str, str], theirs: Mapping[str, str]) -> dict[str, Any]:
    """Give the names whose values differ, the four decoded to be read."""
    found: dict[str, Any] = {}
    for name in sorted({*ours, *theirs}):
        mine, other = ours.get(name), theirs.get(name)
        if mine != other:
            found[name] = {
                "ours": _legible(name, mine),
                "hook's": _legible(name, other),
            }
    return found


def _legible(name: str, value: str | None) -> Any:
    if value is not None and name in ("DIRENV_DIFF", "DIRENV_WATCHES"):
        try:
            return decode(value)
        except (ValueError, zlib.error):
            return value
    return value


def working_folder() -> str | None:
    """Give the working folder, or None when it was deleted."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return None
