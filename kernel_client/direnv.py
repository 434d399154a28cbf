"""Runs direnv: find it, start it in a session of its own, read it, end it.

Blocking, and the only place where a process is started (DIRENV.md section D):
stdin is /dev/null, stdout is read to its end, stderr is drained apart with a
cap, a deadline and a cancellation kill the whole process group, and what was on
stdout then is thrown away. After bash has ended, direnv still waits for whoever
holds its pipe (case 28); such holders are ended after `HOLDER_GRACE_S`.
"""

from __future__ import annotations

import os
import time

from kernel_client.errors import DirenvError
from kernel_client.holders import has_children, pipe_holders

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Mapping
    from typing import Optional

    OnLine = Optional[Callable[[str], None]]

MAX_STDOUT_BYTES = 16 * 1024 * 1024
MAX_STDERR_BYTES = 256 * 1024
"""More stderr than this is read and thrown away, and one line says so."""

HOLDER_GRACE_S = 2.0
STDERR_GRACE_S = 0.1
STATUS_TIMEOUT_S = 5.0
_TURN_S = 0.1
_SIGKILL = 9  # of every Linux; importing signal costs a millisecond

ENDED = "ended"
TIMEOUT = "timeout"
CANCELLED = "cancelled"
FLOODED = "flooded"


class Cancellation:
    """Asks a running evaluation to end; safe to use from any thread."""

    __slots__ = ("asked",)

    def __init__(self) -> None:
        self.asked = False

    def cancel(self) -> None:
        """Ask; the process group is killed within a tenth of a second."""
        self.asked = True


class Run:
    """How a run ended: `how`, exit code, stdout, stderr lines, pid."""

    __slots__ = ("code", "how", "lines", "stdout")

    def __init__(self, how: str, code: int, stdout: bytes, lines: list[str]) -> None:
        self.how = how
        self.code = code
        self.stdout = stdout
        self.lines = lines


class Status:
    """What `direnv status` says: path of the root file and its allow state.

    `allowed` is 0 (allowed), 1 (not allowed), 2 (denied, from 2.33 on) or None
    when there is no root file.
    """

    __slots__ = ("allowed", "root")

    def __init__(self, root: str | None, allowed: int | None) -> None:
        self.root = root
        self.allowed = allowed


def find(environ: Mapping[str, str], name: str = "direnv") -> str | None:
    """Give the absolute path of direnv for an environment's PATH, or None."""
    if os.path.isabs(name):
        return name if os.access(name, os.X_OK) else None
    for folder in environ.get("PATH", "").split(":"):
        path = os.path.join(folder or ".", name)
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return os.path.abspath(path)
    return None


def export(
    direnv: str,
    folder: str,
    environ: Mapping[str, str],
    *,
    kill_s: float,
    on_line: OnLine = None,
    cancellation: Cancellation | None = None,
) -> Run:
    """Run `direnv export json` in a folder with exactly this environment.

    `kill_s` is how long it may run, in seconds; `on_line` gets each line of
    stderr as it comes, undecodable bytes replaced, without its newline.

    Raises:
        DirenvError: it could not be started.
    """
    return _run(
        [direnv, "export", "json"],
        folder,
        environ,
        kill_s,
        on_line=on_line,
        cancellation=cancellation,
    )


def version(
    direnv: str, environ: Mapping[str, str], *, limit_s: float = STATUS_TIMEOUT_S
) -> str:
    """Give direnv's version, such as `2.37.1`; raises DirenvError."""
    run = _run([direnv, "version"], "/", environ, limit_s)
    text = run.stdout.decode(errors="replace").strip()
    if run.how != ENDED or run.code != 0 or not text or "\n" in text:
        raise DirenvError(f"{direnv} does not tell its version")
    return text


def status(
    direnv: str,
    folder: str,
    environ: Mapping[str, str],
    *,
    cancellation: Cancellation | None = None,
) -> Status:
    """Ask `direnv status` for the root file of a folder and its allow state.

    Told apart by shape, not by version: 2.32 ignores `--json` and prints text.

    Raises:
        DirenvError: it could not be started, or said nothing that can be read.
    """
    command = [direnv, "status", "--json"]
    run = _run(command, folder, environ, STATUS_TIMEOUT_S, cancellation=cancellation)
    if run.how != ENDED or run.code != 0:
        raise DirenvError("direnv status gave no answer")
    text = run.stdout.decode(errors="surrogateescape")
    import json

    try:
        state = json.loads(text)
    except ValueError:
        return _status_of_text(text)
    try:
        found = state["state"]["foundRC"]
        if found is None:
            return Status(None, None)
        return Status(str(found["path"]), int(found["allowed"]))
    except (KeyError, TypeError, ValueError):
        raise DirenvError("direnv status gave no answer that can be read") from None


def _status_of_text(text: str) -> Status:
    import re

    # A path with a newline can forge lines: the last one of each kind counts.
    allowed = re.findall(r"^Found RC allowed (\w+)$", text, re.MULTILINE)
    paths = re.findall(r"^Found RC path (.*)$", text, re.MULTILINE)
    if not allowed:
        return Status(None, None)
    word = {"true": 0, "false": 1, "0": 0, "1": 1, "2": 2}.get(allowed[-1])
    if word is None:
        raise DirenvError("direnv status gave no answer that can be read")
    return Status(paths[-1] if paths else None, word)


def _run(
    command: list[str],
    folder: str,
    environ: Mapping[str, str],
    limit_s: float,
    *,
    on_line: OnLine = None,
    cancellation: Cancellation | None = None,
) -> Run:
    import subprocess

    try:
        # start_new_session, never preexec_fn: that would fork the whole kernel
        # instead of using vfork.
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            bufsize=0,
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "its environment is not valid"
        raise DirenvError(f"direnv could not be started: {reason}") from None
    reading = _Reading(process, on_line, cancellation)
    try:
        how = reading.until(time.monotonic() + limit_s)
    except BaseException:
        _end(process)
        raise
    finally:
        reading.close()
    return Run(how, process.returncode, bytes(reading.stdout), reading.lines)


class _Reading:
    """Reads both pipes of one process until it has ended."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        on_line: OnLine,
        cancellation: Cancellation | None,
    ) -> None:
        self.process = process
        self.on_line = on_line
        self.cancellation = cancellation
        self.stdout = bytearray()
        self.lines: list[str] = []
        self._partial = b""
        self._kept = 0
        self._alone_since: float | None = None
        self._pipes = [pipe for pipe in (process.stdout, process.stderr) if pipe]
        self._out, self._err = (pipe.fileno() for pipe in self._pipes)

    def until(self, deadline: float) -> str:
        """Read until the process has ended; tell how it did."""
        import select

        for descriptor in (self._out, self._err):
            os.set_blocking(descriptor, False)
        poll = select.poll()
        poll.register(self._out, select.POLLIN)
        poll.register(self._err, select.POLLIN)
        reading_out = True
        while reading_out:
            now = time.monotonic()
            if self.cancellation is not None and self.cancellation.asked:
                _end(self.process)
                return CANCELLED
            if now >= deadline:
                _end(self.process)
                return TIMEOUT
            wait_s = min(_TURN_S, deadline - now)
            for descriptor, _ in poll.poll(max(1, int(wait_s * 1000))):
                data = _read(descriptor)
                if descriptor == self._out and data is not None:
                    self.stdout += data
                    reading_out = bool(data)
                elif data:
                    self._said(data)
                elif data is not None:
                    poll.unregister(descriptor)
            if len(self.stdout) > MAX_STDOUT_BYTES:
                _end(self.process)
                return FLOODED
            self._mind_holders(now)
        return self._finish(deadline)

    def _finish(self, deadline: float) -> str:
        """Collect the exit code and what is left of stderr, but wait for neither."""
        import subprocess

        try:
            self.process.wait(max(0.05, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            _end(self.process)
            return TIMEOUT
        import select

        poll = select.poll()
        poll.register(self._err, select.POLLIN)
        end = time.monotonic() + STDERR_GRACE_S
        while time.monotonic() < end and poll.poll(int(STDERR_GRACE_S * 1000)):
            data = _read(self._err)
            if not data:
                break
            self._said(data)
        self._flush()
        return ENDED

    def _said(self, data: bytes) -> None:
        if self._kept >= MAX_STDERR_BYTES:
            return
        *whole, self._partial = (self._partial + data).split(b"\n")
        for line in whole:
            self._line(line)
        if len(self._partial) > MAX_STDERR_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._partial:
            self._line(self._partial)
            self._partial = b""

    def _line(self, raw: bytes) -> None:
        if self._kept >= MAX_STDERR_BYTES:
            return
        self._kept += len(raw) + 1
        if self._kept >= MAX_STDERR_BYTES:
            line = f"envwatch: more than {MAX_STDERR_BYTES // 1024} KiB were said; the rest is not shown"
        else:
            line = raw.decode(errors="replace")
        self.lines.append(line)
        if self.on_line is not None:
            self.on_line(line)

    def _mind_holders(self, now: float) -> None:
        """End whoever keeps direnv waiting after its bash has ended."""
        if has_children(self.process.pid):
            self._alone_since = None
            return
        if self._alone_since is None:
            self._alone_since = now
        elif now - self._alone_since >= HOLDER_GRACE_S:
            self._alone_since = None
            holders = pipe_holders(self.process.pid)
            for pid in holders:
                _kill(os.kill, pid)
            if holders:
                self._line(
                    b"envwatch: a background process of the file kept direnv waiting"
                    b" and was ended; start it with 3>&-"
                )

    def close(self) -> None:
        """Close both pipes."""
        for pipe in self._pipes:
            pipe.close()


def _read(descriptor: int) -> bytes | None:
    """Give bytes, `b""` at the end, None when there is nothing yet."""
    try:
        return os.read(descriptor, 65536)
    except BlockingIOError:
        return None


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the whole process group and reap direnv itself."""
    _kill(os.killpg, process.pid)
    process.wait()


def _kill(how: Callable[[int, int], None], pid: int) -> None:
    """Kill what may be gone, or somebody else's, by now."""
    try:
        how(pid, _SIGKILL)
    except (ProcessLookupError, PermissionError):
        return
