"""Every error of the package has one base, and no value in its text."""

from __future__ import annotations

import pytest

import kernel_client
from kernel_client import errors


@pytest.mark.parametrize(
    "error",
    [
        errors.ProtocolError("shape", "a frame"),
        errors.FrameTooLong(10),
        errors.SidecarError("absent", "no sidecar"),
        errors.SettingError("ENVWATCH_FD"),
        errors.DirenvError("direnv gave nothing"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_one_base(error: errors.Error) -> None:
    """All can be caught by one name, and say one line."""
    assert isinstance(error, kernel_client.Error)
    assert str(error)
    assert "\n" not in str(error)


def test_codes() -> None:
    """The code is the word of the wire; a long frame has its own."""
    assert errors.ProtocolError("shape", "x").code == "shape"
    assert errors.SidecarError("unsafe", "x").code == "unsafe"
    long = errors.FrameTooLong(10)
    assert (long.code, long.limit) == ("too_long", 10)
    assert isinstance(long, errors.ProtocolError)
