"""The question: which keys answer, what is held back, what types on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from envwatch.core.exhibit import exhibit
from envwatch.core.question import QUIET_S, Action, AllowQuestion, Subject

ROOT = "/w/.envrc"
HUGE = b"x" * 200_000


def subject(content: bytes = b"A=1\n", state: str = "blocked: new") -> Subject:
    """Give what is asked about a content."""
    return Subject(
        root=ROOT,
        state=state,
        fingerprint=repr(content),
        exhibit=exhibit(content),
        content=content,
    )


def asked(what: Subject | None = None, *, in_full: bool = True) -> AllowQuestion:
    """Give a question that appeared at 0."""
    question = AllowQuestion()
    what = what or subject()
    assert question.found(what)
    question.shown(what, 0.0, in_full=in_full)
    return question


@pytest.mark.parametrize(
    ("key", "action"),
    [
        ("y", Action.ALLOW),
        ("n", Action.AWAY),
        ("escape", Action.AWAY),
        *((letter, Action.HOLD) for letter in "abcxzYNÿд漢ª"),
        *((name, Action.PASS) for name in ("enter", "tab", "f1", "ctrl+y", "alt+y")),
        *((sign, Action.PASS) for sign in "1/ ?"),
    ],
)
def test_keys_on_an_empty_composer(key: str, action: Action) -> None:
    """`y` allows, `n` and escape put away, other letters are held back."""
    assert asked().key(key, 1.0, is_empty=True) is action


@pytest.mark.parametrize("key", ["y", "n", "escape", "a", "Y", "enter", "1"])
def test_a_draft_keeps_typing(key: str) -> None:
    """With a draft every key goes on."""
    question = asked()
    assert question.key(key, 1.0, is_empty=False) is Action.PASS
    assert question.subject is not None


@pytest.mark.parametrize("key", ["y", "n", "escape"])
def test_keys_that_were_on_their_way(key: str) -> None:
    """Within 300 ms of the appearance nothing answers."""
    assert asked().key(key, QUIET_S - 0.001, is_empty=True) is Action.HOLD
    assert asked().key(key, QUIET_S, is_empty=True) is not Action.HOLD
    unpainted = AllowQuestion()
    unpainted.found(subject())
    assert unpainted.key(key, 100.0, is_empty=True) is Action.HOLD


def test_a_word_with_a_y_in_it() -> None:
    """`h`, `e`, `y`, as fast as one types: nothing is answered, nor by a repeat."""
    question = asked()
    times = [1.0, 1.1, 1.2, 1.3, 1.4]
    keys = zip("heyyy", times, strict=True)
    assert {question.key(*key, is_empty=True) for key in keys} == {Action.HOLD}
    assert question.key("y", 2.0, is_empty=True) is Action.ALLOW


def test_first_character_of_a_draft() -> None:
    """The composer may not have it yet when the next key comes."""
    question = asked()
    assert question.key("1", 1.0, is_empty=True) is Action.PASS
    assert question.key("y", 1.1, is_empty=True) is Action.PASS
    assert question.key("y", 2.0, is_empty=True) is Action.ALLOW


def test_paste() -> None:
    """It is a draft, and what is typed right behind it too."""
    question = asked()
    assert question.pasted(1.0) is Action.PASS
    assert question.key("y", 1.1, is_empty=True) is Action.PASS
    assert AllowQuestion().pasted(1.0) is Action.PASS


def test_not_shown_in_full() -> None:
    """`y` waits for the last line; `n` does not."""
    what = subject()
    question = asked(what, in_full=False)
    ready = [question.is_ready]
    assert question.key("y", 1.0, is_empty=True) is Action.HOLD
    question.shown(what, 1.5, in_full=True)
    ready.append(question.is_ready)
    assert ready == [False, True]
    assert question.key("y", 2.0, is_empty=True) is Action.ALLOW
    assert asked(in_full=False).key("n", 1.0, is_empty=True) is Action.AWAY


def test_shown_of_what_is_not_asked_any_more() -> None:
    """A view that paints late does not make another content readable."""
    question = asked(subject(b"A=1\n"))
    question.found(subject(b"B=1\n"))
    question.shown(subject(b"A=1\n"), 1.0, in_full=True)
    assert question.key("y", 5.0, is_empty=True) is Action.HOLD


@pytest.mark.parametrize("state", ["denied", "allowed", "none", "unreadable", "new"])
def test_states_that_never_ask(state: str) -> None:
    """Only blocked does."""
    question = AllowQuestion()
    assert not question.found(subject(state=state))
    assert question.subject is None
    assert question.key("y", 5.0, is_empty=True) is Action.PASS


def test_what_cannot_be_shown_is_not_asked() -> None:
    """A file of 5 MB has no question."""
    question = AllowQuestion()
    assert not question.found(subject(b"A=1\n" * 1_250_000))
    assert question.subject is None


def test_put_away_until_it_is_opened_again() -> None:
    """Also when the file changes; another root file is another question."""
    question = asked()
    question.key("n", 1.0, is_empty=True)
    assert not question.found(subject(b"B=1\n"))
    assert question.found(replace(subject(), root="/v/.envrc"))
    assert question.found(subject()) is True
    assert question.subject is None
    question.opened()
    assert question.found(subject())


def test_after_an_answer() -> None:
    """A second `y` is held until it is known what came of the first."""
    question = asked()
    assert question.key("y", 1.0, is_empty=True) is Action.ALLOW
    assert question.is_answered
    assert question.key("y", 2.0, is_empty=True) is Action.HOLD
    assert question.found(subject())
    assert question.key("y", 3.0, is_empty=True) is Action.HOLD
    question.shown(subject(), 3.0, in_full=True)
    assert question.key("y", 4.0, is_empty=True) is Action.ALLOW


def test_the_same_again_paints_nothing() -> None:
    """A look that finds what stands there does not start the question anew."""
    question = asked()
    assert not question.found(subject())
    assert question.key("y", 1.0, is_empty=True) is Action.ALLOW


# ------------------------------------------------------------------ any sequence


class Shown(NamedTuple):
    """That all of a content was on the screen, and since when its question was."""

    content: bytes
    since: float


@dataclass
class Allowed:
    """One approval, with how it came about."""

    content: bytes
    key: str
    draft: str
    shown: Shown | None
    now: float
    state: str


class AnySequence(RuleBasedStateMachine):
    """A view by the book, a file that others change, and a person at the keys."""

    def __init__(self) -> None:
        super().__init__()
        self.question = AllowQuestion()
        self.now = 0.0
        self.draft = ""
        self.content, self.state = b"0", "blocked: new"
        self.painted: Subject | None = None
        self.appeared = 0.0
        self.in_full: Shown | None = None
        self.allowed: list[Allowed] = []
        self.away = False

    @rule(
        content=st.sampled_from([b"0", b"1", b"2", HUGE]),
        state=st.sampled_from(
            ["blocked: new", "blocked: changed", "denied", "allowed"]
        ),
    )
    def change(self, content: bytes, state: str) -> None:
        self.content, self.state = content, state

    @rule(in_full=st.booleans())
    def look(self, in_full: bool) -> None:  # noqa: FBT001 - Hypothesis passes it
        found = subject(self.content, self.state)
        if self.question.found(found):
            self.painted, self.in_full = self.question.subject, None
            self.appeared = self.now
        if self.painted is not None:
            self.question.shown(self.painted, self.now, in_full=in_full)
            if in_full and self.in_full is None:
                self.in_full = Shown(self.painted.content, self.appeared)

    @rule(
        content=st.sampled_from([b"0", b"1", HUGE]),
        state=st.sampled_from(["blocked: new", "denied"]),
        in_full=st.booleans(),
        seconds=st.sampled_from([0.29, 5.0]),
        key=st.sampled_from(["y", "y", "n"]),
    )
    def answer_calmly(
        self,
        content: bytes,
        state: str,
        in_full: bool,  # noqa: FBT001 - the same
        seconds: float,
        key: str,
    ) -> None:
        """What a person does, so that every sequence has answers in it."""
        self.change(content, state)
        self.look(in_full=in_full)
        self.draft = ""
        self.wait(seconds)
        self.press(key)

    @rule(seconds=st.sampled_from([0.0, 0.1, 0.29, 0.31, 5.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(key=st.sampled_from(["y", "y", "n", "escape", "Y", "a", "1", "enter", "Ÿ"]))
    def press(self, key: str) -> None:
        draft = self.draft
        action = self.question.key(key, self.now, is_empty=not draft)
        if action is Action.PASS and len(key) == 1:
            self.draft += key
        elif action is Action.PASS and key == "enter":
            self.draft = ""
        elif action is Action.AWAY:
            assert not draft
            self.painted, self.in_full, self.away = None, None, True
        elif action is Action.ALLOW:
            shown = self.question.subject
            assert shown is not None
            # As `Inquiry.allow` does: the very bytes that were shown, or nothing.
            if (shown.content, shown.state) == (self.content, self.state):
                self.allowed.append(
                    Allowed(
                        self.content, key, draft, self.in_full, self.now, self.state
                    )
                )
                self.state = "allowed"
            self.look(in_full=False)

    @rule(text=st.sampled_from(["y", "yes\n", ""]))
    def paste(self, text: str) -> None:
        assert self.question.pasted(self.now) is Action.PASS
        self.draft += text

    @rule()
    def delete(self) -> None:
        self.draft = ""

    @rule()
    def open(self) -> None:
        self.question.opened()
        self.away = False

    @invariant()
    def nothing_is_allowed_that_was_not_shown_and_answered(self) -> None:
        for each in self.allowed:
            assert each.key == "y"
            assert each.draft == ""
            assert each.state in ("blocked: new", "blocked: changed")
            assert each.shown is not None
            assert each.shown.content == each.content
            assert each.now - each.shown.since >= QUIET_S - 1e-9
            assert each.content != HUGE

    @invariant()
    def what_was_put_away_stays_away(self) -> None:
        assert not (self.away and self.question.subject is not None)


AnySequence.TestCase.settings = settings(
    max_examples=300, stateful_step_count=40, deadline=None
)
TestAnySequence = AnySequence.TestCase
