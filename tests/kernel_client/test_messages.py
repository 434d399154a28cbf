"""The vocabulary of the pipe: every field of PROTOCOL.md is checked."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from kernel_client import messages, wire
from kernel_client.errors import ProtocolError

PAGE = (Path(messages.__file__).parent / "PROTOCOL.md").read_text()

SENT = [
    messages.hello(pid=1, client="c", cwd=None),
    messages.hello(pid=1, client="c", cwd={"path": "/", "dev": "1", "ino": "2"}),
    messages.export(1, root="/r", fingerprint="f", direnv="/d"),
    messages.export(1, root="/r", fingerprint="f", direnv="/d", environment={"A": "1"}),
    messages.left("/r"),
    messages.cancel(2, export_id=1),
    messages.reload(3, root="/r"),
    messages.status(4),
    messages.stop(5),
]
EXAMPLES: dict[type, Any] = {
    int: 1,
    str: "x",
    list: [],
    dict: {},
    float: 0.5,
    bool: True,
    type(None): None,
}
FIELDS = [(kind, name) for kind, fields in messages.FIELDS.items() for name in fields]


def example(kind: str) -> dict[str, Any]:
    """Give a frame of this type that is whole."""
    fields = messages.FIELDS[kind]
    return {"type": kind, **{name: EXAMPLES[of[0]] for name, of in fields.items()}}


@pytest.mark.parametrize("frame", SENT, ids=str)
def test_what_a_kernel_sends_is_whole(frame: dict[str, Any]) -> None:
    """Every constructor gives a frame that passes the check, after the wire too."""
    assert messages.check(frame) is frame
    assert wire.Decoder().feed(wire.encode(frame)) == [frame]


@pytest.mark.parametrize("kind", messages.FIELDS)
def test_page_has_every_type(kind: str) -> None:
    """PROTOCOL.md names every type and every field."""
    assert f"`{kind}`" in PAGE or f'"{kind}"' in PAGE
    for name in messages.FIELDS[kind]:
        assert re.search(rf'[`"]{name}[`"]', PAGE), name


def test_page_has_the_version() -> None:
    """The page and the code speak of the same protocol."""
    assert PAGE.startswith(f"# The pipe, version {messages.PROTOCOL}\n")


@pytest.mark.parametrize(("kind", "name"), FIELDS, ids=lambda word: word)
def test_field_that_is_missing(kind: str, name: str) -> None:
    """Every listed field is required, also one that may be null."""
    frame = example(kind)
    messages.check(frame)
    del frame[name]
    with pytest.raises(ProtocolError) as caught:
        messages.check(frame)
    assert caught.value.code == "shape"
    assert name in str(caught.value)


@pytest.mark.parametrize(("kind", "name"), FIELDS, ids=lambda word: word)
def test_field_of_another_type(kind: str, name: str) -> None:
    """Every listed type is taken, no other one is; true is no number."""
    takes = messages.FIELDS[kind][name]
    for each, value in EXAMPLES.items():
        frame = {**example(kind), name: value}
        if each in takes:
            assert messages.check(frame) is frame
        else:
            with pytest.raises(ProtocolError) as caught:
                messages.check(frame)
            assert caught.value.code == "shape"


@given(st.text())
def test_unknown_type(kind: str) -> None:
    """A type that is not listed has a code of its own: the connection goes on."""
    if kind not in messages.FIELDS:
        with pytest.raises(ProtocolError) as caught:
            messages.check({"type": kind})
        assert caught.value.code == "unknown"


def test_unknown_fields_are_let_through() -> None:
    """A newer peer may say more."""
    frame = {**example("status"), "later": {"x": [1]}}
    assert messages.check(frame) == frame
