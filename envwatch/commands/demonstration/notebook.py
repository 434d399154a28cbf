"""The demo's notebook: a process that has a real ipykernel run cells for it.

It does what a person does once (`envwatch jupyter install`) and what a notebook does
then, with jupyter_client, in the Jupyter folders that its environment names. Orders
and answers are those of `kernel.py`; here too names and digests, never values. It
ends with its stdin, or with SIGTERM, and its kernel with it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from ipykernel.kernelspec import write_kernel_spec
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager

from envwatch.errors import EnvwatchError, Temporary

_PERSONS = "python3"
_OURS = "python3-envwatch"
_START_S = 30.0
_CELL_S = 30.0

# The kernel has nothing of envwatch's but kernel_client, so its cells bring their code.
# A process's environ in /proc stays what it was when the interpreter started.
_LOOK = """\
import hashlib, json, os
def digest(environ):
    text = "\\0".join(f"{name}={environ[name]}" for name in NAMES if name in environ)
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()
with open("/proc/self/environ", "rb") as file:
    pairs = (each.partition(b"=") for each in file.read().split(b"\\0"))
    first = {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}
print(json.dumps({"digest": digest(os.environ), "digest_at_start": digest(first)}))
"""
_COST = """\
import json, statistics, timeit, kernel_client
times = timeit.repeat(kernel_client.refresh, number=100, repeat=COUNT // 100)
print(json.dumps({"p50_s": statistics.median(times) / 100}))
"""


class Notebook:
    """One kernel, and the hold that a front end has on it."""

    def __init__(self, kernels: Path) -> None:
        specs = KernelSpecManager(kernel_dirs=[str(kernels)])
        self._manager = KernelManager(kernel_name=_OURS, kernel_spec_manager=specs)
        self._client: BlockingKernelClient | None = None

    def start(self, folder: str) -> dict[str, Any]:
        """Start the kernel in a folder, and wait until it would run a cell."""
        started = time.perf_counter()
        _undivided(lambda: self._manager.start_kernel(cwd=folder))
        client = self._client = self._manager.blocking_client()
        # Without a heartbeat, whose thread may not end where it has not begun yet.
        client.start_channels(hb=False)
        client.wait_for_ready(timeout=_START_S)
        return {"seconds": time.perf_counter() - started}

    def run(self, code: str) -> dict[str, Any]:
        """Run a cell; give the object that it prints, what it `said`, its cost."""
        if self._client is None:
            raise Temporary("the notebook has no kernel")
        streams = {"stdout": "", "stderr": ""}

        def collect(message: Mapping[str, Any]) -> None:
            if message["msg_type"] == "stream":
                content = message["content"]
                streams[content["name"]] += content["text"]

        started = time.perf_counter()
        self._client.execute_interactive(
            code, allow_stdin=False, output_hook=collect, timeout=_CELL_S
        )
        seconds = time.perf_counter() - started
        told: dict[str, Any] = json.loads(streams["stdout"])
        return {**told, "seconds": seconds, "said": streams["stderr"].splitlines()}

    def close(self) -> None:
        """End the kernel."""
        if self._client is not None:
            self._client.stop_channels()
        if self._manager.has_kernel:
            self._manager.shutdown_kernel(now=True)
        self._manager.cleanup_resources()


def main() -> None:
    """Answer orders until stdin ends."""
    signal.signal(signal.SIGTERM, _ended)
    kernels = Path(os.environ["JUPYTER_DATA_DIR"], "kernels")
    notebook = Notebook(kernels)
    try:
        for line in sys.stdin:
            answer = _obeyed(notebook, kernels, json.loads(line))
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()
    finally:
        # Told twice, it would leave its kernel behind.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        notebook.close()


def _obeyed(
    notebook: Notebook, kernels: Path, order: Mapping[str, Any]
) -> dict[str, Any]:
    try:
        if "folder" in order:
            _install(kernels)
            return notebook.start(order["folder"])
        if "count" in order:
            return notebook.run(f"COUNT = {int(order['count'])}\n{_COST}")
        return notebook.run(f"NAMES = {list(order['names'])!r}\n{_LOOK}")
    except EnvwatchError as error:
        return {"failed": str(error)}
    except Exception as error:  # noqa: BLE001 - its text could have anything in it
        return {"failed": f"the notebook failed ({type(error).__name__})"}


def _install(kernels: Path) -> None:
    """Give the person of the demo a kernel, and run `envwatch jupyter install`.

    Other kernels of this machine may be in any environment, and changed in any way.
    """
    kernels.mkdir(parents=True, exist_ok=True)
    write_kernel_spec(str(kernels / _PERSONS))
    done = subprocess.run(
        [sys.executable, "-m", "envwatch", "jupyter", "install"],
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    if done.returncode != 0:
        last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise Temporary(f"`envwatch jupyter install` has failed: {last}")


def _undivided(act: Callable[[], object]) -> None:
    """Act; a SIGTERM that comes meanwhile counts after it.

    Between a kernel's start and its manager's knowing of it, nobody would end it.
    """
    told: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: told.append(number))
    try:
        act()
    finally:
        signal.signal(signal.SIGTERM, before)
    if told:
        raise SystemExit


def _ended(_number: int, _frame: FrameType | None) -> None:
    raise SystemExit


if __name__ == "__main__":
    main()
