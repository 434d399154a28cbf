"""Environments as values: base, fingerprint, limits."""

from __future__ import annotations

import errno
import subprocess
from hashlib import sha256

import pytest
from hypothesis import given, strategies as st

from kernel_client import environment as env

NAMES = st.text("ABCé_", min_size=1, max_size=4)
VALUES = st.text(st.characters(exclude_characters="\0"), max_size=8)
ENVIRONMENTS = st.dictionaries(NAMES, VALUES, max_size=8)


@given(
    ENVIRONMENTS, ENVIRONMENTS, st.lists(NAMES, max_size=4), st.booleans(), ENVIRONMENTS
)
def test_take_back_undoes_what_was_applied(
    base: dict[str, str],
    to_set: dict[str, str],
    unset: list[str],
    four: bool,  # noqa: FBT001 - drawn
    other: dict[str, str],
) -> None:
    """The way back gives the base again, whatever a diff set and removed."""
    if four:
        to_set = {**to_set, **dict.fromkeys(env.THE_FOUR, "x")}
    unset = [name for name in unset if name not in to_set]
    back = env.put_back_of(base, to_set, unset)
    after = {**base, **to_set}
    for name in unset:
        after.pop(name, None)
    assert env.take_back(after, back) == base
    # What the caller changed beside it stays.
    beside = {name: value for name, value in other.items() if name not in back}
    assert env.take_back({**after, **beside}, back) == {**base, **beside}


def test_base_has_none_of_the_four() -> None:
    """They go even where nothing else is known."""
    environ = {"A": "1", **dict.fromkeys(env.THE_FOUR, "x")}
    assert env.take_back(environ, None) == {"A": "1"}
    assert env.take_back(environ, {"A": None}) == {}
    assert len(environ) == 5


@given(st.dictionaries(NAMES, st.text(st.characters(exclude_categories=["Cs"]))))
def test_fingerprint_is_that_of_the_page(environment: dict[str, str]) -> None:
    """SHA-256 over NAME=VALUE and NUL, in the byte order of the UTF-8 names."""
    names = sorted(environment, key=lambda name: name.encode())
    text = "".join(f"{name}={environment[name]}\0" for name in names)
    assert env.fingerprint(environment) == sha256(text.encode()).hexdigest()
    back = dict(reversed(environment.items()))
    assert env.fingerprint(back) == env.fingerprint(environment)


def test_fingerprint_by_hand() -> None:
    """A value anybody can compute with sha256sum."""
    expected = subprocess.run(
        ["sha256sum"], input=b"A=1\0AB=2\0", capture_output=True, check=True
    ).stdout.split()[0]
    assert env.fingerprint({"AB": "2", "A": "1"}) == expected.decode()


@given(ENVIRONMENTS, ENVIRONMENTS)
def test_fingerprint_tells_environments_apart(
    one: dict[str, str], other: dict[str, str]
) -> None:
    """Another environment has another fingerprint."""
    kept, also = env.passed(one), env.passed(other)
    assert (env.fingerprint(kept) == env.fingerprint(also)) == (kept == also)


def test_passed_leaves_out_what_no_evaluation_may_see() -> None:
    """Where the process is, withheld names, and what is no UTF-8."""
    base = {
        "PWD": "/a",
        "OLDPWD": "/b",
        "SHLVL": "1",
        "_": "/bin/x",
        "JPY_PARENT_PID": "1",
        "AGENT_ID": "1",
        "BAD": "\udcff",
        "B\udcff": "x",
        "SHELL": "/bin/sh",
        "DIRENV_CONFIG": "/c",
        "DIRENV_BASH": "/d",
        "JP": "kept",
    }
    kept = {"SHELL", "DIRENV_CONFIG", "DIRENV_BASH", "JP"}
    assert set(env.passed(base, ("JPY_*", "AGENT_ID"))) == kept
    assert set(env.passed(base)) == {*kept, "JPY_PARENT_PID", "AGENT_ID"}


@pytest.mark.parametrize(
    ("name", "patterns", "is_it"),
    [
        ("JPY_X", env.WITHHELD, True),
        ("JPY", env.WITHHELD, False),
        ("XJPY_X", env.WITHHELD, False),
        ("A", (), False),
        ("A", ("B", "A"), True),
        ("A1", ("A?",), True),
        ("a1", ("A?",), False),
        ("B\n", ("A*", "B*"), True),
        ("C", ("A*", "B*"), False),
        ("Ax1", ("A?1*", "B*"), True),
        ("A?1", ("A[?]1*",), True),
        ("AB", ("*",), True),
        ("", ("",), True),
    ],
)
def test_withheld(name: str, patterns: tuple[str, ...], *, is_it: bool) -> None:
    """Patterns are whole names as fnmatch has them, case included."""
    assert env.is_withheld(name, patterns) is is_it


def execs(environment: dict[str, str]) -> bool:
    """Tell whether a program can be started with this environment."""
    try:
        subprocess.run(["/bin/true"], env=environment, check=True)
    except OSError as error:
        if error.errno != errno.E2BIG:
            raise
        return False
    return True


@pytest.mark.parametrize("letter", ["a", "é", "\udcff"])
@pytest.mark.parametrize("size", [131_071, 131_072])
def test_longest_variable_is_that_of_a_real_exec(size: int, letter: str) -> None:
    """NAME=VALUE of 131,071 bytes can be passed on, one of 131,072 cannot."""
    width = len(letter.encode(errors="surrogateescape"))
    count, rest = divmod(size - len("NAME="), width)
    environment = {"NAME": letter * count + "b" * rest}
    breaking = env.breaking_name(environment, environment)
    assert (breaking is None) == execs(environment) == (size == 131_071)
    assert breaking in (None, "NAME")


@pytest.mark.parametrize(
    ("environment", "found"),
    [
        ({"": "x"}, ""),
        ({"A=B": "x"}, "A=B"),
        ({"A\0": "x"}, "A\0"),
        ({"A": "\0"}, "A"),
        ({"A": ""}, None),
        ({"A": "b=c", "a.b-c d": "x"}, None),
    ],
    ids=["empty", "equals", "NUL in name", "NUL in value", "no value", "odd"],
)
def test_names_that_no_environment_has(
    environment: dict[str, str], found: str | None
) -> None:
    """They are named, so that nothing of that answer is applied."""
    assert env.breaking_name(environment, environment) == found


def test_only_the_asked_names_count() -> None:
    """What the caller had before is the caller's."""
    environment = {"BIG": "x" * 200_000, "A": "1"}
    assert env.breaking_name(environment, ["A", "MISSING"]) is None
    assert env.breaking_name(environment, ["A", "BIG"]) == "BIG"


@given(ENVIRONMENTS)
def test_size_is_what_an_exec_counts(environment: dict[str, str]) -> None:
    """Bytes of NAME=VALUE and NUL, and a pointer to each."""
    kept = env.passed(environment)
    expected = sum(len(f"{n}={v}".encode()) + 1 + 8 for n, v in kept.items())
    assert env.size_bytes(kept) == expected


@pytest.mark.parametrize(
    ("text", "is_it"), [("", True), ("é", True), ("\udcff", False)]
)
def test_text_is_utf8(text: str, *, is_it: bool) -> None:
    """Lone surrogates stand for bytes that are not."""
    assert env.is_text(text) is is_it
