"""What watched paths look like: everything that direnv's whole seconds miss."""

from __future__ import annotations

import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from kernel_client import snapshot
from tests.support.daemons import until

STATS = st.none() | st.tuples(*[st.integers(0, 2**63)] * 5)
PATHS = st.text().filter(lambda path: "\0" not in path)
ENTRIES = st.tuples(PATHS, STATS, STATS, st.none() | st.text("0123", max_size=4))


def seen(*paths: Path) -> snapshot.Snapshot:
    """Take a whole snapshot."""
    return snapshot.with_digests(snapshot.take(map(str, paths)))


def rewrite(path: Path) -> None:
    """Write other bytes of the same length, with the same mtime."""
    before = path.stat()
    path.write_bytes(b"B" * before.st_size)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def replace(path: Path) -> None:
    """Put another file with the same bytes and mtime in its place."""
    before = path.stat()
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.rename(path)


def touch_ns(path: Path) -> None:
    """Move the mtime by one nanosecond."""
    before = path.stat()
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))


def to_fifo(path: Path) -> None:
    """Put a FIFO in its place."""
    path.unlink()
    os.mkfifo(path)


def to_link(path: Path) -> None:
    """Put a link to the very same file in its place."""
    path.rename(path.with_name("target"))
    path.symlink_to("target")


@pytest.mark.parametrize(
    "change", [rewrite, replace, touch_ns, Path.unlink, to_fifo, to_link]
)
def test_change_is_seen(tmp_path: Path, change: Callable[[Path], None]) -> None:
    """Each of these is a change."""
    path = tmp_path / "f"
    path.write_bytes(b"A" * 10)
    before = seen(path)
    ctime = path.stat().st_ctime_ns
    assert snapshot.compare(before) is before
    # The clock of a filesystem has ticks: a change in the same one cannot be seen.
    until("the clock ticks", lambda: ticked(tmp_path, ctime))
    change(path)
    assert snapshot.compare(before) is None


def ticked(folder: Path, ctime: int) -> bool:
    """Tell whether the filesystem's clock has gone on."""
    probe = folder / "probe"
    probe.write_bytes(b"")
    return probe.stat().st_ctime_ns > ctime


def test_appearing_is_a_change(tmp_path: Path) -> None:
    """A missing path is watched too."""
    path = tmp_path / "f"
    before = seen(path)
    assert before == ((str(path), None, None, None),)
    assert snapshot.compare(before) is before
    path.write_bytes(b"")
    assert snapshot.compare(before) is None


def test_only_ctime_moved(tmp_path: Path) -> None:
    """Then content decides, and the newer look is kept."""
    path = tmp_path / "f"
    path.write_bytes(b"A")
    before = seen(path)
    ctime = path.stat().st_ctime_ns
    until("the clock ticks", lambda: ticked(tmp_path, ctime))
    path.chmod(0o600)
    after = snapshot.compare(before)
    assert after is not None
    assert after is not before
    assert snapshot.compare(after) is after
    # Without a digest nothing tells that nothing changed.
    assert snapshot.compare(snapshot.take([str(path)])) is not None
    bare = tuple((one, two, three, None) for one, two, three, _ in before)
    assert snapshot.compare(bare) is None


def test_links(tmp_path: Path) -> None:
    """A link is looked at, and what it leads to; a dangling one too."""
    target, link = tmp_path / "target", tmp_path / "link"
    link.symlink_to("target")
    dangling = seen(link)
    assert dangling[0][1] is None
    assert dangling[0][2] is not None
    assert snapshot.compare(dangling) is dangling
    target.write_bytes(b"A")
    assert snapshot.compare(dangling) is None
    there = seen(link)
    assert there[0][1] == snapshot.signature(target.stat())
    assert there[0][2] == snapshot.signature(link.lstat())
    link.unlink()
    link.symlink_to("./target")
    assert snapshot.compare(there) is None


def test_digest(tmp_path: Path) -> None:
    """Only of short regular files; a FIFO holds nobody, a folder is none."""
    path = tmp_path / "f"
    path.write_bytes(b"abc")
    assert snapshot.digest(str(path)) == sha256(b"abc").hexdigest()
    path.write_bytes(b"a" * snapshot.MAX_DIGEST_BYTES)
    assert snapshot.digest(str(path))
    path.write_bytes(b"a" * (snapshot.MAX_DIGEST_BYTES + 1))
    assert snapshot.digest(str(path)) is None
    os.mkfifo(tmp_path / "fifo")
    for other in (tmp_path / "fifo", tmp_path, tmp_path / "missing"):
        assert snapshot.digest(str(other)) is None
    assert snapshot.digest("\0") is None
    assert snapshot.look("\0") == (None, None)


def test_number_of_digests_is_bounded(tmp_path: Path) -> None:
    """The first MAX_DIGESTS files have one."""
    paths = [tmp_path / f"{n:03}" for n in range(snapshot.MAX_DIGESTS + 2)]
    for path in paths:
        path.write_bytes(b"x")
    digests = [entry[3] for entry in seen(*paths)]
    assert all(digests[: snapshot.MAX_DIGESTS])
    assert digests[snapshot.MAX_DIGESTS :] == [None, None]


def test_digest_of_other_bytes_is_not_kept(tmp_path: Path) -> None:
    """What changed between the look and the reading has none."""
    path = tmp_path / "f"
    path.write_bytes(b"old")
    looked = snapshot.take([str(path)])
    path.write_bytes(b"newer")
    assert snapshot.with_digests(looked)[0][3] is None


def test_duplicates_are_dropped(tmp_path: Path) -> None:
    """Every path once, in the order given."""
    paths = [str(tmp_path), "/missing", str(tmp_path)]
    assert [entry[0] for entry in snapshot.take(paths)] == paths[:2]


@given(st.lists(ENTRIES))
def test_wire_round_trip(entries: list[snapshot.Entry]) -> None:
    """What is sent comes back."""
    made = tuple(entries)
    assert snapshot.from_wire(snapshot.to_wire(made)) == made


def test_wire_is_that_of_the_page(tmp_path: Path) -> None:
    """MTIME_NS CTIME_NS SIZE INODE DEVICE, decimal, single spaces."""
    path = tmp_path / "f"
    path.write_bytes(b"abc")
    look = path.stat()
    numbers = (
        look.st_mtime_ns,
        look.st_ctime_ns,
        look.st_size,
        look.st_ino,
        look.st_dev,
    )
    expected = " ".join(map(str, numbers))
    digest = sha256(b"abc").hexdigest()
    assert snapshot.to_wire(seen(path)) == [[str(path), expected, None, digest]]


@pytest.mark.parametrize(
    "wired",
    [
        [1],
        [["/a"]],
        [["/a", None, None]],
        [[1, None, None, None]],
        [["/a", "1 2 3", None, None]],
        [["/a", "a b c d e", None, None]],
        [["/a", 5, None, None]],
        [["/a", None, None, 5]],
        5,
    ],
    ids=str,
)
def test_wire_of_another_shape(wired: object) -> None:
    """It raises what its caller catches, and nothing else."""
    with pytest.raises((ValueError, TypeError)):
        snapshot.from_wire(wired)


def test_folders(tmp_path: Path) -> None:
    """Parents, a link target's parent, and what exists above a missing path."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "b/target").write_bytes(b"")
    (tmp_path / "a/link").symlink_to(tmp_path / "b/target")
    found = snapshot.folders(seen(tmp_path / "a/link", tmp_path / "no/where/f"))
    assert found == {str(tmp_path / "a"), str(tmp_path / "b"), str(tmp_path)}
