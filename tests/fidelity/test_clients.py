"""Clients as hosts use them: several, forked, closed, prefetching, with odd outputs."""

from __future__ import annotations

import os
import threading

import pytest

from kernel_client import Client, Result
from tests.support import reference
from tests.support.children import forked
from tests.support.pairs import Pair, assert_said, settings_of
from tests.support.planted import exports, secret


def test_next_client_over_the_same_environment(pair: Pair) -> None:
    """A client that follows another one adopts what that one loaded."""
    pair.world.envrc("w", exports("FOO", "KEEP"))
    pair.step("w", outcome="loaded")
    after = Pair(pair.world, socket=pair.socket, environ=pair.environ)
    try:
        after.step(outcome="unchanged")
        pair.world.envrc("w", exports("BAR"), allow=False)
        after.step(outcome="blocked")
        after.step("", outcome="unloaded")
        assert after.environ == pair.world.environ
    finally:
        after.close()


def test_prefetched(pair: Pair) -> None:
    """A prefetch changes nothing by itself, and the first refresh is as ever."""
    pair.world.envrc("w", exports("FOO"))
    pair.go("w")
    before = dict(pair.environ)
    pair.kernel.client.prefetch()
    assert pair.environ == before

    pair.step(outcome="loaded")
    pair.step(outcome="unchanged")


def test_prefetched_and_edited(pair: Pair) -> None:
    """What is edited after a prefetch is not taken from it."""
    pair.world.envrc("w", exports("FOO"))
    pair.go("w")
    pair.kernel.client.prefetch()
    pair.world.envrc("w", exports("BAR"), allow=False)

    pair.step(outcome="blocked")


def test_closed(pair: Pair) -> None:
    """A closed client leaves the environment, and can be used again."""
    pair.world.envrc("w", exports("FOO"))
    pair.step("w", outcome="loaded")
    loaded = dict(pair.environ)
    pair.kernel.close()
    assert pair.environ == loaded

    pair.step(outcome="unchanged")
    pair.world.envrc("w", exports("BAR"))
    pair.step(outcome="loaded")


def test_output_that_fails(pair: Pair) -> None:
    """An output that raises does not keep the environment from being loaded."""

    def output(line: str) -> None:
        raise BrokenPipeError

    pair.world.envrc("w", exports("FOO"))
    pair.go("w")
    pair.shell.prompt()
    environ = dict(pair.world.environ)
    client = Client(environ, output=output, settings=settings_of(pair.socket))

    assert client.refresh().outcome == "loaded"

    assert environ == pair.shell.environ
    client.close()


def test_output_that_refreshes(pair: Pair) -> None:
    """An output that refreshes while a refresh says something does no harm."""
    inner: list[Result] = []
    environ = dict(pair.world.environ)

    def output(line: str) -> None:
        inner.append(client.refresh())

    client = Client(environ, output=output, settings=settings_of(pair.socket))
    pair.world.envrc("w", exports("FOO"))
    pair.go("w")
    pair.shell.prompt()

    assert client.refresh().outcome == "loaded"

    assert inner
    assert environ == pair.shell.environ
    client.close()


def test_default_output(pair: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    """Without an output, lines go to stderr, and nothing to stdout."""
    pair.world.envrc("w", exports("FOO"))
    pair.go("w")
    said = pair.shell.prompt()
    environ = dict(pair.world.environ)
    client = Client(environ, settings=settings_of(pair.socket))
    client.refresh()
    shown = capsys.readouterr()

    assert shown.out == ""
    assert_said(tuple(shown.err.splitlines()), said.lines)
    client.close()


def test_forked(pair: Pair) -> None:
    """A child follows its own folder; the parent goes on with what it had."""
    pair.world.envrc("w", exports("FOO"))
    pair.world.envrc("b", exports("BAR"))
    pair.step("w", outcome="loaded")

    def child() -> list[dict[str, str]]:
        pair.step(outcome="unchanged")
        pair.step("b", outcome="loaded")
        return [dict(pair.environ), pair.shell.environ]

    ours, theirs = forked(child)

    assert not reference.difference(ours, theirs)
    assert ours["BAR"] == secret("BAR")
    pair.step(outcome="unchanged")
    pair.world.envrc("w", exports("FOO", tag="2"))
    pair.step(outcome="loaded")
    pair.step("b", outcome="loaded")


def test_child_outlives_an_edit_of_the_parents(pair: Pair) -> None:
    """Two forked children, one after the other, each see the file as it is then."""
    pair.world.envrc("w", exports("FOO"))
    pair.step("w", outcome="loaded")
    for tag in ("2", "3"):
        pair.world.envrc("w", exports("FOO", tag=tag))

        def child() -> str:
            pair.kernel.refresh()
            return pair.environ["FOO"]

        assert forked(child) == secret(f"FOO{tag}")
    assert pair.environ["FOO"] == secret("FOO")
    pair.step(outcome="loaded")


def test_threads(pair: Pair) -> None:
    """Threads that refresh at once get one environment, whole."""
    pair.world.envrc("w", f"echo x >>../runs\n{exports('FOO', 'KEEP')}")
    pair.go("w")
    outcomes: list[str] = []
    threads = [
        threading.Thread(target=lambda: outcomes.append(pair.kernel.refresh().outcome))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(outcomes) == ["loaded", *["unchanged"] * 7]
    assert pair.world.path("runs").read_text() == "x\n"
    pair.shell.prompt()
    assert pair.environ == pair.shell.environ


def test_file_that_changes_while_it_is_evaluated(pair: Pair) -> None:
    """What is edited while direnv runs is not taken for seen."""
    body = exports("FOO") + "[ -e once ] || { touch once; cp next .envrc; }\n"
    pair.world.write("w/next", exports("BAR"))
    pair.world.envrc("w", body)
    pair.go("w")

    pair.kernel.refresh()
    pair.kernel.refresh()

    assert pair.kernel.client.outcome == "blocked"
    assert "FOO" not in pair.environ
    assert "BAR" not in pair.environ
    assert os.getcwd() == str(pair.world.path("w"))
