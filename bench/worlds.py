"""Workspaces, direnv stores and sidecars of a benchmark's own, in a temp folder."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kernel_client import Client, Settings, messages, sidecar
from kernel_client.direnv import find

HERE = Path(__file__).parents[1]
WAIT_S = 60.0


class World:
    """A temp folder with a home, a socket and what was started; ends it all."""

    def __init__(self, direnv: str | None = None, folder: str | None = None) -> None:
        found = direnv or find(os.environ)
        if found is None:
            raise SystemExit("bench: no direnv on PATH; install it, or give --direnv")
        self.direnv = str(Path(found).resolve())
        self.top = Path(tempfile.mkdtemp(prefix="ewb-", dir=folder))
        (self.top / "home").mkdir()
        (self.top / "s").mkdir(mode=0o700)
        self.socket = str(self.top / "s" / "sock")
        self.environ = {
            "HOME": str(self.top / "home"),
            "PATH": f"{Path(self.direnv).parent}:/usr/bin:/bin",
            "LANG": "C.UTF-8",
        }
        self.ended: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in reversed(self.ended):
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
        shutil.rmtree(self.top, ignore_errors=True)

    def workspace(self, name: str, text: str, *, allow: bool = True) -> Path:
        """Make a folder with an `.envrc`."""
        folder = self.top / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".envrc").write_text(text)
        if allow:
            self.run("allow", str(folder / ".envrc"))
        return folder

    def run(self, *arguments: str, folder: Path | None = None) -> bytes:
        """Run direnv as a person or a hook does."""
        return subprocess.run(
            [self.direnv, *arguments],
            env=self.environ,
            cwd=folder or self.top,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        ).stdout

    def hook(self, environ: dict[str, str], folder: Path) -> Callable[[], object]:
        """Give what a kernel does that spawns direnv before a run."""

        def spawn() -> object:
            return subprocess.run(
                [self.direnv, "export", "json"],
                env=environ,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
            )

        return spawn

    def client(self, environ: dict[str, str], *, shared: bool) -> Client:
        """Give a client over a mapping, with the sidecar of this world or none."""
        settings = Settings(
            sidecar="/nonexistent/envwatch" if shared else "off",
            socket=self.socket if shared else None,
            direnv=self.direnv,
        )
        return Client(environ, output=lambda _: None, settings=settings)

    def start(self, command: list[str], **more: Any) -> subprocess.Popen[bytes]:
        """Start a process that ends with this world."""
        process = subprocess.Popen(
            command, env={**self.environ, "PYTHONPATH": str(HERE)}, cwd="/", **more
        )
        self.ended.append(process)
        return process

    def serve(self) -> subprocess.Popen[bytes]:
        """Start a sidecar and wait until it listens."""
        self.environ["ENVWATCH_SOCKET"] = self.socket
        self.environ["ENVWATCH_DIRENV"] = self.direnv
        process = self.start(
            [sys.executable, "-m", "envwatch", "serve"], stderr=subprocess.DEVNULL
        )
        until(self._listens)
        return process

    def status(self) -> dict[str, Any]:
        """Ask the sidecar what it is doing."""
        settings = Settings(sidecar="/nonexistent/envwatch", socket=self.socket)
        link = sidecar.connect(settings, self.environ, None)
        try:
            return dict(link.request(messages.status(link.number()))["status"])
        finally:
            link.close()

    def evaluated(self, root: Path) -> tuple[int, str, str]:
        """Give (evaluations so far, outcome of the last, state) of a root file."""
        found = self.status()
        for each in found["workspaces"]:
            if each["root"] == str(root):
                last = each["last"] or {"outcome": ""}
                return found["evaluations"], last["outcome"], each["state"]
        return found["evaluations"], "", "idle"

    def until_watching(self) -> None:
        """Wait until the sidecar watches what is loaded."""
        until(lambda: self.status()["watching"]["state"] == "ok")

    def _listens(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(self.socket) == 0


def until(condition: Callable[[], bool]) -> None:
    """Wait for a real condition; gives up after a minute."""
    deadline = time.monotonic() + WAIT_S
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit("bench: it did not come about in a minute")
        time.sleep(0.01)


def big(size: int = 60_000) -> dict[str, str]:
    """Give variables of about `size` bytes, two hundred bytes each."""
    return {f"VARIABLE_{n:04}": "x" * 186 for n in range(size // 200)}
