"""The log: one line an event, for a machine or for a person."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

import pytest

from envwatch.errors import ConfigError
from envwatch.runtime.logs import logger
from tests.core.conftest import result_of
from tests.support.planted import secret

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def files(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[TextIO]]:
    """Close the logs that a test opened; a sidecar keeps its own for life."""
    opened: list[TextIO] = []
    real = os.fdopen

    def fdopen(*arguments: Any, **options: Any) -> TextIO:
        opened.append(real(*arguments, **options))
        return opened[-1]

    with monkeypatch.context() as patched:
        patched.setattr(os, "fdopen", fdopen)
        yield opened
    for file in opened:
        with contextlib.suppress(OSError):
            file.close()


def test_a_file_gets_json_lines(tmp_path: Path) -> None:
    """Whatever bytes a path has."""
    path = tmp_path / "log"
    log = logger(str(path))
    log("evaluated", root=os.fsdecode(b"/w/\xff\n/.envrc"), kernels=2)
    log("stopped")
    first, second = map(json.loads, path.read_text().splitlines())
    assert first["root"] == os.fsdecode(b"/w/\xff\n/.envrc")
    assert (first["event"], first["kernels"], second["event"]) == (
        "evaluated",
        2,
        "stopped",
    )


def test_a_terminal_gets_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Key and value, on one line."""

    class Terminal(io.StringIO):
        """One that takes what is written."""

        def isatty(self) -> bool:
            """Say so."""
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    logger(None)("watching", state="ok")
    said = terminal.getvalue()
    assert "event='watching'" in said
    assert "state='ok'" in said
    assert said.count("\n") == 1


def test_a_file_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    """It names the setting."""
    with pytest.raises(ConfigError, match=r"ENVWATCH_LOG: .* cannot be written"):
        logger(str(tmp_path / "missing" / "log"))


def test_a_full_disk_ends_nothing() -> None:
    """What cannot be logged is lost, and that is all."""
    log = logger("/dev/full")
    log("evaluated")


def test_rich_is_never_loaded() -> None:
    """structlog would load it where it is installed, for 4 MB of nothing."""
    program = (
        "import sys; from envwatch.runtime import logs; logs.logger(None);"
        " print(sorted(each for each in sys.modules if each.startswith('rich')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"


def test_a_file_is_for_the_person_alone_and_is_added_to(tmp_path: Path) -> None:
    """Paths of root files are in it; what was logged before stays."""
    path = tmp_path / "log"
    before = os.umask(0)
    try:
        logger(str(path))("first")
    finally:
        os.umask(before)
    logger(str(path))("second")
    assert path.stat().st_mode & 0o777 == 0o600
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [each["event"] for each in lines] == ["first", "second"]
    assert all(each["level"] == "info" for each in lines)
    assert all(datetime.fromisoformat(each["timestamp"]) for each in lines)


def test_no_value_is_logged_with_what_the_core_says(tmp_path: Path) -> None:
    """A field that holds a result is logged without what the result holds."""
    path = tmp_path / "log"
    result = dataclasses.replace(result_of(), body=secret("LOG").encode())
    logger(str(path))("odd", result=result)
    assert secret("LOG") not in path.read_text()
    assert "Result(outcome='loaded'" in json.loads(path.read_text())["result"]
