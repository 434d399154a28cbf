"""`envwatch reload`: kernels load a workspace again, through a real sidecar."""

from __future__ import annotations

import os

import pytest

from kernel_client import Settings
from tests.conftest import OLDER
from tests.support.daemons import Daemon
from tests.support.pairs import NO_COMMAND, Kernel
from tests.support.persons import Person
from tests.support.planted import exports

one_version = pytest.mark.parametrize("version", [OLDER], indirect=True)


def test_kernels_load_again(attended: Person, daemon: Daemon) -> None:
    """Every kernel that has the root file loaded evaluates it at its next run."""
    world = attended.world
    count = world.path("count")
    root = world.envrc("w", f"{exports('A')}echo >>{count}\n")
    settings = Settings(
        sidecar=NO_COMMAND, socket=str(daemon.socket), direnv=daemon.direnv
    )
    kernels = [Kernel(world.environ, settings) for _ in range(2)]
    os.chdir(root.parent)
    try:
        for kernel in kernels:
            assert kernel.refresh().outcome == "loaded"
            assert kernel.refresh().outcome == "unchanged"
        before = count.read_bytes()

        ended = attended.run("reload", "w")
        again = [kernel.refresh().outcome for kernel in kernels]
        quiet = [kernel.refresh().outcome for kernel in kernels]
    finally:
        for kernel in kernels:
            kernel.close()

    assert ended.code == 0
    assert ended.out == f"2 kernels load {root} again at the next run\n"
    assert again == ["loaded", "loaded"]
    assert quiet == ["unchanged", "unchanged"]
    assert len(count.read_bytes()) == len(before) + 1


@one_version
def test_nobody_has_it_loaded(attended: Person) -> None:
    """A workspace without kernels is no error: exit code 0, and it says none."""
    root = attended.world.envrc("w", exports("A"))

    ended = attended.run("reload", folder=root.parent)

    assert (ended.code, ended.out[:9]) == (0, "0 kernels")


@one_version
def test_no_root_file(person: Person) -> None:
    """Where nothing can be loaded the exit codes are those of `status`."""
    person.run("reload").said(3, "no .envrc")
    person.world.folder("w/.envrc")
    person.run("reload", "w").said(13, "no .envrc")


@one_version
def test_no_sidecar(person: Person) -> None:
    """Without a sidecar nothing is kept that could be forgotten: exit code 69."""
    person.world.envrc("w", exports("A"))

    person.run("reload", "w").said(69, str(person.socket), "envwatch serve")


@one_version
def test_no_direnv(person: Person) -> None:
    """Without direnv no root file is known: exit code 69."""
    person.run("reload", environ={"PATH": "/nowhere"}).said(69, "install")


@one_version
def test_no_such_folder(person: Person) -> None:
    """A folder that is not there is a wrong command line: exit code 2."""
    person.run("reload", "nowhere").said(2, "nowhere")
