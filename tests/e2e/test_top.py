"""`envwatch top` in a real terminal, under tmux, from beginning to end."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import NEWER
from tests.e2e.kernels import KernelProcess
from tests.support.persons import Person
from tests.support.planted import exports
from tests.support.programs import COMMAND
from tests.support.tmux import COLOURS, Terminal
from tests.support.worlds import World

pytestmark = pytest.mark.parametrize("version", [NEWER], indirect=True)


@pytest.fixture
def person(world: World) -> Iterator[Person]:
    """Give a person without a sidecar, who may start one; it ends with the test."""
    made = Person(world)
    made.environ["ENVWATCH_SIDECAR"] = COMMAND
    yield made
    made.run("stop")


@pytest.fixture
def view(person: Person) -> Iterator[Callable[..., Terminal]]:
    """Give what starts the view in a terminal of its own."""
    made: list[Terminal] = []

    def started(**more: str) -> Terminal:
        environ = {**person.environ, "HOME": str(person.world.top), **more}
        made.append(
            Terminal([COMMAND, "top"], environ=environ, folder=person.world.top)
        )
        return made[-1]

    yield started
    for each in made:
        each.close()


def test_a_whole_life(
    person: Person,
    view: Callable[..., Terminal],
    start: Callable[..., KernelProcess],
) -> None:
    """No sidecar, start one, watch a kernel, reload, lose it, leave."""
    person.world.envrc("w", exports("A"))
    terminal = view()
    terminal.see("No sidecar: no sidecar listens at", "s starts a sidecar")
    terminal.type("s")
    terminal.see("a sidecar is back", "No workspace yet")

    kernel = start("w", listening=Path(person.socket))
    assert kernel.refresh()["answered"] == "sidecar"
    terminal.see("> ~/w", "loaded", "root file   ~/w/.envrc", "1 attached")
    terminal.type("r")
    terminal.see("1 kernel loads ~/w again at the next run")
    assert kernel.refresh()["outcome"] == "loaded"
    terminal.see("sidecar 1")

    assert person.run("stop").code == 0
    terminal.wait(
        lambda screen: "No sidecar: " in screen and "~/w" not in screen, "it has gone"
    )
    terminal.type("s")
    terminal.see("a sidecar is back")

    terminal.type("q")
    assert terminal.end() == 0


def test_the_question(
    person: Person,
    view: Callable[..., Terminal],
    start: Callable[..., KernelProcess],
) -> None:
    """A blocked file is shown, allowed on the person's word, and loaded."""
    person.world.envrc("w", "export A=1\n", allow=False)
    terminal = view()
    terminal.see("s starts a sidecar")
    terminal.type("s")
    terminal.see("No workspace yet")
    kernel = start("w", listening=Path(person.socket))
    assert kernel.refresh()["outcome"] == "blocked"
    terminal.see("blocked", "a ask whether it may load")
    terminal.type("a")
    terminal.see("export A=1", "y allows this file")

    terminal.answer("y", "is allowed; kernels load it")
    assert kernel.refresh()["outcome"] == "loaded"
    terminal.type("q")
    assert terminal.end() == 0


@pytest.mark.parametrize("more", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_no_colour_of_its_own(
    person: Person, view: Callable[..., Terminal], more: dict[str, str]
) -> None:
    """In a light terminal, and in one without colours, it reads as in any other."""
    terminal = view(**more)
    terminal.see("s starts a sidecar", "q leave")
    assert COLOURS.findall(terminal.painted) == []


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)], ids=str
)
def test_ended_by_a_signal(
    view: Callable[..., Terminal], number: signal.Signals, code: int
) -> None:
    """The terminal is put back."""
    terminal = view()
    terminal.see("s starts a sidecar", "q leave")
    assert not terminal.is_plain
    os.kill(terminal.pid, number)
    assert terminal.end() == code
    # tmux may read its last bytes after its end.
    terminal.wait(lambda _: terminal.is_plain, "it is put back")


def test_a_script_is_told(person: Person) -> None:
    """The table of the installed command, where nobody looks at a terminal."""
    person.run("top", "--once").said(69, "no sidecar listens")
