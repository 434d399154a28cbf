"""`refresh()`: bring a kernel's environment up to date before a run.

How it decides, cheapest first (the README draws it):

1. Nothing moved: a few stats, one poll, no allocation that matters. This path
   runs before every run, so it is one inline loop.
2. No root file above: what this kernel loaded is taken back from its record.
3. The same root file, unchanged: nothing.
4. Otherwise an answer is needed: the base is computed, the sidecar is asked, or
   direnv directly where there is none, and the whole difference is applied in
   one place.

What the environment itself says (the four `DIRENV_*`) counts, as it does for
direnv; the record only spares decoding it, and remembers the way back when a
host scrubbed them.
"""

from __future__ import annotations

import os
from _thread import RLock
from _weakref import ref
from os import access, getcwd, lstat, stat
from time import monotonic

from kernel_client import (
    notice,
    outcome as outcomes,
    result as results,
    snapshot,
)
from kernel_client.answers import Answers
from kernel_client.fence import Fences
from kernel_client.loaded import Loaded
from kernel_client.result import Result
from kernel_client.settings import Settings, usable
from kernel_client.shown import Shown
from kernel_client.tally import Tally
from kernel_client.upkeep import Upkeep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping
    from typing import Any

    from kernel_client.checks import Checks
    from kernel_client.roots import Walk

_MAX_FOLDERS = 256


class Client:
    """Keeps one environment what direnv would make of the working folder.

    environ
        The mapping to keep, `os.environ` by default.
    output
        Called with each line that is to be shown; by default lines go to
        `sys.stderr` as it is then. It may be set later, too.
    settings
        `Settings`; by default read from the environment.
    folder
        Absolute path of the folder to follow in place of the working folder.

    One client for one environment. Threads may share it; a forked child gets a
    client that works on its own.
    """

    def __init__(
        self,
        environ: MutableMapping[str, str] | None = None,
        *,
        output: Callable[[str], None] | None = None,
        settings: Settings | None = None,
        folder: str | None = None,
    ) -> None:
        self._shown = Shown(output)
        hear = self._shown.hear
        self._lock = RLock()
        self._busy = False
        self._loaded = Loaded(os.environ if environ is None else environ, hear)
        self._get_diff = self._loaded.get_diff
        self._diff: Any = None
        self._checks: dict[str, Checks] = {}
        self._unchanged = Result(results.UNCHANGED, answered=results.STATS)
        if settings is None:
            settings = usable(self._loaded.environ, hear)
        self.settings = settings
        self._fences = Fences(settings)
        self._quiet = 0
        self._tally = Tally()
        received = self._fences.received
        self._answers = Answers(settings, hear, received, self._tally)
        self._upkeep = Upkeep(
            settings,
            folder,
            loaded=self._loaded,
            fences=self._fences,
            answers=self._answers,
            shown=self._shown,
        )
        _clients.append(ref(self, _clients.remove))

    @property
    def output(self) -> Callable[[str], None] | None:
        """Called with each line that is to be shown; None: `sys.stderr`."""
        return self._shown.output

    @output.setter
    def output(self, output: Callable[[str], None] | None) -> None:
        """Have lines shown elsewhere from now on."""
        self._shown.output = output

    @property
    def outcome(self) -> str | None:
        """Outcome of what this kernel holds now, such as `blocked`, or None."""
        record = self._loaded.record
        return None if record is None else record.outcome

    @property
    def sidecar_pid(self) -> int | None:
        """Process id of the sidecar that this client is attached to, or None."""
        link = self._answers.link
        return None if link is None else link.pid

    def refresh(self) -> Result:  # noqa: C901, PLR0911 - one inline loop
        """Bring the environment up to date with the working folder.

        Call it before each run. Never raises, but for KeyboardInterrupt while it
        waits for an answer: the wait is then over, what was loaded is taken
        back, and the next refresh asks again.
        """
        with self._lock:
            try:
                checks = self._checks.get(getcwd())
                if checks is None or self._get_diff() is not self._diff:
                    return self._guarded(forced=False)
                absent, stats, links, poll, due = checks
                for path in absent:
                    if access(path, 0):
                        return self._guarded(forced=False)
                for path, mtime, ctime, size, inode, device in stats:
                    seen = stat(path)
                    if (
                        seen.st_mtime_ns != mtime
                        or seen.st_ctime_ns != ctime
                        or seen.st_size != size
                        or seen.st_ino != inode
                        or seen.st_dev != device
                    ):
                        return self._guarded(forced=False)
                for path, link in links:
                    if snapshot.signature(lstat(path)) != link:
                        return self._guarded(forced=False)
                if poll is not None:
                    ready = poll[0]()
                    if ready != poll[1]:
                        self._fences.heard(ready)
                        return self._guarded(forced=False)
                if due is None or monotonic() < due:
                    self._quiet += 1
                    return self._unchanged
            except Exception:  # noqa: BLE001, S110 - the folder or a file has gone
                pass
            except BaseException:
                # An interrupt, perhaps between what the poll told and who heard it.
                self._fences.burn()
                raise
            return self._guarded(forced=False)

    def reload(self) -> Result:
        """Forget what is kept of this folder's root file and evaluate it again."""
        with self._lock:
            return self._guarded(forced=True)

    def prefetch(self) -> None:
        """Ask the sidecar for what the first refresh will need; wait for nothing.

        For hosts that start a kernel some time before its first run. Without a
        sidecar it does nothing but start one. Never raises.
        """
        with self._lock:
            try:
                request = self._upkeep.wanted()
                if request is not None:
                    self._answers.prefetch(request)
            except Exception:  # noqa: BLE001 - nothing is lost: refresh() asks again
                self._answers.drop()

    def unload(self) -> Result:
        """Take back what this client holds; the next refresh looks afresh.

        What was inherited and never adopted is left alone. Never raises.
        """
        with self._lock:
            self._checks.clear()
            try:
                self._loaded.synchronise()
                record = self._loaded.record
                if record is None:
                    return Result(outcomes.ABSENT)
                self._count()
                names = self._loaded.unload()
                self._answers.left(record.root)
            except Exception:  # noqa: BLE001 - a variable that cannot be written
                self._give_up()
                return Result(results.UNLOADED)
            finally:
                self._fences.close()
            return Result(results.UNLOADED, answered=results.RECORD, names=names)

    def close(self) -> None:
        """Drop the connection and end what still runs; the environment stays."""
        with self._lock:
            self._checks.clear()
            self._fences.close()
            self._answers.close()

    # ------------------------------------------------------------ the slow path

    def _guarded(self, *, forced: bool) -> Result:
        if self._busy:
            # A signal handler, or an output, that refreshes while we do.
            return self._unchanged
        self._busy = True
        self._shown.begin()
        self._checks.clear()
        self._count()
        started = monotonic()
        try:
            brought, walk = self._upkeep.bring(forced=forced)
            if walk is not None:
                self._stay(walk)
            result = self._unchanged if brought is None else brought
        except KeyboardInterrupt:
            try:
                # First of all: a second interrupt may be on its way.
                self._loaded.unload()
            finally:
                self._answers.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - a kernel must start its run
            self._give_up()
            self._shown.hear_once(notice.failed(f"it failed ({type(error).__name__})"))
            result = Result(outcomes.BROKEN)
        finally:
            self._busy = False
            if self._loaded.record is None:
                self._fences.close()
        self._tally.add(result.root_file, result.answered)
        result.messages = tuple(self._shown.lines)
        result.seconds = monotonic() - started
        return result

    def _count(self) -> None:
        """Count those that the fast path answered, for what they were answered of."""
        self._tally.add(self._unchanged.root_file, results.STATS, self._quiet)
        self._quiet = 0

    def _give_up(self) -> None:
        """Leave nothing loaded, whatever failed."""
        for step in (self._loaded.unload, self._answers.drop):
            try:
                step()
            except Exception:  # noqa: BLE001, S112 - it failed already, and is said
                continue

    def _stay(self, walk: Walk) -> None:
        """Keep for this folder what the fast path compares."""
        record = self._loaded.record
        root = None if record is None else record.root
        self._unchanged = Result(results.UNCHANGED, root, answered=results.STATS)
        self._diff = self._get_diff()
        kept = self._upkeep.checks(walk)
        if kept is None or walk.folder is None:
            return
        if len(self._checks) >= _MAX_FOLDERS:
            self._checks.clear()
        self._checks[walk.folder] = kept

    def forked(self) -> None:
        """In a forked child: start again without the parent's connection."""
        self._lock = RLock()
        self._busy = False
        self._checks.clear()
        self._quiet = 0
        self._tally.clear()
        self._fences.forget()
        self._answers.forget()


_clients: list[ref[Client]] = []


def _after_fork_in_child() -> None:
    """Connections, evaluations and locks are the parent's."""
    for known in _clients:
        client = known()
        if client is not None:
            client.forked()


os.register_at_fork(after_in_child=_after_fork_in_child)
