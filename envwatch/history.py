"""Which version of a root file was allowed: git has the versions, direnv their hashes.

direnv's allow store names an entry by the SHA-256 of path and content. So each
version that git has is hashed until one matches. Nothing is stored, nothing is
fetched, no hook, pager or lock of git's is used, and at the bound in time git is
killed. Where nothing matches, a line says why, and the whole file is shown.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from envwatch import state
from kernel_client import direnv as program

LIMIT_S = 2.0
MAX_VERSIONS = 1000
MAX_LISTED_BYTES = 4 * 1024 * 1024
"""More of git's list of versions than this is not read."""

WHOLE = "the whole file"

_QUIET = {
    "GIT_ALLOW_PROTOCOL": "none",  # what a partial clone lacks is not fetched
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
# What a repository's own configuration could have git run.
_HARMLESS = (
    *("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"),
    *("-c", "log.showSignature=false", "-c", "core.alternateRefsCommand="),
    # And what it could have git wait for.
    *("-c", "diff.orderFile=/dev/null"),
)
_LOG = (
    *("log", "--follow", "-m", "--raw", "-z", "--no-abbrev", "--format="),
    *("--no-ext-diff", "--no-textconv", "--no-color", "--no-show-signature"),
    f"--max-count={MAX_VERSIONS}",
)


class Version(NamedTuple):
    """The content that was allowed, or None; `origin`: from where, or why not."""

    content: bytes | None
    origin: str


def allowed(
    root: str, environ: Mapping[str, str], *, limit_s: float = LIMIT_S
) -> Version:
    """Find the version of a file that was allowed last, among those that git has.

    `environ` is a base: it says where direnv's store is, and which git to run.
    """
    deadline = time.monotonic() + limit_s
    entries = _entries(root, environ)
    if not entries:
        return Version(None, f"{WHOLE}: direnv's store has no version of it")
    git = program.find(environ, "git")
    if git is None:
        return Version(None, f"{WHOLE}: there is no git to find what was allowed")
    repository = _Repository(git, root, environ, deadline)
    try:
        return _search(repository, root, entries)
    except OSError:
        return Version(None, f"{WHOLE}: git cannot be run")
    except _TimeUp:
        return Version(None, f"{WHOLE}: git gave no answer within {limit_s:g} s")


class _TimeUp(Exception):  # noqa: N818 - named after what it is
    """The bound was reached before an answer."""


class _Repository:
    """The repository of one file, and the git that reads it."""

    def __init__(
        self, git: str, root: str, environ: Mapping[str, str], deadline: float
    ) -> None:
        # Of a link, git has the text of the link; its target has the content.
        self._file = Path(root).resolve()
        self._git = git
        self._deadline = deadline
        self._environ = {
            name: value
            for name, value in environ.items()
            if not name.startswith("GIT_")
        } | _QUIET

    def is_there(self) -> bool:
        return self._said("rev-parse", "--is-inside-work-tree") == b"true\n"

    def is_shallow(self) -> bool:
        return self._said("rev-parse", "--is-shallow-repository") == b"true\n"

    def versions(self, *where: str) -> Iterator[bytes]:
        """Name the blobs of the file, those of the newest commits first."""
        listed = self._said(*_LOG, *where, "--", self._file.name)
        for field in listed.split(b"\0"):
            if field.lstrip(b"\n").startswith(b":"):
                _, _, old, new, *_ = field.lstrip(b"\n").split(b" ")
                yield from (blob for blob in (new, old) if blob.strip(b"0"))

    def staged(self) -> Iterator[bytes]:
        """Name the blob of the file in the index."""
        for line in self._said("ls-files", "-s", "-z", "--", self._file.name).split(
            b"\0"
        ):
            if line:
                yield line.split(b" ")[1]

    def contents(self, blobs: Iterable[bytes]) -> Iterator[bytes]:
        """Give the content of each blob that is here."""
        # A file of its own: a pipe that nobody reads could hold us.
        with open(os.memfd_create("blobs"), "w+b") as asked:  # noqa: PTH123
            asked.write(b"".join(blob + b"\n" for blob in blobs))
            asked.seek(0)
            kept = b""
            stream = self._stream("cat-file", "--batch", stdin=asked.fileno())
            for data in stream:
                kept += data
                while True:
                    head, found, rest = kept.partition(b"\n")
                    words = head.split(b" ")
                    if not found:
                        break
                    if len(words) != 3:  # noqa: PLR2004 - `ID missing`
                        kept = rest
                        continue
                    size = int(words[2])
                    if len(rest) <= size:
                        break
                    yield rest[:size]
                    kept = rest[size + 1 :]

    def _said(self, *arguments: str) -> bytes:
        said = b""
        with contextlib.closing(self._stream(*arguments)) as stream:
            for data in stream:
                said += data
                if len(said) > MAX_LISTED_BYTES:
                    break
        return said

    def _stream(
        self, *arguments: str, stdin: int = subprocess.DEVNULL
    ) -> Generator[bytes, None, None]:
        """Give what git prints, as it comes; git ends when nobody listens any more.

        Raises:
            _TimeUp: the deadline is over; git was killed.
        """
        with subprocess.Popen(
            [
                *(self._git, "--no-pager", "--literal-pathspecs"),
                *(*_HARMLESS, *arguments),
            ],
            cwd=self._file.parent,
            env=self._environ,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            bufsize=0,
        ) as process:
            assert process.stdout is not None  # noqa: S101 - it is a pipe
            try:
                while True:
                    left_s = self._deadline - time.monotonic()
                    ready = (
                        left_s > 0
                        and select.select([process.stdout], [], [], left_s)[0]
                    )
                    if not ready:
                        raise _TimeUp
                    data = os.read(process.stdout.fileno(), 1 << 16)
                    if not data:
                        return
                    yield data
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)


def _search(
    repository: _Repository, root: str, entries: Mapping[str, float]
) -> Version:
    if not repository.is_there():
        return Version(None, f"{WHOLE}: it is in no git repository that can be read")
    newest = max(entries, key=lambda name: entries[name])
    best: tuple[float, bytes] | None = None
    seen: dict[bytes, None] = {}
    try:
        for blobs in _sources(repository):
            fresh = [blob for blob in dict.fromkeys(blobs) if blob not in seen][
                : MAX_VERSIONS - len(seen)
            ]
            seen.update(dict.fromkeys(fresh))
            for content in repository.contents(fresh) if fresh else ():
                digest = sha256(os.fsencode(root) + b"\n" + content).hexdigest()
                when = entries.get(digest)
                if when is not None and (best is None or when > best[0]):
                    best = (when, content)
                if digest == newest:
                    return _found(content)
    except _TimeUp:
        if best is None:
            raise
    if best is not None:
        return _found(best[1])
    if not seen:
        return Version(None, f"{WHOLE}: git has no version of it")
    shallow = " (the clone is shallow)" if repository.is_shallow() else ""
    return Version(
        None, f"{WHOLE}: none of git's versions is one that was allowed{shallow}"
    )


def _sources(repository: _Repository) -> Iterator[Iterator[bytes]]:
    yield repository.staged()
    yield repository.versions()
    # Another branch, what was amended away, a stash.
    yield repository.versions("--all", "--reflog")


def _found(content: bytes) -> Version:
    return Version(content, "what changed since the version that was allowed, in git")


def _entries(root: str, environ: Mapping[str, str]) -> dict[str, float]:
    """Give when each content of a path was allowed, by its name in the store."""
    store = state.allow_store(environ)
    found: dict[str, float] = {}
    if store is not None:
        for name in state.approvals([root], environ):
            with contextlib.suppress(OSError):
                found[name] = (store / name).stat().st_mtime
    return found
