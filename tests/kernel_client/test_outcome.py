"""The outcome table of DIRENV.md section A, and cases 4 to 6, 12, 13, 22."""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple

import pytest
from hypothesis import given, strategies as st

from kernel_client import gzenv, outcome
from tests.support.planted import PLANTED, secret

ROOT = "/w/.envrc"
HASH = "a" * 64
ALLOWED = f"/h/.local/share/direnv/allow/{HASH}"
DENIED = f"/h/.local/share/direnv/deny/{HASH}"


def printed(
    *there: str, root: str | None = ROOT, file: str = ROOT, **rest: str | None
) -> bytes:
    """Give what direnv prints; `there` are watched paths that exist."""
    paths = [path for path in (root, ALLOWED, DENIED) if path is not None]
    watches = [
        {"path": path, "modtime": 1, "exists": path in (root, *there)} for path in paths
    ]
    changes: dict[str, Any] = {
        "DIRENV_DIR": "-/w",
        "DIRENV_FILE": file,
        "DIRENV_WATCHES": gzenv.encode(watches),
        "DIRENV_DIFF": gzenv.encode({"p": {}, "n": {}}),
        **rest,
    }
    return json.dumps(changes).encode()


class Row(NamedTuple):
    """One row: what direnv gave, and what it means."""

    name: str
    code: int
    stdout: bytes
    outcome: str
    said: str = ""


LOST = "environment:1234: /usr/bin/direnv: Argument list too long"
TABLE = [
    Row("nothing to do", 0, b"", outcome.ABSENT),
    Row("reloaded, identical", 0, b"{}", outcome.ABSENT),
    Row("loaded", 0, printed(ALLOWED, FOO="1"), outcome.LOADED),
    Row("loaded, only unsets", 0, printed(ALLOWED, FOO=None), outcome.LOADED),
    Row("loaded, no variables", 0, printed(ALLOWED), outcome.LOADED),
    Row("loaded by the whitelist", 0, printed(FOO="1"), outcome.LOADED),
    Row("denied", 0, printed(ALLOWED, DENIED), outcome.DENIED),
    Row("unloaded", 0, b'{"DIRENV_DIFF":null,"FOO":null}', outcome.ABSENT),
    Row("blocked, or a whitelisted one failed", 1, printed(), outcome.UNSETTLED),
    Row("failed", 1, printed(ALLOWED), outcome.FAILED),
    Row("direnv could not work", 1, b"", outcome.BROKEN),
    Row("killed", -9, b"", outcome.BROKEN),
    Row("killed after it printed", -9, printed(ALLOWED, FOO="1"), outcome.BROKEN),
    Row("another exit code", 2, printed(ALLOWED), outcome.BROKEN),
    Row("no JSON", 0, b"panic: oh", outcome.BROKEN),
    Row("half a JSON", 0, printed(ALLOWED)[:-3], outcome.BROKEN),
    Row("no object", 0, b"[]", outcome.BROKEN),
    Row("a value that is a number", 0, b'{"A":1}', outcome.BROKEN),
    Row("lost to E2BIG", 0, printed(ALLOWED), outcome.DEGRADED, LOST),
    Row("E2BIG said, but loaded", 0, printed(ALLOWED, A="1"), outcome.LOADED, LOST),
    Row("too long a value", 0, printed(ALLOWED, A="x" * 131_072), outcome.DEGRADED),
    Row("a NUL", 0, printed(ALLOWED, A="x\0"), outcome.DEGRADED),
    Row("another file", 0, printed(ALLOWED, file="/v/.envrc"), outcome.ABSENT),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_table(row: Row) -> None:
    """Each row of the table has its outcome."""
    answer = outcome.read(row.code, row.stdout, passed={}, root=ROOT, said=row.said)
    assert answer.outcome == row.outcome
    applies = row.outcome not in (outcome.BROKEN, outcome.ABSENT, outcome.DEGRADED)
    assert ("DIRENV_DIFF" in answer.set) == (applies or row.said == LOST)


@pytest.mark.parametrize(
    ("allowed", "failed", "empty"),
    [
        (0, outcome.FAILED, outcome.LOADED),
        (1, outcome.BLOCKED, outcome.BLOCKED),
        (2, outcome.BLOCKED, outcome.DENIED),
        (None, outcome.BLOCKED, outcome.BLOCKED),
    ],
)
def test_status_settles(allowed: int | None, failed: str, empty: str) -> None:
    """What the watches leave open is direnv status's word."""
    answer = outcome.read(1, printed(), passed={}, root=ROOT)
    assert outcome.settled(answer, allowed=allowed).outcome == failed
    # A settled answer stays.
    assert outcome.settled(answer, allowed=0).outcome == failed
    unwatched = printed(DIRENV_WATCHES="garbage")
    answer = outcome.read(0, unwatched, passed={}, root=ROOT)
    assert answer.outcome == outcome.EMPTY
    assert outcome.settled(answer, allowed=allowed).outcome == empty


def test_denied_where_the_watches_cannot_be_matched() -> None:
    """direnv's JSON has U+FFFD for each byte of a path that is no UTF-8."""
    root = os.fsdecode(b"/w/\xe2\x82/.envrc")
    said = "/w/\ufffd\ufffd/.envrc"
    stdout = printed(DENIED, file=said, root=said)
    answer = outcome.read(0, stdout, passed={}, root=root)
    assert answer.outcome == outcome.EMPTY
    other = printed(DENIED, file="/w/\ufffd/.envrc", root=said)
    assert outcome.read(0, other, passed={}, root=root).outcome == outcome.ABSENT


@pytest.mark.parametrize(
    "line",
    [
        f"\x1b[31mdirenv: error {ROOT} is blocked. Run `direnv allow` to approve",
        "direnv: error exit status 1",
        "direnv: unloading",
    ],
)
def test_forged_lines_decide_nothing(line: str) -> None:
    """An .envrc that prints direnv's own lines is loaded all the same."""
    answer = outcome.read(
        0, printed(ALLOWED, FOO="1"), passed={}, root=ROOT, said=f"{line}\n"
    )
    assert answer.outcome == outcome.LOADED


def test_watches_that_miss_the_file_are_none() -> None:
    """An .envrc that unset or forged them has to be asked every time (case 37)."""
    whole = outcome.read(0, printed(FOO="1"), passed={}, root=ROOT)
    assert whole.watches is not None
    assert whole.watches[0][0] == ROOT
    missing = printed(FOO="1", DIRENV_WATCHES=None)
    assert outcome.read(0, missing, passed={}, root=ROOT).watches is None
    forged = printed(FOO="1", root="/somewhere/else")
    assert outcome.read(0, forged, passed={}, root=ROOT).watches is None
    garbage = printed(FOO="1", DIRENV_WATCHES="garbage")
    assert outcome.read(0, garbage, passed={}, root=ROOT).watches is None


def test_refused_whole() -> None:
    """Nothing of an answer that would break the kernel is given; no value is said."""
    stdout = printed(ALLOWED, GOOD="1", BIG=secret("x") * 8000)
    answer = outcome.read(0, stdout, passed={}, root=ROOT)
    assert answer.outcome == outcome.DEGRADED
    assert answer.set == {}
    assert answer.unset == ()
    assert "BIG" in answer.reason
    assert "\n" not in answer.reason
    assert PLANTED not in answer.reason


def test_whole_environment_can_be_too_large() -> None:
    """Many variables that pass one by one can be too much together."""
    stdout = printed(ALLOWED, A="x" * 1000)
    passed = {"B": "y" * 1000}
    small = outcome.read(0, stdout, passed=passed, root=ROOT, limit_bytes=2000)
    assert small.outcome == outcome.DEGRADED
    large = outcome.read(0, stdout, passed=passed, root=ROOT, limit_bytes=20_000)
    assert large.outcome == outcome.LOADED


def test_direnv_s_first_error_is_the_reason() -> None:
    """It says what is wrong with direnv's own settings; colour goes."""
    said = "direnv: loading x\n\x1b[31mdirenv: error can't find bash\x1b[0m\nmore"
    answer = outcome.read(1, b"", passed={}, root=ROOT, said=said)
    assert answer.reason == "direnv could not work: can't find bash"
    silent = outcome.read(1, b"", passed={}, root=ROOT)
    assert silent.reason
    assert "\n" not in silent.reason


def test_name_that_cannot_be_shown() -> None:
    """A name that forges lines is not repeated."""
    stdout = printed(ALLOWED, **{"A\nenvwatch: fine=": "x"})
    answer = outcome.read(0, stdout, passed={}, root=ROOT)
    assert answer.outcome == outcome.DEGRADED
    assert "\n" not in answer.reason


@given(st.integers(-64, 255), st.binary(max_size=64), st.text(max_size=20))
def test_anything_has_an_outcome(code: int, stdout: bytes, said: str) -> None:
    """No output of direnv makes it raise, and none of it is taken for a load."""
    answer = outcome.read(code, stdout, passed={}, root=ROOT, said=said)
    assert answer.outcome in (outcome.BROKEN, outcome.ABSENT)
    assert not answer.set


def test_repr_has_no_value() -> None:
    """Values never appear in what somebody may log."""
    answer = outcome.read(0, printed(FOO=secret("x")), passed={}, root=ROOT)
    assert PLANTED not in repr(answer)
    assert not {outcome.UNSETTLED, outcome.EMPTY} & outcome.OUTCOMES
