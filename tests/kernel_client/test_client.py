"""`refresh()` itself: the fast path, and everything that must not get out of it."""

from __future__ import annotations

import gc
import os
import sys
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

import kernel_client
from kernel_client import Client, Result, Settings
from kernel_client.upkeep import MAX_ROUNDS
from tests.conftest import NEWER as NEWEST
from tests.support.daemons import Daemon
from tests.support.pairs import settings_of
from tests.support.planted import PLANTED, exports, secret
from tests.support.worlds import World

NEWER = pytest.mark.parametrize("version", ["2.37"])
OFF = Settings(sidecar="off")


@pytest.fixture
def environ(world: World) -> dict[str, str]:
    """Give an environment."""
    return dict(world.environ)


@pytest.fixture
def lines() -> list[str]:
    """Give what the client says."""
    return []


@pytest.fixture
def client(environ: dict[str, str], lines: list[str]) -> Iterator[Client]:
    """Give a client in direct mode."""
    made = Client(environ, output=lines.append, settings=OFF)
    yield made
    made.close()
    assert not any(PLANTED in line for line in lines)


@NEWER
def test_unchanged_is_one_object(world: World, client: Client) -> None:
    """Nothing is made for it, and it says which file it is about."""
    path = world.envrc("w", exports("FOO"))
    os.chdir(world.path("w"))
    first = client.refresh()
    assert (first.outcome, first.set_names) == ("loaded", ("FOO",))
    assert first.seconds > 0
    again = client.refresh()
    assert again is client.refresh()
    assert (again.outcome, again.answered) == ("unchanged", "stats")
    assert again.root_file == str(path)
    assert client.outcome == "loaded"
    assert PLANTED not in repr(first)


@NEWER
def test_folder_in_place_of_the_working_folder(
    world: World, environ: dict[str, str]
) -> None:
    """A client may follow a folder that nobody stands in, wherever the process is."""
    world.envrc("w", exports("FOO"))
    world.envrc("other", exports("BAR"))
    folder = str(world.folder("w/deep"))
    client = Client(environ, output=lambda _: None, settings=OFF, folder=folder)
    os.chdir(world.path("other"))

    assert client.refresh().outcome == "loaded"
    assert {"FOO", "BAR"} & set(environ) == {"FOO"}
    os.chdir(folder)
    assert client.refresh().outcome == "unchanged"
    os.chdir(world.top)
    world.envrc("w", exports("FOO", "MORE"))
    assert client.refresh().set_names == ("MORE",)
    world.path("w/.envrc").unlink()
    assert client.refresh().outcome == "unloaded"
    client.close()


@NEWER
def test_diff_that_somebody_replaced(
    world: World, client: Client, environ: dict[str, str]
) -> None:
    """The very object that was set counts; scrubbed variables are loaded again."""
    world.envrc("w", exports("FOO"))
    os.chdir(world.path("w"))
    client.refresh()
    for name in [name for name in environ if name.startswith("DIRENV_")]:
        del environ[name]
    del environ["FOO"]
    assert client.refresh().outcome == "loaded"
    assert environ["FOO"] == secret("FOO")


@NEWER
def test_output_that_fails(world: World, environ: dict[str, str]) -> None:
    """It must not fail the run."""

    def fails(_: str) -> None:
        raise RuntimeError

    made = Client(environ, output=fails, settings=OFF)
    world.envrc("w", exports("FOO"))
    os.chdir(world.path("w"))
    result = made.refresh()
    assert result.outcome == "loaded"
    assert any("loading" in line for line in result.messages)


@NEWER
def test_refresh_inside_a_refresh(world: World, environ: dict[str, str]) -> None:
    """An output or a signal handler that refreshes gets `unchanged`, no dead lock."""
    inner: list[Result] = []
    made = Client(environ, output=lambda _: inner.append(made.refresh()), settings=OFF)
    world.envrc("w", exports("FOO"))
    os.chdir(world.path("w"))
    assert made.refresh().outcome == "loaded"
    assert inner
    assert {result.outcome for result in inner} == {"unchanged"}


@NEWER
def test_bug_of_ours(
    world: World,
    client: Client,
    environ: dict[str, str],
    lines: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever is raised inside: nothing stale, one line without its text, said once."""
    world.envrc("w", exports("FOO"))
    os.chdir(world.path("w"))
    client.refresh()
    lines.clear()

    def fails(*_: object, **__: object) -> None:
        raise RuntimeError(secret("text"))

    monkeypatch.setattr(client._answers, "ask", fails)
    world.envrc("w", exports("BAR"))
    for _ in range(3):
        assert client.refresh().outcome == "broken"
        assert environ == world.environ
    assert len(lines) == 1
    assert "RuntimeError" in lines[0]


@NEWER
def test_setting_that_cannot_be_read(world: World, environ: dict[str, str]) -> None:
    """One line, and the defaults."""
    said: list[str] = []
    made = Client({**environ, "ENVWATCH_WAIT_S": "soon"}, output=said.append)
    assert len(said) == 1
    assert "ENVWATCH_WAIT_S" in said[0]
    assert made.settings.wait_s == Settings().wait_s


@NEWER
def test_reload_evaluates_again(
    world: World, client: Client, environ: dict[str, str]
) -> None:
    """Though nothing has changed that could be seen."""
    world.envrc("w", "export COUNT=$(cat /proc/sys/kernel/random/uuid)\n")
    os.chdir(world.path("w"))
    client.refresh()
    before = environ["COUNT"]
    assert client.refresh().outcome == "unchanged"
    assert client.reload().outcome == "loaded"
    assert environ["COUNT"] != before


@NEWER
@pytest.mark.parametrize("how", ["blocked", "failed"])
def test_said_once(world: World, client: Client, lines: list[str], how: str) -> None:
    """The outcome stays, the words do not repeat."""
    world.envrc("w", "exit 3\n", allow=how == "failed")
    os.chdir(world.path("w"))
    assert client.refresh().outcome == how
    said = len(lines)
    assert said
    for _ in range(3):
        assert client.refresh().outcome == "unchanged"
    assert client.outcome == how
    assert len(lines) == said


@NEWER
@pytest.mark.parametrize("how", ["loaded", "blocked"])
def test_unload(
    world: World, environ: dict[str, str], client: Client, lines: list[str], how: str
) -> None:
    """It leaves the environment as it was, in silence; the next refresh looks afresh."""
    world.envrc("w", exports("FOO", "KEEP"), allow=how == "loaded")
    os.chdir(world.path("w"))
    assert client.refresh().outcome == how
    said = list(lines)

    result = client.unload()
    assert (result.outcome, result.answered) == ("unloaded", "record")
    assert result.unset_names == (("FOO",) if how == "loaded" else ())
    assert environ == world.environ
    assert lines == said
    assert client.outcome is None

    assert client.refresh().outcome == how


@NEWER
def test_unload_of_nothing(world: World, environ: dict[str, str]) -> None:
    """What was only inherited is left alone, and so is a bare environment."""
    world.envrc("w", exports("FOO"))
    os.chdir(world.path("w"))
    first = Client(environ, settings=OFF)
    assert first.unload().outcome == "absent"
    first.refresh()
    first.close()
    inherited = dict(environ)

    assert Client(environ, settings=OFF).unload().outcome == "absent"
    assert environ == inherited


@NEWER
def test_unload_after_somebody_loaded_another(
    world: World, environ: dict[str, str], client: Client
) -> None:
    """What another hook has loaded in the meantime is not ours to take back."""
    world.envrc("w", exports("FOO"))
    world.envrc("v", exports("BAR"))
    other = dict(environ)
    os.chdir(world.path("v"))
    hook = Client(other, settings=OFF)
    hook.refresh()
    hook.close()
    os.chdir(world.path("w"))
    client.refresh()
    environ.clear()
    environ.update(other)

    assert client.unload().outcome == "absent"
    assert environ == other


@NEWER
def test_unload_that_fails(world: World) -> None:
    """A variable that cannot be written does not keep the others, nor is it raised."""

    class Refusing(dict[str, str]):
        def pop(self, name: str, *default: Any) -> Any:
            if name == "BAR" and name in self:
                raise OSError
            return super().pop(name, *default)

    environ = Refusing(world.environ)
    world.envrc("w", exports("FOO", "BAR"))
    os.chdir(world.path("w"))
    client = Client(environ, output=lambda _: None, settings=OFF)
    client.refresh()

    assert client.unload().outcome == "unloaded"
    assert "FOO" not in environ
    client.close()


@NEWER
@pytest.mark.parametrize("mode", ["direct", "sidecar"])
def test_sidecar_pid(
    world: World, environ: dict[str, str], daemons: dict[str, Daemon], mode: str
) -> None:
    """It is that of the process at the other end, for as long as there is one."""
    path = daemons[NEWEST].socket
    client = Client(environ, settings=settings_of(path if mode == "sidecar" else None))
    assert client.sidecar_pid is None
    world.envrc("w", exports("FOO"))
    os.chdir(world.path("w"))
    client.refresh()
    process = daemons[NEWEST].process
    assert process is not None
    assert client.sidecar_pid == (process.pid if mode == "sidecar" else None)
    client.close()
    assert client.sidecar_pid is None


@NEWER
def test_threads_share_a_client(
    world: World, client: Client, environ: dict[str, str]
) -> None:
    """They wait for each other: one evaluation for all."""
    world.envrc("w", "echo >> runs\nsleep 0.1\n" + exports("FOO"))
    os.chdir(world.path("w"))
    results: list[Result] = []
    threads = [
        threading.Thread(target=lambda: results.append(client.refresh()))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    outcomes = sorted(result.outcome for result in results)
    assert outcomes == ["loaded", *["unchanged"] * 7]
    assert world.path("w/runs").read_text() == "\n"


@NEWER
def test_module_keeps_os_environ(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`kernel_client.refresh()` is the one of `os.environ`; lines go to stderr."""
    for name in list(os.environ):
        if name.startswith("DIRENV_"):
            monkeypatch.delenv(name)
    for name, value in world.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("ENVWATCH_SIDECAR", "off")
    monkeypatch.setattr(kernel_client, "_default", [])
    before = dict(os.environ)
    world.envrc("w", exports("EW_FOO"))
    monkeypatch.chdir(world.path("w"))
    kernel_client.prefetch()
    assert kernel_client.refresh().outcome == "loaded"
    assert os.environ["EW_FOO"] == secret("EW_FOO")
    assert kernel_client.reload().outcome == "loaded"
    assert kernel_client.default_client() is kernel_client.default_client()
    err = capsys.readouterr().err
    assert "direnv: loading" in err
    assert "\x1b" not in err
    os.chdir(world.top)
    assert kernel_client.refresh().outcome == "unloaded"
    assert dict(os.environ) == before


@NEWER
def test_no_stderr(
    world: World, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process without one is served too."""
    made = Client(environ, settings=OFF)
    world.envrc("w", exports("FOO"))
    os.chdir(world.path("w"))
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", None)
        assert made.refresh().outcome == "loaded"


@NEWER
def test_dropped_client_is_forgotten(environ: dict[str, str]) -> None:
    """Nothing keeps it but its host."""
    made = Client(environ, settings=OFF)
    kept = weakref.ref(made)
    del made
    gc.collect()
    assert kept() is None


@pytest.fixture
def fenced(environ: dict[str, str], lines: list[str]) -> Iterator[Client]:
    """Give a client in direct mode that arms a fence wherever it can."""
    eager = Settings(sidecar="off", fence="always")
    made = Client(environ, output=lines.append, settings=eager)
    yield made
    made.close()


@NEWER
def test_unload_gives_up_the_fence(world: World, fenced: Client) -> None:
    """There is nothing that it could watch for."""
    world.envrc("w", exports("FOO"))
    os.chdir(world.path("w"))
    assert fenced.refresh().outcome == "loaded"
    assert fenced._fences._held is not None
    fenced.unload()
    assert fenced._fences._held is None


@NEWER
def test_interrupt_of_a_poll_burns_the_fence(world: World, fenced: Client) -> None:
    """A mount is told once, and may have been told just then: all is compared."""
    world.envrc("w", exports("FOO"))
    os.chdir(world.path("w"))
    assert fenced.refresh().outcome == "loaded"
    held = fenced._fences._held
    assert held is not None

    def interrupted() -> list[tuple[int, int]]:
        raise KeyboardInterrupt

    (*checks, _, due) = fenced._checks[os.getcwd()]
    fenced._checks[os.getcwd()] = (*checks, (interrupted, []), due)  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        fenced.refresh()
    assert held.is_burnt
    fenced._checks.clear()
    assert fenced.refresh().outcome == "unchanged"
    assert fenced._fences._held is not held


@NEWER
def test_a_fence_vouches_for_no_refused_snapshot(
    world: World,
    fenced: Client,
    environ: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What was armed after the files had moved is quiet, and says nothing of them."""
    world.envrc("w", 'watch_file value\nexport V="$(cat value)"\n')
    value = world.write("w/value", "0")
    os.chdir(world.path("w"))
    prepare = fenced._upkeep._prepare
    written: list[int] = []

    def meanwhile(*given: Any) -> None:
        if len(written) < MAX_ROUNDS:
            written.append(0)
            value.write_text(f"w{len(written)}")
        prepare(*given)

    monkeypatch.setattr(fenced._upkeep, "_prepare", meanwhile)
    fenced.refresh()
    assert environ.get("V") != value.read_text(), "the last write came too late for it"
    fenced.refresh()
    assert environ["V"] == value.read_text()
