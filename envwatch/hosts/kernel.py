"""A real kernel with the hook in it, for a front end of our own: start, run, ask, end.

The kernel is started as `envwatch jupyter install` would have it started, so the
hook is there before its first cell, also in another virtual environment. One
request at a time; what comes late (from a thread of a run that has ended, say) goes
to the run that the kernel says it belongs to, or to the last one. A kernel that dies
is noticed, and a new one can be started in its place.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import queue
import tempfile
from collections.abc import Coroutine, Mapping
from subprocess import DEVNULL
from typing import IO, Any

from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager

from envwatch.core.console import (
    Asked,
    Hear,
    Printed,
    Report,
    Said,
    Shown,
    reported,
)
from envwatch.errors import Unavailable

START_S = 60.0
ASK_S = 5.0
"""How long a kernel that runs nothing may take for an answer of its own."""
COMPLETE_S = 0.5
"""How long a person waits for a kernel's word on whether code is complete."""
END_S = 4.0
"""How long a kernel may take for its end, before it is killed."""

_LOOK_EVERY_S = 0.5
_KEPT = 200
_HIDDEN = "Password: "  # ipykernel asks without a word
_TOLD = "envwatch"
_CALL = '__import__("kernel_client.console").console.{}'


class Kernel:
    """One kernel at a time, of one kernelspec, in one environment."""

    def __init__(self, spec: Mapping[str, Any], environ: Mapping[str, str]) -> None:
        self._specs = _Only(spec)
        self._environ = dict(environ)
        self._manager: AsyncKernelManager | None = None
        self._client: AsyncKernelClient | None = None
        self._listeners: list[asyncio.Task[None]] = []
        self._hears: dict[str, Hear] = {}
        self._idle: dict[str, asyncio.Event] = {}
        self._turn = asyncio.Lock()

    @property
    def is_running(self) -> bool:
        """Whether there is a kernel that can run something."""
        return self._client is not None

    async def start(self, folder: str) -> Report | None:
        """Start a kernel in a folder; give its first report, None without a hook.

        Raises:
            Unavailable: it does not come up; the message says what it said last.
        """
        async with self._turn:
            await self._end()
            with tempfile.TemporaryFile() as errors:
                try:
                    await self._start(folder, errors)
                except BaseException as error:
                    await self._end()
                    if isinstance(error, (OSError, RuntimeError)):
                        raise Unavailable(_reason(error, errors)) from None
                    raise
            return await self._ask("attach()")

    async def close(self) -> None:
        """End the kernel; it is gone when this returns, whatever it is doing."""
        await self._end()

    async def run(self, code: str, hear: Hear) -> bool:
        """Run code to its end; gives whether the kernel has survived it."""
        async with self._turn:
            if self._client is None:
                return False
            # Nothing is ever queued behind it that an error would have to stop.
            number = self._client.execute(code, allow_stdin=True, stop_on_error=False)
            self._hears[number] = hear
            for old in list(self._hears)[:-_KEPT]:
                del self._hears[old]
            return await self._until_idle(number)

    async def report(self) -> Report | None:
        """Ask where it is, and what its last refresh came to; None: no answer."""
        async with self._turn:
            return await self._ask("report()")

    async def move(self, folder: str) -> Report | None:
        """Have it go to another folder; None: no answer."""
        async with self._turn:
            return await self._ask(f"move({folder!a})")

    async def indent(self, code: str) -> str | None:
        """Give what the next line begins with; None: complete, or it does not tell."""
        async with self._turn:
            if self._client is None:
                return None
            number = self._client.is_complete(code)
            answer = await self._reply(number, COMPLETE_S)
        if answer.get("status") != "incomplete":
            return None
        return str(answer.get("indent", ""))

    def answer(self, text: str) -> None:
        """Give the line that a run has asked for."""
        if self._client is not None:
            self._client.input(text)

    async def interrupt(self) -> None:
        """Interrupt what it runs."""
        if self._manager is not None and self._client is not None:
            await self._manager.interrupt_kernel()

    async def has_died(self) -> bool:
        """Tell whether it has ended by itself; then there is none any more."""
        if self._manager is None or self._client is None or self._turn.locked():
            return False
        if await self._manager.is_alive():
            return False
        async with self._turn:
            await self._end()
        return True

    # ------------------------------------------------------------ one request

    async def _until_idle(self, number: str) -> bool:
        manager, idle = self._manager, self._idle.setdefault(number, asyncio.Event())
        assert manager is not None  # noqa: S101 - there is a client
        try:
            while not idle.is_set():
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(idle.wait(), _LOOK_EVERY_S)
                    break
                if self._client is None:
                    return False
                if not await manager.is_alive():
                    await self._end()
                    return False
            # Its reply is of no use, but the next one is read from the same channel.
            await self._reply(number, ASK_S)
            return True
        finally:
            self._idle.pop(number, None)

    async def _ask(self, call: str) -> Report | None:
        if self._client is None:
            return None
        number = self._client.execute(
            "",
            silent=True,
            store_history=False,
            allow_stdin=False,
            user_expressions={_TOLD: _CALL.format(call)},
        )
        answer = await self._reply(number, ASK_S)
        try:
            text = answer["user_expressions"][_TOLD]["data"]["text/plain"]
            return reported(str(ast.literal_eval(text)))
        except (KeyError, TypeError, ValueError, SyntaxError):
            return None

    async def _reply(self, number: str, limit_s: float) -> dict[str, Any]:
        """Wait for the reply to a request; empty: there was none in time."""
        client = self._client
        loop = asyncio.get_running_loop()
        end = loop.time() + limit_s
        while client is not None:
            try:
                message = await client.get_shell_msg(timeout=max(0, end - loop.time()))
            except queue.Empty:
                break
            if message["parent_header"].get("msg_id") == number:
                return dict(message["content"])
        return {}

    async def _listen(self, client: AsyncKernelClient) -> None:
        while True:
            message = await client.get_iopub_msg()
            number = message["parent_header"].get("msg_id")
            # A thread's output has the id of the last request, maybe one of our own.
            newest = next(reversed(self._hears.values()), None)
            hear, content = self._hears.get(number, newest), message["content"]
            if message["msg_type"] == "status":
                if content["execution_state"] == "idle" and number in self._idle:
                    self._idle[number].set()
            elif hear is not None:
                _hand_on(message["msg_type"], content, hear)

    async def _listen_for_questions(self, client: AsyncKernelClient) -> None:
        while True:
            message = await client.get_stdin_msg()
            hear = self._hears.get(message["parent_header"].get("msg_id"))
            if message["msg_type"] == "input_request" and hear is not None:
                content = message["content"]
                is_secret = content.get("password") is True
                prompt = str(content.get("prompt") or (_HIDDEN if is_secret else ""))
                hear(Asked(prompt, is_secret=is_secret))

    # ------------------------------------------------------------ its life

    async def _start(self, folder: str, errors: IO[bytes]) -> None:
        manager = AsyncKernelManager(
            kernel_name=_TOLD, kernel_spec_manager=self._specs, shutdown_wait_time=END_S
        )
        self._manager = manager
        # A terminal belongs to the view alone.
        await manager.start_kernel(
            cwd=folder, env=dict(self._environ), stdout=DEVNULL, stderr=errors
        )
        client = manager.client()
        # Without a heartbeat: we look at the process itself, and where a start is
        # given up the thread of a heartbeat that has not begun yet would never end.
        client.start_channels(hb=False)
        try:
            await client.wait_for_ready(timeout=START_S)
        except BaseException:
            client.stop_channels()
            raise
        self._client = client
        self._listeners = [
            asyncio.create_task(self._listen(client)),
            asyncio.create_task(self._listen_for_questions(client)),
        ]

    async def _end(self) -> None:
        manager, self._manager = self._manager, None
        client, self._client = self._client, None
        listeners, self._listeners = self._listeners, []
        await _finished(_ended(manager, client, listeners))


class _Only(KernelSpecManager):
    """Knows one kernelspec, which is in no folder."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        super().__init__()
        self._spec = dict(spec)

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        """Give it, whatever its name."""
        del kernel_name
        return KernelSpec(resource_dir="", **self._spec)


async def _ended(
    manager: AsyncKernelManager | None,
    client: AsyncKernelClient | None,
    listeners: list[asyncio.Task[None]],
) -> None:
    for listener in listeners:
        listener.cancel()
    await asyncio.gather(*listeners, return_exceptions=True)
    if client is not None:
        client.stop_channels()
    if manager is None or not manager.has_kernel:
        return
    try:
        await manager.shutdown_kernel()
    finally:
        if manager.has_kernel:
            await manager.shutdown_kernel(now=True)


async def _finished(work: Coroutine[Any, Any, None]) -> None:
    """Finish some work, also where we are cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    cancelled = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    task.result()
    if cancelled is not None:
        raise cancelled


def _hand_on(kind: str, content: Mapping[str, Any], hear: Hear) -> None:
    if kind == "stream":
        hear(Printed(str(content.get("text", ""))))
    elif kind in ("execute_result", "display_data", "update_display_data"):
        text = str(content.get("data", {}).get("text/plain", ""))
        if content.get("metadata", {}).get(_TOLD) == "said":
            hear(Said(text))
        elif text:
            hear(Shown(text))
    elif kind == "error":
        trace = content.get("traceback") or [
            f"{content.get('ename')}: {content.get('evalue')}"
        ]
        hear(Shown("\n".join(map(str, trace))))


def _reason(error: Exception, errors: IO[bytes]) -> str:
    errors.seek(0)
    lines = errors.read()[-4096:].decode(errors="replace").strip().splitlines()
    said = lines[-1] if lines else str(error)
    return f"the kernel does not start: {said}"
