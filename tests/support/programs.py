"""The installed command, and programs that tell about their environment."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.support.persons import Ended

COMMAND = str(Path(sys.executable).parent / "envwatch")

NAMES = 'import os; print(*sorted(os.environ), sep="\\n")'
"""Python code that prints the names of its variables, and no value."""


def names(ended: Ended) -> set[str]:
    """Give the names that the program printed."""
    assert ended.code == 0, ended.err
    return set(ended.lines)
