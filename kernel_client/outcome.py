"""What one `direnv export json` came to: (rc, stdout, environment) -> answer.

Pure. Read from the exit code, the shape of the JSON and the decoded watches
(DIRENV.md section A and cases 4 to 6, 12, 13); message text decides nothing that
an environment depends on. The evaluation is always made from a base without any
of the four, so an empty answer means that direnv found nothing to load.
"""

from __future__ import annotations

from kernel_client import environment as env, gzenv

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LOADED = "loaded"
BLOCKED = "blocked"
DENIED = "denied"
FAILED = "failed"
DEGRADED = "degraded"
TIMEOUT = "timeout"
CANCELLED = "cancelled"
BROKEN = "broken"
ABSENT = "absent"

UNSETTLED = "unsettled"
"""Blocked, or a whitelisted file that failed: only `direnv status` can tell."""

EMPTY = "empty"
"""Nothing but the four, and no watches that are to be believed: the file was denied,
or it exports nothing. Only `direnv status` can tell."""

OUTCOMES = frozenset(
    {
        LOADED,
        BLOCKED,
        DENIED,
        FAILED,
        DEGRADED,
        TIMEOUT,
        CANCELLED,
        BROKEN,
        ABSENT,
    }
)

LOST = "direnv could not pass on what the file exports; nothing of it is loaded"
"""Said with `degraded` where direnv itself only says what bash could not start."""

# bash names the program that it could not exec; only the label of an answer
# without variables hangs on this line, never the environment.
_LOST = r"(?m)^[^\n]*:\d+: /[^\n]*direnv: "


class Answer:
    """An outcome with the changes that direnv printed.

    `set` maps names to values, `unset` lists names, `watches` are the paths that
    direnv compares (None when they cannot be known), `reason` is one line for
    outcomes that direnv itself does not explain.
    """

    __slots__ = ("outcome", "reason", "set", "unset", "watches")

    def __init__(
        self,
        outcome: str,
        *,
        to_set: Mapping[str, str] | None = None,
        unset: Iterable[str] = (),
        watches: list[gzenv.Watch] | None = None,
        reason: str = "",
    ) -> None:
        self.outcome = outcome
        self.set = dict(to_set or {})
        self.unset = tuple(unset)
        self.watches = watches
        self.reason = reason

    def __repr__(self) -> str:
        return f"<Answer {self.outcome}: {len(self.set)} set, {len(self.unset)} unset>"


def read(  # noqa: PLR0911 - one row of the outcome table each
    code: int,
    stdout: bytes,
    *,
    passed: Mapping[str, str],
    root: str,
    said: str = "",
    limit_bytes: int | None = None,
) -> Answer:
    """Tell what an evaluation came to.

    `code` is direnv's exit code (negative: killed by a signal), `passed` the
    environment it was given, `root` the root file that it should have found,
    `said` its stderr, `limit_bytes` what an exec may carry in all.
    The outcome is one of `OUTCOMES`, or `UNSETTLED` or `EMPTY`.
    """
    if code not in (0, 1):
        return Answer(BROKEN, reason=f"direnv ended with exit code {code}")
    if not stdout:
        if code == 0:
            return Answer(ABSENT)
        return Answer(BROKEN, reason=_first_error(said))
    changes = _changes(stdout)
    if changes is None:
        return Answer(BROKEN, reason="direnv's answer is not the JSON that it prints")
    to_set = {name: value for name, value in changes.items() if value is not None}
    unset = [name for name, value in changes.items() if value is None]
    if "DIRENV_DIFF" not in to_set:
        # `{}` and an unload cannot come from a base without the four.
        return Answer(ABSENT)
    if to_set.get("DIRENV_FILE") != env.as_direnv_writes(root):
        return Answer(ABSENT)
    watches = _watches(to_set.get("DIRENV_WATCHES"), root)
    broken_by = env.breaking_name({**passed, **to_set}, to_set)
    if broken_by is not None:
        return Answer(
            DEGRADED,
            watches=watches,
            reason=f"{_shown(broken_by)} would make every later program fail to start",
        )
    if limit_bytes is not None:
        after = {**passed, **to_set}
        if env.size_bytes(after) > limit_bytes:
            return Answer(
                DEGRADED,
                watches=watches,
                reason="the environment would be too large to start any program",
            )
    outcome = _outcome(code, to_set, unset, watches, said)
    reason = LOST if outcome == DEGRADED else ""
    return Answer(outcome, to_set=to_set, unset=unset, watches=watches, reason=reason)


def settled(answer: Answer, *, allowed: int | None) -> Answer:
    """Settle an answer with what `direnv status` says of the file (as `Status`)."""
    if answer.outcome == UNSETTLED:
        answer.outcome = FAILED if allowed == 0 else BLOCKED
    elif answer.outcome == EMPTY:
        named = {0: LOADED, 2: DENIED}
        answer.outcome = BLOCKED if allowed is None else named.get(allowed, BLOCKED)
    return answer


def _outcome(
    code: int,
    to_set: Mapping[str, str],
    unset: list[str],
    watches: list[gzenv.Watch] | None,
    said: str,
) -> str:
    plain = bool(unset) or any(name not in env.THE_FOUR for name in to_set)
    if code == 1:
        if _in_store(watches, "allow"):
            return FAILED
        return UNSETTLED
    if plain:
        return LOADED
    if _in_store(watches, "deny"):
        return DENIED
    import re

    if re.search(_LOST, said):
        return DEGRADED
    return EMPTY if watches is None else LOADED


def _in_store(watches: list[gzenv.Watch] | None, store: str) -> bool:
    """Tell whether direnv found its own entry of the file in this store."""
    return any(
        exists and path[-64:].isalnum() and path[:-64].endswith(f"/direnv/{store}/")
        for path, _, exists in watches or ()
    )


def _changes(stdout: bytes) -> dict[str, str | None] | None:
    import json

    try:
        changes = json.loads(stdout)
    except (ValueError, RecursionError):
        return None
    if not isinstance(changes, dict):
        return None
    if not all(isinstance(value, (str, type(None))) for value in changes.values()):
        return None
    return changes


def _watches(text: str | None, root: str) -> list[gzenv.Watch] | None:
    """Decode; None when an `.envrc` unset or forged them so that they miss it."""
    if text is None:
        return None
    try:
        watches = gzenv.watches(text)
    except ValueError:
        return None
    return watches if any(path == root for path, _, _ in watches) else None


def _first_error(said: str) -> str:
    import re

    for line in said.splitlines():
        _, mark, rest = line.partition("direnv: error ")
        if mark:
            return "direnv could not work: " + re.sub(r"\x1b\[[0-9;]*m", "", rest)
    return "direnv could not work and did not say why"


def _shown(name: str) -> str:
    return name if name.isidentifier() else "a name that no environment can have"
