"""The README's Python runs as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.worlds import World

README = Path(__file__).parents[1] / "README.md"
EXAMPLES = re.findall(
    r"^```python\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL
)


def test_there_are_examples() -> None:
    """The search below would otherwise pass without any."""
    assert len(EXAMPLES) == 2


@pytest.mark.parametrize("text", EXAMPLES, ids=["module", "client"])
def test_example(text: str, world: World) -> None:
    """In an allowed workspace, each example loads it."""
    world.envrc("w", "export FOO=1\n")
    ended = subprocess.run(
        [sys.executable, "-c", text],
        cwd=world.path("w"),
        env={
            **world.environ,
            "PYTHONPATH": str(README.parent),
            "ENVWATCH_SIDECAR": "off",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.startswith("loaded")
