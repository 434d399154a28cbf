"""What a sidecar holds at its beginning."""

from __future__ import annotations

from envwatch.core.sidecar import Rules, Sidecar


def test_at_its_beginning() -> None:
    """Nobody is there, nothing is to be done, and it shares one list of effects."""
    sidecar = Sidecar(Rules(version="1", pid=1, direnv=None, concurrency=3), 7.0)
    assert (sidecar.started, sidecar.alone_since, sidecar.stopping) == (7.0, 7.0, False)
    assert len(sidecar.sessions) == 0
    assert sidecar.watching.state == "off"
    assert sidecar.out == []
    assert sidecar.answers.watchset.folders == frozenset()
    assert not sidecar.schedule.workspaces
