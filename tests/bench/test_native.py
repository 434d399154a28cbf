"""The loop in C makes the calls that it is to be compared with."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench.findings import CannotRunError
from bench.native import Native

CODE = """
import os, sys
from pathlib import Path
from bench.native import Native
folder = Path(sys.argv[1])
once = Native(folder).calls(["/ew-absent"] * 3, [str(folder)] * 2, 0)
os.access("/ew-mark", 0)
taken_s = once()
os.access("/ew-mark", 0)
assert 0 < taken_s < 1
"""


def test_calls(tmp_path: Path) -> None:
    """One getcwd, as many access and stat as there are paths, one poll."""
    trace = tmp_path / "trace"
    subprocess.run(
        ["strace", "-qq", "-o", trace, sys.executable, "-c", CODE, tmp_path], check=True
    )
    lines = trace.read_text().splitlines()
    first, last = (at for at, line in enumerate(lines) if "/ew-mark" in line)
    called = [line.partition("(")[0] for line in lines[first + 1 : last]]
    found = [call for call in called if not call.startswith(("clock", "mmap", "brk"))]
    assert found[0] == "getcwd"
    assert [call[:6] for call in found[1:4]] == ["access"] * 3 or found[1:4] == [
        "faccessat"
    ] * 3
    assert len(found) == 7
    assert found[-1] == "poll"


def test_without_a_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says so."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CannotRunError, match="no C compiler"):
        Native(tmp_path)


def test_a_compiler_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says which."""
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CannotRunError, match="does not build"):
        Native(tmp_path)
