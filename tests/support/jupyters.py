"""Jupyter as a person meets it: kernels with cells, in a world of their own."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager

from tests.support import planted
from tests.support.pairs import NO_COMMAND
from tests.support.persons import Person
from tests.support.worlds import World

START_S = 50.0
CELL_S = 50.0


class Cell(NamedTuple):
    """What the output of one cell has: stdout, stderr, and the name of its error."""

    out: str
    err: str
    error: str | None

    @property
    def lines(self) -> list[str]:
        """Lines of stderr: what direnv said."""
        return self.err.splitlines()


class Jupyter:
    """A person's Jupyter: its folders, and the environment that kernels start in."""

    def __init__(self, world: World, listening: Path | None) -> None:
        self.world = world
        self.data = world.folder("jupyter")
        self.kernels = self.data / "kernels"
        self.folders = {
            "IPYTHONDIR": str(world.folder("ipython")),
            "JUPYTER_CONFIG_DIR": str(world.folder("jupyter-config")),
            "JUPYTER_DATA_DIR": str(self.data),
            "JUPYTER_RUNTIME_DIR": str(world.folder("jupyter-run")),
        }
        kept = {
            name: value
            for name, value in os.environ.items()
            if name.startswith("COVERAGE_")
        }
        self.environ = {
            **kept,
            **world.environ,
            **self.folders,
            "ENVWATCH_SIDECAR": "off" if listening is None else NO_COMMAND,
        }
        if listening is not None:
            self.environ["ENVWATCH_SOCKET"] = str(listening)
        self.person = Person(world, listening)
        self.person.environ.update(self.folders)

    def install(self, *arguments: str) -> Path:
        """Run `envwatch jupyter install`; give the folder of its kernelspec."""
        ended = self.person.run("jupyter", "install", *arguments)
        assert ended.code == 0, ended
        return Path(ended.out.splitlines()[0].rpartition(" is in ")[2])

    @property
    def specs(self) -> KernelSpecManager:
        """What knows the kernelspecs of this person."""
        return KernelSpecManager(kernel_dirs=[str(self.kernels)])

    def kernel(
        self,
        name: str = "python3-envwatch",
        *,
        folder: str | os.PathLike[str] = "w",
        environ: Mapping[str, str] | None = None,
    ) -> Kernel:
        """Start a kernel in a folder of the world."""
        return Kernel(
            self.specs,
            name,
            folder=self.world.path(folder),
            environ={**self.environ, **(environ or {})},
        )


class Kernel:
    """A running kernel with a client."""

    def __init__(
        self,
        specs: KernelSpecManager,
        name: str,
        *,
        folder: Path,
        environ: Mapping[str, str],
    ) -> None:
        self.manager = KernelManager(kernel_name=name, kernel_spec_manager=specs)
        self.manager.start_kernel(cwd=str(folder), env=dict(environ))
        self.client = self.manager.blocking_client()
        self.client.start_channels(hb=False)
        try:
            self.client.wait_for_ready(timeout=START_S)
        except BaseException:
            self.close()
            raise

    def start(self, code: str, **options: Any) -> str:
        """Send a cell; give its message id."""
        return str(self.client.execute(code, **options))

    def run(self, code: str, **options: Any) -> Cell:
        """Run a cell to its end."""
        return self.wait(self.start(code, **options))

    def wait(self, number: str, *, until: str | None = None) -> Cell:
        """Collect the output of a cell to its end, or until it has this text."""
        return output(self.client, number, until=until)

    def interrupt(self) -> None:
        """Press the stop button."""
        self.manager.interrupt_kernel()

    def close(self) -> None:
        """End the kernel."""
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        self.manager.cleanup_resources()


def output(
    client: BlockingKernelClient, number: str, *, until: str | None = None
) -> Cell:
    """Collect the output of a cell to its end, or until it has this text."""
    texts = {"stdout": "", "stderr": ""}
    error = None
    deadline = time.monotonic() + CELL_S
    while True:
        message = client.get_iopub_msg(timeout=deadline - time.monotonic())
        if message["parent_header"].get("msg_id") != number:
            continue
        kind, content = message["msg_type"], message["content"]
        if kind == "stream":
            texts[content["name"]] += content["text"]
        elif kind == "error":
            error = content["ename"]
            texts["stderr"] += "\n".join(content["traceback"])
        elif kind == "status" and content["execution_state"] == "idle":
            break
        if until is not None and until in texts["stderr"] + texts["stdout"]:
            break
    for name, text in texts.items():
        planted.collect(f"a cell's {name}", text)
    return Cell(texts["stdout"], texts["stderr"], error)
