"""The version that was allowed, found in real git repositories."""

from __future__ import annotations

import os
import subprocess
import time
from functools import partial
from pathlib import Path

import pytest

from envwatch import history
from envwatch.inquiry import fingerprint
from tests.conftest import OLDER
from tests.support.daemons import until
from tests.support.planted import exports
from tests.support.processes import gone
from tests.support.worlds import World

FIRST = exports("A").encode()
PATIENCE_S = 50.0
"""No test is about how fast git is here."""


class Repository:
    """A repository of a world, in the folder `w`."""

    def __init__(self, world: World, name: str = "w") -> None:
        self.world = world
        self.folder = world.folder(name)
        self.environ = {**world.environ, "GIT_CONFIG_NOSYSTEM": "1"}
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str, folder: Path | None = None) -> str:
        """Run git as the person."""
        who = ("-c", "user.name=p", "-c", "user.email=p@x")
        return subprocess.run(
            ["git", *who, *arguments],
            cwd=folder or self.folder,
            env=self.environ,
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    def commit(self, body: str | bytes, name: str = ".envrc") -> None:
        """Write a version and commit it."""
        self.world.write(self.folder / name, body)
        self.git("add", "-f", name)
        self.git("commit", "-qm", "x")

    def allowed(self, *, limit_s: float = PATIENCE_S) -> history.Version:
        """Look for the version that was allowed."""
        root = str(self.folder / ".envrc")
        return history.allowed(root, self.world.environ, limit_s=limit_s)


@pytest.fixture
def repository(world: World) -> Repository:
    """Give a repository whose first version was committed and allowed, then edited."""
    made = Repository(world)
    made.commit(FIRST)
    world.allow("w")
    return made


def test_the_fingerprint_is_the_name_in_direnv_s_store(world: World) -> None:
    """For both versions: SHA-256 of the path, a newline, and the content."""
    root = world.envrc("w", exports("A"))
    (entry,) = (world.data / "allow").iterdir()
    assert fingerprint(str(root), root.read_bytes()) == entry.name


def test_committed_and_allowed_then_edited(
    world: World, repository: Repository
) -> None:
    """The version of the last commit was allowed; the edit is in no commit."""
    world.write("w/.envrc", "B=1\n")
    found = repository.allowed()
    assert found.content == FIRST
    assert "in git" in found.origin


def test_far_back(world: World, repository: Repository) -> None:
    """Several commits later, under another name before, and on a merge."""
    for number in range(5):
        repository.commit(f"A={number}\n")
    assert repository.allowed().content == FIRST


def test_renamed_since(world: World) -> None:
    """git follows a file to the name that it had before."""
    repository = Repository(world)
    body = "".join(f"export A{number}=1\n" for number in range(20))
    repository.commit(body, "env.sh")
    world.write("w/.envrc", body)
    world.allow("w")
    repository.git("mv", "-f", "env.sh", ".envrc")
    repository.commit(body + "B=1\n")
    assert repository.allowed().content == body.encode()


def test_only_staged(world: World) -> None:
    """A version that is in the index alone counts."""
    repository = Repository(world)
    world.write("w/.envrc", FIRST)
    repository.git("add", ".envrc")
    world.allow("w")
    world.write("w/.envrc", "B=1\n")
    assert repository.allowed().content == FIRST


def test_on_another_branch(world: World, repository: Repository) -> None:
    """What was allowed before a branch was left is found."""
    repository.git("checkout", "-q", "--orphan", "other")
    repository.git("rm", "-qf", ".envrc")
    repository.commit("B=1\n")
    assert repository.allowed().content == FIRST


def test_the_one_that_was_allowed_last(world: World, repository: Repository) -> None:
    """Of several that match, that of the newest approval."""
    os.utime(world.approval("w"), (1, 1))
    repository.commit("B=1\n")
    world.allow("w")
    os.utime(world.approval("w"), (2, 2))
    repository.commit("C=1\n")
    assert repository.allowed().content == b"B=1\n"


def test_the_one_before_where_git_lacks_the_last(
    world: World, repository: Repository
) -> None:
    """The last approval is of a version that was never committed."""
    os.utime(world.approval("w"), (2, 2))
    repository.commit("B=1\n")
    world.allow("w")
    os.utime(world.approval("w"), (1, 1))
    world.write("w/.envrc", "C=1\n")
    world.allow("w")
    world.write("w/.envrc", "D=1\n")
    assert repository.allowed().content == FIRST


def test_behind_a_link(world: World) -> None:
    """The history is that of the file that the link leads to."""
    repository = Repository(world)
    repository.commit(FIRST, "real")
    world.path("w/.envrc").symlink_to("real")
    world.allow("w")
    repository.commit("B=1\n", "real")
    assert repository.allowed().content == FIRST


@pytest.mark.parametrize("version", [OLDER], indirect=True)
class TestNothingFound:
    """Each reason has its line, and none is an error."""

    def test_no_git(self, world: World, repository: Repository) -> None:
        world.environ["PATH"] = "/nowhere"
        assert "no git" in repository.allowed().origin

    def test_git_that_cannot_run(self, world: World, repository: Repository) -> None:
        broken = world.write("bin/git", "#!/nowhere\n")
        broken.chmod(0o755)
        world.environ["PATH"] = str(broken.parent)
        assert "cannot be run" in repository.allowed().origin

    def test_no_repository(self, world: World) -> None:
        root = world.envrc("v", exports("A"))
        found = history.allowed(str(root), world.environ)
        assert (found.content, "no git repository" in found.origin) == (None, True)

    def test_never_allowed(self, world: World) -> None:
        repository = Repository(world)
        repository.commit(FIRST)
        assert "no version" in repository.allowed().origin

    def test_never_committed(self, world: World) -> None:
        repository = Repository(world)
        world.envrc("w", exports("A"))
        world.write("w/.envrc", "B=1\n")
        assert "git has no version" in repository.allowed().origin

    def test_shallow(self, world: World, repository: Repository) -> None:
        repository.commit("B=1\n")
        origin = f"file://{repository.folder}"
        clone = world.path("c")
        repository.git("clone", "-q", "--depth=1", origin, str(clone))
        kept = world.write("c/.envrc", FIRST)
        world.allow("c")
        world.write("c/.envrc", "C=1\n")
        found = history.allowed(str(kept), world.environ)
        assert (found.content, "shallow" in found.origin) == (None, True)

    def test_partial(self, world: World, repository: Repository) -> None:
        """What the clone lacks is not fetched."""
        repository.commit("B=1\n")
        repository.git("config", "uploadpack.allowFilter", "true")
        origin = f"file://{repository.folder}"
        clone = world.path("c")
        repository.git("clone", "-q", "--filter=blob:none", origin, str(clone))
        kept = world.write("c/.envrc", FIRST)
        world.allow("c")
        world.write("c/.envrc", "C=1\n")
        before = sorted(clone.rglob("*"))
        assert (
            history.allowed(str(kept), world.environ, limit_s=PATIENCE_S).content
            is None
        )
        assert sorted(clone.rglob("*")) == before

    def test_hanging(self, world: World, repository: Repository) -> None:
        """At the bound it is killed, with what it has started."""
        pids = world.path("pids")
        script = f"#!/bin/sh\necho $$ >>{pids}\nsleep 1000 &\necho $! >>{pids}\nwait\n"
        git = world.write("bin/git", script)
        git.chmod(0o755)
        world.environ["PATH"] = f"{git.parent}:{world.environ['PATH']}"
        before = time.monotonic()
        found = repository.allowed(limit_s=2.5)
        assert time.monotonic() - before < PATIENCE_S
        assert "no answer within 2.5 s" in found.origin
        # A killed process may take a moment to go.
        for pid in pids.read_text().split():
            until(f"{pid} has gone", partial(gone, int(pid)))


@pytest.mark.parametrize("version", [OLDER], indirect=True)
def test_caller_s_git_variables_mislead_nobody(
    world: World, repository: Repository
) -> None:
    """Neither another repository nor a program that git would run."""
    other = Repository(world, "other")
    touched = world.path("touched")
    world.environ |= {
        "GIT_DIR": str(other.folder / ".git"),
        "GIT_WORK_TREE": str(other.folder),
        "GIT_INDEX_FILE": "/nowhere",
        "GIT_EXTERNAL_DIFF": f"touch {touched}",
        "GIT_PAGER": f"touch {touched}",
    }
    world.write("w/.envrc", "B=1\n")
    repository.git("config", "core.fsmonitor", f"touch {touched}")
    assert repository.allowed().content == FIRST
    assert not touched.exists()


@pytest.mark.parametrize("version", [OLDER], indirect=True)
def test_nothing_that_git_would_wait_for(world: World, repository: Repository) -> None:
    """A file that the repository's settings name may be a FIFO."""
    os.mkfifo(world.path("fifo"))
    repository.commit(b"B=1\n")
    world.write("w/.envrc", "C=1\n")
    repository.git("config", "diff.orderFile", str(world.path("fifo")))
    assert repository.allowed(limit_s=PATIENCE_S / 5).content == FIRST


@pytest.mark.parametrize("version", [OLDER], indirect=True)
def test_nothing_of_the_repository_changes(
    world: World, repository: Repository
) -> None:
    """No lock, no index written, no file left."""
    world.write("w/.envrc", "B=1\n")

    def look() -> list[tuple[str, int]]:
        return [
            (str(path), path.stat().st_mtime_ns)
            for path in sorted(world.path("w").rglob("*"))
        ]

    before = look()
    repository.allowed()
    assert look() == before
