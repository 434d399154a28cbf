"""Progress bars on stderr, for whatever takes more than a few seconds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
)

stderr = Console(stderr=True)

Item = TypeVar("Item")


def ticking(items: Sequence[Item], what: str) -> Iterator[Item]:
    """Give the items, and show how many are done; only in a terminal, one at a time."""
    if not stderr.is_terminal:
        yield from items
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    # Painted by us alone: a thread that paints would be part of what is measured.
    with Progress(
        *columns, console=stderr, transient=True, auto_refresh=False
    ) as progress:
        task = progress.add_task(what, total=len(items))
        for item in items:
            progress.refresh()
            yield item
            progress.advance(task)
