"""Kernels in this process, and the bare loop of what their fast path asks Linux for.

The only place that looks inside a client.
"""

from __future__ import annotations

import os
from collections.abc import Callable, MutableMapping
from os import access, getcwd, stat
from pathlib import Path
from typing import NamedTuple

from bench.findings import CannotRunError
from bench.measures import Work
from kernel_client import Client, Settings


class Calls(NamedTuple):
    """The system calls of one unchanged refresh, in order after getcwd.

    `descriptor` is what a poll in C polls; -1 where there is no poll.
    """

    absent: tuple[str, ...]
    there: tuple[str, ...]
    poll: Callable[[], object] | None
    descriptor: int

    def __str__(self) -> str:
        polled = "" if self.poll is None else ", poll"
        return f"getcwd, {len(self.absent)} access, {len(self.there)} stat{polled}"

    def bare(self) -> Work:
        """Give them as a loop in Python that does nothing else."""
        absent, there, poll, _ = self
        if poll is None:

            def bare() -> None:
                getcwd()
                for path in absent:
                    access(path, 0)
                for path in there:
                    stat(path)

            return bare

        def bare_with_poll() -> None:
            getcwd()
            for path in absent:
                access(path, 0)
            for path in there:
                stat(path)
            poll()

        return bare_with_poll


def calls(client: Client) -> Calls:
    """Give what an unchanged refresh asks for in the working folder."""
    absent, entries, links, poll, _ = client._checks[getcwd()]
    if links:
        raise CannotRunError("there is a symbolic link among the watched files")
    there = tuple(entry[0] for entry in entries)
    link = client._answers.link
    descriptor = -1 if link is None or poll is None else link.fileno()
    return Calls(absent, there, None if poll is None else poll[0], descriptor)


def quiet(
    settings: Settings, environ: MutableMapping[str, str] | None = None
) -> Client:
    """Give a client of an environment, `os.environ` by default, that shows nothing."""
    return Client(environ, output=lambda _: None, settings=settings)


def loaded(
    settings: Settings, folder: Path, environ: MutableMapping[str, str] | None = None
) -> Client:
    """Go to a folder and load it; the next refresh there is an unchanged one."""
    os.chdir(folder)
    client = quiet(settings, environ)
    outcome = client.refresh().outcome
    again = client.refresh()
    if outcome != "loaded" or again.answered != "stats":
        raise CannotRunError(f"refresh() gives {outcome}, then {again.outcome}")
    return client


def environ_of(client: Client) -> MutableMapping[str, str]:
    """Give the environment that a client keeps."""
    return client._loaded.environ


def is_fenced(client: Client) -> bool:
    """Refresh, and tell whether it has a fence by now: then it does few stats."""
    client.refresh()
    return len(calls(client).there) < 3


def told(client: Client, taken_s: str) -> str:
    """Say what is loaded; names and sizes alone."""
    record = client._loaded.record
    if record is None:
        return f"nothing to load, {taken_s}"
    watched = len(record.snapshot or ())
    size_kb = len(environ_of(client).get("DIRENV_DIFF", "")) / 1024
    return (
        f"{record.outcome} in {taken_s}; {watched} paths watched,"
        f" DIRENV_DIFF of {size_kb:.1f} KB"
    )
