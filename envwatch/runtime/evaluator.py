"""Runs evaluations and comparisons on worker threads, for the one loop's core."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from envwatch.core import frames
from envwatch.core.events import (
    Allowance,
    Arm,
    Armed,
    Compare,
    Compared,
    Evaluate,
    Evaluated,
    Event,
    Fenced,
    Lines,
    NotArmed,
    Result,
    Snapshot,
)
from envwatch.runtime.fence import Fences
from kernel_client import direnv, evaluation, outcome, snapshot

MAX_PATHS_INLINE = 200
"""Snapshots up to this size are compared on the loop: a hop costs as much."""

_COMPARING = 4


class Said:
    """Takes lines on a worker thread, and gives them to the loop in batches.

    A line costs no hop of its own: a file that says a hundred thousand of them
    would hold its own evaluation, and every kernel, for many seconds.
    """

    def __init__(self, evaluation: int, handle: Callable[[Event], None]) -> None:
        self._evaluation = evaluation
        self._handle = handle
        self._loop = asyncio.get_running_loop()
        self._lines: deque[str] = deque()
        self._is_due = False

    def __call__(self, line: str) -> None:
        """Take a line; on a worker thread."""
        self._lines.append(line)
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon_threadsafe(self.flush)

    def flush(self) -> None:
        """Give what was said since the last time; on the loop."""
        # First: a line that comes after the look is due again.
        self._is_due = False
        texts = tuple(self._lines.popleft() for _ in range(len(self._lines)))
        if texts:
            self._handle(Lines(self._evaluation, texts))


class Evaluator:
    """Performs `Evaluate`, `Kill`, `Compare` and `Arm`; answers with events."""

    def __init__(
        self,
        tasks: TaskGroup,
        handle: Callable[[Event], None],
        *,
        fences: Fences,
        concurrency: int,
        kill_s: float,
    ) -> None:
        self._fences = fences
        self._tasks = tasks
        self._handle = handle
        self._kill_s = kill_s
        # The core starts no more than that; one that is being killed may overlap.
        self._evaluating = anyio.CapacityLimiter(concurrency)
        self._comparing = anyio.CapacityLimiter(_COMPARING)
        self._cancellations: dict[int, direnv.Cancellation] = {}

    def evaluate(self, effect: Evaluate) -> None:
        """Start an evaluation."""
        cancellation = direnv.Cancellation()
        self._cancellations[effect.evaluation] = cancellation
        self._tasks.start_soon(self._evaluate, effect, cancellation)

    def kill(self, number: int) -> None:
        """Have an evaluation killed; it still ends with an event."""
        cancellation = self._cancellations.get(number)
        if cancellation is not None:
            cancellation.cancel()

    def kill_all(self) -> None:
        """Have all evaluations killed."""
        for cancellation in self._cancellations.values():
            cancellation.cancel()

    def compare(self, effect: Compare) -> None:
        """Compare a snapshot, here when it is short."""
        number = effect.fence
        is_fenced = number is not None and self._fences.is_quiet(number)
        if len(effect.rest if is_fenced else effect.snapshot) <= MAX_PATHS_INLINE:
            self._handle(_compared(effect, is_fenced))
        else:
            self._tasks.start_soon(self._compare, effect, is_fenced)

    async def _compare(self, effect: Compare, is_fenced: bool) -> None:  # noqa: FBT001 - passed on by start_soon, which takes no keywords
        event = await to_thread.run_sync(
            _compared, effect, is_fenced, limiter=self._comparing
        )
        self._handle(event)

    def arm(self, effect: Arm) -> None:
        """Arm a fence."""
        self._tasks.start_soon(self._arm, effect)

    async def _arm(self, effect: Arm) -> None:
        fence = await to_thread.run_sync(
            self._armed,
            effect.key.root,
            effect.snapshot,
            effect.fence,
            limiter=self._comparing,
        )
        self._fences.guard(fence)
        self._handle(Fenced(fence))

    def _armed(
        self, root: str, seen: Snapshot | None, allowance: Allowance
    ) -> Armed | NotArmed:
        if seen is None:
            return NotArmed(allowance.number, "few", "there is nothing to watch")
        try:
            return self._fences.arm(root, seen, allowance)
        except Exception as error:  # noqa: BLE001 - no fence, not no answer
            reason = f"arming failed ({type(error).__name__})"
            return NotArmed(allowance.number, "inotify", reason)

    async def _evaluate(
        self, effect: Evaluate, cancellation: direnv.Cancellation
    ) -> None:
        said = Said(effect.evaluation, self._handle)
        try:
            result, fence = await to_thread.run_sync(
                self._work, effect, cancellation, said, limiter=self._evaluating
            )
        finally:
            del self._cancellations[effect.evaluation]
        said.flush()
        if fence is not None:
            self._fences.guard(fence)
        self._handle(Evaluated(effect.evaluation, result, fence))

    def _work(
        self, effect: Evaluate, cancellation: direnv.Cancellation, said: Said
    ) -> tuple[Result, Armed | NotArmed | None]:
        result = self._evaluated(effect, cancellation, said)
        allowance = effect.fence
        if allowance is None:
            return result, None
        return result, self._armed(effect.key.root, result.snapshot, allowance)

    def _evaluated(
        self, effect: Evaluate, cancellation: direnv.Cancellation, said: Said
    ) -> Result:
        root = effect.key.root
        try:
            before = snapshot.take((root, *effect.known))
            done = evaluation.evaluate(
                effect.key.direnv,
                root,
                effect.environment,
                known=effect.known,
                kill_s=self._kill_s,
                on_line=said,
                cancellation=cancellation,
            )
            return result(done, before)
        except Exception as error:  # noqa: BLE001 - one answer, not the sidecar
            # Its text could have a value in it.
            reason = f"envwatch: the evaluation failed ({type(error).__name__})"
            broken = evaluation.Evaluated(
                outcome.BROKEN,
                to_set={},
                unset=(),
                messages=[reason],
                snapshot=None,
                seconds=0.0,
            )
            return result(broken, ())


def result(done: evaluation.Evaluated, before: Snapshot) -> Result:
    """Give an evaluation's result in the form that the core hands out.

    `before` is what the known paths looked like: that is watched for outcomes
    that cannot tell what to watch.
    """
    watched = done.snapshot
    if watched is None and done.outcome in _TELL_NOTHING:
        watched = before
    return Result(
        outcome=done.outcome,
        body=frames.members(
            {
                "outcome": done.outcome,
                "set": done.set,
                "unset": list(done.unset),
                "messages": done.messages,
                "seconds": round(done.seconds, 6),
            }
        ),
        snapshot=done.snapshot,
        wire=_wire(done.snapshot),
        watched=watched,
        folders=frozenset() if watched is None else snapshot.folders(watched),
        seconds=done.seconds,
        names=len(done.set) + len(done.unset),
    )


_TELL_NOTHING = frozenset({outcome.BROKEN, outcome.ABSENT, outcome.CANCELLED})


def _compared(effect: Compare, is_fenced: bool) -> Compared:  # noqa: FBT001 - passed on by run_sync
    try:
        if is_fenced and snapshot.compare(effect.rest) is effect.rest:
            return Compared(effect.key, effect.snapshot)
        now = snapshot.compare(effect.snapshot)
    except (OSError, ValueError):
        now = None
    is_same = now is None or now is effect.snapshot
    return Compared(effect.key, now, b"" if is_same else _wire(now))


def _wire(seen: Snapshot | None) -> bytes:
    if seen is None:
        return b"null"
    return json.dumps(snapshot.to_wire(seen), separators=(",", ":")).encode("ascii")
