"""Workspaces, direnv's store and sidecars of a benchmark's own, in a temp folder."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bench.findings import CannotRunError
from kernel_client import Settings, environment, messages, sidecar, wire
from kernel_client.direnv import find

HERE = Path(__file__).parents[1]
WAIT_S = 60.0
END_S = 10.0
INTERRUPTS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})


class World:
    """A temp folder with a home, a socket and what was started; ends it all.

    `environ` is the environment of everything in it: one of its own with a home of
    its own, or what was given.
    """

    def __init__(
        self, direnv: str | None = None, environ: Mapping[str, str] | None = None
    ) -> None:
        found = find(os.environ, direnv or "direnv")
        if found is None:
            raise CannotRunError(f"there is no {direnv or 'direnv on PATH'}")
        self.direnv = os.path.realpath(found)
        self.top = Path(tempfile.mkdtemp(prefix="ewb-")).resolve()
        (self.top / "home").mkdir()
        (self.top / "s").mkdir(mode=0o700)
        self.socket = str(self.top / "s" / "sock")
        own = {
            "HOME": str(self.top / "home"),
            "PATH": f"{Path(self.direnv).parent}:/usr/bin:/bin",
            "LANG": "C.UTF-8",
        }
        self.environ = {
            **(own if environ is None else environ),
            "ENVWATCH_SOCKET": self.socket,
            "ENVWATCH_DIRENV": self.direnv,
        }
        self._roomy: list[Path] = []
        self._running: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # What interrupts is heard when all has ended: nothing is left behind.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTS)
        try:
            os.chdir("/")
            for process in reversed(tuple(self._running)):
                self.end(process)
            for folder in (*self._roomy, self.top):
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    # ------------------------------------------------------------ folders

    def workspace(self, name: str, *texts: str) -> Path:
        """Make a folder whose `.envrc` has the first text; all texts are allowed."""
        folder = self.top / name  # an absolute name stays what it is
        folder.mkdir(parents=True, exist_ok=True)
        root = folder / ".envrc"
        for text in reversed(texts):
            root.write_text(text)
            self.run("allow", str(root))
        return folder

    def roomy(self) -> Path:
        """Make a folder for very many folders: in memory where that can be had.

        A disk takes minutes to remove them again.
        """
        memory = "/dev/shm"
        parent = memory if os.access(memory, os.W_OK) else None
        self._roomy.append(Path(tempfile.mkdtemp(prefix="ewb-", dir=parent)).resolve())
        return self._roomy[-1]

    def run(self, *arguments: str) -> None:
        """Run direnv as a person does."""
        subprocess.run(
            [self.direnv, *arguments],
            env=self.environ,
            cwd=self.top,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
        )

    def hook(self, environ: Mapping[str, str], folder: Path) -> Callable[[], bytes]:
        """Give what a kernel does that spawns direnv before each run."""
        given = dict(environ)

        def spawn() -> bytes:
            return subprocess.run(
                [self.direnv, "export", "json"],
                env=given,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                check=False,
            ).stdout

        return spawn

    # ------------------------------------------------------------ processes

    def start(
        self, module: str, *arguments: str, **more: Any
    ) -> subprocess.Popen[bytes]:
        """Start `python -m module`; it ends with this world."""
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            env={**self.environ, "PYTHONPATH": str(HERE)},
            cwd="/",
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            **more,
        )
        self._running.append(process)
        return process

    def end(self, process: subprocess.Popen[bytes]) -> None:
        """End a process that was started here, and all of its session."""
        if process in self._running:
            self._running.remove(process)
        process.terminate()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            pass
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def serve(self) -> subprocess.Popen[bytes]:
        """Start a sidecar and wait until it listens."""
        process = self.start("envwatch", "serve", stdin=subprocess.DEVNULL)
        wait_until("the sidecar listens", lambda: listens(self.socket), process)
        return process

    def echo(self, reply_bytes: int) -> str:
        """Start a peer that answers each line with so many bytes; give its socket."""
        path = str(self.top / "s" / f"echo{len(self._running)}")
        process = self.start("bench.actors.echo", path, str(reply_bytes))
        wait_until("the echo listens", lambda: listens(path), process)
        return path

    # ------------------------------------------------------------ the sidecar

    @property
    def settings(self) -> Settings:
        """Settings of a client of this world's sidecar; it starts none itself."""
        return Settings(
            sidecar="/nonexistent/envwatch", socket=self.socket, direnv=self.direnv
        )

    def status(self) -> dict[str, Any]:
        """Ask the sidecar what it is doing."""
        link = sidecar.connect(self.settings, self.environ, None)
        try:
            return dict(link.request(messages.status(link.number()))["status"])
        finally:
            link.close()

    def of_root(self, folder: Path) -> dict[str, Any]:
        """Give what the sidecar's status says of a workspace; {} for nothing."""
        root = str(folder / ".envrc")
        found = self.status()
        for each in found["workspaces"]:
            if each["root"] == root:
                return dict(each)
        return {}

    def exchange(self, folder: Path) -> tuple[bytes, int]:
        """Give an export for a workspace as bytes, and how long its diff is."""
        given = environment.passed(self.environ, environment.WITHHELD)
        link = sidecar.connect(self.settings, self.environ, None)
        frame = messages.export(
            link.number(),
            root=str(folder / ".envrc"),
            fingerprint=environment.fingerprint(given),
            direnv=self.direnv,
        )
        try:
            link.send(frame)
            deadline = time.monotonic() + WAIT_S
            while time.monotonic() < deadline:
                for answer in link.receive(1.0):
                    if answer["type"] == "need_base":
                        link.send({**frame, "environment": given})
                    elif answer["type"] == "diff":
                        return wire.encode(frame), len(wire.encode(answer))
        finally:
            link.close()
        raise CannotRunError("the sidecar gave no diff")


@contextlib.contextmanager
def worn(environ: Mapping[str, str]) -> Iterator[None]:
    """Have `os.environ` be this environment for a while."""
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def wait_until(
    what: str,
    condition: Callable[[], bool],
    process: subprocess.Popen[bytes] | None = None,
    *,
    limit_s: float = WAIT_S,
) -> None:
    """Wait until something is so; gives up after a minute."""
    deadline = time.monotonic() + limit_s
    while not condition():
        if process is not None and process.poll() is not None:
            raise CannotRunError(f"not so, the process has ended: {what}")
        if time.monotonic() > deadline:
            raise CannotRunError(f"not so in {limit_s:.0f} s: {what}")
        time.sleep(0.01)


def listens(path: str) -> bool:
    """Tell whether somebody listens at a socket."""
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(path) == 0


def round_trip(path: str, request: bytes) -> Callable[[], None]:
    """Give the bare round trip: a blocking client that reads one line back."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)

    def exchange() -> None:
        connection.sendall(request)
        while not connection.recv(256 * 1024).endswith(b"\n"):
            pass

    return exchange
