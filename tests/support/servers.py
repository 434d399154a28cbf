"""A real jupyter_server on loopback, asked over its REST API."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

from jupyter_client.blocking.client import BlockingKernelClient

from tests.support import planted
from tests.support.daemons import until
from tests.support.jupyters import START_S, Jupyter

TOKEN = "of-the-test"


class Server:
    """One server process, whose root folder is the world."""

    def __init__(self, jupyter: Jupyter) -> None:
        self._runtime = Path(jupyter.folders["JUPYTER_RUNTIME_DIR"])
        self._log = jupyter.world.path("server.log")
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "jupyter_server", "--allow-root"),
                    *("--ip=127.0.0.1", "--port=0", "--no-browser"),
                    f"--IdentityProvider.token={TOKEN}",
                    f"--ServerApp.root_dir={jupyter.world.top}",
                ],
                cwd=jupyter.world.top,
                env=jupyter.environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._about = self._runtime / f"jpserver-{self.process.pid}.json"
        try:
            until("the server listens", self._listens, START_S)
            self._url = json.loads(self._about.read_text())["url"]
        except BaseException:
            self.close()
            raise

    def _listens(self) -> bool:
        assert self.process.poll() is None, self.said
        try:
            about = json.loads(self._about.read_text())
            socket.create_connection((about["hostname"], about["port"])).close()
        except (OSError, ValueError, KeyError):
            # The file is written before the server takes connections.
            return False
        return True

    @property
    def said(self) -> str:
        """All that it has logged."""
        return self._log.read_text(errors="replace")

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Ask the REST API; give what it answers."""
        request = urllib.request.Request(
            f"{self._url}api/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"token {TOKEN}"},
        )
        with urllib.request.urlopen(request, timeout=START_S) as answer:
            return json.loads(answer.read() or b"null")

    def client(self, kernel: str) -> BlockingKernelClient:
        """Connect to a kernel of the server's, past the server."""
        file = self._runtime / f"kernel-{kernel}.json"
        client = BlockingKernelClient(connection_file=str(file))
        client.load_connection_file()
        client.start_channels()
        client.wait_for_ready(timeout=START_S)
        return client

    def close(self) -> None:
        """End it with its kernels, and search what it said for the secret."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            raise
        finally:
            planted.collect("jupyter_server", self.said)
