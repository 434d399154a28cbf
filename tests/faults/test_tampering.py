"""Somebody rewrites what direnv keeps in the environment, or the way to it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from kernel_client import Client, Settings, gzenv
from tests.support import reference
from tests.support.planted import PLANTED
from tests.support.worlds import World


class Kernel:
    """A kernel in one workspace, without a sidecar."""

    def __init__(self, world: World, direnv: str, environ: Any = None) -> None:
        self.world = world
        self.environ = dict(world.environ) if environ is None else environ
        self.settings = Settings(sidecar="off", direnv=direnv)
        self.client = Client(
            self.environ, output=lambda _: None, settings=self.settings
        )
        os.chdir(world.path("w"))

    def edit(self) -> None:
        """Edit the file, so that it is not allowed any more."""
        self.world.write("w/.envrc", "export NEW=1\n")

    @property
    def is_clean(self) -> bool:
        """Whether no planted value is here."""
        return not any(PLANTED in value for value in self.environ.values())


@pytest.fixture(name="direnv")
def _direnv(direnvs: dict[str, str]) -> str:
    return direnvs["2.37"]


@pytest.fixture(autouse=True)
def _home() -> Iterator[None]:
    folder = os.getcwd()
    yield
    os.chdir(folder)


@pytest.fixture(name="kernel")
def _kernel(world: World, direnv: str) -> Iterator[Kernel]:
    world.envrc("w", f"export FOO={PLANTED}1 BAR={PLANTED}2\n")
    kernel = Kernel(world, direnv)
    yield kernel
    kernel.client.close()


def inherit(kernel: Kernel) -> None:
    """Load as the hook of the shell does that starts the kernel."""
    said = reference.run(
        kernel.settings.direnv or "",
        "export",
        "json",
        environ=kernel.environ,
        folder=str(kernel.world.path("w")),
    )
    assert said.changes is not None
    kernel.environ.update(
        {name: value for name, value in said.changes.items() if value is not None}
    )


@pytest.mark.parametrize("text", ["", "garbage", gzenv.encode({"p": {}, "n": {}})])
def test_rewritten_difference(kernel: Kernel, text: str) -> None:
    """Our own load is taken back from memory."""
    kernel.client.refresh()
    kernel.environ["DIRENV_DIFF"] = text
    kernel.edit()
    assert kernel.client.refresh().outcome == "blocked"
    assert kernel.is_clean


def test_one_inherited_variable_was_scrubbed(kernel: Kernel) -> None:
    """The others are taken back all the same once the file is blocked."""
    inherit(kernel)
    del kernel.environ["BAR"]
    kernel.edit()
    assert kernel.client.refresh().outcome == "blocked"
    assert kernel.is_clean


def test_inherited_watches_without_the_file(kernel: Kernel) -> None:
    """They cannot tell of an edit, so they are not believed."""
    inherit(kernel)
    kernel.environ["DIRENV_WATCHES"] = gzenv.encode([])
    kernel.edit()
    assert kernel.client.refresh().outcome == "blocked"
    assert kernel.is_clean


def test_restored_environment_after_an_edit_with_its_mtime_put_back(
    kernel: Kernel,
) -> None:
    """A host that puts a saved environment back does not bring the values back."""
    path = kernel.world.path("w/.envrc")
    seen = path.stat()
    kernel.client.refresh()
    saved = dict(kernel.environ)
    kernel.edit()
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert kernel.client.refresh().outcome == "blocked"
    kernel.environ.clear()
    kernel.environ.update(saved)
    assert kernel.client.refresh().outcome == "blocked"
    assert kernel.is_clean


def test_restored_environment_after_an_allowed_edit(kernel: Kernel) -> None:
    """The file is allowed as it is now, but what is put back is of another one."""
    path = kernel.world.path("w/.envrc")
    seen = path.stat()
    kernel.client.refresh()
    saved = dict(kernel.environ)
    kernel.world.envrc("w", "export NEW=1\n")
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert kernel.client.refresh().outcome == "loaded"
    kernel.environ.clear()
    kernel.environ.update(saved)
    assert kernel.client.refresh().outcome == "loaded"
    assert kernel.environ["NEW"] == "1"
    assert kernel.is_clean


def test_edited_within_the_second_before_the_first_refresh(kernel: Kernel) -> None:
    """Whole seconds are not enough to adopt an inherited environment."""
    path = kernel.world.path("w/.envrc")
    seen = path.stat()
    inherit(kernel)
    kernel.edit()
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert kernel.client.refresh().outcome == "blocked"
    assert kernel.is_clean


class Refusing(dict[str, str]):
    """A mapping that refuses one name."""

    def __setitem__(self, name: str, value: str) -> None:
        """Refuse `NEW`."""
        if name == "NEW":
            raise TimeoutError
        super().__setitem__(name, value)


def test_a_mapping_that_refuses_a_name(world: World, direnv: str) -> None:
    """Nothing of the load before stays when the next one cannot be written."""
    world.envrc("w", f"export FOO={PLANTED}1\n")
    kernel = Kernel(world, direnv, Refusing(world.environ))
    kernel.client.refresh()
    world.envrc("w", "export NEW=2\n")
    assert kernel.client.refresh().outcome == "broken"
    assert kernel.is_clean
    assert "FOO" not in kernel.environ


def test_an_empty_name(kernel: Kernel) -> None:
    """An environment can have one; direnv must not see it."""
    kernel.environ[""] = "X=1"
    assert kernel.client.refresh().outcome == "loaded"
    assert kernel.environ[""] == "X=1"


@pytest.mark.parametrize(
    ("diff", "watches"),
    [
        ({"p": {}, "n": {}}, [{"path": "/a\0b", "modtime": 0, "exists": False}]),
        ({"p": {"Q\ud800": "a"}, "n": {}}, []),
        ({"p": {"Q": "a\0b"}, "n": {}}, []),
    ],
    ids=["path", "name", "value"],
)
def test_inherited_nonsense(kernel: Kernel, diff: Any, watches: Any) -> None:
    """Nothing that no environment or path can be gets out of refresh()."""
    path = str(kernel.world.path("w"))
    kernel.environ.update(
        DIRENV_FILE=f"{path}/.envrc",
        DIRENV_DIR=f"-{path}",
        DIRENV_DIFF=gzenv.encode(diff),
        DIRENV_WATCHES=gzenv.encode(watches),
    )
    assert kernel.client.refresh().outcome == "loaded"
    assert kernel.client.refresh().outcome == "unchanged"


def test_a_stream_that_raises(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody's own stderr may do what it likes."""

    class Odd:
        def isatty(self) -> bool:
            raise RuntimeError

    monkeypatch.setattr(sys, "stderr", Odd())
    client = Client(kernel.environ, settings=kernel.settings)
    assert client.refresh().outcome == "loaded"
    client.close()


@pytest.mark.parametrize("text", ["²", "9" * 20, "9" * 5000, "-1"])
def test_a_descriptor_that_cannot_be(kernel: Kernel, text: str) -> None:
    """One line, without the value; direnv is asked."""
    lines: list[str] = []
    kernel.environ.update(
        ENVWATCH_FD=text,
        ENVWATCH_SIDECAR="off",
        ENVWATCH_DIRENV=kernel.settings.direnv or "",
    )
    client = Client(kernel.environ, output=lines.append)
    assert "ENVWATCH_FD" in lines[0]
    assert text not in lines[0]
    client.close()
