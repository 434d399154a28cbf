"""`envwatch exec` beside the real `direnv exec`, over generated allowed workspaces.

Both start a program that prints its whole environment, over the same caller's
environment and from the same folder. What may differ is in `differences`, each with
its reason; everything else is compared byte for byte.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest

from tests.support import planted, reference
from tests.support.planted import PLANTED, secret
from tests.support.worlds import World

CHECKOUT = Path(__file__).parents[2]
RUNS = 10
"""Workspaces of one test; with both versions, both modes and five seeds: 200."""

CALLERS_OWN = frozenset({"PWD", "OLDPWD", "SHLVL", "_", "SHELL", "PS1"})
"""Ignored by direnv's hook (case 37): they belong to the caller's shell, and stay.
`direnv exec` hands on what the evaluating bash made of them."""

NEVER = frozenset({"BASH_ENV", "ENV"})
"""Never reach the program (DESIGN 11)."""

LEAKED = "DIRENV_IN_ENVRC"
"""Left behind by `direnv exec`; the hook takes it back, and so do we."""

TEXTS = ("a\nb\n", "a\tb", "🎉 ünï", "<a href='x'>&</a>", "\"'`$\\", "a=b", "  x  ", "")
NAMES = ("FOO", "BAR", "KEEP", "LD_LIBRARY_PATH", "PYTHONPATH", "DIRENV_MINE", "IFS")


def envrc(random: Random, world: World, folder: str) -> str:
    """Give the body of a generated file that direnv loads, and write what it needs."""
    world.write(f"{folder}/more", f"export MORE='{secret('more')}'\nunset GONE\n")
    world.write(f"{folder}/.vars", f"DOTENV={PLANTED}-dotenv\n")
    lines = [f"export ALWAYS='{secret('always')}'"]
    for number in range(random.randrange(1, 8)):
        value = PLANTED + random.choice(TEXTS)
        world.write(f"{folder}/value{number}", value + "|")
        name = random.choice(NAMES)
        lines.append(
            random.choice(
                (
                    f'export {name}="$(cat value{number})"',
                    f"export V{number}='{secret(str(number))}'",
                    "PATH_add bin",
                    "path_add MANPATH man",
                    f"unset {random.choice(('KEEP', 'GONE', 'NOTHING'))}",
                    f"export {name}=",
                    "source_env more",
                    "dotenv .vars",
                    "source_up_if_exists",
                    f"watch_file absent{number} more",
                    f"export BASH_ENV='{world.path('no')}' ENV='{secret('env')}'",
                    f"f() {{ :; }}; export -f f; export PS1='{secret('ps')}'",
                    f"export OLDPWD='{secret('old')}' SHLVL=9 SHELL=/bin/false",
                    "echo said; echo said too >&2",
                    f"export SEEN='{PLANTED}'\"${{KEEP-none}} ${{GONE-none}}\"",
                    f"export DSH_TOKEN='{secret('forged')}'",
                    "cd /; export THERE=$PWD",
                    'export HOME="$PWD/elsewhere"',
                    "unset DIRENV_WATCHES",
                    "export DIRENV_LOG_FORMAT=",
                )
            )
        )
    lines.append(random.choice(("true", "false", "exit 0", "return 1", "nonsense")))
    return "\n".join(lines) + "\n"


def callers(random: Random, world: World) -> dict[str, str]:
    """Give a caller's environment, which may have another workspace loaded."""
    own = {
        **world.environ,
        "GONE": secret("gone"),
        "DSH_HOST": secret("host"),
        "PWD": "/nowhere",
        "SHLVL": "3",
        "SHELL": "/bin/sh",
        "_": "/bin/x",
        "a.b-c d": "kept",
        "BASH_FUNC_mine%%": "() {  echo mine\n}",
    }
    inherits = random.choice((None, None, "other", "w"))
    if inherits is not None:
        said = reference.run(
            world.direnv,
            "export",
            "json",
            environ=own,
            folder=str(world.path(inherits)),
        )
        assert said.changes is not None
        own = reference.applied(own, said.changes)
    if random.random() < 0.3:
        own["KEEP"] = secret("edited")
    return own


def environment(
    *command: str, environ: Mapping[str, str], folder: Path
) -> dict[str, str]:
    """Run a command that ends in `env -0`, and give what the program had."""
    ended = subprocess.run(
        [*command, "/usr/bin/env", "-0"],
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=30,
    )
    assert ended.returncode == 0, (command[0], ended.returncode)
    entries = os.fsdecode(ended.stdout).split("\0")[:-1]
    return dict(entry.split("=", 1) for entry in entries)


def differences(
    ours: Mapping[str, str], theirs: Mapping[str, str], caller: Mapping[str, str]
) -> set[str]:
    """Name the variables that differ and may not; never their values."""
    found: set[str] = set()
    for name in {*ours, *theirs, *caller}:
        expected = theirs.get(name)
        if name in CALLERS_OWN or name.startswith("BASH_FUNC_"):
            expected = caller.get(name)
        elif name in NEVER or name == LEAKED:
            expected = None
        elif name == "DIRENV_DIFF" and expected is not None:
            # The names that never reach the program are not in there either.
            diff = reference.decode(expected)
            if not NEVER.isdisjoint((*diff["p"], *diff["n"])):
                for side in (diff["p"], diff["n"]):
                    for gone in NEVER & side.keys():
                        del side[gone]
                if reference.decode(ours.get(name, "")) != diff:
                    found.add(name)
                continue
        if ours.get(name) != expected:
            found.add(name)
    return found


@pytest.mark.parametrize("seed", range(5))
def test_same_as_direnv_exec(
    world: World, socket: Path | None, seed: int, capfd: pytest.CaptureFixture[str]
) -> None:
    """The program has what `direnv exec` would give it, whatever the file does."""
    random = Random(f"{seed} {world.is_newer}")
    settings = {"ENVWATCH_SIDECAR": "off", "PYTHONPATH": str(CHECKOUT)}
    if socket is not None:
        settings |= {"ENVWATCH_SIDECAR": "listening", "ENVWATCH_SOCKET": str(socket)}
    world.environ.update(settings)
    world.envrc("other", f"export FOO='{secret('other')}' OTHER=1\nunset KEEP\n")
    world.envrc("up", f"export UP='{secret('up')}'\n")
    for number in range(RUNS):
        folder = "w" if random.random() < 0.7 else "up/w"
        world.envrc("w", f"export FOO='{secret('first')}' GONE=x\n")
        caller = callers(random, world)
        world.envrc(folder, envrc(random, world, folder))
        inside = world.folder(f"{folder}/deep" if random.random() < 0.3 else folder)

        theirs = environment(
            world.direnv, "exec", str(inside), environ=caller, folder=world.home
        )
        ours = environment(
            *(sys.executable, "-m", "envwatch", "exec", str(inside)),
            environ=caller,
            folder=world.home,
        )

        assert PLANTED in ours.get("ALWAYS", "")
        wrong = differences(ours, theirs, caller)
        assert not wrong, (number, folder)
    out, err = capfd.readouterr()
    planted.collect("envwatch exec", out + err)


@pytest.mark.parametrize("inherits", [None, "other"])
def test_no_root_file(world: World, inherits: str | None) -> None:
    """Without a root file the program has what the caller has without direnv's load."""
    world.environ["PYTHONPATH"] = str(CHECKOUT)
    world.environ["ENVWATCH_SIDECAR"] = "off"
    world.envrc("other", f"export FOO='{secret('other')}' BASH_ENV=/no\nunset KEEP\n")
    caller = dict(world.environ)
    if inherits is not None:
        shell = reference.Shell(world.direnv, caller)
        os.chdir(world.path(inherits))
        shell.prompt()
        caller = shell.environ
    plain = world.folder("plain")

    theirs = environment(
        world.direnv, "exec", str(plain), environ=caller, folder=world.home
    )
    ours = environment(
        *(sys.executable, "-m", "envwatch", "exec", str(plain)),
        environ=caller,
        folder=world.home,
    )

    wrong = differences(ours, theirs, caller)
    assert not wrong
    assert "FOO" not in ours
    assert ours["KEEP"] == "kept"
