"""What a question is about, and what happens when a person answers it with `y`.

The only place of envwatch where `direnv allow` is run. direnv hashes the file when
it runs, so what it allows need not be what was shown. Therefore:

1. Right before: its folder is where it was, the file still has the very bytes that
   were shown, and direnv still calls it blocked (`direnv allow` would lift a denial).
2. `direnv allow FILE`.
3. Right after: the store has the entry of the bytes that were shown, the file still
   has them, and no other entry has come for this file or one above it. Otherwise
   what has come is removed again, as direnv removes an approval, and the answer is
   void. Where the entry that was wanted has not come, whatever has come meanwhile is
   taken for what direnv made of it: a folder that became a link has it follow that,
   to a file that may be anywhere.

What remains: a file that is changed within the few milliseconds between 1 and
direnv's own reading is allowed until 3 has run. Whoever changes it in this window
could have changed it before, too, but then it would have been shown.
"""

from __future__ import annotations

import os
import stat as mode_bits
import subprocess
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path  # noqa: TID251 - not of the core: it reads the files
from typing import TYPE_CHECKING, NamedTuple

from envwatch import history, state
from envwatch.core.exhibit import MAX_BYTES, exhibit
from envwatch.core.mentions import mentions
from envwatch.core.question import BLOCKED, Subject
from envwatch.errors import EnvwatchError
from kernel_client import roots, snapshot
from kernel_client.errors import DirenvError

if TYPE_CHECKING:
    from kernel_client.snapshot import Snapshot

ALLOW_TIMEOUT_S = 5.0
ROOT_NAMES = (".envrc", ".env")


class NotAllowed(EnvwatchError):  # noqa: N818 - named after what it is
    """The answer is void: nothing is allowed by it; the message says why."""

    exit_code = 75


class Found(NamedTuple):
    """A folder's workspace, and what can be asked about it: None unless blocked."""

    workspace: state.Workspace
    subject: Subject | None


class Inquiry:
    """Looks at workspaces for one view; blocking, with bounds on every wait.

    `direnv` is its absolute path, `base` an environment with nothing loaded
    (`state.base`), `version` what direnv says its version is.
    """

    def __init__(
        self, direnv: str, base: Mapping[str, str], *, version: str = ""
    ) -> None:
        self._direnv = direnv
        self._base = dict(base)
        self._version = version
        self._last: Subject | None = None

    def look(self, folder: str) -> Found:
        """Say what state a folder's workspace is in, and what is to be shown.

        `folder` is absolute and without links.

        Raises:
            DirenvError: direnv gives no answer; the folder may be gone.
        """
        workspace = state.look(self._direnv, folder, self._base, version=self._version)
        root = workspace.root
        if root is None or workspace.state not in BLOCKED:
            self._last = None
            return Found(workspace, None)
        content = read(root)
        if content is None:
            gone = f"{root} is gone, or can be read no longer"
            return Found(_unreadable(workspace, gone), None)
        self._last = self._subject(root, str(workspace.state), content)
        return Found(workspace, self._last)

    def glance(self, folder: str) -> tuple[Snapshot, Snapshot]:
        """Give what is different when `look` may give something else now; cheap."""
        seen = roots.walk(folder, dotenv=None)
        paths = [] if seen.root is None else [seen.root]
        store = state.allow_store(self._base)
        if store is not None:
            paths += [str(store), str(store.with_name("deny"))]
        paths += roots.config_paths(self._base)
        return tuple(seen.present), snapshot.take(paths)

    def allow(self, subject: Subject) -> None:
        """Allow exactly what was shown, on a person's word.

        Raises:
            NotAllowed: it is not what was shown any more, or direnv refuses;
                nothing is allowed then that was not before.
        """
        root = subject.root
        folder = os.path.dirname(root)  # noqa: PTH120 - bytes that are no UTF-8 stay
        if not subject.is_asked:
            raise NotAllowed(f"{root} was not shown in full")
        if os.path.realpath(folder) != folder:
            # direnv would follow, and allow what is there.
            raise NotAllowed(f"{folder} has moved since {root} was shown")
        if read(root) != subject.content:
            raise NotAllowed(f"{root} has changed since it was shown")
        try:
            now = state.look(self._direnv, folder, self._base, version=self._version)
        except DirenvError as error:
            raise NotAllowed(f"{error}; nothing is allowed") from None
        if now.root != root or now.state not in BLOCKED:
            raise NotAllowed(f"{root} is not blocked any more; it is {now.state}")
        before = self._entries()
        try:
            reason = self._run_allow(root, folder)
            fresh = self._entries() - before
            is_shown = read(root) == subject.content
        except BaseException:
            # Ctrl-C among others: what came of it, nobody has looked at.
            self._take_back(self._entries() - before)
            raise
        wanted = subject.fingerprint
        if wanted in fresh:
            # What else has come for other files is of somebody else's doing.
            fresh &= self._approvals(folder)
        is_all = fresh <= {wanted} and wanted in fresh | before
        if reason is None and is_shown and is_all:
            return
        self._take_back(fresh)
        if reason is not None:
            raise NotAllowed(f"{reason}; nothing is allowed")
        raise NotAllowed(f"{root} has changed since it was shown")

    def _subject(self, root: str, said: str, content: bytes) -> Subject:
        last = self._last
        if last is not None and (last.root, last.state, last.content) == (
            root,
            said,
            content,
        ):
            return last
        allowed, origin = None, ""
        if said == state.State.CHANGED and len(content) <= MAX_BYTES:
            found = history.allowed(root, self._base)
            allowed, origin = found.content, found.origin
        shown = exhibit(content, allowed)
        if allowed is not None and shown.is_whole:
            origin = "the whole file: what changed is not told more briefly"
        return Subject(
            root=root,
            state=said,
            fingerprint=fingerprint(root, content),
            exhibit=shown,
            content=content,
            origin=origin,
            names=mentions(content),
        )

    def _run_allow(self, root: str, folder: str) -> str | None:
        """Run `direnv allow`; give why it did not, or None."""
        # Of a link direnv wants to be told the folder (DIRENV.md case 23).
        target = folder if Path(root).is_symlink() else root
        try:
            ended = subprocess.run(  # noqa: S603 - argv alone, and direnv by its path
                [self._direnv, "allow", target],
                cwd=folder,
                env=self._base,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                timeout=ALLOW_TIMEOUT_S,
                check=False,
            )
        except (OSError, ValueError):
            return "direnv could not be started"
        except subprocess.TimeoutExpired:
            return "direnv allow gave no answer"
        return None if ended.returncode == 0 else "direnv allow failed"

    def _approvals(self, folder: str) -> frozenset[str]:
        """Name the store's entries for the root files of this folder and above."""
        paths = [
            os.path.join(place, name)  # noqa: PTH118 - the same
            for place in roots.above(folder)
            for name in ROOT_NAMES
        ]
        return frozenset(state.approvals(paths, self._base))

    def _entries(self) -> frozenset[str]:
        """Name all entries of the store."""
        store = state.allow_store(self._base)
        try:
            return frozenset() if store is None else frozenset(os.listdir(store))  # noqa: PTH208 - names alone
        except OSError:
            return frozenset()

    def _take_back(self, names: frozenset[str]) -> None:
        store = state.allow_store(self._base)
        for name in names:
            if store is not None:
                (store / name).unlink(missing_ok=True)


def fingerprint(root: str, content: bytes) -> str:
    """Give the name that direnv's allow store has for a path and a content."""
    return sha256(os.fsencode(root) + b"\n" + content).hexdigest()


def read(path: str) -> bytes | None:
    """Read a file, one byte more than can be shown at most; None: it is no file."""
    try:
        # Never waits for the other end of a FIFO that has taken the file's place.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if not mode_bits.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(MAX_BYTES + 1)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _unreadable(workspace: state.Workspace, note: str) -> state.Workspace:
    return state.Workspace(
        folder=workspace.folder,
        root=workspace.root,
        state=state.State.UNREADABLE,
        notes=(*workspace.notes, note),
    )
