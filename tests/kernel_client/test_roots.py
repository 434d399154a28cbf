"""Which root file counts for a folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kernel_client import roots
from tests.support import reference
from tests.support.children import as_ordinary_user
from tests.support.planted import exports
from tests.support.worlds import World


def test_nearest_file_and_where_a_nearer_one_would_be(tmp_path: Path) -> None:
    """The walk ends at the root file, and names what was missing on the way."""
    inner = tmp_path / "a/b"
    inner.mkdir(parents=True)
    (tmp_path / ".envrc").write_bytes(b"")
    walk = roots.walk(str(inner))
    assert walk.root == str(tmp_path / ".envrc")
    assert walk.absent == [str(inner / ".envrc"), str(tmp_path / "a/.envrc")]
    assert walk.present == []


def test_no_file_up_to_the_top(tmp_path: Path) -> None:
    """Then every folder up to / was looked at."""
    walk = roots.walk(str(tmp_path))
    assert walk.root is None
    assert walk.absent[0] == str(tmp_path / ".envrc")
    assert walk.absent[-1] == "/.envrc"
    assert roots.above("/") == ["/"]
    assert roots.above("/a/b") == ["/a/b", "/a", "/"]


@pytest.mark.parametrize("kind", ["folder", "fifo", "dangling", "loop", "socket"])
def test_what_cannot_load_is_passed_over(tmp_path: Path, kind: str) -> None:
    """But it is looked at again: it could become a root file."""
    inner = tmp_path / "a"
    inner.mkdir()
    path = inner / ".envrc"
    (tmp_path / ".envrc").write_bytes(b"")
    match kind:
        case "folder":
            path.mkdir()
        case "fifo":
            os.mkfifo(path)
        case "dangling":
            path.symlink_to("missing")
        case "loop":
            path.symlink_to(".envrc")
        case _:
            os.mknod(path, 0o140644)
    walk = roots.walk(str(inner))
    assert walk.root == str(tmp_path / ".envrc")
    assert [entry[0] for entry in walk.present] == [str(path)]
    assert not roots.loadable(str(path))


def test_unreadable_file_is_passed_over() -> None:
    """As direnv does for an ordinary user."""
    import shutil
    import tempfile

    top = Path(tempfile.mkdtemp(prefix="ew-", dir="/tmp"))
    try:
        (top / ".envrc").write_bytes(b"")
        (top / ".envrc").chmod(0)
        found = as_ordinary_user(top, lambda: roots.walk(str(top)).root)
        assert found is None
    finally:
        shutil.rmtree(top)


def test_link_to_a_file_counts(tmp_path: Path) -> None:
    """By the link's own path."""
    (tmp_path / "real").write_bytes(b"")
    (tmp_path / ".envrc").symlink_to("real")
    assert roots.walk(str(tmp_path)).root == str(tmp_path / ".envrc")
    assert roots.loadable(str(tmp_path / ".envrc"))


@pytest.mark.parametrize("dotenv", [True, False, None])
def test_dotenv_counts_when_direnv_says_so(tmp_path: Path, dotenv: object) -> None:
    """And where that is not known, the first one is named."""
    inner = tmp_path / "a"
    inner.mkdir()
    (inner / ".env").write_bytes(b"")
    (tmp_path / ".envrc").write_bytes(b"")
    known = None if dotenv is None else bool(dotenv)
    walk = roots.walk(str(inner), dotenv=known)
    expected = inner / ".env" if dotenv else tmp_path / ".envrc"
    assert walk.root == str(expected)
    assert walk.dotenv == (str(inner / ".env") if dotenv is None else None)


def test_envrc_beside_dotenv_wins(tmp_path: Path) -> None:
    """In the same folder."""
    (tmp_path / ".env").write_bytes(b"")
    (tmp_path / ".envrc").write_bytes(b"")
    assert roots.walk(str(tmp_path), dotenv=True).root == str(tmp_path / ".envrc")


def test_same_file_as_the_real_direnv(world: World) -> None:
    """Whatever lies on the way, direnv finds the same file."""
    world.envrc("w", exports("FOO"))
    world.folder("w/folder/.envrc")
    world.folder("w/link/in")
    world.path("w/link/.envrc").symlink_to("nowhere")
    for folder in ("w", "w/folder", "w/link/in"):
        place = str(world.path(folder))
        said = reference.run(
            world.direnv, "export", "json", environ=world.environ, folder=place
        )
        assert said.changes is not None
        assert said.changes["DIRENV_FILE"] == roots.walk(place).root


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({}, None),
        ({"HOME": ""}, None),
        ({"HOME": "/h"}, "/h/.config/direnv"),
        ({"HOME": "/h", "XDG_CONFIG_HOME": "/c"}, "/c/direnv"),
        ({"HOME": "/h", "XDG_CONFIG_HOME": ""}, "/h/.config/direnv"),
        ({"XDG_CONFIG_HOME": "/c", "DIRENV_CONFIG": "/d"}, "/d"),
    ],
    ids=str,
)
def test_config_folder(environ: dict[str, str], folder: str | None) -> None:
    """Where direnv looks for its own settings."""
    assert roots.config_folder(environ) == folder


def test_config_paths(tmp_path: Path) -> None:
    """All that a load reads outside the workspace; the folder, where it is missing."""
    environ = {"HOME": str(tmp_path)}
    config = tmp_path / ".config/direnv"
    rc = str(tmp_path / ".direnvrc")
    assert roots.config_paths(environ) == [str(config), rc]
    library = config / "lib"
    library.mkdir(parents=True)
    for name in ("b.sh", "a.sh", "c.txt"):
        (library / name).write_bytes(b"")
    names = ["direnv.toml", "config.toml", "direnvrc", "lib", "lib/a.sh", "lib/b.sh"]
    assert roots.config_paths(environ) == [*(str(config / n) for n in names), rc]
    assert roots.config_paths({"DIRENV_CONFIG": "relative"}) == []
