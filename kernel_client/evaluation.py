"""One evaluation from beginning to end, the same in a kernel and in the sidecar.

Look at the known paths, run direnv, read what it came to, look again. A path
that changed while direnv ran, or that is too young to tell ("racily clean": its
ctime is not older than the start), costs one more evaluation. A path that moves
each time is written by the file itself, and must not loop.
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
from kernel_client.echo import Echo
from kernel_client.errors import DirenvError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Optional

    from kernel_client import gzenv

    OnLine = Optional[Callable[[str], None]]

QUIET_VALUE = "8759h59m59s"
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
    echo = Echo(on_line or _unheard)
    own: frozenset[str] = frozenset()
    left = MAX_EVALUATIONS
    while True:
        left -= 1
        start_ns = time.time_ns() - COARSE_CLOCK_NS
        before = _looked([*paths, *roots.config_paths(environment)])
        echo.again()
        answer = _answer(
            direnv,
            root,
            environment,
            kill_s=kill_s,
            on_line=echo,
            cancellation=cancellation,
        )
        after = _after(answer, root, environment)
        if after is None or answer.outcome not in _COMPARED:
            break
        watches = answer.watches or ()
        odd = unlike(after, watches)
        moved, young = disturbed(before, after, start_ns)
        moved |= later(after, watches)
        # What moves each time is the file's own work; an edit of the root file
        # itself never is.
        new = (moved - own) | young | _young(odd, start_ns) | (moved & {root})
        if not new or not left:
            # Where direnv noted what cannot be, it would load again at its next
            # call, and so do we.
            after = None if odd else _as_before(before, after, new)
            break
        own = moved
        paths = [entry[0] for entry in after]
    if answer.reason:
        echo(f"envwatch: {answer.reason}")
    return Evaluated(
        answer.outcome,
        to_set=answer.set,
        unset=answer.unset,
        messages=echo.heard,
        snapshot=after,
        seconds=time.monotonic() - started,
    )


MAX_EVALUATIONS = 3
"""One for the answer, one where something moved or was too young to tell, and one
to tell the file's own work from an edit."""

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
    noted = {path: exists for path, _, exists in watches}
    return [
        entry
        for entry in after
        if entry[0] in noted and noted[entry[0]] != bool(entry[1] or entry[2])
    ]


def later(after: snapshot.Snapshot, watches: Iterable[gzenv.Watch]) -> frozenset[str]:
    """Give the paths that were written in another second than direnv noted."""
    noted = {path: seconds for path, seconds, _ in watches}
    found: set[str] = set()
    for path, seen, link, _ in after:
        times = [look[0] // 1_000_000_000 for look in (seen, link) if look]
        if path in noted and times and noted[path] != max(times):
            found.add(path)
    return frozenset(found)


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
) -> tuple[frozenset[str], frozenset[str]]:
    """Give (moved, young): the paths that may have changed while direnv ran.

    A path that was looked at before has moved when it neither looks the same nor
    has the same bytes. One that was not is too young to tell when it is not older
    than the start. Entries of the allow store are left out: only whether they are there
    counts, and `unlike` tells that.
    """
    known = {entry[0]: entry for entry in before}
    moved: set[str] = set()
    young: set[str] = set()
    for path, seen, link, bytes_now in after:
        was = known.get(path)
        if _in_store(path):
            continue
        if was is not None:
            same_bytes = bytes_now is not None and bytes_now == was[3]
            if (seen, link) != was[1:3] and not same_bytes:
                moved.add(path)
        elif any(look is not None and look[1] >= start_ns for look in (seen, link)):
            young.add(path)
    return frozenset(moved), frozenset(young)


def _as_before(
    before: snapshot.Snapshot, after: snapshot.Snapshot, moved: frozenset[str]
) -> snapshot.Snapshot:
    """Never take for seen what moved only now: the next compare finds it."""
    known = {entry[0]: entry for entry in before}
    return tuple(
        known.get(entry[0], entry) if entry[0] in moved else entry for entry in after
    )


def _looked(paths: Iterable[str]) -> snapshot.Snapshot:
    return snapshot.with_digests(snapshot.take(paths))


def _unheard(_: str) -> None:
    """Take lines that nobody listens to."""


def _in_store(path: str) -> bool:
    stores = ("/direnv/allow/", "/direnv/deny/")
    return path[-64:].isalnum() and path[:-64].endswith(stores)


def _answer(
    direnv: str,
    root: str,
    environment: Mapping[str, str],
    *,
    kill_s: float,
    on_line: OnLine,
    cancellation: program.Cancellation | None,
) -> outcome.Answer:
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
        return outcome.Answer(outcome.BROKEN, reason=str(error))
    if run.how == program.TIMEOUT:
        reason = f"the evaluation was ended after {kill_s:g} s"
        return outcome.Answer(outcome.TIMEOUT, reason=reason)
    if run.how == program.CANCELLED:
        return outcome.Answer(outcome.CANCELLED)
    if run.how == program.FLOODED:
        reason = "direnv printed more than can be an environment"
        return outcome.Answer(outcome.BROKEN, reason=reason)
    answer = outcome.read(
        run.code,
        run.stdout,
        passed=given,
        root=root,
        said="\n".join(run.lines),
        limit_bytes=_exec_limit_bytes(),
    )
    if answer.outcome in (outcome.UNSETTLED, outcome.EMPTY):
        try:
            state = program.status(direnv, folder, given, cancellation=cancellation)
        except DirenvError:
            if cancellation is not None and cancellation.asked:
                return outcome.Answer(outcome.CANCELLED)
            state = program.Status(None, 1)
        outcome.settled(answer, allowed=state.allowed)
    return answer


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
