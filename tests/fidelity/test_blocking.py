"""Files that nobody has allowed (DIRENV.md cases 4, 5, 17)."""

from __future__ import annotations

from tests.support.pairs import Pair
from tests.support.planted import PLANTED, exports, secret


def held(pair: Pair) -> bool:
    """Tell whether any planted value is in the kernel's environment."""
    return any(PLANTED in value for value in pair.environ.values())


def test_never_allowed(pair: Pair) -> None:
    """A new file is blocked: it is said once, and nothing of it is there."""
    pair.world.envrc("w", exports("FOO"), allow=False)

    result = pair.step("w", outcome="blocked").result

    assert result.set_names == ()
    assert not held(pair)
    assert "direnv allow" not in "".join(result.messages)
    pair.step(outcome="unchanged")
    assert pair.kernel.client.outcome == "blocked"


def test_allowed_after_it_was_blocked(pair: Pair) -> None:
    """What the person allows is loaded by the next run."""
    pair.world.envrc("w", exports("FOO"), allow=False)
    pair.step("w", outcome="blocked")
    pair.world.allow("w")

    pair.step(outcome="loaded")

    assert pair.environ["FOO"] == secret("FOO")


def test_edited_while_loaded(pair: Pair) -> None:
    """An edit takes the old values away at once."""
    pair.world.envrc("w", exports("FOO", "KEEP") + "PATH_add bin\n")
    pair.step("w", outcome="loaded")
    pair.world.envrc("w", exports("FOO", tag="2"), allow=False)

    result = pair.step(outcome="blocked").result

    assert result.unset_names == ("FOO",)
    assert result.set_names == ("KEEP", "PATH")
    assert not held(pair)
    pair.step(outcome="unchanged")


def test_edit_taken_back(pair: Pair) -> None:
    """Content that was allowed once loads again without asking."""
    pair.world.envrc("w", exports("FOO"))
    pair.step("w", outcome="loaded")
    pair.world.envrc("w", exports("BAR"), allow=False)
    pair.step(outcome="blocked")
    pair.world.envrc("w", exports("FOO"), allow=False)

    pair.step(outcome="loaded")


def test_edited_twice_while_blocked(pair: Pair) -> None:
    """Each edit of a blocked file is said, as direnv does."""
    pair.world.envrc("w", exports("FOO"), allow=False)
    pair.step("w", outcome="blocked")
    pair.world.envrc("w", exports("BAR"), allow=False)

    assert len(pair.step(outcome="blocked").result.messages) == 1


def test_blocked_in_a_subfolder(pair: Pair) -> None:
    """A blocked file stays said in every folder below it."""
    pair.world.envrc("w", exports("FOO"), allow=False)
    pair.world.folder("w/deep")
    pair.step("w", outcome="blocked")

    pair.step("w/deep", outcome="unchanged")


def test_blocked_left_and_met_again(pair: Pair) -> None:
    """Leaving a blocked workspace and coming back says it again."""
    pair.world.envrc("w", exports("FOO"), allow=False)
    pair.step("w", outcome="blocked")
    pair.step("", outcome="unloaded")

    pair.step("w", outcome="blocked")


def test_approval_deleted_by_hand(pair: Pair) -> None:
    """An approval that is gone takes the values with it."""
    pair.world.envrc("w", exports("FOO"))
    pair.step("w", outcome="loaded")
    pair.world.revoke("w")

    pair.step(outcome="blocked")

    assert not held(pair)
    pair.world.allow("w")
    pair.step(outcome="loaded")


def test_pruned(pair: Pair) -> None:
    """`direnv prune` keeps the approval of earlier content (case 5)."""
    pair.world.envrc("w", exports("FOO"))
    pair.step("w", outcome="loaded")
    pair.world.envrc("w", exports("BAR"))
    pair.step(outcome="loaded")
    pair.world.call("prune")
    pair.step(outcome="unchanged")
    pair.world.envrc("w", exports("FOO"), allow=False)

    pair.step(outcome="loaded")


def test_moved_folder(pair: Pair) -> None:
    """An approval is for a path: a copy of an allowed file is blocked."""
    path = pair.world.envrc("a", exports("FOO"))
    pair.step("a", outcome="loaded")
    pair.world.write("b/.envrc", path.read_bytes())

    pair.step("b", outcome="blocked")

    assert not held(pair)
