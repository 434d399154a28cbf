"""What is installed: whole or not at all, and taken back exactly."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from envwatch.errors import NotWritten, Refused, Unavailable
from envwatch.hosts import footprint
from tests.support.children import as_ordinary_user


def tree(top: Path) -> dict[str, bytes | None]:
    """Give every path below a folder with its bytes (a folder: None)."""
    return {
        str(path.relative_to(top)): path.read_bytes() if path.is_file() else None
        for path in sorted(top.rglob("*"))
    }


def fill(folder: Path) -> None:
    """Write what a kernelspec could have."""
    (folder / "kernel.json").write_text("{}")
    (folder / "sub").mkdir()
    (folder / "sub" / "run.sh").write_text("true")
    (folder / "sub" / "run.sh").chmod(0o755)


Way = tuple[Callable[[Path], None], Callable[[Path], None], str]

WAYS: dict[str, Way] = {
    "folder": (
        lambda path: footprint.put_folder(path, fill),
        footprint.take_folder,
        "kernel.json",
    ),
    "file": (lambda path: footprint.put_file(path, "pass\n"), footprint.take_file, "."),
}


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Way:
    """Give (put, take back, what to edit) of a folder and of a file."""
    return WAYS[request.param]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Give where to put it, two folders below one that is there."""
    return tmp_path / "a" / "b" / "it"


def test_there_and_back(way: Way, path: Path, tmp_path: Path) -> None:
    """Nothing stays behind, not even the folders that had to be made."""
    put, take, _ = way
    put(path)
    assert path.exists()
    assert [each for each in path.parent.iterdir() if each != path] == []

    take(path)
    assert tree(tmp_path) == {}


def test_folders_that_others_use_by_now(way: Way, path: Path, tmp_path: Path) -> None:
    """They stay, with what is in them."""
    put, take, _ = way
    put(path)
    (tmp_path / "a" / "other").write_text("")
    take(path)

    assert sorted(tree(tmp_path)) == ["a", "a/other"]


def test_twice(way: Way, path: Path, tmp_path: Path) -> None:
    """The second time replaces the first, and one taking back is enough."""
    put, take, _ = way
    put(path)
    first = tree(tmp_path)
    put(path)
    assert tree(tmp_path) == first

    take(path)
    assert tree(tmp_path) == {}


def test_modes_are_kept(path: Path) -> None:
    """A program in a kernelspec can still be run."""
    footprint.put_folder(path, fill)

    assert os.access(path / "sub" / "run.sh", os.X_OK)
    assert path.stat().st_mode & 0o777 == 0o755


def test_edited_since(way: Way, path: Path, tmp_path: Path) -> None:
    """It stays, whoever wants to replace it or to take it back."""
    put, _, name = way
    put(path)
    with (path / name).open("a") as file:
        file.write("# mine\n")
    edited = tree(tmp_path)

    for act in way[:2]:
        with pytest.raises(Refused, match="was changed since"):
            act(path)
    assert tree(tmp_path) == edited


@pytest.mark.parametrize(
    "change",
    [
        lambda path: (path / "more").write_text(""),
        lambda path: (path / "kernel.json").unlink(),
        lambda path: (path / "link").symlink_to("/"),
        lambda path: os.mkfifo(path / "fifo"),
    ],
    ids=["added", "removed", "link", "fifo"],
)
def test_other_edits_of_a_folder(change: Callable[[Path], object], path: Path) -> None:
    """More, less, or another kind of thing is an edit too."""
    footprint.put_folder(path, fill)
    change(path)

    with pytest.raises(Refused, match="was changed since"):
        footprint.take_folder(path)


@pytest.mark.parametrize("record", ["", "{}", "[]", '{"files": 1, "folders": 1}', "\0"])
def test_not_ours(record: str, path: Path) -> None:
    """What has no record, or one that cannot be read, is not ours."""
    path.mkdir(parents=True)
    (path / footprint.RECORD).write_text(record)
    theirs = path.parent / "file"
    theirs.write_text(record)

    for act in (*WAYS["folder"][:2],):
        with pytest.raises(Refused, match="not envwatch's"):
            act(path)
    for act in (*WAYS["file"][:2],):
        with pytest.raises(Refused, match="not envwatch's"):
            act(theirs)
    assert theirs.read_text() == record


def test_link_to_one_of_ours(way: Way, path: Path, tmp_path: Path) -> None:
    """A link that somebody made is theirs."""
    put, take, _ = way
    put(path)
    link = tmp_path / "link"
    link.symlink_to(path)

    for act in (put, take):
        with pytest.raises(Refused, match="not envwatch's"):
            act(link)


def test_not_there(way: Way, path: Path) -> None:
    """Nothing to take back is an error of its own."""
    with pytest.raises(Unavailable, match="nothing to take back"):
        way[1](path)


def test_folder_that_cannot_be_written(way: Way) -> None:
    """It says so, and leaves nothing half written."""
    # Of its own: an ordinary user cannot reach what pytest gives to root.
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        top = Path(name)
        closed = top / "closed"
        closed.mkdir()

        def work() -> list[str]:
            closed.chmod(0o500)
            said = []
            for path in (closed / "it", closed / "a" / "it"):
                with pytest.raises(NotWritten, match="Permission denied") as caught:
                    way[0](path)
                said.append(str(caught.value))
            return said

        said = as_ordinary_user(top, work)
        assert [line.count("\n") for line in said] == [0, 0]
        assert tree(top) == {"closed": None}


def test_file_in_the_way(way: Way, tmp_path: Path) -> None:
    """A file where a folder should be is said, and stays."""
    (tmp_path / "a").write_text("mine")

    with pytest.raises(NotWritten):
        way[0](tmp_path / "a" / "it")
    assert tree(tmp_path) == {"a": b"mine"}


def test_failure_while_it_is_filled(path: Path, tmp_path: Path) -> None:
    """What was written until then goes; one that was there before stays."""

    def failing(folder: Path) -> None:
        fill(folder)
        raise OSError(28, "No space left on device")

    with pytest.raises(NotWritten, match="No space left"):
        footprint.put_folder(path, failing)
    assert tree(tmp_path) == {}

    footprint.put_folder(path, fill)
    before = tree(tmp_path)
    with pytest.raises(NotWritten, match="No space left"):
        footprint.put_folder(path, failing)
    assert tree(tmp_path) == before


def test_failure_of_the_last_step(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old one is back in its place when the new one cannot take it."""
    footprint.put_folder(path, fill)
    before = tree(tmp_path)
    real = Path.rename

    def failing(self: Path, target: Path) -> Path:
        if (self / "new").exists():
            raise OSError(5, "Input/output error")
        return real(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(NotWritten, match="Input/output error"):
        footprint.put_folder(path, lambda folder: (folder / "new").touch())
    assert tree(tmp_path) == before


def test_record_that_names_other_folders(path: Path, tmp_path: Path) -> None:
    """A record removes nothing but empty folders, whatever it says."""
    footprint.put_folder(path, fill)
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("")
    record = path / footprint.RECORD
    record.write_text(
        record.read_text().replace('"folders": [', f'"folders": [3, "{kept}",')
    )
    footprint.take_folder(path)

    assert sorted(tree(tmp_path)) == ["kept", "kept/file"]
