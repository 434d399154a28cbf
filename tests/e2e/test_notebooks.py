"""The installed kernel under real hosts: nbclient, jupyter_server."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.conftest import OLDER
from tests.support import planted
from tests.support.jupyters import Jupyter, output
from tests.support.servers import Server
from tests.support.worlds import World

older = pytest.mark.parametrize("version", [OLDER], indirect=True)
direct = pytest.mark.parametrize("mode", ["direct"], indirect=True)

FOO = "import os; print(os.environ.get('FOO'), 'TOKEN' in os.environ)"


@pytest.fixture
def jupyter(world: World, socket: Path | None) -> Jupyter:
    """Give a person's Jupyter with the kernel installed."""
    made = Jupyter(world, socket)
    made.install()
    return made


NBCLIENT = """
import sys, nbclient, nbformat
def outside(cell, cell_index):
    # The test does what a person does before this cell, and answers with a line.
    print(cell_index, flush=True)
    assert sys.stdin.readline()
notebook = nbformat.read("n.ipynb", as_version=4)
client = nbclient.NotebookClient(
    notebook, timeout=50, kernel_name="python3-envwatch", on_cell_execute=outside
)
client.execute(cwd=".")
nbformat.write(notebook, "n.ipynb")
"""


def run(
    jupyter: Jupyter, *cells: str, before: Mapping[int, Callable[[], object]]
) -> list[dict[str, str]]:
    """Run a notebook in `w` by nbclient; give the streams of each cell.

    `before` has what a person does outside before a cell is run.
    """
    path = jupyter.world.path("w/n.ipynb")
    shape: dict[str, object] = {
        "cell_type": "code",
        "metadata": {},
        "execution_count": None,
        "outputs": [],
    }
    notebook = {
        "cells": [
            {**shape, "id": str(number), "source": cell}
            for number, cell in enumerate(cells)
        ],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path.write_text(json.dumps(notebook))
    with subprocess.Popen(
        [sys.executable, "-c", NBCLIENT],
        cwd=path.parent,
        env=jupyter.environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        for line in process.stdout:
            before.get(int(line), lambda: None)()
            process.stdin.write("\n")
            process.stdin.flush()
    assert process.returncode == 0
    streams = []
    for cell in json.loads(path.read_text())["cells"]:
        said = {"stdout": "", "stderr": ""}
        for each in cell["outputs"]:
            said[each["name"]] += "".join(each["text"])
        planted.collect("a notebook's cell", "".join(said.values()))
        streams.append(said)
    return streams


def test_notebook(world: World, jupyter: Jupyter) -> None:
    """Load, edit, block, allow, leave: each cell in its environment, and it says so."""
    secret = planted.exports("TOKEN")
    path = world.envrc("w", f"export FOO=1\n{secret}")
    edited = path.read_text().replace("FOO=1", "FOO=2")
    world.folder("bare")

    first, editing, blocked, again, allowed, leaving, left = run(
        jupyter,
        FOO,
        "text = open('.envrc').read().replace('FOO=1', 'FOO=2')\n"
        f"open('.envrc', 'w').write(text)\n{FOO}",
        FOO,
        FOO,
        FOO,
        f"os.chdir('../bare')\n{FOO}",
        FOO,
        before={4: lambda: world.allow("w")},
    )

    assert path.read_text() == edited
    assert first == {"stdout": "1 True\n", "stderr": ""}
    assert editing == {"stdout": "1 True\n", "stderr": ""}
    assert blocked["stdout"] == "None False\n"
    assert blocked["stderr"].endswith(
        f"direnv: error {path} is blocked; allowing it is up to the person\n"
    )
    assert "direnv allow" not in blocked["stderr"]
    assert again == {"stdout": "None False\n", "stderr": ""}
    assert allowed["stdout"] == "2 True\n"
    assert "direnv: export +FOO +TOKEN\n" in allowed["stderr"]
    assert leaving == {"stdout": "2 True\n", "stderr": ""}
    assert left == {"stdout": "None False\n", "stderr": "direnv: unloading\n"}


@older
def test_server(world: World, jupyter: Jupyter) -> None:
    """A server offers the kernel, and starts it in the folder of the notebook."""
    world.envrc("w", "export FOO=1\n" + planted.exports("TOKEN"))
    world.folder("bare")
    server = Server(jupyter)
    try:
        specs = server.ask("GET", "kernelspecs")["kernelspecs"]
        assert "python3-envwatch" in specs

        for folder, expected in (("w", "1 True\n"), ("bare", "None False\n")):
            body = {"name": "python3-envwatch", "path": folder}
            number = server.ask("POST", "kernels", body)["id"]
            client = server.client(number)
            try:
                cell = output(client, client.execute(FOO))
                assert (cell.out, cell.err) == (expected, ""), folder
            finally:
                client.stop_channels()
            server.ask("DELETE", f"kernels/{number}")
    finally:
        server.close()
    assert "the kernel starts in the environment of" in server.said


@older
@direct
def test_notebook_without_the_provisioner(world: World, jupyter: Jupyter) -> None:
    """The interpreter starts as the person's own does, the first cell loads."""
    world.envrc("w", "export FOO=1\n" + planted.exports("TOKEN"))
    jupyter.install("--no-provisioner")
    [cell] = run(jupyter, FOO, before={})

    assert cell["stdout"] == "1 True\n"
    assert "direnv: export +FOO +TOKEN" in cell["stderr"]
