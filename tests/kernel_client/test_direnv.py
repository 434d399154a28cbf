"""Running direnv: found, started, read, ended with everything it started."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from kernel_client import direnv as program
from kernel_client.errors import DirenvError
from tests.support.daemons import until
from tests.support.planted import exports, secret
from tests.support.processes import gone
from tests.support.worlds import World

ENVIRON = {"PATH": "/usr/bin:/bin"}


def script(path: Path, body: str) -> str:
    """Write a program that stands for direnv."""
    path.write_text(f"#!/bin/bash\n{body}\n")
    path.chmod(0o755)
    return str(path)


def exported(
    path: str,
    *,
    kill_s: float = 20.0,
    cancellation: program.Cancellation | None = None,
    lines: list[str] | None = None,
) -> program.Run:
    """Run it as an export."""
    return program.export(
        path,
        "/",
        ENVIRON,
        kill_s=kill_s,
        on_line=None if lines is None else lines.append,
        cancellation=cancellation,
    )


def pid_in(path: Path) -> int:
    """Wait for a process to have written its id."""
    until("it runs", lambda: path.exists() and path.read_text().endswith("\n"))
    return int(path.read_text())


def test_find(tmp_path: Path) -> None:
    """The first on PATH that can be run, absolute; no folder, no plain file."""
    one, two, three = (tmp_path / name for name in ("one", "two", "three"))
    (one / "direnv").mkdir(parents=True)
    two.mkdir()
    three.mkdir()
    (two / "direnv").write_text("")
    (two / "direnv").chmod(0o644)
    found = script(three / "direnv", "")
    path = f"/nowhere:{one}:{two}:{three}"
    if os.getuid() != 0:
        assert program.find({"PATH": path}) == found
    assert program.find({"PATH": f"/nowhere:{one}:{three}"}) == found
    assert program.find({}) is None
    assert program.find({"PATH": path}, "nothing") is None
    assert program.find({}, found) == found
    assert program.find({}, str(one / "missing")) is None


def test_find_in_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty or relative part of PATH; the path that is given is absolute."""
    monkeypatch.chdir(tmp_path)
    found = script(tmp_path / "direnv", "")
    assert program.find({"PATH": "/nowhere:"}) == found
    assert program.find({"PATH": "."}) == found


def test_real_export(world: World) -> None:
    """Exit code, JSON on stdout, stderr line by line."""
    world.envrc("w", "echo one; echo two >&2\n" + exports("FOO"))
    lines: list[str] = []
    run = program.export(
        world.direnv,
        str(world.path("w")),
        world.environ,
        kill_s=20,
        on_line=lines.append,
    )
    assert (run.how, run.code) == (program.ENDED, 0)
    assert secret("FOO").encode() in run.stdout
    assert run.lines == lines
    assert "one" in lines
    assert "two" in lines


def test_real_version_and_status(world: World) -> None:
    """Both versions, though 2.32 has no JSON."""
    version = program.version(world.direnv, world.environ)
    assert version.startswith("2.")
    assert (version.startswith("2.32")) is not world.is_newer

    def told() -> tuple[str | None, int | None]:
        state = program.status(world.direnv, str(world.path("w")), world.environ)
        return state.root, state.allowed

    world.folder("w")
    assert told() == (None, None)
    path = str(world.envrc("w", exports("FOO"), allow=False))
    assert told() == (path, 1)
    world.allow("w")
    assert told() == (path, 0)
    if world.is_newer:
        world.deny("w")
        assert told() == (path, 2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("No .envrc or .env found", (None, None)),
        ("Found RC path /a\nFound RC allowed true", ("/a", 0)),
        ("Found RC path /a\nFound RC allowed false", ("/a", 1)),
        ("Found RC path /a\nFound RC allowed 2", ("/a", 2)),
        ("Found RC path /a\nFound RC allowed 0\nx\nFound RC allowed 1", ("/a", 1)),
        ('{"state": {"foundRC": null}}', (None, None)),
        ('{"state": {"foundRC": {"path": "/a", "allowed": 2}}}', ("/a", 2)),
    ],
)
def test_status_is_told_by_its_shape(
    tmp_path: Path, text: str, expected: tuple[str | None, int | None]
) -> None:
    """A path with a newline can forge lines: the last one counts."""
    path = script(tmp_path / "direnv", f"cat <<'END'\n{text}\nEND")
    state = program.status(path, "/", ENVIRON)
    assert (state.root, state.allowed) == expected


@pytest.mark.parametrize(
    "body",
    [
        "exit 1",
        "echo Found RC allowed maybe",
        "echo '{}'",
        'echo \'{"state": {"foundRC": {}}}\'',
        "kill -9 $$",
    ],
)
def test_status_without_an_answer(tmp_path: Path, body: str) -> None:
    """It is an error, and no state."""
    with pytest.raises(DirenvError):
        program.status(script(tmp_path / "direnv", body), "/", ENVIRON)


@pytest.mark.parametrize("body", ["exit 1", "true", "echo a; echo b"])
def test_no_version(tmp_path: Path, body: str) -> None:
    """What does not tell its version is no direnv."""
    with pytest.raises(DirenvError):
        program.version(script(tmp_path / "direnv", body), ENVIRON)


@pytest.mark.parametrize("environ", [ENVIRON, {"A=": "x"}, {"A": "\0"}], ids=str)
def test_cannot_be_started(tmp_path: Path, environ: dict[str, str]) -> None:
    """Missing, or an environment that no exec takes; one line, no value."""
    with pytest.raises(DirenvError) as caught:
        program.export(str(tmp_path / "missing"), "/", environ, kill_s=1)
    assert "\n" not in str(caught.value)


BODY = 'echo \'{"x": "half"}\'; (echo $BASHPID > pid; exec sleep 60) & wait'


def test_deadline_ends_the_whole_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """direnv, its bash and what that started; nothing waits for longer."""
    path = script(tmp_path / "direnv", f"cd {tmp_path}; {BODY}")
    started = time.monotonic()
    run = exported(path, kill_s=1)
    assert run.how == program.TIMEOUT
    assert time.monotonic() - started < 10
    pid = pid_in(tmp_path / "pid")
    until("the whole group has gone", lambda: gone(pid))


def test_cancellation_ends_the_whole_group(tmp_path: Path) -> None:
    """From any thread, within moments."""
    path = script(tmp_path / "direnv", f"cd {tmp_path}; {BODY}")
    cancellation = program.Cancellation()
    runs: list[program.Run] = []
    thread = threading.Thread(
        target=lambda: runs.append(exported(path, cancellation=cancellation))
    )
    thread.start()
    pid = pid_in(tmp_path / "pid")
    cancellation.cancel()
    thread.join(10)
    assert [run.how for run in runs] == [program.CANCELLED]
    until("the whole group has gone", lambda: gone(pid))


def test_interrupt_ends_the_whole_group(tmp_path: Path) -> None:
    """Whatever a listener raises goes through, and leaves no process."""
    path = script(tmp_path / "direnv", f"cd {tmp_path}; {BODY} >&2; wait")
    path = script(tmp_path / "direnv", f"cd {tmp_path}; echo line >&2; {BODY}")

    def interrupt(_: str) -> None:
        pids.append(pid_in(tmp_path / "pid"))
        raise KeyboardInterrupt

    pids: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        program.export(path, "/", ENVIRON, kill_s=20, on_line=interrupt)
    until("the whole group has gone", lambda: gone(pids[0]))


def test_flood_on_stdout_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than can be an environment is no answer."""
    monkeypatch.setattr(program, "MAX_STDOUT_BYTES", 100_000)
    path = script(tmp_path / "direnv", "yes")
    run = exported(path)
    assert run.how == program.FLOODED
    assert len(run.stdout) < 1_000_000


@pytest.mark.parametrize("newline", [True, False])
def test_flood_on_stderr_is_read_and_thrown_away(
    tmp_path: Path, newline: object
) -> None:
    """The cap holds with and without newlines, and one line says so."""
    what = "yes" if newline else "cat /dev/zero"
    body = f"{what} | head -c 20000000 >&2; printf '{{}}'"
    lines: list[str] = []
    run = exported(script(tmp_path / "direnv", body), lines=lines)
    assert (run.how, run.stdout) == (program.ENDED, b"{}")
    assert sum(map(len, lines)) < 4 * program.MAX_STDERR_BYTES
    assert [line for line in lines if "the rest is not shown" in line] == lines[-1:]


def test_odd_bytes_on_stderr(tmp_path: Path) -> None:
    """Replaced; a last line without its newline is a line too."""
    run = exported(script(tmp_path / "direnv", r"printf 'a\xffb\nlast' >&2"))
    assert run.lines == ["a\ufffdb", "last"]


def test_stderr_that_is_kept_open_holds_nobody(tmp_path: Path) -> None:
    """A background child that has only stderr: the answer is there at once."""
    body = f"(echo $BASHPID > {tmp_path}/pid; exec sleep 60) >/dev/null & printf '{{}}'"
    started = time.monotonic()
    run = exported(script(tmp_path / "direnv", body))
    try:
        assert (run.how, run.stdout) == (program.ENDED, b"{}")
        assert time.monotonic() - started < 10
    finally:
        os.kill(pid_in(tmp_path / "pid"), 9)


def test_stdin_is_empty(tmp_path: Path) -> None:
    """Whoever reads it gets the end at once."""
    run = exported(script(tmp_path / "direnv", "cat; printf done"))
    assert run.stdout == b"done"
