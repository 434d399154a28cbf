"""One evaluation, with a look before and after."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kernel_client import direnv as program, evaluation, outcome, snapshot
from kernel_client.evaluation import Evaluated, disturbed, evaluate, unlike
from tests.support.planted import PLANTED, exports, secret
from tests.support.worlds import World

OLD = (1, 1, 1, 1, 1)
NEW = (2, 2, 1, 1, 1)


def of(world: World, *, kill_s: float = 30.0) -> Evaluated:
    """Evaluate the file of a workspace."""
    root = str(world.path("w/.envrc"))
    return evaluate(world.direnv, root, world.environ, kill_s=kill_s)


def runs(world: World) -> int:
    """Tell how often the body ran."""
    return len(world.path("runs").read_text().splitlines())


def counted(world: World, more: str = "") -> str:
    """Give a body that counts its runs."""
    return f"echo x >> {world.path('runs')}\n{more}{exports('FOO')}"


def test_loaded(world: World) -> None:
    """What direnv sets, the paths to compare, and one evaluation for it."""
    path = world.envrc("w", counted(world))
    answer = of(world)
    assert answer.outcome == outcome.LOADED
    assert answer.set["FOO"] == secret("FOO")
    assert answer.snapshot is not None
    paths = [entry[0] for entry in answer.snapshot]
    assert str(path) in paths
    assert str(world.approval("w")) in paths
    assert str(world.config) in paths or str(world.config / "direnv.toml") in paths
    assert snapshot.compare(answer.snapshot) is answer.snapshot
    assert runs(world) == 1
    assert PLANTED not in repr(answer)


@pytest.mark.parametrize(
    ("body", "expected"),
    [("exit 3\n", outcome.FAILED), ("true\n", outcome.LOADED)],
)
def test_outcomes(world: World, body: str, expected: str) -> None:
    """A failing file and one that sets nothing."""
    world.envrc("w", body)
    assert of(world).outcome == expected


def test_blocked_and_a_whitelisted_file_that_fails(world: World) -> None:
    """The same shape: direnv status settles it."""
    world.envrc("w", "exit 3\n", allow=False)
    assert of(world).outcome == outcome.BLOCKED
    world.toml(f'[whitelist]\nprefix = ["{world.path("w")}"]\n')
    assert of(world).outcome == outcome.FAILED


def test_file_that_touches_its_own_watches(world: World) -> None:
    """It is evaluated until that is known to be its own work, and not for ever."""
    world.envrc("w", counted(world, "date +%N > w1\nwatch_file w1\n"))
    answer = of(world)
    assert answer.outcome == outcome.LOADED
    assert 2 <= runs(world) <= evaluation.MAX_EVALUATIONS
    assert answer.snapshot is not None
    assert snapshot.compare(answer.snapshot) is not None


def test_file_that_is_edited_meanwhile_is_evaluated_again(world: World) -> None:
    """What changed while direnv ran is not missed."""
    body = counted(world, "watch_file other\nexport SAW=$(cat other)\n")
    hook = "if [ ! -e once ]; then touch once; echo new > other; fi\n"
    world.write("w/other", "old\n")
    world.envrc("w", body + hook)
    answer = of(world)
    assert 2 <= runs(world) <= evaluation.MAX_EVALUATIONS
    assert answer.set["SAW"] == "new"


def test_time_that_is_up(world: World) -> None:
    """One line says so, and the file is compared, so that it is not asked again."""
    world.envrc("w", "while :; do sleep 1; done\n")
    answer = of(world, kill_s=0.5)
    assert answer.outcome == outcome.TIMEOUT
    assert not answer.set
    assert answer.messages[-1].startswith(
        "envwatch: the evaluation was ended after 0.5"
    )
    assert answer.snapshot is not None


def test_cancelled(world: World) -> None:
    """Whoever cancelled wants no answer."""
    world.envrc("w", exports("FOO"))
    cancellation = program.Cancellation()
    cancellation.cancel()
    root = str(world.path("w/.envrc"))
    answer = evaluate(world.direnv, root, world.environ, cancellation=cancellation)
    assert answer.outcome == outcome.CANCELLED
    assert not answer.set


def test_no_direnv(world: World) -> None:
    """It is the outcome, and no exception."""
    answer = evaluate("/missing/direnv", str(world.path("w/.envrc")), world.environ)
    assert answer.outcome == outcome.BROKEN


def test_direnv_that_floods(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of it is taken."""
    monkeypatch.setattr(program, "MAX_STDOUT_BYTES", 1000)
    fake = tmp_path / "direnv"
    fake.write_text("#!/bin/sh\nyes\n")
    fake.chmod(0o755)
    answer = evaluate(str(fake), str(tmp_path / ".envrc"), {"PATH": os.defpath})
    assert answer.outcome == outcome.BROKEN
    assert not answer.set


def test_forged_watches_are_asked_every_time(world: World) -> None:
    """An .envrc that unsets them (case 37)."""
    world.envrc("w", exports("FOO") + "unset DIRENV_WATCHES\n")
    answer = of(world)
    assert answer.outcome == outcome.LOADED
    assert answer.snapshot is None


NONE: frozenset[str] = frozenset()
ONE = frozenset({"/f"})


def test_known_paths_must_look_the_same() -> None:
    """Or have the same bytes; else they have moved."""
    before: snapshot.Snapshot = (("/f", OLD, None, "d"),)
    assert disturbed(before, before, 5) == (NONE, NONE)
    assert disturbed(before, (("/f", NEW, None, "d"),), 5) == (NONE, NONE)
    entries: list[snapshot.Entry] = [
        ("/f", NEW, None, "e"),
        ("/f", NEW, None, None),
        ("/f", None, None, None),
        ("/f", OLD, OLD, "e"),
    ]
    for entry in entries:
        assert disturbed(before, (entry,), 5) == (ONE, NONE)


def test_new_paths_must_be_old() -> None:
    """Racily clean: what is not older than the start tells nothing."""
    young = (5, 5, 1, 1, 1)
    assert disturbed((), (("/f", OLD, None, None),), 5) == (NONE, NONE)
    assert disturbed((), (("/f", young, None, "d"),), 5) == (NONE, ONE)
    assert disturbed((), (("/f", OLD, young, "d"),), 5) == (NONE, ONE)
    assert disturbed((), (("/f", None, None, None),), 5) == (NONE, NONE)
    entry: snapshot.Entry = ("/h/direnv/allow/" + 64 * "a", young, None, "d")
    assert disturbed((), (entry,), 5) == (NONE, NONE)


def test_direnv_s_own_look_must_agree() -> None:
    """On what is there and what is missing."""
    after: snapshot.Snapshot = (
        ("/there", OLD, None, None),
        ("/missing", None, None, None),
        ("/dangling", None, OLD, None),
    )
    assert unlike(after, [("/there", 1, True), ("/missing", 0, False)]) == []
    assert unlike(after, [("/dangling", 1, True)]) == []
    assert unlike(after, [("/missing", 1, True)]) == [after[1]]
    assert unlike(after, [("/there", 1, False)]) == [after[0]]


def test_direnv_stays_quiet() -> None:
    """Its own hint is silenced by a value that is quiet in every version."""
    assert evaluation.QUIET_VALUE == "8759h59m59s"


def test_waiting_for_approvals(world: World) -> None:
    """What a newer direnv's `require_allowed` leaves: any new approval is a change."""
    world.envrc("w", "export DIRENV_REQUIRED=dep.toml\n")
    world.envrc("v", "true\n", allow=False)
    answer = of(world)
    assert answer.snapshot is not None
    assert snapshot.compare(answer.snapshot) is answer.snapshot

    world.allow("v")

    assert snapshot.compare(answer.snapshot) is None


def test_a_workspace_below_a_folder_named_like_the_store(world: World) -> None:
    """Its own files are no entries of the store: an edit while it runs is noticed."""
    folder = "direnv/allow/w"
    path = world.path(folder) / ".envrc"
    world.envrc(folder, f"export FOO='{PLANTED}'\necho export BAR=1 > value\n")
    entry: snapshot.Entry = (str(path), NEW, None, "b")
    before: snapshot.Entry = (str(path), OLD, None, "a")
    moved, _ = disturbed((before,), (entry,), 5)
    assert moved == {str(path)}
