"""direnv's own encoding, against the real direnv."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from kernel_client import gzenv
from tests.support import reference
from tests.support.planted import exports, secret
from tests.support.worlds import World

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)


@given(st.lists(st.dictionaries(TEXT, TEXT | st.integers() | st.booleans())))
def test_decode_undoes_encode(value: Any) -> None:
    """And another decoder reads it too."""
    text = gzenv.encode(value)
    assert gzenv.decode(text) == value == reference.decode(text)
    assert gzenv.decode(reference.encode(value)) == value


@given(st.text(max_size=40))
def test_anything_else_is_a_value_error(text: str) -> None:
    """No other exception comes of a text that is not direnv's."""
    for read in (gzenv.decode, gzenv.diff, gzenv.watches):
        with pytest.raises(ValueError, match=r"direnv|DIRENV"):
            read(text)


@pytest.mark.parametrize("length", [1, 5, 20])
def test_cut_text_is_refused(length: int) -> None:
    """Half of it is nothing: the end of the stream is looked for."""
    text = gzenv.encode({"p": {}, "n": {"A": "1" * 100}})
    with pytest.raises(ValueError, match="encoding"):
        gzenv.decode(text[:-length])


def test_bomb_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text that unpacks to more than the bound is not unpacked."""
    text = gzenv.encode("a" * 100_000)
    assert len(text) < 1000
    monkeypatch.setattr(gzenv, "MAX_DECODED_BYTES", 50_000)
    with pytest.raises(ValueError, match="encoding"):
        gzenv.decode(text)


def loaded(world: World) -> dict[str, str]:
    """Give an environment into which the real direnv has loaded a file."""
    world.environ["CHANGED"] = "before"
    world.environ["GONE"] = "was here"
    body = exports("ADDED") + exports("CHANGED") + "unset GONE\nwatch_file missing\n"
    world.envrc("w", body)
    said = reference.run(
        world.direnv,
        "export",
        "json",
        environ=world.environ,
        folder=str(world.path("w")),
    )
    assert said.changes is not None
    return reference.applied(world.environ, said.changes)


def test_real_diff(world: World) -> None:
    """DIRENV_DIFF of the real direnv gives the way back and what was set."""
    environ = loaded(world)
    put_back, left = gzenv.diff(environ["DIRENV_DIFF"])
    assert {n: v for n, v in put_back.items() if not n.startswith("DIRENV")} == {
        "ADDED": None,
        "CHANGED": "before",
        "GONE": "was here",
    }
    assert left["ADDED"] == secret("ADDED")
    assert left["CHANGED"] == secret("CHANGED")
    assert "GONE" not in left


def test_real_watches(world: World) -> None:
    """DIRENV_WATCHES of both versions: path, whole second, whether it is there."""
    environ = loaded(world)
    watches = {path: rest for path, *rest in gzenv.watches(environ["DIRENV_WATCHES"])}
    root = world.path("w/.envrc")
    assert watches[str(root)] == [int(root.stat().st_mtime), True]
    assert watches[str(world.path("w/missing"))][1] is False
    assert watches[str(world.approval("w"))][1] is True


def test_direnv_reads_what_is_encoded_here(world: World) -> None:
    """The real direnv unloads by a DIRENV_DIFF and watches packed here."""
    environ = loaded(world)
    for name in ("DIRENV_DIFF", "DIRENV_WATCHES"):
        environ[name] = gzenv.encode(gzenv.decode(environ[name]))
    still = reference.run(
        world.direnv, "export", "json", environ=environ, folder=str(world.path("w"))
    )
    assert still.stdout == b""
    away = reference.run(
        world.direnv, "export", "json", environ=environ, folder=str(world.top)
    )
    assert away.changes is not None
    assert reference.applied(environ, away.changes) == world.environ


@pytest.mark.parametrize(
    "value",
    [
        [],
        {},
        {"p": {}},
        {"p": {}, "n": []},
        {"p": {"A": 1}, "n": {}},
        {"p": None, "n": {}},
    ],
)
def test_diff_of_another_shape(value: Any) -> None:
    """A DIRENV_DIFF without its two sides is refused."""
    with pytest.raises(ValueError, match="DIRENV_DIFF"):
        gzenv.diff(gzenv.encode(value))


@pytest.mark.parametrize(
    "value", [{}, [1], [{}], [{"path": 1}], [{"path": "/", "modtime": "x"}]]
)
def test_watches_of_another_shape(value: Any) -> None:
    """So are watches that are no list of paths."""
    with pytest.raises(ValueError, match="DIRENV_WATCHES"):
        gzenv.watches(gzenv.encode(value))
