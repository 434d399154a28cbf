"""Fences on every filesystem that is believed: no change goes untold."""

from __future__ import annotations

import mmap
import os
import random
import resource
import select
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kernel_client import arming, instances, snapshot
from kernel_client.errors import FenceError
from kernel_client.fence import present
from tests.support.changes import CHANGES, Tree

FILESYSTEMS = ("here", "tmpfs", "overlay", "xfs", "btrfs", "ext4")
ROUNDS = 300
IS_ROOT = arming.is_root


@contextmanager
def mounted(kind: str, base: Path) -> Iterator[Path]:
    """Give a folder on a filesystem of that kind."""
    place = base / kind
    place.mkdir()
    if kind == "here":
        yield place
        return
    options: list[str] = []
    source = kind
    if kind == "overlay":
        for name in ("lower", "upper", "work"):
            (base / name).mkdir()
        Tree(base / "lower").close()
        layers = f"lowerdir={base}/lower,upperdir={base}/upper,workdir={base}/work"
        options = ["-o", f"{layers},redirect_dir=on"]
    elif kind != "tmpfs":
        image = base / "image"
        with image.open("wb") as file:
            file.truncate(400 << 20)
        make = shutil.which(f"mkfs.{kind}", path=f"{os.environ['PATH']}:/usr/sbin")
        if make is None:
            pytest.skip(f"no mkfs.{kind}")
        subprocess.run([make, "-q", image], check=True, capture_output=True)
        source, options = str(image), ["-o", "loop"]
    command = ["mount", "-t", kind, *options, source, str(place)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"mount: {done.stderr.strip()}")
    try:
        yield place
    finally:
        # Lazily: a test that fails may have left something open in it.
        subprocess.run(["umount", "--lazy", place], check=True)


@pytest.fixture(scope="module", params=FILESYSTEMS)
def tree(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Tree]:
    """Give a tree on each of them; an overlay is believed as if it were `/`."""
    with (
        mounted(request.param, tmp_path_factory.mktemp("fs")) as place,
        pytest.MonkeyPatch.context() as patched,
    ):
        if request.param == "overlay":
            patched.setattr(arming, "is_root", lambda _: True)
        found = Tree(place)
        yield found
        found.close()


def armed(paths: list[str], max_watches: int = 1000) -> arming.Armed:
    """Arm; earlier instances may still be on their way out."""
    while True:
        try:
            return arming.arm(paths, max_watches)
        except FenceError as error:
            if error.code != "instances":
                raise
            instances.close(arming.arm([], 1).descriptor)


def untold(tree: Tree, name: str) -> str | None:
    """Make a change; gives its name when it is one and the fence is quiet."""
    seen = snapshot.take(tree.watched)
    fence = armed(present(seen))
    try:
        assert fence.rest == {str(tree.w / "empty")}
        assert fence.is_quiet()
        getattr(tree, name)()
        rest = tuple(
            entry for entry in seen if entry[1] is None or entry[0] in fence.rest
        )
        if snapshot.compare(seen) is None and snapshot.compare(rest) is not None:
            return name if fence.is_quiet() else None
        return None
    finally:
        instances.close(fence.descriptor)
        tree.mend()


@pytest.mark.parametrize("name", CHANGES)
def test_each_change(tree: Tree, name: str) -> None:
    """Told before the call that made it has returned."""
    assert untold(tree, name) is None


def test_any_order(tree: Tree) -> None:
    """Nor does what happened before matter."""
    chosen = random.Random(tree.base.name)
    for _ in range(ROUNDS):
        assert untold(tree, chosen.choice(CHANGES)) is None


def test_reading_is_no_change(tree: Tree) -> None:
    """What programs do all day leaves a fence quiet."""
    fence = armed(present(snapshot.take(tree.watched)))
    for path in (*tree.w.rglob("*"), tree.w):
        path.stat()
        os.access(path, os.R_OK)
        if path.is_dir():
            list(path.iterdir())
        elif path.is_file():
            path.read_bytes()
    (tree.w / "beside").write_text("")
    (tree.w / "beside").unlink()
    assert fence.is_quiet()
    instances.close(fence.descriptor)


def test_through_a_map(tree: Tree) -> None:
    """What the README says: this alone is not told."""
    with (tree.w / "file").open("r+b") as file:
        fence = armed(present(snapshot.take(tree.watched)))
        with mmap.mmap(file.fileno(), 0) as mapped:
            mapped[0:1] = b"x"
            mapped.flush()
        assert fence.is_quiet()
        instances.close(fence.descriptor)
    tree.mend()


def test_change_while_arming(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At whatever step it comes: no fence, or one that tells."""
    step = 0
    real = os.lstat

    def meanwhile(path: str) -> os.stat_result:
        nonlocal step
        step -= 1
        if step == 0:
            (tmp_path / "new").write_text("")
            (tmp_path / "new").rename(tmp_path / "sub/file")
        return real(path)

    monkeypatch.setattr(os, "lstat", meanwhile)
    (tmp_path / "sub").mkdir()
    quiet = 0
    codes: set[str] = set()
    for first in range(1, 30):
        (tmp_path / "sub/file").write_text("")
        seen = os.stat(tmp_path / "sub/file")
        step = first
        try:
            fence = armed([str(tmp_path / "sub/file")])
        except FenceError as error:
            codes.add(error.code)
            continue
        now = os.stat(tmp_path / "sub/file")
        if now.st_ino != seen.st_ino:
            # Replaced before its own watch was there: the new one is watched.
            quiet += 1
            (tmp_path / "sub/file").write_text("")
        elif step > 0:
            instances.close(fence.descriptor)
            break
        assert not fence.is_quiet()
        instances.close(fence.descriptor)
    assert quiet
    assert codes == {"changed"}


@pytest.mark.parametrize(
    "path", ["/proc/self/status", "relative", "/", "/tmp/..", "/dev/null", "/dev/shm/"]
)
def test_not_covered(path: str) -> None:
    """They stay with stats."""
    fence = armed([path])
    assert fence.rest == {path}
    instances.close(fence.descriptor)


def test_link_out_of_what_is_believed(tmp_path: Path) -> None:
    """A path that leads into another filesystem is not covered."""
    (tmp_path / "out").symlink_to("/proc/self")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").write_text("")
    paths = [str(tmp_path / name) for name in ("out", "out/status", "loop", "file")]
    fence = armed(paths)
    assert fence.rest == set(paths[:3])
    instances.close(fence.descriptor)


@pytest.mark.parametrize("through", ["..", "../{name}", ".", "sub/..", "sub/../file"])
def test_odd_links(tmp_path: Path, through: str) -> None:
    """Links to where they are, and upwards."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(through.format(name=tmp_path.name))
    fence = armed([str(tmp_path / "link")])
    (tmp_path / "link").unlink()
    assert not fence.is_quiet()
    instances.close(fence.descriptor)


def test_overlay_that_is_not_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody may write to its layers: stats."""
    monkeypatch.setattr(arming, "is_root", IS_ROOT)
    with mounted("overlay", tmp_path) as place:
        tree = Tree(place)
        paths = present(snapshot.take(tree.watched))
        fence = armed(paths)
        instances.close(fence.descriptor)
        tree.close()
    assert fence.rest == set(paths)


def test_folder_that_somebody_is_in(tmp_path: Path) -> None:
    """Where it tells nothing when it is removed, the one above does, or stats do."""
    above = tmp_path / "above"
    for each in (above / "empty", above / "full"):
        each.mkdir(parents=True)
    (above / "full/entry").write_text("")
    alone = armed([str(above / "empty")])
    assert alone.rest == {str(above / "empty")}
    full = armed([str(above / "full")])
    both = armed([str(above / "empty"), str(above)])
    assert not full.rest | both.rest
    inside = [os.open(above / name, os.O_RDONLY) for name in ("empty", "full")]
    (above / "empty").rmdir()
    assert alone.is_quiet(), "else it could be covered"
    assert not both.is_quiet()
    shutil.rmtree(above / "full")
    assert not full.is_quiet()
    for descriptor in inside:
        os.close(descriptor)
    for fence in (alone, full, both):
        instances.close(fence.descriptor)


def test_subvolume(tmp_path: Path) -> None:
    """It is deleted with all that is in it, and nothing tells; not where mounted."""
    with mounted("btrfs", tmp_path) as top:
        inner, place = top / "inner", tmp_path / "a place"
        subprocess.run(
            ["btrfs", "subvolume", "create", inner], check=True, capture_output=True
        )
        file = inner / "file"
        file.write_text("")
        place.mkdir()
        fence = armed([str(file), str(inner)])
        assert fence.rest == {str(file), str(inner)}
        instances.close(fence.descriptor)
        subprocess.run(["mount", "--bind", inner, place], check=True)
        fence = armed([str(place / "file")])
        subprocess.run(["umount", "--lazy", place], check=True)
        assert not fence.rest
        instances.close(fence.descriptor)


@pytest.mark.parametrize("passes", [True, False])
@pytest.mark.parametrize("mode", [0o755, 0o1777])
def test_folder_above_that_is_closed(
    tmp_path: Path, mode: int, monkeypatch: pytest.MonkeyPatch, *, passes: bool
) -> None:
    """Told where it matters; of one that everybody writes to, by the folder above."""
    monkeypatch.setattr(arming, "passes_everywhere", lambda: passes)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub").chmod(mode)
    (tmp_path / "sub/file").write_text("")
    fence = armed([str(tmp_path / "sub/file")])
    assert not fence.rest
    (tmp_path / "sub").chmod(0)
    assert fence.is_quiet() is passes
    instances.close(fence.descriptor)


def test_too_many_watches(tmp_path: Path) -> None:
    """The budget holds; no instance is left behind."""
    paths = [tmp_path / str(number) for number in range(20)]
    for path in paths:
        path.write_text("")
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(FenceError) as caught:
        arming.arm(map(str, paths), 10)
    assert caught.value.code == "watches"
    assert len(os.listdir("/proc/self/fd")) <= before + 1


def test_no_instance() -> None:
    """Out of descriptors: said, with the code that `status` shows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
        with pytest.raises(FenceError) as caught:
            arming.arm([], 10)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert caught.value.code == "instances"


def test_limits_of_this_user() -> None:
    """As /proc has them."""
    folder = Path("/proc/sys/fs/inotify")
    assert arming.max_user_watches() == int((folder / "max_user_watches").read_text())
    assert arming.max_user_instances() == int(
        (folder / "max_user_instances").read_text()
    )


def test_clear(tmp_path: Path) -> None:
    """Watches are given back, and whoever holds a copy is told."""
    (tmp_path / "file").write_text("")
    fence = armed([str(tmp_path / "file")])
    copy = os.dup(fence.descriptor)
    fence.clear()
    instances.close_later(fence.descriptor)
    poll = select.poll()
    poll.register(copy, select.POLLIN)
    assert poll.poll(0)
    assert "inotify wd" not in Path(f"/proc/self/fdinfo/{copy}").read_text()
    os.close(copy)
