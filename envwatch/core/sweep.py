"""What is dropped when nobody has used it for long."""

from __future__ import annotations

from envwatch.core.answers import Answers

GONE_S = 600.0
"""What is kept of a root file outlives its last kernel for so long."""


def drop_unused(answers: Answers, now: float) -> None:
    """Drop diffs, workspaces and environments that nobody uses any more."""
    workspaces = answers.schedule.workspaces
    for root, workspace in list(workspaces.items()):
        left = workspace.left_at
        if left is not None and now - left >= GONE_S:
            answers.diffs.drop_root(root)
        is_used = answers.sessions.kernels(root) or answers.diffs.of_root(root)
        if not is_used and workspace.state == "idle":
            del workspaces[root]
    drop_bases(answers, set())


def drop_bases(answers: Answers, more: set[str]) -> None:
    """Drop the environments that nothing uses, but for `more` fingerprints."""
    used = answers.sessions.fingerprints() | more
    used |= {kept.key.fingerprint for kept in answers.diffs}
    for workspace in answers.schedule.workspaces.values():
        used |= {key.fingerprint for key in (*workspace.waiting, *workspace.wanted)}
    used |= {each.key.fingerprint for each in answers.schedule.running.values()}
    answers.bases.keep_only(used)
