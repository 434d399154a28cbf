"""The hook before each cell and its magic, on a shell that only keeps what it is told."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from IPython.core.error import InputRejected, UsageError

import kernel_client
from kernel_client import Client, Result, ipython
from kernel_client.ipython import NOT_RUN

REFRESHED = Result("loaded", "/w/.envrc", answered="direnv")
UNCHANGED = Result("unchanged", "/w/.envrc", answered="stats")


class FakeClient:
    """A client that gives what the test says, or raises it."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.results: list[Result | BaseException] = []
        self.outcome: str | None = "loaded"
        self.sidecar_pid: int | None = None
        self.handler: Any = None

    def refresh(self) -> Result:
        """Give the next result."""
        self.handler = signal.getsignal(signal.SIGINT)
        return self._next("refresh")

    def reload(self) -> Result:
        """Give the next result."""
        self.handler = signal.getsignal(signal.SIGINT)
        return self._next("reload")

    def unload(self) -> Result:
        """Leave nothing loaded."""
        self.calls.append("unload")
        self.outcome = None
        return Result("unloaded")

    def prefetch(self) -> None:
        """Note that it was called."""
        self.calls.append("prefetch")

    def _next(self, name: str) -> Result:
        self.calls.append(name)
        result = self.results.pop(0) if self.results else UNCHANGED
        if isinstance(result, BaseException):
            raise result
        return result


class FakeShell:
    """Keeps callbacks, magics and transformers as IPython does."""

    def __init__(self, **more: object) -> None:
        self.callbacks: list[Callable[..., None]] = []
        self.ast_transformers: list[Any] = []
        self.events = SimpleNamespace(
            register=lambda _, function: self.callbacks.append(function),
            unregister=lambda _, function: self.callbacks.remove(function),
        )
        self.magics_manager = SimpleNamespace(magics={"line": {}})
        self.__dict__.update(more)

    def register_magic_function(
        self, function: Callable[..., None], *, magic_kind: str, magic_name: str
    ) -> None:
        """Keep a magic."""
        self.magics_manager.magics[magic_kind][magic_name] = function

    def run(self) -> None:
        """Run a cell, as far as IPython's callbacks and transformers go."""
        for callback in self.callbacks:
            callback(SimpleNamespace())
        for transformer in self.ast_transformers:
            transformer.visit(None)


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> FakeClient:
    """Give what the extension takes for the client of this kernel."""
    fake = FakeClient()
    monkeypatch.setattr(kernel_client, "default_client", lambda: fake)
    return fake


@pytest.fixture
def shell(client: FakeClient) -> Iterator[FakeShell]:
    """Give a terminal's shell with the extension."""
    made = FakeShell()
    kernel_client.load_ipython_extension(made)
    client.calls.clear()
    yield made
    kernel_client.unload_ipython_extension(made)


def magic(shell: FakeShell, line: str) -> None:
    """Type `%envwatch` and a word."""
    shell.magics_manager.magics["line"]["envwatch"](line)


def test_terminal(client: FakeClient) -> None:
    """It refreshes at once, and loading it again changes nothing."""
    made = FakeShell()
    for _ in range(2):
        ipython.load(made)

    assert client.calls == ["refresh"]
    assert len(made.callbacks) == 1
    ipython.unload(made)


@pytest.mark.parametrize(
    ("header", "call"), [({}, "prefetch"), (None, "prefetch"), ({"x": 1}, "refresh")]
)
def test_kernel(client: FakeClient, header: object, call: str) -> None:
    """One that only starts asks, one that runs a cell already refreshes."""
    made = FakeShell(kernel=object(), parent_header=header)
    ipython.load(made)

    assert client.calls == [call]
    ipython.unload(made)


def test_unloading(shell: FakeShell, client: FakeClient) -> None:
    """Nothing stays, and a second time changes nothing."""
    for _ in range(2):
        ipython.unload(shell)

    assert client.calls == ["unload"]
    assert shell.callbacks == []
    assert shell.magics_manager.magics == {"line": {}}


def test_each_cell(shell: FakeShell, client: FakeClient) -> None:
    """One refresh before each, also where IPython says nothing of the cell."""
    shell.run()
    shell.callbacks[0]()

    assert client.calls == ["refresh", "refresh"]
    assert shell.ast_transformers == []


def test_interrupt(shell: FakeShell, client: FakeClient) -> None:
    """That cell is rejected in one line; the next one runs."""
    client.results = [KeyboardInterrupt()]
    with pytest.raises(InputRejected, match=NOT_RUN) as caught:
        shell.run()
    shell.run()

    value: Any = caught.value
    assert value._render_traceback_() == [f"envwatch: {NOT_RUN}"]
    assert shell.ast_transformers == []


def test_interrupt_before_a_cell_that_is_not_compiled(
    shell: FakeShell, client: FakeClient
) -> None:
    """What was to reject it does not reject the next one."""
    client.results = [KeyboardInterrupt()]
    shell.callbacks[0]()
    assert len(shell.ast_transformers) == 1

    shell.run()
    assert shell.ast_transformers == []


def test_other_transformers_stay(shell: FakeShell, client: FakeClient) -> None:
    """Those of the person are not ours to remove."""
    mine = SimpleNamespace(visit=lambda node: node)
    shell.ast_transformers.append(mine)
    client.results = [KeyboardInterrupt()]
    with pytest.raises(InputRejected):
        shell.run()

    assert shell.ast_transformers == [mine]


def test_bug(
    shell: FakeShell, client: FakeClient, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is raised into the cell, and no value is said."""
    client.results = [ValueError("a value")]
    shell.run()

    said = capsys.readouterr().err
    assert said == (
        "envwatch: it failed (ValueError);"
        " this run starts without the workspace's environment\n"
    )


def test_interrupt_while_it_is_loaded(
    client: FakeClient, capsys: pytest.CaptureFixture[str]
) -> None:
    """A start-up file is not ended by it, and the extension is there."""
    client.results = [KeyboardInterrupt()]
    made = FakeShell()
    ipython.load(made)

    assert "interrupted" in capsys.readouterr().err
    assert len(made.callbacks) == 1
    ipython.unload(made)


def test_interrupt_of_a_cell_that_loads_it(client: FakeClient) -> None:
    """The rest of that cell is not run; the extension is there all the same."""
    client.results = [KeyboardInterrupt()]
    made = FakeShell(kernel=object(), parent_header={"x": 1})
    with pytest.raises(KeyboardInterrupt):
        ipython.load(made)

    assert len(made.callbacks) == 1
    ipython.load(made)
    assert len(made.callbacks) == 1
    ipython.unload(made)


def test_handler_of_an_async_cell(shell: FakeShell, client: FakeClient) -> None:
    """An interrupt gets through for as long as the refresh lasts, and no longer."""

    def theirs(*_: object) -> None:
        """Wait for an event loop."""

    before = signal.signal(signal.SIGINT, theirs)
    try:
        shell.run()
        assert client.handler is signal.default_int_handler
        assert signal.getsignal(signal.SIGINT) is theirs

        client.handler = None
        magic(shell, "reload")
        assert client.handler is signal.default_int_handler

        client.results = [KeyboardInterrupt()]
        shell.callbacks[0]()
        assert signal.getsignal(signal.SIGINT) is theirs
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("theirs", [signal.SIG_IGN, signal.SIG_DFL])
def test_handlers_that_are_left_alone(
    shell: FakeShell, client: FakeClient, theirs: signal.Handlers
) -> None:
    """Who ignores interrupts goes on doing so."""
    before = signal.signal(signal.SIGINT, theirs)
    try:
        shell.run()
        assert client.handler is theirs
    finally:
        signal.signal(signal.SIGINT, before)


def test_thread(shell: FakeShell, client: FakeClient) -> None:
    """A cell on another thread cannot set handlers, and is refreshed all the same."""
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        thread = threading.Thread(target=shell.run)
        thread.start()
        thread.join()
        assert client.calls == ["refresh"]
    finally:
        signal.signal(signal.SIGINT, before)


def test_status(
    shell: FakeShell, client: FakeClient, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who answered last is the last who was asked."""
    client.results = [REFRESHED]
    client.sidecar_pid = 7
    shell.run()
    shell.run()
    magic(shell, "")

    assert capsys.readouterr().out.splitlines() == [
        "envwatch:    on",
        "root file:   /w/.envrc",
        "held:        loaded",
        "last answer: direnv",
        "sidecar:     attached, pid 7",
    ]


def test_off_and_on(
    shell: FakeShell, client: FakeClient, capsys: pytest.CaptureFixture[str]
) -> None:
    """`off` unloads and stops, `on` refreshes at once."""
    magic(shell, "off")
    shell.run()
    magic(shell, "reload")
    magic(shell, "status")
    assert client.calls == ["unload"]
    said = capsys.readouterr().out
    assert "envwatch: off; nothing is loaded here" in said
    assert "envwatch:    off\nroot file:   none\nheld:        nothing\n" in said

    magic(shell, " on ")
    shell.run()
    assert client.calls == ["unload", "refresh", "refresh"]


def test_reload(
    shell: FakeShell, client: FakeClient, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says what it came to; an interrupt is the cell's own."""
    client.results = [REFRESHED, KeyboardInterrupt()]
    magic(shell, "reload")
    assert capsys.readouterr().out == "envwatch: loaded\n"

    with pytest.raises(KeyboardInterrupt):
        magic(shell, "reload")


def test_wrong_word(shell: FakeShell) -> None:
    """IPython shows its usage in one line."""
    with pytest.raises(UsageError, match=re.escape(ipython.USAGE)):
        magic(shell, "nonsense")


def test_no_stderr(
    shell: FakeShell, client: FakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cell runs where there is no stderr at all."""
    monkeypatch.setattr("sys.stderr", None)
    client.results = [ValueError()]
    shell.run()


def test_fake_client_is_like_the_real_one() -> None:
    """What the hook calls is there."""
    for name in ("refresh", "reload", "unload", "prefetch", "outcome", "sidecar_pid"):
        assert hasattr(Client, name)
        assert hasattr(FakeClient(), name)
