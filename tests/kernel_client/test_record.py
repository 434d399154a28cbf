"""What a kernel loaded, and the way back."""

from __future__ import annotations

from hypothesis import given, strategies as st

from kernel_client import environment as env, gzenv, record
from kernel_client.record import Record
from tests.support.planted import secret

NAMES = st.sampled_from("ABCDE")
ENVIRONMENTS = st.dictionaries(NAMES, st.text("xyz", max_size=2))


def made(put_back: env.PutBack, left: dict[str, str]) -> Record:
    """Give a record."""
    return Record("/w/.envrc", "loaded", put_back=put_back, left=left, snapshot=())


@given(ENVIRONMENTS, ENVIRONMENTS, st.lists(NAMES))
def test_changes_make_one_into_the_other(
    environ: dict[str, str], final: dict[str, str], names: list[str]
) -> None:
    """In the named variables, and in no other one; nothing is set twice."""
    to_set, removed = record.changes(environ, final, names)
    after = {**environ, **to_set}
    for name in removed:
        del after[name]
    for name in "ABCDE":
        expected = final if name in names else environ
        assert after.get(name) == expected.get(name)
    assert all(environ.get(name) != value for name, value in to_set.items())


def test_scrubbed_variables_never_come_back() -> None:
    """Only names that still hold what was loaded are put back."""
    kept = made(
        {"A": "old", "B": "old", "C": None, "GONE": "old"},
        {"A": "1", "B": "2", "C": "3"},
    )
    assert kept.surviving({"A": "1", "B": "changed"}) == {"A": "old"}
    assert kept.surviving({"C": "3"}) == {"C": None}


def test_lost_edits_are_named() -> None:
    """A person's own change to a loaded variable that a reload throws away."""
    kept = made(
        {"PATH": "/bin", "A": None, "GONE": "was", "DIRENV_DIFF": None},
        {"PATH": "/x:/bin", "A": "1", "DIRENV_DIFF": "d"},
    )
    environ = {"PATH": "/mine", "A": "1", "GONE": "again", "DIRENV_DIFF": "other"}
    assert kept.lost_edits(environ, {"PATH": "/bin"}) == ["GONE", "PATH"]
    # What the new state has anyway is not lost; what the person deleted neither.
    assert kept.lost_edits({"PATH": "/mine"}, {"PATH": "/mine"}) == []
    assert kept.lost_edits({"A": "1"}, {}) == []


def test_diff_is_remembered() -> None:
    """A record stands as long as the environment holds this very text."""
    assert made({}, {"DIRENV_DIFF": "d"}).diff == "d"
    assert made({}, {}).diff is None


def four(left: dict[str, str], old: dict[str, str]) -> dict[str, str]:
    """Give the four that direnv would have left."""
    return {
        "DIRENV_DIR": "-/w",
        "DIRENV_FILE": "/w/.envrc",
        "DIRENV_WATCHES": gzenv.encode(
            [{"path": "/w/.envrc", "modtime": 7, "exists": True}]
        ),
        "DIRENV_DIFF": gzenv.encode({"p": old, "n": left}),
    }


def test_inherited_is_read() -> None:
    """A kernel finds what the shell that started it had loaded."""
    environ = {"A": secret("A"), **four({"A": secret("A")}, {"A": "old", "B": "was"})}
    found = record.inherited(environ)
    assert found is not None
    assert found.file == "/w/.envrc"
    assert found.put_back == {"A": "old", "B": "was"}
    assert found.watches == [("/w/.envrc", 7, True)]


def test_scrubbed_environment_is_a_lie() -> None:
    """The four stayed, the variables went: nothing of the old side comes back."""
    found = record.inherited(four({"A": "1"}, {"A": "old"}))
    assert found is not None
    assert (found.file, found.watches) == (None, None)
    assert "A" not in found.put_back


def test_what_a_host_left_of_a_load_can_be_taken_back() -> None:
    """One variable was scrubbed, another still holds what was loaded."""
    environ = {**four({"A": "1", "B": "2"}, {"B": "old"}), "B": "2"}
    found = record.inherited(environ)
    assert found is not None
    assert found.file is None
    assert "A" not in found.put_back
    assert found.put_back["B"] == "old"


def test_nothing_inherited() -> None:
    """No DIRENV_DIFF, an empty one, or one that cannot be read."""
    for diff in (None, "", "garbage"):
        environ = four({}, {})
        environ.pop("DIRENV_DIFF")
        if diff is not None:
            environ["DIRENV_DIFF"] = diff
        assert record.inherited(environ) is None


def test_inherited_without_watches() -> None:
    """They may be unset or forged: then they cannot be compared."""
    for watches in (None, "garbage"):
        environ = four({}, {})
        environ.pop("DIRENV_WATCHES")
        if watches is not None:
            environ["DIRENV_WATCHES"] = watches
        found = record.inherited(environ)
        assert found is not None
        assert found.watches is None
