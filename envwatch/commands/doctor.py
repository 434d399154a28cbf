"""`envwatch doctor`: check what envwatch needs, with a remedy for each finding.

A line for each finding: `ok`, `note` (works, but slower or less than it could) or
`fix` (does not work before this is mended). Exit codes: 0 nothing to mend, 1
something.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from envwatch import state
from envwatch.commands import findings
from envwatch.commands.findings import Finding, Grade
from envwatch.text import plain


@click.command("doctor")
def command() -> int:
    """Check what envwatch needs here, with a remedy for each finding."""
    found = list(examined(state.base(os.environ)))
    for finding in found:
        click.echo(f"{finding.grade:<6}{finding.subject:<12}{plain(finding.text)}")
        if finding.remedy is not None:
            click.echo(f"{'':<18}{plain(finding.remedy)}")
    return int(any(finding.grade is Grade.FIX for finding in found))


def examined(base: Mapping[str, str]) -> Iterator[Finding]:
    """Give the findings of every check, the most basic first."""
    try:
        folder = str(Path.cwd())
    except OSError:
        folder = "/"
        remedy = "cd to a folder that is there"
        yield Finding(Grade.NOTE, "folder", "the working folder was deleted", remedy)
    yield from findings.settings(base)
    yield from findings.home(base)
    yield from findings.bash(base)
    yield from findings.direnv(base, folder)
    yield from findings.socket(base)
    yield from findings.running(base)
    yield from findings.inotify()
    yield from findings.filesystem(folder)
