"""The answer to `status`: what the sidecar is doing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernel_client import messages, outcome

if TYPE_CHECKING:
    from envwatch.core.sidecar import Sidecar
    from envwatch.core.workspace import Last

_ROOT_STATES = {
    outcome.LOADED: "allowed",
    outcome.FAILED: "allowed",
    outcome.DEGRADED: "allowed",
    outcome.BLOCKED: "blocked",
    outcome.DENIED: "denied",
    outcome.ABSENT: "none",
}
"""What an outcome tells of the root file: direnv runs only what is allowed.

The others (out of time, cancelled, broken) tell nothing.
"""


def status(sidecar: Sidecar, now: float) -> dict[str, Any]:
    """Give the object of PROTOCOL.md; nothing in it is a value of a variable."""
    watching = sidecar.watching
    return {
        "version": sidecar.rules.version,
        "protocol": messages.PROTOCOL,
        "pid": sidecar.rules.pid,
        "uptime_s": round(now - sidecar.started, 3),
        "direnv": sidecar.rules.direnv,
        "kernels": sidecar.sessions.attached,
        "watching": {
            "state": watching.state,
            "folders": len(sidecar.answers.watchset.folders),
            "reason": watching.reason,
            "remedy": watching.remedy,
        },
        "fences": {
            "mode": sidecar.rules.fences.mode,
            "armed": len(sidecar.fences),
            "limit": sidecar.rules.fences.max_fences,
            "watches": sidecar.fences.watches,
            "reason": sidecar.fences.reason,
        },
        "workspaces": [
            {
                "root": root,
                "kernels": sidecar.sessions.kernels(root),
                "state": workspace.state,
                "root_state": _root_state(workspace.last),
                "fences": sidecar.fences.of_root(root),
                "kept": sidecar.answers.diffs.of_root(root),
                "answered": sidecar.counts.of_root(root),
                "last": _last(workspace.last, now),
            }
            for root, workspace in sorted(sidecar.schedule.workspaces.items())
        ],
        "evaluations": sidecar.schedule.started,
        "kept_bytes": sidecar.answers.diffs.size,
        "answered": dict(sidecar.counts.total),
        "frames": {"received": sidecar.counts.received, "sent": sidecar.counts.sent},
    }


def _root_state(last: Last | None) -> str | None:
    """Give what direnv itself said last; an edit since then is not in it."""
    return None if last is None else _ROOT_STATES.get(last.outcome)


def _last(last: Last | None, now: float) -> dict[str, Any] | None:
    if last is None:
        return None
    return {
        "outcome": last.outcome,
        "seconds": round(last.seconds, 4),
        "ago_s": round(now - last.ended, 3),
        "served": last.served,
        "shared_by": last.shared_by,
    }
