"""The screens of the README, captured from the real thing: real sidecar, kernels, tmux.

    .venv/bin/python -m tests.support.screens       (or `make screens`)

prints them; what is in the README is one of its runs. The home folder is written
`/home/me`, as each run has another one.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from envwatch.state import State
from tests.e2e.kernels import KernelProcess, environ_of
from tests.support.daemons import Daemon
from tests.support.jupyters import Jupyter
from tests.support.tmux import Terminal
from tests.support.worlds import World

CHECKOUT = Path(__file__).parents[2]
ASKED = "n or esc puts it away"


# ------------------------------------------------------------------ top


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


# ------------------------------------------------------------------ console


def console(world: World) -> Iterator[str]:
    """`envwatch console` in a folder whose file has changed: the question, a run."""
    world.envrc("home/site", "export STAGE=test\n")
    git(world, "home/site")
    world.envrc("home/site", "export STAGE=test\nPATH_add bin\n", allow=False)
    environ = {**Jupyter(world, None).environ, "PYTHONPATH": str(CHECKOUT)}
    terminal = Terminal(
        [sys.executable, "-m", "envwatch", "console"],
        environ=environ,
        folder=world.home / "site",
    )
    try:
        terminal.see("a kernel runs in", "y allows this file")
        # A draft, so that letters are typed.
        terminal.enter("(1 + 1)")
        yield shown(world, terminal.see("  2\n", "is blocked", "kernel idle"))
        terminal.answer("y", "the next run loads it")
        terminal.enter("import os; os.environ['STAGE']")
        terminal.see("'test'", "kernel idle")
        terminal.enter("for name in ('a', 'b'):")
        terminal.see("│     ", "kernel idle")
        terminal.write("print(name)")
        yield shown(world, terminal.see("print(name)"))
        terminal.type("C-c")
        terminal.enter("/quit")
        assert terminal.end() == 0
    finally:
        terminal.close()


# ------------------------------------------------------------------ states


def allowed(world: World) -> None:
    """Write a file, and allow it."""
    world.envrc("home/site", "export STAGE=test\n")


def new(world: World) -> None:
    """Write a file that nobody has ever allowed."""
    world.envrc("home/site", "export STAGE=test\n", allow=False)


def changed(world: World) -> None:
    """Allow a file, commit it, and change it."""
    allowed(world)
    git(world, "home/site")
    world.envrc("home/site", "export STAGE=test\nPATH_add bin\n", allow=False)


def denied(world: World) -> None:
    """Deny a file; with 2.32 its approval goes, and nothing else."""
    allowed(world)
    world.deny("home/site")


def none(world: World) -> None:
    """Have a folder without a file."""
    world.folder("home/site")


def unreadable(world: World) -> None:
    """Have a folder in the place of the file."""
    world.folder("home/site/.envrc")


STATES: dict[State, Callable[[World], None]] = {
    State.ALLOWED: allowed,
    State.NEW: new,
    State.CHANGED: changed,
    State.DENIED: denied,
    State.NONE: none,
    State.UNREADABLE: unreadable,
}


def state(direnv: str, prepare: Callable[[World], None], *, is_newer: bool) -> str:
    """`envwatch status` and `envwatch ask` in one state, each with its exit code."""
    world = World(direnv, is_newer=is_newer)
    try:
        # What the screen shows is a path that a reader could have, too.
        own = world.folder("home/bin") / "direnv"
        shutil.copy2(direnv, own)
        world.direnv, world.environ["PATH"] = str(own), f"{own.parent}:/usr/bin:/bin"
        prepare(world)
        return "\n".join(shell(world, name) for name in ("status", "ask"))
    finally:
        world.close()


def shell(world: World, command: str) -> str:
    """Run a command in a shell; give what is on the screen, and its exit code."""
    run = f"{sys.executable} -m envwatch"
    socket = world.folder("home/.run") / "sock"
    socket.parent.chmod(0o700)
    terminal = Terminal(
        ["env", "PS1=$ ", "bash", "--norc", "--noprofile", "-i"],
        environ={
            **world.environ,
            "PYTHONPATH": str(CHECKOUT),
            "ENVWATCH_SOCKET": str(socket),
        },
        folder=world.home / "site",
        columns=120,
    )
    try:
        terminal.see("$")
        terminal.enter(f"envwatch() {{ clear; {run} $1; echo exit code $?; }}")
        terminal.enter(f"envwatch {command}")
        screen = terminal.wait(
            lambda screen: ended(screen) or ASKED in screen, "its end"
        )
        if ASKED in screen:
            screen = terminal.answer("n", "exit code 1")
        lines = [line for line in screen.splitlines() if line.strip(" $")]
        return shown(world, "\n".join([f"$ envwatch {command}", *lines]))
    finally:
        terminal.close()


def ended(screen: str) -> bool:
    """Tell whether a command in the shell has ended."""
    return re.search(r"^exit code \d+$", screen, re.MULTILINE) is not None


def states(direnvs: dict[str, str]) -> Iterator[str]:
    """Every state with both versions of direnv; of the older one what differs."""
    (older, its_path), *_, (_, path) = sorted(direnvs.items())
    for name, prepare in STATES.items():
        of_newer = state(path, prepare, is_newer=True)
        of_older = state(its_path, prepare, is_newer=False)
        yield f"<details>\n<summary><code>{name}</code></summary>"
        yield f"```\n{of_newer}\n```"
        if unversioned(of_older) == unversioned(of_newer):
            yield f"The same with direnv {older}."
        else:
            yield f"With direnv {older}:\n\n```\n{of_older}\n```"
        yield "</details>"


def unversioned(screen: str) -> str:
    """Give a screen without the version of direnv."""
    return re.sub(r"(?m)^direnv  .*", "", screen)


# ------------------------------------------------------------------ all


def git(world: World, folder: str) -> None:
    """Commit the file of a folder."""
    who = ("-c", "user.name=me", "-c", "user.email=me@example.org")
    for command in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "envrc"]):
        subprocess.run(
            ["git", *command], cwd=world.path(folder), env=world.environ, check=True
        )


def shown(world: World, screen: str) -> str:
    """Give a screen as the README has it."""
    lines = screen.replace(str(world.home), "/home/me").splitlines()
    # Where a path is shorter now, the frame around it is put back in its column.
    framed = (
        f"{line[:-1].rstrip():<79}│" if line.startswith("│") else line.rstrip()
        for line in lines
    )
    return "\n".join(framed).strip("\n")


def screens() -> Iterator[str]:
    """Give every screen."""
    # The machine's own: its path is one that a reader may have too.
    direnv = shutil.which("direnv")
    assert direnv is not None, "no direnv: run `make setup`"
    world, daemon = World(direnv, is_newer=False), Daemon(direnv)
    try:
        daemon.start()
        yield top(world, daemon)
    finally:
        daemon.close()
        world.close()
    world = World(direnv, is_newer=False)
    try:
        yield from console(world)
    finally:
        world.close()
    found = {path.parent.name: str(path) for path in CHECKOUT.glob(".direnvs/*/direnv")}
    yield from states(found)


def main() -> None:
    """Print every screen."""
    for screen in screens():
        sys.stdout.write(f"{screen}\n\n")


if __name__ == "__main__":
    main()
