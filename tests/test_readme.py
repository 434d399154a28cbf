"""The README's Python runs as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from envwatch.cli import COMMANDS
from envwatch.commands.status import EXIT_CODES
from envwatch.state import State
from tests.support.worlds import World

README = Path(__file__).parents[1] / "README.md"
EXAMPLES = re.findall(
    r"^```python\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL
)
VIEWED = """
import asyncio

async def main():
    async with Chat().run_test() as pilot:
        while not pilot.app.query_one(QuestionView).is_asking:
            await pilot.pause(0.01)
        await pilot.press("a")
        print("asked:", pilot.app.query_one(Composer).value)

asyncio.run(main())
"""


def test_there_are_examples() -> None:
    """The search below would otherwise pass without any."""
    assert len(EXAMPLES) == 3


@pytest.mark.parametrize("text", EXAMPLES[:2], ids=["module", "client"])
def test_example(text: str, world: World) -> None:
    """In an allowed workspace, each example loads it."""
    world.envrc("w", "export FOO=1\n")
    assert ran(text, world).startswith("loaded")


def test_example_of_a_view(world: World) -> None:
    """In a blocked workspace it asks, and holds letters back."""
    world.envrc("w", "export FOO=1\n", allow=False)
    text = EXAMPLES[2].replace("/usr/bin/direnv", world.direnv)
    assert ran(text + VIEWED, world) == "asked: \n"


def ran(text: str, world: World) -> str:
    """Run code in the workspace; give what it printed."""
    return subprocess.run(
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
        timeout=50,
    ).stdout


@pytest.mark.parametrize("state", list(State))
def test_every_state_has_its_screens(state: State) -> None:
    """With the exit code of each command, for both versions of direnv."""
    assert f"\n| `{state}` | {EXIT_CODES[state]} | " in README.read_text()
    begin = f"<summary><code>{state}</code></summary>"
    part = README.read_text().partition(begin)[2].partition("</details>")[0]
    of_newer, _, of_older = part.partition("ith direnv 2.32")
    for command in ("status", "ask"):
        assert f"$ envwatch {command}\n" in of_newer
    assert of_newer.count(f"exit code {EXIT_CODES[state]}\n") == 2
    assert of_older.startswith(".\n") or of_older.count("\nexit code ") == 2


def test_every_command_is_in_the_table() -> None:
    """And in the table's row alone there may be more to say."""
    for name in COMMANDS:
        assert f"\n| `envwatch {name}" in README.read_text()
