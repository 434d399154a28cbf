"""The environment that is kept, and the way back."""

from __future__ import annotations

import os

import pytest

from kernel_client import environment as env, gzenv, outcome
from kernel_client.evaluation import Evaluated
from kernel_client.loaded import Loaded
from tests.support.planted import secret

ROOT = "/w/.envrc"
DIFF = gzenv.encode({"p": {"KEEP": "old"}, "n": {"FOO": "1", "KEEP": "new"}})


class Kept(Loaded):
    """With the lines that it says."""

    def __init__(self, environ: dict[str, str]) -> None:
        self.lines: list[str] = []
        self.values = environ
        super().__init__(environ, self.lines.append)

    def holds(self) -> bool:
        """Whether there is a record."""
        return self.record is not None

    def takes(self, outcome_: str = outcome.LOADED, **to_set: str) -> object:
        """Take an answer that sets these, and removes GONE."""
        request = self.request("/d", ROOT, ())
        four = dict.fromkeys(env.THE_FOUR, "x")
        answer = Evaluated(
            outcome_,
            to_set={**four, "DIRENV_DIFF": DIFF, **to_set},
            unset=["GONE"],
            messages=[],
            snapshot=(),
            seconds=0.0,
        )
        return self.take(request, answer)


def test_taken_and_unloaded() -> None:
    """Names are told without the four, and the way back leads to the beginning."""
    environ = {"KEEP": "old", "GONE": "was", "SAME": "1"}
    before = dict(environ)
    made = Kept(environ)
    assert made.takes(FOO="1", KEEP="new") == (("FOO", "KEEP"), ("GONE",))
    assert environ["FOO"] == "1"
    assert "GONE" not in environ
    assert made.holds()
    assert made.base() == before
    assert made.of_base(("KEEP", "FOO", "SAME", "NO")) == {"KEEP": "old", "SAME": "1"}
    environ["CALLER"] = "2"
    assert made.unload() == (("GONE", "KEEP"), ("FOO",))
    assert environ == {**before, "CALLER": "2"}
    assert made.unload() == ((), ())
    assert not made.holds()
    assert made.lines == []


def test_reload_starts_from_the_base() -> None:
    """What the last load set and this one does not is gone."""
    environ = {"KEEP": "old"}
    made = Kept(environ)
    made.takes(FOO="1", KEEP="new")
    made.takes(BAR="2")
    shown = {n: v for n, v in environ.items() if n not in env.THE_FOUR}
    assert shown == {"KEEP": "old", "BAR": "2"}
    made.unload()
    assert environ == {"KEEP": "old"}


@pytest.mark.parametrize("kind", [outcome.BROKEN, outcome.CANCELLED])
def test_outcomes_that_are_not_held(kind: str) -> None:
    """They leave no record: the next run asks again."""
    made = Kept({})
    made.takes(kind)
    assert not made.holds()


def test_lost_edit_is_said_once_without_its_value() -> None:
    """A person's change to a loaded variable that an unload throws away."""
    environ = {"PATH": "/bin"}
    made = Kept(environ)
    made.takes(PATH="/x:/bin")
    environ["PATH"] = secret("PATH")
    made.unload()
    (line,) = made.lines
    assert "PATH" in line
    assert secret("PATH") not in line
    assert environ == {"PATH": "/bin"}


def test_scrubbed_four() -> None:
    """What is left of the load goes; what was scrubbed does not come back."""
    environ = {"KEEP": "old", "GONE": "was"}
    made = Kept(environ)
    made.takes(FOO="1", KEEP="new")
    for name in env.THE_FOUR:
        environ.pop(name)
    environ.pop("KEEP")
    made.synchronise()
    assert not made.holds()
    assert environ == {}


def test_inherited_way_back() -> None:
    """A shell's load is taken back like our own."""
    environ = {"FOO": "1", "KEEP": "new", "DIRENV_DIFF": DIFF, "DIRENV_FILE": ROOT}
    made = Kept(environ)
    made.synchronise()
    assert not made.holds()
    assert made.base() == {"KEEP": "old"}
    made.unload()
    assert environ == {"KEEP": "old"}


def test_question_is_kept_while_nothing_is_touched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """For os.environ, whose bytes can be compared; a change makes a new one."""
    monkeypatch.setenv("EW_TEST", "1")
    for name in env.THE_FOUR:
        monkeypatch.delenv(name, raising=False)
    made = Loaded(os.environ, lambda _: None)
    request = made.request("/d", ROOT, ())
    answer = Evaluated(
        outcome.BLOCKED, to_set={}, unset=[], messages=[], snapshot=(), seconds=0.0
    )
    made.take(request, answer)
    again = made.request("/d", ROOT, ())
    assert made.request("/d", "/other", ()) is not again
    made.take(made.request("/d", ROOT, ()), answer)
    same = made.request("/d", ROOT, ())
    assert made.request("/d", ROOT, ()) is same
    monkeypatch.setenv("EW_TEST", "2")
    other = made.request("/d", ROOT, ())
    assert other is not same
    assert other.fingerprint != same.fingerprint


def test_interrupt_leaves_no_half(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the middle of a change comes through when the change is whole."""

    class Interrupted(dict[str, str]):
        """Interrupts at its third write."""

        writes = 0

        def __setitem__(self, name: str, value: str) -> None:
            self.writes += 1
            if self.writes == 3:
                raise KeyboardInterrupt
            super().__setitem__(name, value)

    environ = Interrupted()
    made = Kept(environ)
    with pytest.raises(KeyboardInterrupt):
        made.takes(A="1", B="2", C="3")
    assert {"A", "B", "C"} < set(environ)
    assert made.holds()
    made.unload()
    assert environ == {}
