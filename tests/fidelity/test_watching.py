"""What makes a loaded file load again (DIRENV.md cases 14, 15, 22)."""

from __future__ import annotations

import os

import pytest

from tests.support.pairs import Pair
from tests.support.planted import PLANTED, exports, secret


def test_watched_file_is_edited(pair: Pair) -> None:
    """An edit of a watched file reloads."""
    pair.world.write("w/value", f"{PLANTED}1")
    pair.world.envrc("w", 'watch_file value\nexport FOO="$(cat value)"\n')
    pair.step("w", outcome="loaded")
    pair.world.write("w/value", f"{PLANTED}2")

    pair.step(outcome="loaded")

    assert pair.environ["FOO"] == f"{PLANTED}2"


def test_missing_watched_file_appears_and_goes(pair: Pair) -> None:
    """A watched file that is missing reloads when it comes, and when it goes."""
    pair.world.envrc("w", f"watch_file value\n[ -e value ] && {exports('FOO')}true\n")
    pair.step("w", outcome="loaded")
    path = pair.world.write("w/value", "")
    pair.step(outcome="loaded")
    assert pair.environ["FOO"] == secret("FOO")
    path.unlink()

    pair.step(outcome="loaded")

    assert "FOO" not in pair.environ


def test_watched_file_in_a_missing_folder(pair: Pair) -> None:
    """A watched file whose folder is missing too is noticed when both come."""
    pair.world.envrc("w", f"watch_file deep/er/value\n{exports('FOO')}")
    pair.step("w", outcome="loaded")
    pair.world.write("w/deep/er/value", "")

    pair.step(outcome="loaded")


def test_unwatched_file(pair: Pair) -> None:
    """A file that is read but not watched reloads nothing."""
    pair.world.write("w/value", f"{PLANTED}1")
    pair.world.envrc("w", 'export FOO="$(cat value)"\n')
    pair.step("w", outcome="loaded")
    pair.world.write("w/value", f"{PLANTED}2")

    pair.step(outcome="unchanged")


def test_watched_folder(pair: Pair) -> None:
    """A watched folder reloads for a new file, an edit, and a deletion below it."""
    pair.world.write("w/d/sub/one", "")
    pair.world.stamp("w/d/sub")
    pair.world.stamp("w/d")
    pair.world.envrc("w", f"watch_dir d\n{exports('FOO')}")
    pair.step("w", outcome="loaded")
    pair.world.write("w/d/sub/two", "")
    pair.world.stamp("w/d/sub")
    pair.step(outcome="loaded")
    pair.world.write("w/d/sub/two", "2")
    pair.step(outcome="loaded")
    pair.world.path("w/d/sub/one").unlink()
    pair.world.stamp("w/d/sub")

    pair.step(outcome="loaded")
    pair.step(outcome="unchanged")


def test_watching_nothing(pair: Pair) -> None:
    """`watch_file ''` makes direnv load at every call, and us too."""
    pair.world.envrc("w", f"watch_file ''\n{exports('FOO')}")
    pair.step("w", outcome="loaded")

    pair.step(outcome="loaded")
    pair.step(outcome="loaded")


def test_a_thousand_files(pair: Pair) -> None:
    """A thousand watched files, of which the last one is edited."""
    for number in range(1000):
        pair.world.write(f"w/f/{number}", "")
    pair.world.envrc("w", f"watch_file f/*\n{exports('FOO')}")
    pair.step("w", outcome="loaded")
    pair.step(outcome="unchanged")
    pair.world.write("w/f/999", "x")

    pair.step(outcome="loaded")


def test_older_second(pair: Pair) -> None:
    """A watched file that became older reloads as well."""
    path = pair.world.write("w/value", "")
    pair.world.envrc("w", f"watch_file value\n{exports('FOO')}")
    pair.step("w", outcome="loaded")
    os.utime(path, (1_000_000_000, 1_000_000_000))

    pair.step(outcome="loaded")


def test_watched_link(pair: Pair) -> None:
    """A watched symbolic link reloads when its target is edited or another one."""
    pair.world.write("w/one", f"{PLANTED}1")
    pair.world.write("w/two", f"{PLANTED}2")
    link = pair.world.path("w/value")
    link.symlink_to("one")
    pair.world.envrc("w", 'watch_file value\nexport FOO="$(cat value)"\n')
    pair.step("w", outcome="loaded")
    pair.world.write("w/one", f"{PLANTED}3")
    # The link itself is younger than its target: direnv takes the younger mtime.
    pair.step(outcome="loaded", forced=True)
    link.unlink()
    link.symlink_to("two")
    pair.step(outcome="loaded", forced=True)

    assert pair.environ["FOO"] == f"{PLANTED}2"


@pytest.mark.parametrize("watched", [".envrc", "value"])
def test_edited_within_the_same_second(pair: Pair, watched: str) -> None:
    """An edit within the second of the last one is noticed; the hook misses it.

    Deliberate (DESIGN 9.1): whole seconds are not enough.
    """
    body = f'watch_file value\nexport FOO="{PLANTED}$(cat value)"\n'
    pair.world.write("w/value", "1")
    pair.world.envrc("w", body)
    pair.step("w", outcome="loaded")
    before = dict(pair.environ)
    new = "22" if watched == "value" else body + "export MORE=1\n"
    pair.world.write(f"w/{watched}", new, tick=False)
    pair.shell.prompt()
    assert pair.shell.environ == before

    pair.step(outcome="loaded" if watched == "value" else "blocked", forced=True)


def test_edited_and_allowed_within_the_same_second(pair: Pair) -> None:
    """The hook misses a same-second edit even after it was allowed (case 14)."""
    pair.world.envrc("w", exports("FOO"))
    pair.step("w", outcome="loaded")
    pair.world.write("w/.envrc", exports("BAR"), tick=False)
    pair.world.allow("w")
    pair.shell.prompt()
    assert "BAR" not in pair.shell.environ

    pair.step(outcome="loaded", forced=True)

    assert "FOO" not in pair.environ


@pytest.mark.parametrize("same_size", [True, False])
def test_edited_with_its_mtime_put_back(pair: Pair, *, same_size: bool) -> None:
    """An edit whose mtime was put back to the nanosecond is noticed (DESIGN 9.1)."""
    path = pair.world.envrc("w", exports("FOO"))
    pair.step("w", outcome="loaded")
    seen = path.stat()
    with path.open("r+") as file:
        file.write(exports("BAR") if same_size else exports("BAR", "MORE"))
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert pair.shell.prompt().changes is None

    pair.step(outcome="blocked", forced=True)

    assert PLANTED not in "".join(pair.environ.values())


def test_only_the_ctime_moved(pair: Pair) -> None:
    """A chmod, or the same bytes with the same mtime, is no change (DESIGN 9.1)."""
    path = pair.world.envrc("w", exports("FOO"))
    pair.step("w", outcome="loaded")
    path.chmod(0o600)
    pair.step(outcome="unchanged")
    seen = path.stat()
    path.write_text(exports("FOO"))
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))

    pair.step(outcome="unchanged")


def test_touches_its_own_watch(pair: Pair) -> None:
    """A file that touches what it watches loads at every run, without a loop."""
    pair.world.write("w/value", "")
    pair.world.envrc("w", f"watch_file value\necho x >>value\n{exports('FOO')}")
    # Nobody can have the same watches as the hook here: each evaluation moves them.
    pair.go("w")

    result = pair.kernel.refresh()

    assert result.outcome == "loaded"
    assert pair.environ["FOO"] == secret("FOO")
    runs = pair.world.path("w/value").read_text().count("x")
    assert runs <= 8, "an evaluation that moves its own watches must not loop"


def test_writes_a_file_that_it_watches_once(pair: Pair) -> None:
    """A file that makes what it watches settles after its first load."""
    pair.world.envrc(
        "w", f"watch_file made\n[ -e made ] || echo 1 >made\n{exports('FOO')}"
    )
    pair.go("w")
    pair.kernel.refresh()
    pair.kernel.refresh()

    assert pair.kernel.refresh().outcome == "unchanged"
    assert pair.environ["FOO"] == secret("FOO")
