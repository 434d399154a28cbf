"""Arguments that more than one command takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


class Folder(click.Path):
    """A folder that is there, given on without links."""

    def __init__(self) -> None:
        super().__init__(exists=True, file_okay=False)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Give the folder's real path, or say that it is none."""
        given = super().convert(value, param, ctx)
        try:
            return str(Path(str(given)).resolve(strict=True))
        except (OSError, RuntimeError):
            self.fail("the folder has been deleted", param, ctx)


folder = click.argument("folder", metavar="[DIR]", default=".", type=Folder())
"""`[DIR]`: a workspace or a folder in it; the working folder when left out."""
