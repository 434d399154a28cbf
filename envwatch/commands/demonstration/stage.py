"""The demo's own folder: a home, a direnv store, a workspace, and who is in it.

Everything is below one folder that is removed at the end: the person's own home and
approvals are not touched. The person of the demo writes files and runs `direnv
allow`; the shell runs direnv's hook by the book, for comparison.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from envwatch import state
from envwatch.commands import sidecars
from envwatch.commands.demonstration.kernels import PACKAGES, Kernel, Notebook
from envwatch.errors import Temporary
from kernel_client import environment as env, messages
from kernel_client.sidecar import Link

MAX_S = 45.0
"""When the demo gives up; it takes a few seconds."""

_MAX_FOLDER_LETTERS = 70
_FIRST_SECOND = 1_600_000_000
_IDLE_S = "60"
_TURN_S = 0.005
_END_S = 5.0


class Stage:
    """A folder of the demo's own, and the processes that it starts."""

    def __init__(self, direnv: str) -> None:
        place = tempfile.gettempdir()
        if len(place) > _MAX_FOLDER_LETTERS:
            place = "/tmp"  # noqa: S108 - a socket's path is short; mkdtemp is safe
        self.direnv = direnv
        self.top = Path(tempfile.mkdtemp(prefix="envwatch-demo-", dir=place)).resolve()
        self.workspace = self.top / "workspace"
        self.outside = self.top / "outside"
        for folder in ("home", "workspace", "outside", "socket"):
            (self.top / folder).mkdir(mode=0o700)
        self.deadline = time.monotonic() + MAX_S
        self.environ = _environ(direnv, self.top)
        self._log = self.top / "evaluations"
        self._seconds = count(_FIRST_SECOND)
        self._kernels: list[Kernel] = []
        self._notebooks: list[Notebook] = []
        self._sidecar: subprocess.Popen[bytes] | None = None

    def close(self) -> None:
        """End every process, and remove the folder."""
        for kernel in (*self._notebooks, *self._kernels):
            kernel.close()
        if self._sidecar is not None:
            self._end_sidecar(signal.SIGTERM)
        shutil.rmtree(self.top, ignore_errors=True)

    # ------------------------------------------------------------ the person

    def write(self, token: str) -> None:
        """Write an `.envrc` that exports `token`, and that counts its evaluations.

        direnv's own hook compares whole seconds: each edit gets one of its own, so
        that nobody has to wait for the clock.
        """
        path = self.workspace / ".envrc"
        path.write_text(
            f"export DEMO_TOKEN={token}\nexport DEMO_PLACE=$PWD\nPATH_add bin\n"
            f"echo evaluated >>'{self._log}'\n"
        )
        second = next(self._seconds)
        os.utime(path, (second, second))

    def allow(self) -> None:
        """Run `direnv allow`, as the person does."""
        done = self._direnv("allow", environ=self.environ, folder=self.workspace)
        if done.returncode != 0:
            raise Temporary("`direnv allow` failed in the demo's own folder")

    def evaluations(self) -> int:
        """Count how often the body of the `.envrc` ran."""
        return self._log.read_bytes().count(b"\n") if self._log.exists() else 0

    # ------------------------------------------------------------ processes

    def start_kernels(self, number: int) -> list[Kernel]:
        """Start kernel processes."""
        for _ in range(number):
            self._kernels.append(Kernel(self.environ, deadline=self.deadline))
        return self._kernels

    def start_notebook(self) -> Notebook:
        """Start a process that has a Jupyter of the demo's own."""
        environ = _jupyter_environ(self.environ, self.top / "home")
        self._notebooks.append(Notebook(environ, deadline=self.deadline))
        return self._notebooks[-1]

    def start_sidecar(self) -> None:
        """Start a sidecar, and wait until it answers."""
        said = self.top / "sidecar"
        with said.open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "envwatch", "serve", "--idle-s", _IDLE_S],
                cwd=PACKAGES,
                env=self.environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._sidecar = process

        def answers() -> bool:
            if process.poll() is not None:
                last = said.read_text(errors="replace").strip().rpartition("\n")[2]
                raise Temporary(f"the sidecar has ended at once: {last}")
            return sidecars.running(self.environ) == process.pid

        self.until("the sidecar answers", answers)

    def kill_sidecar(self) -> None:
        """Kill it as `kill -9` does."""
        self._end_sidecar(signal.SIGKILL)

    def wait_precomputed(self, link: Link, evaluations: int) -> None:
        """Wait until the sidecar has evaluated what it saw change."""

        states: list[str] = []

        def is_ready() -> bool:
            found = sidecars.status_of(link.request(messages.status(link.number())))
            states[:] = [each["state"] for each in found["workspaces"]]
            return self.evaluations() >= evaluations and set(states) == {"idle"}

        try:
            self.until("the sidecar has evaluated the edit", is_ready)
        except Temporary as error:
            missing = max(0, evaluations - self.evaluations())
            said = f"{error} ({missing} missing, state {', '.join(states)})"
            raise Temporary(said) from None

    def pause(self, seconds: float) -> None:
        """Let time pass, as a person does between two edits."""
        end = time.monotonic() + seconds
        self.until("time passes", lambda: time.monotonic() >= end)

    def until(self, what: str, condition: Callable[[], bool]) -> None:
        """Wait for a condition.

        Raises:
            Temporary: it did not come true in the demo's time.
        """
        while not condition():
            if time.monotonic() >= self.deadline:
                raise Temporary(f"it did not happen in time that {what}")
            time.sleep(_TURN_S)

    def _end_sidecar(self, number: signal.Signals) -> None:
        process, self._sidecar = self._sidecar, None
        if process is None:
            return
        process.send_signal(number)
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    # ------------------------------------------------------------ direnv

    def prompt(self, shell: dict[str, str], *, folder: Path | None = None) -> float:
        """Do what direnv's hook does before a prompt; give the seconds it took."""
        started = time.perf_counter()
        done = self._direnv("export", "json", environ=shell, folder=folder)
        changes: Mapping[str, Any] = json.loads(done.stdout or b"{}")
        for name, value in changes.items():
            if value is None:
                shell.pop(name, None)
            else:
                shell[name] = value
        return time.perf_counter() - started

    def _direnv(
        self, *arguments: str, environ: Mapping[str, str], folder: Path | None
    ) -> subprocess.CompletedProcess[bytes]:
        try:
            return subprocess.run(
                [self.direnv, *arguments],
                check=False,
                cwd=folder or self.workspace,
                env=dict(environ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=max(1.0, self.deadline - time.monotonic()),
            )
        except subprocess.TimeoutExpired:
            raise Temporary("direnv did not answer in the demo's time") from None


def _environ(direnv: str, top: Path) -> dict[str, str]:
    """Give the environment that everybody in the demo starts with."""
    own = {
        name: value
        for name, value in env.passed(state.base(os.environ)).items()
        if not name.startswith(("DIRENV_", "ENVWATCH_", "DEMO_"))
    }
    home = top / "home"
    return {
        **own,
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_DATA_HOME": str(home / "data"),
        "ENVWATCH_DIRENV": direnv,
        # A path that cannot be run: use a sidecar that listens, start none.
        "ENVWATCH_SIDECAR": str(top / "none"),
        "ENVWATCH_SOCKET": str(top / "socket" / "s"),
        # Python would set LC_CTYPE in the kernels, and in no shell.
        "PYTHONCOERCECLOCALE": "0",
    }


def _jupyter_environ(environ: Mapping[str, str], home: Path) -> dict[str, str]:
    """Give the environment of a Jupyter in this home, with nothing of the person's."""
    theirs = ("IPYTHON", "JPY_", "JUPYTER_", "PYTHONSTARTUP")
    own = {
        name: value for name, value in environ.items() if not name.startswith(theirs)
    }
    return {
        **own,
        "IPYTHONDIR": str(home / "ipython"),
        "JUPYTER_CONFIG_DIR": str(home / "jupyter" / "config"),
        "JUPYTER_DATA_DIR": str(home / "jupyter" / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "jupyter" / "runtime"),
        # In a virtual environment, its kernels would come before those of this home.
        "JUPYTER_PREFER_ENV_PATH": "0",
    }
