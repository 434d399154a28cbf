"""The command line, as people run it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench import cli
from bench.findings import CannotRunError, Distribution, Finding, Row
from bench.parts import PARTS, Part
from tests.support.worlds import World

CHECKOUT = Path(__file__).parents[2]


def command(world: World, *arguments: object) -> list[str]:
    """Give the command with a direnv that is told by its path."""
    module = [sys.executable, "-m", "bench", "--direnv", world.direnv]
    return [*module, *map(str, arguments)]


def environ_of(world: World) -> dict[str, str]:
    """Give the environment that it runs in."""
    return {**world.environ, "PYTHONPATH": str(CHECKOUT)}


def ran(world: World, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run it to its end, in the world's own folder."""
    return subprocess.run(
        command(world, *arguments),
        cwd=world.top,
        env=environ_of(world),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nope"], ["no part nope", "hook, reload"]),
        (["hook", "--watches", "3,x"], ["--watches", "'3,x'", "as 3,30,300"]),
        (["hook", "--watches", "0"], ["--watches", "1 to 50000"]),
        (["herd", "--kernels", "5000"], ["--kernels", "1 to 2000"]),
        (["--workspace", "/dev/null"], ["--workspace", "not a folder"]),
        (["--workspace", "/", "hook"], ["--workspace", "name no parts"]),
        (["--workspace", "/", "--output", "/tmp"], ["--output", "into that workspace"]),
        (["scoreboard", "hook"], ["scoreboard stands alone"]),
        (["import", "--output", "/nowhere"], ["--output", "not a folder"]),
        (["import", "--json", "--markdown"], ["--markdown", "not allowed with"]),
    ],
)
def test_bad_arguments(
    arguments: list[str], words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """One line, and 2."""
    with pytest.raises(SystemExit) as ended:
        cli.run(arguments)
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("bench: ")
    for word in words:
        assert word in line


def test_no_direnv(capsys: pytest.CaptureFixture[str]) -> None:
    """One line, and 69."""
    assert cli.run(["import", "--direnv", "/nowhere/direnv"]) == 69
    assert capsys.readouterr().err == "bench: there is no /nowhere/direnv\n"


@pytest.mark.parametrize("version", ["2.37"])
def test_a_real_part(world: World) -> None:
    """Measured, printed and written, all three the same."""
    ended = ran(world, "import", "--quick", "--json")
    assert ended.returncode == 0, ended.stderr
    printed = json.loads(ended.stdout)
    assert printed == json.loads(world.path("bench-report.json").read_text())
    assert world.path("bench-report.html").read_text().startswith("<!doctype html>")
    scored = [row for row in printed["rows"] if row["target"] != "-"]
    assert len(scored) == 2
    for row in scored:
        assert 0 < row["figures"]["middle"] < 60
    for each in printed["distributions"]:
        assert 0 < each["p50"] <= each["p90"] <= each["most"]
        assert each["p99"] is None
        assert each["count"] == len(each["samples_s"]) == 10
    assert printed["quick"] is True
    assert printed["started"] > 0


@pytest.mark.parametrize("version", ["2.37"])
def test_the_reader_s_choice(world: World) -> None:
    """As many watched files and kernels as were asked for, each a real one."""
    ended = ran(world, "hook", "--quick", "--json", "--watches", "3,20")
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)["distributions"]
    at = {each["at"] for each in found if each["axis"] == "watched files"}
    assert at == {3, 20}


def part(*given: Finding, error: Exception | None = None) -> Part:
    """Give a part that finds this, and fails after it."""

    def measured(world: World, *, quick: bool) -> Iterator[Finding]:
        yield from given
        if error is not None:
            raise error

    return Part("made up", (measured,))


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> dict[str, Part]:
    """Have no parts but the test's."""
    found: dict[str, Part] = {}
    monkeypatch.setattr(cli, "PARTS", found)
    return found


@pytest.fixture
def run(direnvs: dict[str, str], tmp_path: Path) -> Any:
    """Run it here."""
    return lambda *given: cli.run(
        [*given, "--direnv", direnvs["2.37"], "--output", str(tmp_path)]
    )


MET = Row("a", "what", "<= 1", "0.5", met=True)
PEER = Row("a", "peer", "-", "3")


@pytest.mark.parametrize("is_met", [True, False])
def test_scoreboard(
    run: Any,
    parts: dict[str, Part],
    capsys: pytest.CaptureFixture[str],
    *,
    is_met: bool,
) -> None:
    """1 when a row is not met; peers are no rows."""
    row = Row("a", "what", "<= 1", "0.5", met=is_met)
    parts["a"] = part(row, PEER, Distribution("a", "chart", "label", (1.0,)))
    assert run("scoreboard") == (0 if is_met else 1)
    out = capsys.readouterr().out
    assert "peer" not in out
    assert "label" not in out


def test_scoreboard_writes_no_report(
    run: Any, parts: dict[str, Part], tmp_path: Path
) -> None:
    """It is for the README, and for a glance."""
    parts["a"] = part(MET)
    run("scoreboard")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "error", [CannotRunError("no compiler"), OSError(28, "no compiler")]
)
def test_a_part_that_cannot_run(
    run: Any,
    parts: dict[str, Part],
    error: Exception,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It says why, keeps what it has found, and the others run; it is not met."""
    parts.update(a=part(MET, error=error), b=part(MET))
    assert run() == 0
    out = capsys.readouterr().out
    assert out.count("0.5") == 2
    assert "cannot run" in out
    assert "no compiler" in out
    assert run("scoreboard") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("version", ["2.37"])
def test_interrupted(world: World, number: int) -> None:
    """Nothing that it started is left, no folder either; 130."""
    temporary = world.folder("tmp")
    with subprocess.Popen(
        command(world, "daemon", "--quick"),
        cwd=world.top,
        env={**environ_of(world), "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as running:
        while not list(temporary.glob("ewb-*/s/sock")):
            assert running.poll() is None
        running.send_signal(number)
        _, said = running.communicate()
    assert running.returncode == 130
    assert said.splitlines()[-1] == "bench: interrupted"
    assert list(temporary.iterdir()) == []
    left = [
        path
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if str(temporary).encode() in _read(path.with_name("environ"))
    ]
    assert left == []


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


@pytest.mark.parametrize("missing", ["rich", "matplotlib"])
@pytest.mark.parametrize("version", ["2.37"])
def test_without_its_libraries(world: World, missing: str) -> None:
    """One line that tells what to install."""
    code = (
        "import importlib.util as u, sys\nfind = u.find_spec\n"
        f"u.find_spec = lambda name: None if name == {missing!r} else find(name)\n"
        "from bench.__main__ import main\nsys.exit(main())"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        env=environ_of(world),
        cwd=world.top,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 69
    expected = f"bench: there is no {missing}; pip install '.[bench]'\n"
    assert (ended.stdout, ended.stderr) == ("", expected)


def test_every_part_says_what_it_does() -> None:
    """The report has it under "How this was made"."""
    for found in PARTS.values():
        for measuring in (*found.scored, *found.more):
            assert measuring.__doc__, measuring


def test_reports_that_cannot_be_written(
    run: Any, parts: dict[str, Part], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line; what was found was printed."""
    (tmp_path / "bench-report.json").mkdir()
    parts["a"] = part(MET)
    assert run() != 0
    said = capsys.readouterr()
    assert "0.5" in said.out
    assert "bench-report.json: Is a directory" in said.err.splitlines()[-1]
    assert os.listdir(tmp_path) == ["bench-report.json"]
