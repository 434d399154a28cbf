"""One evaluation from beginning to end, the same in a kernel and in the sidecar.

Look at the known paths, run direnv, read what it came to, look again. A path
that changed while direnv ran, or that is too young to tell ("racily clean": its
mtime is not older than the start), costs one more evaluation, and only one: a
file that touches its own watches must not loop.
"""

from __future__ import annotations

import os
import time

from kernel_client import (
    direnv as program,
    environment as env,
    outcome,
    roots,
    snapshot,
)
from kernel_client.errors import DirenvError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Optional

    from kernel_client import gzenv

    OnLine = Optional[Callable[[str], None]]

QUIET_VALUE = "8760h"
"""For `DIRENV_WARN_TIMEOUT`: quiet in every version, as `0` is not (case 30)."""

ENTRIES_WITH_APPROVALS = "DIRENV_REQUIRED"
"""Set by newer direnv when `require_allowed` waits for approvals (case 18)."""

_EXEC_ROOM_BYTES = 64 * 1024


class Evaluated:
    """What an evaluation gives to a kernel.

    `outcome`, `set` (names to values) and `unset` (names) over the environment
    that was passed, `messages` (direnv's lines, colours kept), `snapshot` to
    compare before the next run (None: ask at every run), `seconds`.
    """

    __slots__ = ("messages", "outcome", "seconds", "set", "snapshot", "unset")

    def __init__(
        self,
        outcome: str,
        *,
        to_set: Mapping[str, str],
        unset: Iterable[str],
        messages: list[str],
        snapshot: snapshot.Snapshot | None,
        seconds: float,
    ) -> None:
        self.outcome = outcome
        self.set = dict(to_set)
        self.unset = tuple(unset)
        self.messages = messages
        self.snapshot = snapshot
        self.seconds = seconds

    def __repr__(self) -> str:
        return (
            f"<Evaluated {self.outcome}: {len(self.set)} set, {len(self.unset)} unset>"
        )


def evaluate(
    direnv: str,
    root: str,
    environment: Mapping[str, str],
    *,
    known: Iterable[str] = (),
    kill_s: float = 3600.0,
    on_line: OnLine = None,
    cancellation: program.Cancellation | None = None,
) -> Evaluated:
    """Evaluate a root file over an environment without the four. Blocking.

    `direnv` is its absolute path, `known` the paths that an earlier snapshot of
    this root file had, `kill_s` the longest an evaluation may run in seconds,
    `on_line` gets direnv's lines as they come. Does not raise for anything that
    direnv or the file does: the outcome tells.
    """
    started = time.monotonic()
    paths: Iterable[str] = (root, *known)
    lines: list[str] = []
    shaken: frozenset[str] | None = None
    while True:
        start_ns = time.time_ns() - COARSE_CLOCK_NS
        before = _looked([*paths, *roots.config_paths(environment)])
        answer, said = _answer(
            direnv,
            root,
            environment,
            kill_s=kill_s,
            on_line=on_line,
            cancellation=cancellation,
        )
        lines += said
        after = _after(answer, root, environment)
        if after is None or answer.outcome not in _COMPARED:
            break
        odd = unlike(after, answer.watches or ())
        moved = disturbed(before, after, start_ns) | _young(odd, start_ns)
        if moved and shaken is None:
            shaken = moved
            paths = [entry[0] for entry in after]
            continue
        # Where direnv noted what cannot be, it would load again at its next call,
        # and so do we. An edit of the root file is never taken for its own work.
        new = moved - (shaken or frozenset()) | (moved & {root})
        after = None if odd else _as_before(before, after, new)
        break
    if answer.reason:
        lines.append(f"envwatch: {answer.reason}")
        if on_line is not None:
            on_line(lines[-1])
    return Evaluated(
        answer.outcome,
        to_set=answer.set,
        unset=answer.unset,
        messages=lines,
        snapshot=after,
        seconds=time.monotonic() - started,
    )


COARSE_CLOCK_NS = 10_000_000
"""How far a file's timestamp can be behind `time.time_ns()` (a tick at 100 Hz)."""

_COMPARED = outcome.OUTCOMES - {
    outcome.TIMEOUT,
    outcome.CANCELLED,
    outcome.BROKEN,
    outcome.ABSENT,
}


def unlike(
    after: snapshot.Snapshot, watches: Iterable[gzenv.Watch]
) -> list[snapshot.Entry]:
    """Give the entries that are there, or missing, unlike direnv noted."""
    exists = {path: there for path, _, there in watches}
    return [
        entry
        for entry in after
        if exists.get(entry[0], bool(entry[1] or entry[2]))
        != bool(entry[1] or entry[2])
    ]


def _young(odd: Iterable[snapshot.Entry], start_ns: int) -> frozenset[str]:
    """Give the paths that may have come or gone since the start."""
    return frozenset(
        path
        for path, seen, link, _ in odd
        for look in (link or seen,)
        if look is None or look[1] >= start_ns
    )


def disturbed(
    before: snapshot.Snapshot, after: snapshot.Snapshot, start_ns: int
) -> frozenset[str]:
    """Give the paths that may have changed unseen while direnv ran.

    A path that was looked at before must look the same, or have the same bytes.
    One that was not must be older than the start; entries of the allow store
    need no age, since only their existence counts.
    """
    known = {entry[0]: entry for entry in before}
    found: set[str] = set()
    for path, seen, link, bytes_now in after:
        was = known.get(path)
        if was is not None:
            same_bytes = bytes_now is not None and bytes_now == was[3]
            if (seen, link) != was[1:3] and not same_bytes:
                found.add(path)
        elif not _in_store(path) and any(
            look is not None and look[1] >= start_ns for look in (seen, link)
        ):
            found.add(path)
    return frozenset(found)


def _as_before(
    before: snapshot.Snapshot, after: snapshot.Snapshot, moved: frozenset[str]
) -> snapshot.Snapshot:
    """Never take for seen what moved only now: the next compare finds it.

    What moved in both evaluations is written by the file itself.
    """
    known = {entry[0]: entry for entry in before}
    return tuple(
        known.get(entry[0], entry) if entry[0] in moved else entry for entry in after
    )


def _looked(paths: Iterable[str]) -> snapshot.Snapshot:
    return snapshot.with_digests(snapshot.take(paths))


def _in_store(path: str) -> bool:
    return "/direnv/allow/" in path or "/direnv/deny/" in path


def _answer(
    direnv: str,
    root: str,
    environment: Mapping[str, str],
    *,
    kill_s: float,
    on_line: OnLine,
    cancellation: program.Cancellation | None,
) -> tuple[outcome.Answer, list[str]]:
    folder = os.path.dirname(root)
    given = dict(environment)
    given.setdefault(env.QUIET, QUIET_VALUE)
    try:
        run = program.export(
            direnv,
            folder,
            given,
            kill_s=kill_s,
            on_line=on_line,
            cancellation=cancellation,
        )
    except DirenvError as error:
        return outcome.Answer(outcome.BROKEN, reason=str(error)), []
    if run.how == program.TIMEOUT:
        reason = f"the evaluation was ended after {kill_s:g} s"
        return outcome.Answer(outcome.TIMEOUT, reason=reason), run.lines
    if run.how == program.CANCELLED:
        return outcome.Answer(outcome.CANCELLED), run.lines
    if run.how == program.FLOODED:
        reason = "direnv printed more than can be an environment"
        return outcome.Answer(outcome.BROKEN, reason=reason), run.lines
    answer = outcome.read(
        run.code,
        run.stdout,
        passed=given,
        root=root,
        said="\n".join(run.lines),
        limit_bytes=_exec_limit_bytes(),
    )
    if answer.outcome == outcome.UNSETTLED:
        try:
            state = program.status(direnv, folder, given, cancellation=cancellation)
        except DirenvError:
            if cancellation is not None and cancellation.asked:
                return outcome.Answer(outcome.CANCELLED), run.lines
            state = program.Status(None, 1)
        outcome.settled(answer, allowed=state.allowed == 0)
    return answer, run.lines


def _after(
    answer: outcome.Answer, root: str, environment: Mapping[str, str]
) -> snapshot.Snapshot | None:
    """Look at everything that the next run must compare; None: ask every time."""
    config = roots.config_paths(environment)
    if answer.outcome == outcome.TIMEOUT:
        return _looked([root, *config])
    if answer.watches is None:
        return None
    paths = [path for path, _, _ in answer.watches if path.startswith("/")]
    if ENTRIES_WITH_APPROVALS in answer.set:
        # Approvals are files in the allow store: its folder's mtime tells.
        paths += {os.path.dirname(path) for path in paths if _in_store(path)}
    return _looked([*paths, *config])


def _exec_limit_bytes() -> int:
    """What an exec may carry here in bytes, with room left for its arguments."""
    try:
        return os.sysconf("SC_ARG_MAX") - _EXEC_ROOM_BYTES
    except (OSError, ValueError):
        return 2 * 1024 * 1024 - _EXEC_ROOM_BYTES
