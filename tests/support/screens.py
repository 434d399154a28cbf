"""The screens of the README, captured from the real thing: real sidecar, kernels, tmux.

    .venv/bin/python -m tests.support.screens       (or `make screens`)

prints them; what is in the README is one of its runs.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Iterator

from tests.e2e.kernels import KernelProcess, environ_of
from tests.support.daemons import Daemon
from tests.support.tmux import Terminal
from tests.support.worlds import World


def top(world: World, daemon: Daemon) -> str:
    """`envwatch top` beside a few kernels that work."""
    world.envrc("home/site", "export A=1\n")
    world.envrc("home/services/api", "export B=1\n")
    world.envrc("home/services/billing", "export C=1\n")
    world.envrc("home/new", "export D=1\n", allow=False)
    folders = ["site"] * 4 + ["services/api"] * 3 + ["services/billing", "new"]
    with contextlib.ExitStack() as stack:
        kernels = []
        for folder in folders:
            environ = environ_of(world, listening=daemon.socket, coverage=False)
            kernel = KernelProcess(environ, world.home / folder)
            stack.callback(kernel.close)
            kernels.append(kernel)
        for kernel in kernels:
            kernel.run("answer = [refresh() for _ in range(400)] and None")
        world.write("home/site/.envrc", "export A=2\n")
        world.allow("home/site")
        for kernel in kernels[:4]:
            kernel.run("answer = [refresh() for _ in range(40)] and None")
        with viewed(world, daemon) as terminal:
            terminal.see("per second", "> ~/")
            terminal.type("End")
            terminal.see("root file   ~/site/.envrc")
            return terminal.wait(lambda screen: "a ask" not in screen, "its keys")


@contextlib.contextmanager
def viewed(world: World, daemon: Daemon) -> Iterator[Terminal]:
    """Give a terminal with `envwatch top`."""
    terminal = Terminal(
        [sys.executable, "-m", "envwatch", "top"],
        environ={
            **environ_of(world, listening=daemon.socket, coverage=False),
            "TERM": "xterm-256color",
        },
        folder=world.home,
    )
    try:
        yield terminal
    finally:
        terminal.close()


def main() -> None:
    """Print every screen."""
    # The machine's own: its path is one that a reader may have too.
    direnv = shutil.which("direnv")
    assert direnv is not None, "no direnv: run `make setup`"
    world, daemon = World(direnv, is_newer=False), Daemon(direnv)
    try:
        daemon.start()
        print(top(world, daemon))  # noqa: T201 - what it is for
    finally:
        daemon.close()
        world.close()


if __name__ == "__main__":
    main()
