"""Which direnv a kernel runs, and whether `.env` counts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kernel_client import direnv as program
from kernel_client.discovery import CONFIG_NAMES, Discovery
from kernel_client.roots import Walk
from tests.support.planted import exports
from tests.support.worlds import World


def walked(made: Discovery, world: World, folder: str) -> Walk:
    """Walk from a folder of a world."""
    names = {
        name: world.environ[name] for name in CONFIG_NAMES if name in world.environ
    }
    return made.walk(str(world.path(folder)), names, lambda: dict(world.environ))


def test_path_is_looked_up_until_it_is_found(tmp_path: Path) -> None:
    """Found is kept; not found is looked for again, since it may be installed."""
    program_path = tmp_path / "direnv"
    made = Discovery(None)
    assert made.direnv(str(tmp_path)) is None
    program_path.write_text("#!/bin/sh\n")
    program_path.chmod(0o755)
    assert made.direnv(str(tmp_path)) == str(program_path)
    assert made.direnv(None) == str(program_path)
    made.forget_direnv()
    assert made.direnv(None) is None


def test_named_one_is_used(tmp_path: Path) -> None:
    """Whatever PATH is."""
    path = tmp_path / "mine"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    assert Discovery(str(path)).direnv(None) == str(path)
    assert Discovery("mine").direnv(str(tmp_path)) == str(path)


def test_deleted_folder_has_nothing_above() -> None:
    """The walk is empty."""
    walk = Discovery(None).walk(None, {}, dict)
    assert (walk.folder, walk.root, walk.absent) == (None, None, [])


def test_dotenv_is_asked_once_for_each_state_of_the_toml(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """direnv's own word, and not before a `.env` is met at all."""
    asked: list[str] = []
    real = program.status

    def status(direnv: str, folder: str, environ: dict[str, str]) -> program.Status:
        asked.append(folder)
        return real(direnv, folder, environ)

    monkeypatch.setattr(program, "status", status)
    made = Discovery(world.direnv)
    made.direnv(None)
    world.write("w/.env", exports("FOO"))
    world.folder("other")
    assert walked(made, world, "w").root is None
    assert asked == []  # No direnv.toml: it is off.

    world.toml("[global]\nload_dotenv = true\n")
    assert walked(made, world, "other").root is None
    assert asked == []
    for _ in range(3):
        walk = walked(made, world, "w")
        assert walk.root == str(world.path("w/.env"))
        assert walk.folder == str(world.path("w"))
        assert any(entry[1] for entry in walk.config)
    assert asked == [str(world.path("w"))]

    world.toml("[global]\nload_dotenv = false\n")
    assert walked(made, world, "w").root is None
    assert len(asked) == 2


def test_direnv_that_gives_no_answer(world: World) -> None:
    """A broken direnv.toml: the `.env` does not count."""
    world.write("w/.env", exports("FOO"))
    world.toml("this is no toml")
    made = Discovery(world.direnv)
    made.direnv(None)
    walk = walked(made, world, "w")
    assert walk.root is None
    assert os.path.basename(walk.dotenv or "") == ".env"


@pytest.mark.parametrize("name", [os.fsdecode(b"zz\xe9"), "a\nb"], ids=ascii)
def test_dotenv_in_a_folder_that_direnv_spells_otherwise(
    world: World, name: str
) -> None:
    """It counts, as it does for direnv."""
    world.toml("[global]\nload_dotenv = true\n")
    path = world.write(f"{name}/.env", "FOO=1\n")
    made = Discovery(world.direnv)
    made.direnv(None)
    assert walked(made, world, name).root == str(path)
