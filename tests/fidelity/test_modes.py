"""Direct mode and sidecar mode: the same environment, the same words."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
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

Kernels = Callable[[Path | None], Kernel]
Pairs = Callable[[Path | None], Pair]


@pytest.fixture
def kernels(world: World) -> Iterator[Kernels]:
    """Give a maker of kernels, which closes them."""
    with ExitStack() as stack:

        def make(socket: Path | None) -> Kernel:
            return stack.enter_context(
                closing(Kernel(world.environ, settings_of(socket)))
            )

        yield make


@pytest.fixture
def pairs(world: World) -> Iterator[Pairs]:
    """Give a maker of pairs, which closes them."""
    with ExitStack() as stack:

        def make(socket: Path | None) -> Pair:
            return stack.enter_context(closing(Pair(world, socket=socket)))

        yield make


@pytest.fixture
def only_asked(direnvs: dict[str, str], version: str) -> Iterator[Daemon]:
    """Give a sidecar that evaluates only when it is asked, so that its words are exact."""
    daemon = Daemon(direnvs[version], "--no-precompute")
    try:
        daemon.start()
        yield daemon
    finally:
        daemon.close()


def test_a_day(kernels: Kernels, world: World, only_asked: Daemon) -> None:
    """Through a day of edits, both say and hold the same after each step."""
    world.folder("w/deep")
    world.folder("out")
    world.envrc("b", f"echo hello\n{exports('FOO', 'KEEP', tag='b')}")
    world.envrc("w", f"PATH_add bin\n{exports('FOO')}", allow=False)
    both = {
        "direct": kernels(None),
        "sidecar": kernels(only_asked.socket),
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
        results = {name: kernel.refresh() for name, kernel in both.items()}
        ours, theirs = results["direct"], results["sidecar"]
        assert ours.outcome == theirs.outcome, act
        assert ours.messages == theirs.messages, act
        assert ours.root_file == theirs.root_file, act
        assert (ours.set_names, ours.unset_names) == (
            theirs.set_names,
            theirs.unset_names,
        )
        assert both["direct"].environ == both["sidecar"].environ, act


@pytest.mark.parametrize(
    "body",
    [
        "exit 3\n",
        "exec true\n",
        "export JPY_SESSION=1\n",
        "export A=$(head -c 140000 /dev/zero | tr '\\0' x)\n",
        "unset DIRENV_WATCHES\n",
        "watch_file ''\n",
        "broken",
    ],
    ids=[
        "failing",
        "lost",
        "withheld",
        "long",
        "forged",
        "no watch",
        "broken",
    ],
)
def test_odd_file(
    kernels: Kernels, world: World, only_asked: Daemon, body: str
) -> None:
    """What is odd about a file is said in the same words in both modes."""
    if body == "broken":
        world.envrc("w", exports("FOO"))
        world.toml("this is not toml\n")
    else:
        world.envrc("w", exports("FOO") + body)
    direct = kernels(None)
    sidecar = kernels(only_asked.socket)
    os.chdir(world.path("w"))

    ours, theirs = direct.refresh(), sidecar.refresh()

    assert ours.outcome == theirs.outcome
    assert ours.messages == theirs.messages
    assert direct.environ == sidecar.environ


def test_sidecar_is_killed(pairs: Pairs, world: World, daemon: Daemon) -> None:
    """When the sidecar dies the kernel goes to direnv, and comes back to the next one."""
    pair = pairs(daemon.socket)
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
        answered = pair.step(outcome="loaded", alone=None).result.answered
        if answered == "sidecar":
            break
    assert answered == "sidecar"


def test_sidecar_is_stopped_in_a_workspace(
    pairs: Pairs, world: World, daemon: Daemon
) -> None:
    """Leaving after the sidecar has gone needs nobody."""
    pair = pairs(daemon.socket)
    world.envrc("w", exports("FOO"))
    pair.step("w", outcome="loaded")
    daemon.kill()

    pair.step("", outcome="unloaded")


def test_socket_in_a_folder_that_others_can_write(
    pairs: Pairs, world: World, daemons: dict[str, Daemon], version: str
) -> None:
    """A socket that others could have put there is not used; direnv is."""
    folder = world.folder("open")
    folder.chmod(0o777)
    link = folder / "sock"
    link.symlink_to(daemons[version].socket)
    pair = pairs(link)
    world.envrc("w", exports("FOO"))

    assert pair.step("w", alone=True, messages=False).result.answered == "direnv"


@pytest.mark.parametrize("socket_name", ["missing", "missing/too"])
def test_no_sidecar(pairs: Pairs, world: World, socket_name: str) -> None:
    """Without a sidecar at the socket, everything works and nothing is said of it."""
    pair = pairs(world.folder("s") / socket_name)
    world.envrc("w", exports("FOO"))

    pair.step("w", outcome="loaded", alone=True)


def test_sidecar_of_another_version(
    pairs: Pairs, world: World, daemons: dict[str, Daemon], version: str
) -> None:
    """A sidecar that runs another direnv is not used."""
    other = daemons["2.32" if world.is_newer else "2.37"]
    pair = pairs(other.socket)
    world.envrc("w", exports("FOO"))

    assert pair.step("w", outcome="loaded", alone=True).result.answered == "direnv"


def test_second_kernel_gets_the_kept_answer(
    pairs: Pairs, world: World, daemons: dict[str, Daemon], version: str
) -> None:
    """A second kernel over the same base gets the answer without a second evaluation."""
    world.envrc("w", f"echo x >>../runs\n{exports('FOO')}")
    five = [pairs(daemons[version].socket) for _ in range(5)]
    os.chdir(world.path("w"))
    for pair in five:
        assert pair.kernel.refresh().outcome == "loaded"
        assert pair.environ["FOO"] == secret("FOO")

    assert Path(world.path("runs")).read_text() == "x\n"
