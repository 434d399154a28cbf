"""A kernel in another virtual environment, which has none of our dependencies."""

from __future__ import annotations

import contextlib
import json
import socket as socket_of
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import OLDER
from tests.support import planted
from tests.support.daemons import until
from tests.support.jupyters import Jupyter, Kernel
from tests.support.venvs import with_ipykernel
from tests.support.worlds import World

older = pytest.mark.parametrize("version", [OLDER], indirect=True)
direct = pytest.mark.parametrize("mode", ["direct"], indirect=True)
pytestmark = pytest.mark.timeout(300)  # the environment is made once, through pip

FOO = "import os; print(os.environ.get('FOO'))"


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the interpreter of an environment with ipykernel and nothing of ours."""
    return with_ipykernel(tmp_path_factory.mktemp("other") / "env")


@pytest.fixture
def jupyter(world: World, socket: Path | None, python: Path) -> Jupyter:
    """Give a person's Jupyter with a kernel of that environment, and ours of it."""
    made = Jupyter(world, socket)
    argv = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": "Other", "language": "python"}
    world.write(made.kernels / "other" / "kernel.json", json.dumps(spec))
    return made


@pytest.fixture
def kernel(world: World, jupyter: Jupyter) -> Iterator[Kernel]:
    """Give that kernel in an allowed workspace."""
    world.envrc("w", "export FOO=1\n" + planted.exports("TOKEN"))
    jupyter.install("--kernel", "other")
    running = jupyter.kernel("other-envwatch")
    yield running
    running.close()


@older
@direct
def test_environment_is_honest(python: Path, jupyter: Jupyter, world: World) -> None:
    """The person's own kernel there can import neither of our packages."""
    world.folder("w")
    own = jupyter.kernel("other")
    try:
        for name in ("kernel_client", "envwatch", "structlog", "watchfiles"):
            assert own.run(f"import {name}").error == "ModuleNotFoundError", name
        told = own.run("import sys; print(sys.prefix)").out
        assert told == f"{python.parents[1]}\n"
    finally:
        own.close()


def test_kernel_follows(world: World, kernel: Kernel) -> None:
    """Load, edit, block, allow, leave, as in our own environment."""
    assert kernel.run(FOO) == ("1\n", "", None)

    world.envrc("w", "export FOO=2\n", allow=False)
    blocked = kernel.run(FOO)
    assert blocked.out == "None\n"
    assert "is blocked; allowing it is up to the person" in blocked.err

    world.allow("w")
    assert kernel.run(FOO).out == "2\n"
    kernel.run("os.chdir('..')")
    assert kernel.run(FOO) == ("None\n", "direnv: unloading\n", None)


@older
@direct
def test_nothing_else_reaches_it(jupyter: Jupyter, kernel: Kernel) -> None:
    """Neither our site-packages nor our variables; its children are as its own are."""
    for name in ("envwatch", "structlog", "watchfiles", "click"):
        assert kernel.run(f"import {name}").error == "ModuleNotFoundError", name
    own = jupyter.kernel("other")
    ask = (
        "import json, os, subprocess, sys\n"
        "child = [sys.executable, '-c', 'import json, sys; print(json.dumps(sys.path))']\n"
        "print(json.dumps([sys.path, json.loads(subprocess.check_output(child)),\n"
        "  sorted(os.environ), sys.argv[1:2], [n for n in dir() if n[0] != '_']]))"
    )
    try:
        theirs = json.loads(own.run(ask).out)
        ours = json.loads(kernel.run(ask).out)
    finally:
        own.close()
    added = {
        "FOO",
        "TOKEN",
        "DIRENV_DIFF",
        "DIRENV_DIR",
        "DIRENV_FILE",
        "DIRENV_WATCHES",
    }
    assert set(ours[2]) - set(theirs[2]) == added
    assert set(theirs[2]) <= set(ours[2])
    assert ours[:2] + ours[3:] == theirs[:2] + theirs[3:]


@older
@direct
def test_children_of_the_kernel(kernel: Kernel) -> None:
    """Spawned and forked workers start, and have the environment."""
    kernel.run(
        "%%writefile child.py\nimport os\ndef foo(_): return os.environ.get('FOO')"
    )
    cell = kernel.run(
        "import child, multiprocessing as m\n"
        "for how in 'spawn', 'fork', 'forkserver':\n"
        "    with m.get_context(how).Pool(1) as pool:\n"
        "        print(pool.map(child.foo, [0]))"
    )
    assert (cell.out, cell.error) == ("['1']\n" * 3, None)


@older
@direct
def test_sidecar_is_started_from_there(world: World, jupyter: Jupyter) -> None:
    """No `envwatch` is beside that interpreter: the kernel starts the one of ours."""
    world.envrc("w", "export FOO=1\n")
    jupyter.install("--kernel", "other", "--no-provisioner")
    environ = {
        "ENVWATCH_SIDECAR": "auto",
        "ENVWATCH_SOCKET": jupyter.person.environ["ENVWATCH_SOCKET"],
    }
    kernel = jupyter.kernel("other-envwatch", environ=environ)
    try:
        assert kernel.run(FOO).out == "1\n"
        until("the sidecar takes connections", lambda: _listens(jupyter))
        world.envrc("w", "export FOO=2\n")
        assert kernel.run(FOO).out == "2\n"
        assert "sidecar:     attached, pid " in kernel.run("%envwatch").out
    finally:
        kernel.close()
        assert jupyter.person.run("stop").code == 0


def _listens(jupyter: Jupyter) -> bool:
    with socket_of.socket(socket_of.AF_UNIX) as probe, contextlib.suppress(OSError):
        probe.connect(jupyter.person.environ["ENVWATCH_SOCKET"])
        return True
    return False


@older
@direct
def test_extension_can_be_reloaded(kernel: Kernel) -> None:
    """`%reload_ext` finds the package, which no path leads to."""
    cell = kernel.run(f"%reload_ext kernel_client\n{FOO}")

    assert (cell.out, cell.error) == ("1\n", None)
    assert kernel.run(FOO) == ("1\n", "", None)


@older
@direct
def test_envwatch_has_gone(world: World, jupyter: Jupyter) -> None:
    """The kernel starts as the person's own."""
    world.envrc("w", "export FOO=1\n")
    folder = jupyter.install("--kernel", "other", "--no-provisioner")
    spec = json.loads((folder / "kernel.json").read_text())
    place = spec["argv"].index("-c") + 2
    spec["argv"][place] = "/gone/launcher.py"
    (folder / "kernel.json").write_text(json.dumps(spec))
    kernel = jupyter.kernel("other-envwatch")
    try:
        assert kernel.run(FOO) == ("None\n", "", None)
    finally:
        kernel.close()
