"""The sidecar's life: one loop that owns the hub and performs what it asks for."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import socket
import time
import traceback
from collections import deque
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from envwatch import __version__
from envwatch.config import Config
from envwatch.core.events import (
    Arm,
    Close,
    Closed,
    Compare,
    Connected,
    Effect,
    Evaluate,
    Event,
    Kill,
    Log,
    Look,
    Looked,
    Pass,
    Retire,
    Send,
    Stop,
    Tick,
    Watch,
)
from envwatch.core.hub import Hub
from envwatch.core.sidecar import Rules
from envwatch.runtime.channel import Channel, SocketChannel, StdioChannel
from envwatch.runtime.connection import STALLED_S, Connection, Unread
from envwatch.runtime.evaluator import Evaluator
from envwatch.runtime.fence import Fences, bounds
from envwatch.runtime.listener import Listener
from envwatch.runtime.watcher import Watcher
from kernel_client import direnv
from kernel_client.errors import DirenvError

TICK_S = 0.8
"""Below a second, so that a kernel that waits hears something each second."""

MAX_FILES = 65536

_STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

LAST_WORDS_S = 1.0
"""How long peers have at the end to take what was sent to them."""


def serve(config: Config, *, stdio: bool = False) -> None:
    """Serve kernels until a signal, a `stop`, or an hour without any. Blocking.

    `stdio`: one peer, on this process's stdin and stdout.

    Raises:
        EnvwatchError: it cannot listen; `exit_code` tells why.
    """
    channel = StdioChannel() if stdio else None
    listener = None
    if channel is None:
        listener = Listener.passed(os.environ) or Listener.at(config.socket)
    try:
        _raise_limit()
        anyio.run(Daemon(config).run, listener, channel)
    finally:
        if listener is not None:
            listener.close()


class Daemon:
    """Owns the hub, and everything that does I/O for it."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._events: deque[Event] = deque()
        self._is_busy = False
        self._is_for_one = False
        self._numbers = 0
        self._connections: dict[int, Connection] = {}
        self._unread = Unread(self._cut_biggest)
        self._watcher: Watcher | None = None
        self._stopping = anyio.Event()
        self._hub: Hub
        self._tasks: TaskGroup
        self._evaluator: Evaluator
        self._fences: Fences
        self._log: Callable[..., None]

    async def run(self, listener: Listener | None, channel: Channel | None) -> None:
        """Serve until something stops it."""
        with anyio.open_signal_receiver(*_STOPS) as signals:
            await self._serve(listener, channel, signals)

    async def _serve(
        self,
        listener: Listener | None,
        channel: Channel | None,
        signals: AsyncIterator[signal.Signals],
    ) -> None:
        # Late: it costs more than all the rest, and peers can connect already.
        from envwatch.runtime.logs import logger  # noqa: PLC0415

        self._log = logger(self._config.log)
        async with anyio.create_task_group() as self._tasks:
            self._fences = Fences(self.handle)
            self._evaluator = Evaluator(
                self._tasks,
                self.handle,
                fences=self._fences,
                concurrency=self._config.concurrency,
                kill_s=self._config.kill_s,
            )
            self._tasks.start_soon(self._obey, signals)
            rules = await to_thread.run_sync(self._rules)
            self._hub = Hub(rules, time.monotonic())
            self._log(
                "started",
                version=__version__,
                pid=os.getpid(),
                socket=None if listener is None else self._config.socket,
                direnv=self._hub.sidecar.rules.direnv,
            )
            self._tasks.start_soon(self._ticks)
            if listener is not None:
                self._tasks.start_soon(listener.accept, self._welcome, self._log)
            if channel is not None:
                self._only(channel)
            await self._stopping.wait()
            await self._end()
        self._log("stopped")

    def handle(self, event: Event) -> None:
        """Give the hub an event, and do at once what it asks for."""
        self._events.append(event)
        if isinstance(event, Closed):
            self._connections.pop(event.session, None)
            if self._is_for_one:
                self._stopping.set()
        if self._is_busy:
            return
        self._is_busy = True
        try:
            while self._events:
                event = self._events.popleft()
                for effect in self._effects(event):
                    self._perform_safely(effect)
        finally:
            self._is_busy = False

    def _effects(self, event: Event) -> list[Effect]:
        try:
            return self._hub.handle(event, time.monotonic())
        except Exception as error:  # noqa: BLE001 - one event, not all kernels
            self._bug(error)
            session = getattr(event, "session", None)
            return [] if session is None else [Close(session)]

    def _perform_safely(self, effect: Effect) -> None:
        try:
            self._perform(effect)
        except Exception as error:  # noqa: BLE001 - one effect, not all kernels
            self._bug(error)

    def _bug(self, error: Exception) -> None:
        """Say where, but not what: the text could have a value in it."""
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(frame.filename).name}:{frame.lineno}"
        self._log("bug", kind=type(error).__name__, where=where)

    def _perform(self, effect: Effect) -> None:  # noqa: C901, PLR0912 - a branch each
        match effect:
            case Send(number, data):
                connection = self._connections.get(number)
                if connection is not None:
                    connection.send(data)
            case Pass(number, data, fence):
                self._pass(number, data, fence)
            case Compare():
                self._evaluator.compare(effect)
            case Arm():
                self._evaluator.arm(effect)
            case Retire(number, clear):
                self._fences.retire(number, clear=clear)
            case Evaluate():
                self._evaluator.evaluate(effect)
            case Kill(number):
                self._evaluator.kill(number)
            case Close(number):
                connection = self._connections.get(number)
                if connection is not None:
                    connection.close()
            case Look():
                self.handle(Looked(effect.session, _sees(effect)))
            case Watch(folders):
                self._watch(folders)
            case Log(event, fields):
                self._log(event, **fields)
            case Stop(reason):
                self._log("stopping", reason=reason)
                self._stopping.set()

    def _pass(self, number: int, data: bytes, fence: int) -> None:
        connection = self._connections.get(number)
        descriptor = self._fences.descriptor(fence, number)
        if connection is not None and descriptor is not None:
            connection.send_descriptor(data, descriptor)

    def _watch(self, folders: frozenset[str]) -> None:
        if self._watcher is None:
            if not folders:
                return
            self._watcher = Watcher(self.handle)
            self._tasks.start_soon(self._watcher.run)
        self._watcher.want(folders)

    # ------------------------------------------------------------ peers

    def _welcome(self, peer: socket.socket) -> None:
        self._talk(SocketChannel(peer))

    def _only(self, channel: Channel) -> None:
        self._is_for_one = True
        self._talk(channel)

    def _talk(self, channel: Channel) -> None:
        self._numbers += 1
        connection = Connection(self._numbers, channel, self.handle, self._unread)
        self._connections[connection.number] = connection
        self.handle(Connected(connection.number, channel.can_pass))
        connection.open()

    # ------------------------------------------------------------ time and end

    def _rules(self) -> Rules:
        config = self._config
        return Rules(
            version=__version__,
            pid=os.getpid(),
            direnv=self._direnv(),
            idle_s=config.idle_s,
            sweep_s=config.sweep_s,
            max_age_s=config.max_age_s,
            max_kept_bytes=config.max_kept_bytes,
            precompute=config.precompute,
            concurrency=config.concurrency,
            fences=bounds(config.fence),
        )

    def _direnv(self) -> dict[str, str] | None:
        path = direnv.find(os.environ, self._config.direnv)
        if path is None:
            return None
        try:
            return {"path": path, "version": direnv.version(path, os.environ)}
        except DirenvError:
            return None

    async def _obey(self, signals: AsyncIterator[signal.Signals]) -> None:
        async for number in signals:
            self._log("stopping", reason=signal.Signals(number).name)
            self._stopping.set()

    async def _ticks(self) -> None:
        while True:
            await anyio.sleep(TICK_S)
            self.handle(Tick())
            self._cut_off(time.monotonic())

    def _cut_off(self, now: float) -> None:
        """Cut off peers that read nothing."""
        for connection in list(self._connections.values()):
            since = connection.stalled_since
            if since is not None and now - since >= STALLED_S:
                self._log("cut_off", reason="it reads nothing")
                connection.cut()

    def _cut_biggest(self) -> None:
        biggest = max(self._connections.values(), key=lambda each: each.unread)
        self._log("cut_off", reason="too much of unfinished frames")
        biggest.cut()

    async def _end(self) -> None:
        """Leave nothing behind: no process, no thread, no half answer."""
        self._evaluator.kill_all()
        self._fences.close()
        if self._watcher is not None:
            self._watcher.close()
        with anyio.move_on_after(LAST_WORDS_S):
            while any(  # noqa: ASYNC110 - many connections, each with an end
                each.stalled_since for each in self._connections.values()
            ):
                await anyio.sleep(0.01)
        for connection in list(self._connections.values()):
            connection.cut()
        self._tasks.cancel_scope.cancel()


def _sees(effect: Look) -> bool:
    try:
        seen = Path(effect.path).stat()
    except (OSError, ValueError):
        return False
    return (str(seen.st_dev), str(seen.st_ino)) == (effect.dev, effect.ino)


def _raise_limit() -> None:
    """A thousand kernels need a thousand descriptors; the soft limit is for old code."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Not above MAX_FILES: what direnv runs inherits it, and some close them all.
    wanted = MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_FILES)
    if 0 <= soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
