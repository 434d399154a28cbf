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
PYTHON = re.findall(
    r"^```python\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL
)
EXAMPLES = [text for text in PYTHON if "textual" not in text]
PROGRAMS = [text for text in PYTHON if "textual" in text]
DRIVEN = """
import asyncio

async def driven():
    app = Chat()
    async with app.run_test() as pilot:
        question = app.query_one(QuestionView)
        while not question.is_asking:
            await pilot.pause()
        await pilot.press("x", "E")
        print("asks, and holds back:", repr(app.query_one(Composer).value))

asyncio.run(driven())
"""
JOBS = [
    text
    for text in re.findall(
        r"^```sh\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL
    )
    if "while " in text
]
PRINTED = {
    "module": "loaded",
    "client": "loaded",
    "an agent's loop": "['FOO']",
    "an inherited descriptor": "loaded by the sidecar",
}


def test_there_are_examples() -> None:
    """The search below would otherwise pass without any."""
    assert len(EXAMPLES) == len(PRINTED)
    assert len(PROGRAMS) == 1
    assert len(JOBS) == 1


def environ_of(world: World) -> dict[str, str]:
    """Give an environment in which `envwatch` is at hand, and no sidecar is."""
    return {
        **world.environ,
        "PATH": f"{Path(sys.executable).parent}:{world.environ['PATH']}",
        "PYTHONPATH": str(README.parent),
        "ENVWATCH_SIDECAR": "off",
        "ENVWATCH_SOCKET": str(world.path("no/socket")),
    }


@pytest.mark.parametrize(("name", "text"), list(zip(PRINTED, EXAMPLES, strict=True)))
def test_example(name: str, text: str, world: World) -> None:
    """In an allowed workspace, each example loads it."""
    world.envrc("w", "export FOO=1\n")
    ended = subprocess.run(
        [sys.executable, "-c", text],
        cwd=world.path("w"),
        env=environ_of(world),
        capture_output=True,
        text=True,
        check=True,
    )
    assert PRINTED[name] in ended.stdout


def test_question_in_a_textual_program(world: World) -> None:
    """A blocked file is asked about, above the composer."""
    world.envrc("w", "export FOO=1\n", allow=False)
    (text,) = PROGRAMS
    assert "/usr/bin/direnv" in text
    ended = subprocess.run(
        [sys.executable, "-c", text.replace("/usr/bin/direnv", world.direnv) + DRIVEN],
        cwd=world.path("w"),
        env=environ_of(world),
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout == "asks, and holds back: ''\n"


def test_jobs_of_a_host_in_another_language(world: World) -> None:
    """The shell's loop: an allowed one runs, a blocked and a denied one do not."""
    for name in ("allowed", "blocked", "denied"):
        world.envrc(name, "export FOO=1\n", allow=name == "allowed")
    is_newer = world.is_newer
    world.call("deny", folder=world.path("denied"))
    jobs = "".join(
        f"{world.path(name)}\ttouch\t{world.path(name)}/ran\n"
        for name in ("allowed", "blocked", "denied")
    )
    ended = subprocess.run(
        ["bash", "-c", JOBS[0]],
        input=jobs,
        cwd=world.top,
        env=environ_of(world),
        capture_output=True,
        text=True,
        check=True,
    )
    ran = [path.parent.name for path in world.top.glob("*/ran")]
    assert ran == ["allowed"]
    said = ended.stdout.splitlines()
    assert said[0] == f"{world.path('blocked')}: ask the person to look at its .envrc"
    last = "denied; leave it alone" if is_newer else "ask the person to look"
    assert last in said[1]
    assert len(said) == 2


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
