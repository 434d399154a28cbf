"""The environment that a kernel is to start in."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from envwatch.hosts.start import Start, started
from kernel_client import Client
from tests.conftest import OLDER
from tests.support import planted, reference
from tests.support.jupyters import Jupyter
from tests.support.worlds import World

older = pytest.mark.parametrize("version", [OLDER], indirect=True)
direct = pytest.mark.parametrize("mode", ["direct"], indirect=True)


def start(
    jupyter: Jupyter,
    folder: str = "w",
    environ: Mapping[str, str] | None = None,
    *,
    wait_s: float = 600.0,
) -> Start:
    """Start from the world's environment; what is said must not have the secret."""
    where = str(jupyter.world.path(folder))
    given = started({**jupyter.environ, **(environ or {})}, where, wait_s=wait_s)
    planted.collect("the start of a kernel", "\n".join(given.lines))
    return given


def test_loaded(world: World, jupyter: Jupyter) -> None:
    """It is what direnv's hook would leave; where the server stands does not count."""
    world.envrc("w", planted.exports("TOKEN") + "unset KEEP\n")
    shell = reference.Shell(world.direnv, jupyter.environ)
    os.chdir(world.path("w"))
    shell.prompt()
    os.chdir(world.top)

    given = start(jupyter, "w")

    assert reference.difference(given.environ, shell.environ) == {}
    assert given.outcome == "loaded"
    assert not given.without
    assert "direnv: export +TOKEN -KEEP" in given.lines


def test_folder_through_a_link(world: World, jupyter: Jupyter) -> None:
    """The folder itself counts, as it will for the kernel."""
    world.envrc("w", "export FOO=1\n")
    world.path("link").symlink_to("w")

    assert start(jupyter, "link").environ["FOO"] == "1"


def test_blocked(world: World, jupyter: Jupyter) -> None:
    """Nothing is loaded, and nothing says that it was asked: the kernel asks again."""
    world.envrc("w", "export FOO=1\n", allow=False)
    given = start(jupyter)

    assert given.environ == jupyter.environ
    assert (given.outcome, given.without) == ("blocked", True)
    assert "blocked; allowing it is up to the person" in given.lines[0]
    assert given.lines[-1] == (
        f"envwatch: the kernel starts without the environment of {world.path('w/.envrc')}"
    )


@older
@direct
@pytest.mark.parametrize(
    ("body", "outcome"),
    [("exit 3\n", "failed"), ("sleep 1000\n", "timeout"), (None, "absent")],
)
def test_other_outcomes(
    world: World, jupyter: Jupyter, body: str | None, outcome: str
) -> None:
    """Whatever it is, the kernel starts with what it was given."""
    world.folder("w")
    if body is not None:
        world.envrc("w", body)
    given = start(jupyter, wait_s=0.5 if outcome == "timeout" else 600.0)

    assert given.environ == jupyter.environ
    assert given.outcome == outcome
    assert given.without == (body is not None)


@older
@direct
@pytest.mark.parametrize(("code", "how"), [(0, "in"), (3, "without")])
def test_what_the_file_prints_is_not_for_a_log(
    world: World, jupyter: Jupyter, code: int, how: str
) -> None:
    """Values: by `set -x` and echo, in direnv's own words, and in ours."""
    value = "v" * 20
    root = world.envrc(
        "w",
        f'export FOO={value}\nlog_status "$FOO"\nlog_error "$FOO"\n'
        f'echo "envwatch: $FOO" >&2\nset -x\necho $FOO\nexit {code}\n',
    )
    given = start(jupyter)

    assert f"direnv: {value}" in given.lines
    assert f"envwatch: {value}" in given.lines
    (line,) = given.ours
    assert line.startswith(
        f"envwatch: the kernel starts {how} the environment of {root}"
    )
    assert value not in line


@older
@direct
def test_working_folder_that_was_deleted(world: World, jupyter: Jupyter) -> None:
    """The kernel starts with what it was given."""
    gone = world.folder("gone")
    os.chdir(gone)
    gone.rmdir()
    given = started(jupyter.environ, ".", wait_s=600.0)
    os.chdir(world.top)

    assert given == Start(jupyter.environ, "absent", ())


@older
@direct
def test_inherited(world: World, jupyter: Jupyter) -> None:
    """A server that was started in another workspace gives none of it on."""
    world.envrc("w", "export FOO=1\n")
    world.envrc("v", "export BAR=1\n")
    world.folder("bare")
    inherited = start(jupyter, "w").environ

    assert start(jupyter, "w", inherited).environ == inherited
    other = start(jupyter, "v", inherited).environ
    assert ("FOO" in other, other["BAR"]) == (False, "1")
    # Where no root file is found, an inherited environment is left alone.
    assert start(jupyter, "bare", inherited).environ == inherited


@older
@direct
def test_bad_setting(world: World, jupyter: Jupyter) -> None:
    """It is said in one line, and the default is used; the others count."""
    world.folder("w")
    given = start(jupyter, "w", {"ENVWATCH_WAIT_S": "soon"})

    assert given.outcome == "absent"
    assert given.lines[0] == (
        "envwatch: ENVWATCH_WAIT_S must be a number of seconds above 0;"
        " the default is used"
    )


@older
@direct
def test_no_direnv(world: World, jupyter: Jupyter, tmp_path: Path) -> None:
    """Without direnv nothing is loaded."""
    world.envrc("w", "export FOO=1\n")
    given = start(jupyter, "w", {"PATH": str(tmp_path)})

    assert given.environ == {**jupyter.environ, "PATH": str(tmp_path)}
    assert (given.outcome, given.without) == ("off", False)


@older
@direct
def test_kernel_goes_on_with_it(world: World, jupyter: Jupyter) -> None:
    """The kernel's first refresh takes it for its own, in silence."""
    world.envrc("w", "export FOO=1\n")
    given = start(jupyter).environ
    os.chdir(world.path("w"))
    client = Client(given, output=pytest.fail)
    try:
        assert client.refresh().outcome == "unchanged"
        assert client.outcome == "loaded"
        os.chdir(world.top)
    finally:
        client.close()
