"""Direct mode and sidecar mode: the same environment, the same words."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.daemons import Daemon
from tests.support.pairs import Kernel, Pair, settings_of
from tests.support.planted import exports, secret
from tests.support.worlds import World

DAY = (
    "go w",
    "allow",
    "edit",
    "go w/deep",
    "allow",
    "go b",
    "fail",
    "go w",
    "deny",
    "allow",
    "delete",
    "go out",
    "edit",
    "go w",
    "same second",
    "allow",
)


def test_a_day(world: World, daemons: dict[str, Daemon], version: str) -> None:
    """Through a day of edits, both say and hold the same after each step."""
    world.folder("w/deep")
    world.folder("out")
    world.envrc("b", f"echo hello\n{exports('FOO', 'KEEP', tag='b')}")
    world.envrc("w", f"PATH_add bin\n{exports('FOO')}", allow=False)
    kernels = {
        "direct": Kernel(world.environ, settings_of(None)),
        "sidecar": Kernel(world.environ, settings_of(daemons[version].socket)),
    }
    for number, act in enumerate(DAY):
        if act.startswith("go "):
            os.chdir(world.path(act[3:]))
        elif act == "allow":
            world.allow("w")
        elif act == "edit":
            world.envrc(
                "w", f"PATH_add bin\n{exports('FOO', tag=str(number))}", allow=False
            )
        elif act == "same second":
            world.write("w/.envrc", exports("NEW", tag=str(number)), tick=False)
        elif act == "deny":
            world.deny("w")
        elif act == "fail":
            world.envrc("b", "exit 3\n")
        elif act == "delete":
            world.path("w/.envrc").unlink()
        results = {name: kernel.refresh() for name, kernel in kernels.items()}
        ours, theirs = results["direct"], results["sidecar"]
        assert ours.outcome == theirs.outcome, act
        assert ours.messages == theirs.messages, act
        assert ours.root_file == theirs.root_file, act
        assert (ours.set_names, ours.unset_names) == (
            theirs.set_names,
            theirs.unset_names,
        )
        assert kernels["direct"].environ == kernels["sidecar"].environ, act
    for kernel in kernels.values():
        kernel.close()


@pytest.mark.parametrize(
    "body",
    [
        "exit 3\n",
        "exec true\n",
        "export JPY_SESSION=1\n",
        "export A=$(head -c 140000 /dev/zero | tr '\\0' x)\n",
        "unset DIRENV_WATCHES\n",
        "watch_file ''\n",
        "watch_file value\necho x >>value\n",
        "broken",
    ],
    ids=[
        "failing",
        "lost",
        "withheld",
        "long",
        "forged",
        "no watch",
        "touching",
        "broken",
    ],
)
def test_odd_file(
    world: World, daemons: dict[str, Daemon], version: str, body: str
) -> None:
    """What is odd about a file is said in the same words in both modes."""
    if body == "broken":
        world.envrc("w", exports("FOO"))
        world.toml("this is not toml\n")
    else:
        world.envrc("w", exports("FOO") + body)
    direct = Kernel(world.environ, settings_of(None))
    sidecar = Kernel(world.environ, settings_of(daemons[version].socket))
    os.chdir(world.path("w"))

    ours, theirs = direct.refresh(), sidecar.refresh()

    assert ours.outcome == theirs.outcome
    assert ours.messages == theirs.messages
    for environ in (direct.environ, sidecar.environ):
        if "echo x" in body:
            environ.pop("DIRENV_DIFF")  # the watches in it have moved on
            environ.pop("DIRENV_WATCHES")
    assert direct.environ == sidecar.environ
    direct.close()
    sidecar.close()


def test_sidecar_is_killed(world: World, daemon: Daemon) -> None:
    """When the sidecar dies the kernel goes to direnv, and comes back to the next one."""
    pair = Pair(world, socket=daemon.socket)
    world.envrc("w", exports("FOO"))
    assert pair.step("w", outcome="loaded").result.answered == "sidecar"
    daemon.kill()
    pair.step(outcome="unchanged")
    world.envrc("w", exports("FOO", tag="2"))

    assert pair.step(outcome="loaded", alone=True).result.answered == "direnv"

    daemon.start()
    answered = ""
    for number in range(3, 10):
        world.envrc("w", exports("FOO", tag=str(number)))
        answered = pair.step(outcome="loaded", alone=True).result.answered
        if answered == "sidecar":
            break
    pair.close()
    assert answered == "sidecar"


def test_sidecar_is_stopped_in_a_workspace(world: World, daemon: Daemon) -> None:
    """Leaving after the sidecar has gone needs nobody."""
    pair = Pair(world, socket=daemon.socket)
    world.envrc("w", exports("FOO"))
    pair.step("w", outcome="loaded")
    daemon.kill()

    pair.step("", outcome="unloaded")
    pair.close()


def test_socket_in_a_folder_that_others_can_write(
    world: World, daemons: dict[str, Daemon], version: str
) -> None:
    """A socket that others could have put there is not used; direnv is."""
    folder = world.folder("open")
    folder.chmod(0o777)
    link = folder / "sock"
    link.symlink_to(daemons[version].socket)
    pair = Pair(world, socket=link)
    world.envrc("w", exports("FOO"))

    assert pair.step("w", alone=True, messages=False).result.answered == "direnv"
    pair.close()


@pytest.mark.parametrize("socket_name", ["missing", "missing/too"])
def test_no_sidecar(world: World, socket_name: str) -> None:
    """Without a sidecar at the socket, everything works and nothing is said of it."""
    pair = Pair(world, socket=world.folder("s") / socket_name)
    world.envrc("w", exports("FOO"))

    pair.step("w", outcome="loaded", alone=True)
    pair.close()


def test_sidecar_of_another_version(
    world: World, daemons: dict[str, Daemon], version: str
) -> None:
    """A sidecar that runs another direnv is not used."""
    other = daemons["2.32" if world.is_newer else "2.37"]
    pair = Pair(world, socket=other.socket)
    world.envrc("w", exports("FOO"))

    assert pair.step("w", outcome="loaded", alone=True).result.answered == "direnv"
    pair.close()


def test_second_kernel_gets_the_kept_answer(
    world: World, daemons: dict[str, Daemon], version: str
) -> None:
    """A second kernel over the same base gets the answer without a second evaluation."""
    world.envrc("w", f"echo x >>../runs\n{exports('FOO')}")
    pairs = [Pair(world, socket=daemons[version].socket) for _ in range(5)]
    os.chdir(world.path("w"))
    for pair in pairs:
        assert pair.kernel.refresh().outcome == "loaded"
        assert pair.environ["FOO"] == secret("FOO")

    assert Path(world.path("runs")).read_text() == "x\n"
    for pair in pairs:
        pair.close()
