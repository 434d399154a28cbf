"""The same JSON with the package and without it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from kernel_client import lean

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner)
        | st.dictionaries(st.text() | st.integers(), inner)
    ),
)


def without_package(work: Any, *arguments: Any) -> Any:
    """Do something as where nobody has imported json, and without importing it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delitem(sys.modules, "json")
        return work(*arguments)


@given(VALUES)
def test_dumps(value: Any) -> None:
    """Every value is written as the package writes it."""
    expected = json.dumps(value, separators=(",", ":"))

    assert lean.dumps(value) == expected
    assert without_package(lean.dumps, value) == expected


@given(VALUES, st.booleans(), st.sampled_from(["", " ", "\n\t", "x", "\ufeff"]))
def test_loads(value: Any, is_ascii: object, around: str) -> None:
    """Every text is read, or refused, as the package does it."""
    text = around + json.dumps(value, ensure_ascii=bool(is_ascii)) + around
    data = text.encode("utf-8", "surrogatepass")

    assert _read(without_package, lean.loads, data) == _read(json.loads, data)


@given(st.binary(max_size=20) | st.text(alphabet='{}[]",:\\ u0e1-Na').map(str.encode))
def test_loads_of_anything(data: bytes) -> None:
    """The same for what is no JSON at all."""
    assert _read(without_package, lean.loads, data) == _read(json.loads, data)


def _read(work: Any, *arguments: Any) -> str:
    try:
        return repr(work(*arguments))
    except (ValueError, RecursionError) as error:
        return type(error).__name__


@pytest.mark.parametrize("data", [b"[" * 100_000, b'{"a":' * 100_000])
def test_very_deep(data: bytes) -> None:
    """A peer cannot crash a kernel with brackets."""
    with pytest.raises((ValueError, RecursionError)):
        without_package(lean.loads, data)


def test_python_of_another_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the C part is missing, or has changed, the package does everything."""
    monkeypatch.setattr(lean, "_quick", [])
    monkeypatch.setitem(sys.modules, "_json", None)

    assert without_package(lean.dumps, {"a": [1]}) == '{"a":[1]}'


def test_what_is_imported() -> None:
    """A fresh Python reads and writes frames without the package, and without re."""
    code = (
        "import sys; from kernel_client import lean;"
        "text = lean.dumps({'a': ['é', 1, None, True]});"
        "assert lean.loads(text.encode()) == {'a': ['é', 1, None, True]};"
        "print([name for name in ('json', 're', 'enum') if name in sys.modules])"
    )

    ended = subprocess.run(
        [sys.executable, "-S", "-c", code],
        cwd=Path(__file__).parents[2],
        env={},
        capture_output=True,
        text=True,
        check=True,
    )

    assert ended.stdout == "[]\n"
