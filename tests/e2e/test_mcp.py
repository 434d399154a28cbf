"""The `mcp` package's own client and server, through a wrapped file."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession, StdioServerParameters, stdio_client

from tests.support.persons import Person
from tests.support.planted import exports, secret
from tests.support.worlds import World

SERVER = Path(__file__).parent / "server.py"


@pytest.fixture
def person(world: World, monkeypatch: pytest.MonkeyPatch) -> Person:
    """Give a person whose client hands on HOME and PATH, as the package's does."""
    for name in ("HOME", "PATH"):
        monkeypatch.setenv(name, world.environ[name])
    return Person(world)


def configured(world: World, env: Mapping[str, str]) -> Path:
    """Write a client's file with one server, and a variable of the row's own."""
    row = {
        "command": sys.executable,
        "args": [str(SERVER), "--flag", "a b"],
        "env": {"ENVWATCH_SIDECAR": "off", **env},
    }
    text = json.dumps({"mcpServers": {"environment": row}}, indent=2)
    return world.write("client.json", text + "\n")


def started(file: Path) -> StdioServerParameters:
    """Read the row as a client does."""
    row = json.loads(file.read_text())["mcpServers"]["environment"]
    return StdioServerParameters(**row)


async def told(session: ClientSession, tool: str, **arguments: str) -> Any:
    """Call a tool of the server, and give what it told."""
    result = await session.call_tool(tool, arguments)
    assert result.structured_content is not None
    return result.structured_content["result"]


@pytest.mark.parametrize("is_wrapped", [True, False])
async def test_server(world: World, person: Person, *, is_wrapped: bool) -> None:
    """A wrapped server has the workspace's environment; an unwrapped one has not."""
    world.envrc("w", exports("FOO", "API_KEY", "BASH_ENV"))
    file = configured(world, {"API_KEY": "the row's"})
    before = file.read_bytes()
    ended = person.run("mcp", "wrap", file, "--workspace", world.path("w"))
    assert ended.code == 0, ended.err
    if not is_wrapped:
        assert person.run("mcp", "unwrap", file).code == 0
        assert file.read_bytes() == before

    async with (
        stdio_client(started(file)) as (reading, writing),
        ClientSession(reading, writing) as session,
    ):
        await session.initialize()
        names = set(await told(session, "names"))
        assert ("FOO" in names) is is_wrapped
        assert "BASH_ENV" not in names
        assert await told(session, "holds", name="API_KEY", value="the row's")
        foo = await told(session, "holds", name="FOO", value=secret("FOO"))
        assert foo is is_wrapped
        assert await told(session, "arguments") == ["--flag", "a b"]


async def test_blocked(world: World, person: Person) -> None:
    """A server of a blocked workspace does not start."""
    world.envrc("w", exports("FOO"), allow=False)
    file = configured(world, {})
    assert person.run("mcp", "wrap", file, "--workspace", world.path("w")).code == 0
    row = started(file)

    ended = person.run(*row.args[:1], *row.args[1:], environ=row.env or {})

    ended.said(10, "is blocked", f"{sys.executable} was not run")
