"""The answer to `status`: what the sidecar is doing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernel_client import messages, outcome

if TYPE_CHECKING:
    from envwatch.core.hub import Hub
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


def status(hub: Hub, now: float) -> dict[str, Any]:
    """Give the object of PROTOCOL.md; nothing in it is a value of a variable."""
    watching = hub.watching
    return {
        "version": hub.rules.version,
        "protocol": messages.PROTOCOL,
        "pid": hub.rules.pid,
        "uptime_s": round(now - hub.started, 3),
        "direnv": hub.rules.direnv,
        "kernels": hub.sessions.attached,
        "watching": {
            "state": watching.state,
            "folders": len(hub.answers.watchset.folders),
            "reason": watching.reason,
            "remedy": watching.remedy,
        },
        "fences": {
            "mode": hub.rules.fences.mode,
            "armed": len(hub.fences),
            "limit": hub.rules.fences.max_fences,
            "watches": hub.fences.watches,
            "reason": hub.fences.reason,
        },
        "workspaces": [
            {
                "root": root,
                "kernels": hub.sessions.kernels(root),
                "state": workspace.state,
                "root_state": _root_state(workspace.last),
                "fences": hub.fences.of_root(root),
                "kept": hub.answers.diffs.of_root(root),
                "answered": hub.counts.of_root(root),
                "last": _last(workspace.last, now),
            }
            for root, workspace in sorted(hub.schedule.workspaces.items())
        ],
        "evaluations": hub.schedule.started,
        "kept_bytes": hub.answers.diffs.size,
        "answered": dict(hub.counts.total),
        "frames": {"received": hub.counts.received, "sent": hub.counts.sent},
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
