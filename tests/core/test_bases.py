"""Environments by fingerprint."""

from __future__ import annotations

from typing import Any

import pytest

from envwatch.core.bases import Bases
from kernel_client import environment as env
from kernel_client.errors import ProtocolError
from tests.support.planted import secret

ONE = {"HOME": "/h", "A": "1"}
TWO = {"HOME": "/h", "B": "2"}


def test_what_is_dropped_gives_its_bytes_back() -> None:
    """Adding the same twice counts once."""
    bases = Bases()
    for each in (ONE, TWO, ONE):
        bases.add(env.fingerprint(each), each)
    assert bases.size == env.size_bytes(ONE) + env.size_bytes(TWO)
    bases.keep_only({env.fingerprint(TWO)})
    assert bases.get(env.fingerprint(ONE)) is None
    assert bases.get(env.fingerprint(TWO)) == TWO
    bases.keep_only(set())
    assert bases.size == 0


def test_another_environment_than_its_fingerprint_is_refused() -> None:
    """Nobody gets a diff over an environment that is not theirs; no value is said."""
    bases = Bases()
    value = secret("BASE")
    with pytest.raises(ProtocolError) as caught:
        bases.add(env.fingerprint(ONE), {**ONE, "A": value})
    assert caught.value.code == "fingerprint"
    assert value not in str(caught.value)
    assert bases.size == 0


@pytest.mark.parametrize(
    "environment", [{"A": 1}, {"A": None}, {"A": ["x"]}, {"A": "\udcff"}]
)
def test_what_is_no_environment_breaks_the_protocol(environment: Any) -> None:
    """Strings alone, and UTF-8 alone."""
    bases = Bases()
    with pytest.raises(ProtocolError) as caught:
        bases.add("0" * 64, environment)
    assert caught.value.code == "shape"


def test_no_value_shows_in_a_repr() -> None:
    """Whoever logs or raises it tells nothing."""
    bases = Bases()
    value = secret("REPR")
    environment = {"A": value}
    bases.add(env.fingerprint(environment), environment)
    assert value not in repr(bases)
