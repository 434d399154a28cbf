"""`envwatch ask` in a real terminal, with both direnv versions."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator

import pytest

from tests.conftest import OLDER
from tests.support.persons import Person
from tests.support.planted import exports
from tests.support.terminals import Terminal

Open = Callable[..., Terminal]

HINT = "puts it away"
one_version = pytest.mark.parametrize("version", [OLDER], indirect=True)


@pytest.fixture
def opened(person: Person) -> Iterator[Open]:
    """Give what opens a terminal with `envwatch ask` in it."""
    running: list[Terminal] = []

    def started(*arguments: str, **how: str) -> Terminal:
        running.append(Terminal(person, "ask", *arguments, **how))
        return running[-1]

    yield started
    try:
        for terminal in running:
            terminal.said()
    finally:
        for terminal in running:
            terminal.close()


def code(person: Person, relative: str = "w") -> int:
    """Give the state by `envwatch status`."""
    return person.run("status", relative).code


# ------------------------------------------------------------------ answers


def test_new_file(person: Person, opened: Open) -> None:
    """It is shown as a whole, and `y` allows it: exit code 0."""
    root = person.world.envrc("w", "export A=1\nwatch_file x.txt\n", allow=False)
    terminal = opened("w")
    shown = terminal.see(HINT)
    assert f"{root} is blocked: new" in shown
    assert "\n export A=1\n watch_file x.txt\n" in shown
    assert "x.txt" in shown
    terminal._from = 0
    terminal.answer("y")
    assert terminal.wait() == 0
    assert f"allowed: {root}" in terminal.seen
    assert terminal.is_as_before()
    assert code(person) == 0


@one_version
def test_names_and_lines_are_folded_by_us(person: Person, opened: Open) -> None:
    """To the width that the terminal has, whatever COLUMNS says; blanks are seen."""
    filler = "y\u3164allows\u3164exactly\u3164this\u3164" * 9
    person.world.envrc("w", f"watch_file {filler}\n: {'x' * 200}\n", allow=False)
    person.environ["COLUMNS"] = "1000"
    shown = opened("w").see(HINT)
    assert "\u3164" not in shown
    assert "\\u3164" in shown
    lines = shown.splitlines()
    assert max(len(line) for line in lines if line.startswith(" ")) <= 80


@pytest.mark.parametrize("key", ["n", "\x1b"])
def test_put_away(person: Person, opened: Open, key: str) -> None:
    """It stays blocked: exit code 10 or 11."""
    person.world.envrc("w", exports("A"))
    person.world.write("w/.envrc", exports("B"))
    terminal = opened("w")
    terminal.answer(key)
    assert terminal.wait() == 11
    assert "put away" in terminal.seen
    assert terminal.is_as_before()
    assert code(person) == 11


@pytest.mark.parametrize(
    "keys", ["Y", "\r", " ", "yes\n", "yy", "\x1b[200~y\x1b[201~", "\x1b[A", "hey"]
)
def test_nothing_else_answers(person: Person, opened: Open, keys: str) -> None:
    """Other keys, a paste, several at once: then it is still asked."""
    person.world.envrc("w", exports("A"), allow=False)
    terminal = opened("w")
    terminal.answer(keys)
    terminal._from = 0
    terminal.answer("n")
    assert terminal.wait() == 10
    assert code(person) == 10


def test_typed_before_it_was_there(person: Person, opened: Open) -> None:
    """Keys from before the question, and right with it, do not answer."""
    person.world.envrc("w", exports("A"), allow=False)
    terminal = opened("w")
    terminal.type("y")
    terminal.see(HINT)
    terminal.type("y")
    terminal._from = 0
    terminal.answer("n")
    assert terminal.wait() == 10


def test_changed_while_it_is_asked(person: Person, opened: Open) -> None:
    """The new content is shown and asked about; that is what is allowed."""
    world = person.world
    world.envrc("w", "export A=1\n", allow=False)
    terminal = opened("w")
    terminal.see(HINT)
    world.write("w/.envrc", "export EVIL=1\n")
    assert "export EVIL=1" in terminal.see(HINT)
    terminal._from -= len(HINT)
    terminal.answer("y")
    assert terminal.wait() == 0
    assert len(list((world.data / "allow").iterdir())) == 1
    assert world.approval("w").exists()


def test_changed_as_it_is_answered(person: Person, opened: Open) -> None:
    """The answer is void, and it is asked again with what is there now."""
    world = person.world
    root = world.envrc("w", "export A=1\n", allow=False)
    script = world.write(
        "bin/direnv",
        f"#!/bin/bash\nif [[ $1 == allow && ! -e {world.path('once')} ]]; then\n"
        f"  touch {world.path('once')}; echo 'export EVIL=1' >{root}\nfi\n"
        f'exec {world.direnv} "$@"\n',
    )
    script.chmod(0o755)
    terminal = opened("w", ENVWATCH_DIRENV=str(script))
    terminal.answer("y")
    again = terminal.see(HINT)
    assert "not allowed" in again
    assert "export EVIL=1" in again
    assert list((world.data / "allow").iterdir()) == []
    terminal._from -= len(HINT)
    terminal.answer("n")
    assert terminal.wait() == 10


def test_allowed_elsewhere(person: Person, opened: Open) -> None:
    """The question goes when somebody else has answered it: exit code 0."""
    person.world.envrc("w", exports("A"), allow=False)
    terminal = opened("w")
    terminal.see(HINT)
    person.world.allow("w")
    assert terminal.wait() == 0


def test_vanishes(person: Person, opened: Open) -> None:
    """The workspace goes while it is asked: one clear line, exit code 69."""
    person.world.envrc("w", exports("A"), allow=False)
    terminal = opened("w")
    terminal.see(HINT)
    shutil.rmtree(person.world.path("w"))
    assert terminal.wait() == 69
    assert "is gone" in terminal.seen
    assert terminal.is_as_before()


def test_watch(person: Person, opened: Open) -> None:
    """It stays, and asks when something becomes blocked, each time anew."""
    world = person.world
    world.envrc("w", "export A=1\n")
    terminal = opened("w", "--watch")
    terminal.see("allowed")
    world.write("w/.envrc", "export B=1\n")
    terminal.see("export B=1")
    terminal.answer("n")
    terminal.see("put away")
    world.write("w/.envrc", "export A=1\n")
    terminal.see(".envrc: allowed")
    world.write("w/.envrc", "export C=1\n")
    terminal.see("export C=1")
    terminal.answer("y")
    terminal.see("allowed: ")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.wait() == 130
    assert terminal.is_as_before()
    assert code(person) == 0


# ------------------------------------------------------------------ nothing to ask


def test_states_that_do_not_ask(person: Person, opened: Open) -> None:
    """Each is said, with its exit code; a denied file never asks."""
    world = person.world
    world.folder("none")
    world.envrc("allowed", exports("A"))
    os.mkfifo(world.folder("fifo") / ".envrc")
    expected = {"none": 3, "allowed": 0, "fifo": 13}
    if world.is_newer:
        world.envrc("denied", exports("A"))
        world.deny("denied")
        expected["denied"] = 12
    for name, ended in expected.items():
        terminal = opened(name)
        assert terminal.wait() == ended, name
        assert HINT not in terminal.seen


def test_not_a_terminal(person: Person) -> None:
    """The state and its exit code, and nothing is asked."""
    world = person.world
    world.folder("none")
    world.envrc("allowed", exports("A"))
    world.envrc("new", exports("A"), allow=False)
    world.envrc("changed", exports("A"))
    world.write("changed/.envrc", exports("B"))
    expected = {"none": 3, "allowed": 0, "new": 10, "changed": 11}
    if world.is_newer:
        world.envrc("denied", exports("A"))
        world.deny("denied")
        expected["denied"] = 12
    for name, code in expected.items():
        ended = person.run("ask", name)
        assert (ended.code, ended.err) == (code, ""), name
        assert HINT not in ended.out
        assert person.run("ask", name, "--watch").code == code


@one_version
def test_too_large(person: Person, opened: Open) -> None:
    """5 MB are not asked about; how to do it by hand is said."""
    root = person.world.envrc("w", "#" * 5_000_000, allow=False)
    terminal = opened("w")
    assert terminal.wait() == 10
    assert f"direnv allow {root}" in terminal.seen
    assert HINT not in terminal.seen
    assert "direnv allow" in person.run("ask", "w").out


@one_version
def test_no_direnv(opened: Open, person: Person) -> None:
    """One line, with how to install it: exit code 69."""
    person.run("ask", environ={"PATH": "/nowhere"}).said(69, "install")
    terminal = opened(PATH="/nowhere")
    assert terminal.wait() == 69


# ------------------------------------------------------------------ the terminal


@one_version
def test_file_cannot_paint_over_its_own_picture(person: Person, opened: Open) -> None:
    """Of its escape sequences, CRs and controls none reaches the terminal."""
    body = b"A=1 # \x1b[1A\x1b[2K\rB=1\n\xe2\x80\xaeC\x9b\xff\n"
    person.world.write("w/.envrc", body)
    terminal = opened("w", NO_COLOR="1")
    terminal.see(HINT)
    assert " A=1 # \\x1b[1A\\x1b[2K\\rB=1\n \\u202eC\\x9b\\xff\n" in terminal.raw
    assert "\x1b[1A" not in terminal.raw
    assert "\x1b[2K" not in terminal.raw


@one_version
def test_colours(person: Person, opened: Open) -> None:
    """What changed is green and red, escapes are reversed; a dumb terminal has none."""
    person.world.write("w/.envrc", b"A=\x1b\n")
    coloured, dumb = opened("w"), opened("w", term="dumb")
    for terminal in (coloured, dumb):
        terminal.see(HINT)
    assert "\x1b[7m\\x1b\x1b[27m" in coloured.raw
    assert "\x1b[7m" not in dumb.raw


@one_version
@pytest.mark.parametrize(
    ("number", "expected"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
)
def test_signals(
    person: Person, opened: Open, number: signal.Signals, expected: int
) -> None:
    """The terminal is put back, nothing is allowed."""
    person.world.envrc("w", exports("A"), allow=False)
    terminal = opened("w")
    terminal.see(HINT)
    assert not terminal.is_as_before()
    terminal.process.send_signal(number)
    assert terminal.wait() == expected
    assert terminal.is_as_before()
    assert code(person) == 10
