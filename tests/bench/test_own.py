"""The reader's own workspace is measured, and left as it was."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.planted import PLANTED, exports
from tests.support.worlds import World

CHECKOUT = Path(__file__).parents[2]


def tree(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Give all files below a folder with mode, mtime and content."""
    found = {}
    for path in sorted(folder.rglob("*")):
        seen = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        found[str(path)] = (seen.st_mode, seen.st_mtime_ns, content)
    return found


def ran(world: World, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Measure a workspace, as its owner does."""
    command = [sys.executable, "-m", "bench", "--direnv", world.direnv, "--quick"]
    return subprocess.run(
        [*command, *map(str, arguments)],
        cwd=world.top,
        env={**world.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        check=False,
    )


def git(folder: Path, *arguments: str) -> str:
    """Run git there."""
    return subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@example", *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


@pytest.mark.parametrize("state", ["allowed", "blocked: new", "none", "denied"])
def test_own_workspace(world: World, state: str) -> None:
    """A real checkout, a real store: both are the same afterwards."""
    if state == "denied" and not world.is_newer:
        pytest.skip("2.32 keeps no denials")
    place = world.folder("mine/inner")
    if state != "none":
        world.envrc("mine", exports("FOO"), allow=state == "allowed")
    if state == "denied":
        world.call("deny", folder=world.path("mine"))
    git(world.path("mine"), "init", "-q")
    git(world.path("mine"), "add", "-A")
    git(world.path("mine"), "commit", "-q", "--allow-empty", "-m", "x")
    reports = world.folder("reports")
    store = Path(world.environ["HOME"], ".local/share/direnv")
    before = tree(world.path("mine")), tree(store)
    ended = ran(world, "--json", "--workspace", place, "--output", reports)
    assert ended.returncode == 0, ended.stderr
    assert (tree(world.path("mine")), tree(store)) == before
    assert git(world.path("mine"), "status", "--porcelain") == ""
    found = json.loads(ended.stdout)
    (said, first) = (row["measured"] for row in found["rows"])
    assert said == state
    assert first.startswith(
        {"allowed": "loaded in", "none": "nothing to load"}.get(
            state, state.partition(":")[0]
        )
    )
    labels = {each["label"] for each in found["distributions"]}
    assert {"refresh(), sidecar", "direnv export json, from Python"} <= labels
    assert ("direnv export json, from sh" in labels) == (state in ("allowed", "none"))
    assert PLANTED not in ended.stdout + ended.stderr
    for path in reports.iterdir():
        assert PLANTED not in path.read_text()


def test_evaluated_once(world: World) -> None:
    """Not once for each way that is measured."""
    log = world.path("log")
    world.envrc("mine", f"echo x >> {log}\nexport FOO=1\n")
    reports = world.folder("reports")
    done = ran(world, "--workspace", world.path("mine"), "--output", reports)
    assert done.returncode == 0
    assert log.read_text() == "x\n"
    assert os.listdir(world.path("mine")) == [".envrc"]
