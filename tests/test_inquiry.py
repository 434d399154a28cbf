"""Looking and allowing, with both real direnv versions: what was shown, or nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from envwatch import inquiry as module
from envwatch.core.exhibit import MAX_BYTES
from envwatch.core.question import Subject
from envwatch.inquiry import Inquiry, NotAllowed
from envwatch.state import State
from kernel_client.errors import DirenvError
from tests.conftest import CHECKOUT, NEWER
from tests.support.daemons import until
from tests.support.planted import exports
from tests.support.worlds import World

BODY = exports("A")
EVIL = exports("EVIL")
Make = Callable[..., Inquiry]


def asked(world: World, inquiry: Inquiry, relative: str = "w") -> Subject:
    """Give the subject of a folder that is blocked."""
    found = inquiry.look(str(world.path(relative)))
    assert found.subject is not None
    return found.subject


def approvals(world: World) -> set[str]:
    """Name all entries of the store."""
    folder = world.data / "allow"
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


def state(world: World, relative: str = "w") -> State:
    """Give direnv's own word."""
    base = world.environ
    return Inquiry(world.direnv, base).look(str(world.path(relative))).workspace.state


@pytest.fixture
def inquiry(world: World) -> Inquiry:
    """Give one with the real direnv."""
    return Inquiry(world.direnv, world.environ)


@pytest.fixture
def meddling(world: World) -> Make:
    """Give what makes one whose direnv has a script run before and after `allow`."""

    def made(before: str = "", after: str = "", code: str = "$?") -> Inquiry:
        script = world.write(
            "bin/direnv",
            "#!/bin/bash\n"
            f'if [[ $1 != allow ]]; then exec {world.direnv} "$@"; fi\n'
            f'{before}\n{world.direnv} "$@"\ncode={code}\n{after}\nexit $code\n',
        )
        script.chmod(0o755)
        return Inquiry(str(script), world.environ)

    return made


# ------------------------------------------------------------------ looking


def test_states(world: World, inquiry: Inquiry) -> None:
    """Only a blocked file has a subject; a denied one has none."""
    folder = str(world.folder("w"))
    assert inquiry.look(folder).workspace.state is State.NONE
    world.envrc("w", BODY, allow=False)
    new = inquiry.look(folder)
    assert new.workspace.state is State.NEW
    assert new.subject is not None
    assert new.subject.exhibit.is_whole
    assert new.subject.content == BODY.encode()
    world.allow("w")
    assert inquiry.look(folder) == (new.workspace.__class__(
        folder=folder, root=new.workspace.root, state=State.ALLOWED
    ), None)  # fmt: skip
    world.write("w/.envrc", EVIL)
    changed = inquiry.look(folder)
    assert changed.workspace.state is State.CHANGED
    assert changed.subject is not None
    assert "no git repository" in changed.subject.origin
    if world.is_newer:
        world.deny("w")
        assert inquiry.look(folder) == (
            changed.workspace.__class__(
                folder=folder, root=new.workspace.root, state=State.DENIED
            ),
            None,
        )


def test_what_changed(world: World, inquiry: Inquiry) -> None:
    """The version that was allowed is git's; the difference is shown."""
    world.envrc("w", "A=1\nB=1\n")
    git = ["git", "-c", "user.name=p", "-c", "user.email=p@x"]
    for command in (["init", "-q"], ["add", ".envrc"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *command], cwd=world.path("w"), check=True)
    world.write("w/.envrc", "A=1\nB=2\nwatch_file x\n")
    subject = asked(world, inquiry)
    assert [line.text for line in subject.exhibit.lines] == [
        "@@ -1,2 +1,3 @@",
        *(" A=1", "-B=1", "+B=2", "+watch_file x"),
    ]
    assert "in git" in subject.origin
    assert subject.names == ("x",)
    assert asked(world, inquiry) is subject


def test_too_large_to_show(world: World, inquiry: Inquiry) -> None:
    """5 MB: blocked, and nothing that could be asked or allowed."""
    world.envrc("w", "#" * 5_000_000, allow=False)
    subject = asked(world, inquiry)
    assert subject.exhibit.refusal is not None
    assert not subject.is_asked
    assert len(subject.content) == MAX_BYTES + 1
    with pytest.raises(NotAllowed, match="not shown in full"):
        inquiry.allow(subject)
    assert approvals(world) == set()


def test_glance_differs_when_anything_does(world: World, inquiry: Inquiry) -> None:
    """An edit, an approval, a denial, a nearer file, direnv's settings."""
    world.envrc("w/a", BODY, allow=False)
    folder = str(world.path("w/a"))
    seen = [inquiry.glance(folder)]
    steps: list[Callable[[], object]] = [
        lambda: world.write("w/a/.envrc", EVIL),
        lambda: world.allow("w/a"),
        lambda: world.deny("w/a"),
        lambda: world.toml(""),
        lambda: world.path("w/a/.envrc").unlink(),
    ]
    for step in steps:
        assert inquiry.glance(folder) == seen[-1]
        step()
        seen.append(inquiry.glance(folder))
        assert seen[-1] != seen[-2]


def test_file_gone_between_two_looks(
    world: World, inquiry: Inquiry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What direnv still saw and nobody can read is unreadable, and not asked about."""
    world.envrc("w", BODY, allow=False)
    monkeypatch.setattr(module, "read", lambda path: None)
    found = inquiry.look(str(world.path("w")))
    assert (found.workspace.state, found.subject) == (State.UNREADABLE, None)


@pytest.mark.parametrize("kind", ["fifo", "folder", "missing"])
def test_read_of_what_is_no_file(world: World, kind: str) -> None:
    """It neither waits nor fails."""
    path = world.path("x")
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    assert module.read(str(path)) is None


# ------------------------------------------------------------------ allowing


@pytest.mark.parametrize("kind", ["file", "link", "bytes", "dotenv"])
def test_allows_what_was_shown(world: World, inquiry: Inquiry, kind: str) -> None:
    """With `direnv allow`: one entry, that of these bytes, and direnv loads it."""
    name = os.fsdecode(b"x\n\xff") if kind == "bytes" else "w"
    path = Path(name, ".env" if kind == "dotenv" else ".envrc")
    if kind == "link":
        world.write("real", BODY)
        world.folder("w").joinpath(".envrc").symlink_to("../real")
    else:
        world.write(path, BODY)
    if kind == "dotenv":
        world.toml("[global]\nload_dotenv = true\n")
    subject = asked(world, inquiry, name)
    inquiry.allow(subject)
    assert approvals(world) == {subject.fingerprint}
    assert state(world, name) is State.ALLOWED


def test_changed_before_the_answer(world: World, meddling: Make) -> None:
    """The answer is void, and direnv is not even asked to allow."""
    world.envrc("w", BODY, allow=False)
    asked_it = world.path("asked")
    inquiry = meddling(before=f"touch {asked_it}")
    subject = asked(world, inquiry)
    world.write("w/.envrc", EVIL)
    with pytest.raises(NotAllowed, match="has changed since it was shown"):
        inquiry.allow(subject)
    assert approvals(world) == set()
    assert not asked_it.exists()


def test_another_approval_comes_with_it(world: World, meddling: Make) -> None:
    """Beside the right one an approval of something else: both are taken back."""
    root = world.envrc("w", BODY, allow=False)
    keep = world.write("keep", BODY)
    inquiry = meddling(
        before=f"echo evil >{root}; {world.direnv} allow {root}; cp {keep} {root}"
    )
    with pytest.raises(NotAllowed):
        inquiry.allow(asked(world, inquiry))
    assert approvals(world) == set()


def test_changed_just_before_direnv_reads_it(world: World, meddling: Make) -> None:
    """What direnv allowed in its place is taken back."""
    world.envrc("w", BODY, allow=False)
    inquiry = meddling(before=f"echo evil >{world.path('w/.envrc')}")
    with pytest.raises(NotAllowed, match="has changed"):
        inquiry.allow(asked(world, inquiry))
    assert approvals(world) == set()
    assert state(world) is State.NEW


def test_changed_and_changed_back(world: World, meddling: Make) -> None:
    """The file has the bytes that were shown, but others were allowed: taken back."""
    root = world.envrc("w", BODY, allow=False)
    keep = world.write("keep", BODY)
    inquiry = meddling(before=f"echo evil >{root}", after=f"cp {keep} {root}")
    with pytest.raises(NotAllowed):
        inquiry.allow(asked(world, inquiry))
    assert approvals(world) == set()


def test_changed_right_after(world: World, meddling: Make) -> None:
    """The approval of what is there no more is taken back, too."""
    root = world.envrc("w", BODY, allow=False)
    inquiry = meddling(after=f"echo evil >{root}")
    with pytest.raises(NotAllowed):
        inquiry.allow(asked(world, inquiry))
    assert approvals(world) == set()


def test_earlier_approvals_stay(world: World, meddling: Make) -> None:
    """Only what has come is taken back: what the person allowed before is theirs."""
    root = world.envrc("w", BODY)
    world.envrc("other", BODY)
    before = approvals(world)
    world.write("w/.envrc", EVIL)
    inquiry = meddling(before=f"echo evil >{root}")
    with pytest.raises(NotAllowed):
        inquiry.allow(asked(world, inquiry))
    assert approvals(world) == before


def test_link_that_vanishes(world: World, meddling: Make) -> None:
    """A file above is not allowed in the place of the one that was shown."""
    world.envrc(".", EVIL, allow=False)
    world.write("real", BODY)
    link = world.folder("w") / ".envrc"
    link.symlink_to("../real")
    inquiry = meddling(before=f"rm {link}")
    with pytest.raises(NotAllowed):
        inquiry.allow(asked(world, inquiry))
    assert approvals(world) == set()
    assert state(world, ".") is State.NEW


@pytest.mark.parametrize("body", [BODY, EVIL], ids=["same", "another"])
def test_folder_that_became_a_link(world: World, meddling: Make, body: str) -> None:
    """direnv follows it: what it allowed there was never shown, and is taken back."""
    world.envrc("w", BODY, allow=False)
    world.envrc("other", body, allow=False)
    place = world.path("w")
    inquiry = meddling(before=f"mv {place} {place}.away; ln -s other {place}")
    with pytest.raises(NotAllowed):
        inquiry.allow(asked(world, inquiry))
    assert approvals(world) == set()
    assert state(world, "other") is State.NEW


def test_folder_that_was_a_link_before_the_answer(
    world: World, inquiry: Inquiry
) -> None:
    """The same bytes elsewhere may read other files: they were not asked about."""
    world.envrc("w", BODY, allow=False)
    world.envrc("other", BODY, allow=False)
    subject = asked(world, inquiry)
    place = world.path("w")
    place.rename(world.path("away"))
    place.symlink_to("other")
    with pytest.raises(NotAllowed, match="has moved since"):
        inquiry.allow(subject)
    assert approvals(world) == set()


def test_what_somebody_else_allows_meanwhile_stays(
    world: World, meddling: Make
) -> None:
    """It has nothing to do with this answer."""
    world.envrc("w", BODY, allow=False)
    other = world.envrc("other", EVIL, allow=False)
    inquiry = meddling(before=f"{world.direnv} allow {other}")
    inquiry.allow(asked(world, inquiry))
    assert state(world) is State.ALLOWED
    assert state(world, "other") is State.ALLOWED


@pytest.mark.parametrize("version", [NEWER], indirect=True)
def test_denied_meanwhile(world: World, inquiry: Inquiry) -> None:
    """`direnv allow` would lift the denial: it is not run."""
    world.envrc("w", BODY)
    world.write("w/.envrc", EVIL)
    subject = asked(world, inquiry)
    world.deny("w")
    with pytest.raises(NotAllowed, match="not blocked any more; it is denied"):
        inquiry.allow(subject)
    assert state(world) is State.DENIED


def test_direnv_that_refuses(world: World, meddling: Make) -> None:
    """Nothing is allowed then, and it is said."""
    world.envrc("w", BODY, allow=False)
    inquiry = meddling(before="exit 1")
    with pytest.raises(NotAllowed, match="direnv allow failed"):
        inquiry.allow(asked(world, inquiry))
    inquiry = meddling(code="1")
    with pytest.raises(NotAllowed, match="direnv allow failed"):
        inquiry.allow(asked(world, inquiry))
    assert approvals(world) == set()


def test_direnv_that_says_yes_and_does_nothing(world: World, meddling: Make) -> None:
    """Without the entry of what was shown it is no approval."""
    world.envrc("w", BODY, allow=False)
    inquiry = meddling(before="exit 0")
    with pytest.raises(NotAllowed):
        inquiry.allow(asked(world, inquiry))


def test_direnv_that_hangs(
    world: World, meddling: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is given up."""
    world.envrc("w", BODY, allow=False)
    monkeypatch.setattr(module, "ALLOW_TIMEOUT_S", 0.2)
    inquiry = meddling(before="exec sleep 1000")
    with pytest.raises(NotAllowed, match="gave no answer"):
        inquiry.allow(asked(world, inquiry))
    assert approvals(world) == set()


def test_direnv_that_is_gone(world: World, meddling: Make) -> None:
    """No error but the one line."""
    world.envrc("w", BODY, allow=False)
    inquiry = meddling()
    subject = asked(world, inquiry)
    world.path("bin/direnv").unlink()
    with pytest.raises(NotAllowed, match="could not be started"):
        inquiry.allow(subject)
    with pytest.raises(DirenvError):
        inquiry.look(str(world.path("w")))


def test_workspace_that_vanishes(world: World, inquiry: Inquiry) -> None:
    """The answer is void."""
    root = world.envrc("w", BODY, allow=False)
    subject = asked(world, inquiry)
    root.unlink()
    root.parent.rmdir()
    with pytest.raises(NotAllowed):
        inquiry.allow(subject)


def test_interrupt_while_direnv_allows(world: World, meddling: Make) -> None:
    """What has come of it by then is taken back: nobody has looked at it."""
    world.envrc("w", BODY, allow=False)
    started = world.path("started")
    inquiry = meddling(after=f"touch {started}; exec sleep 1000")
    code = (
        "import os, signal; from envwatch.inquiry import Inquiry\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"i = Inquiry({inquiry._direnv!r}, dict(os.environ))\n"
        f"i.allow(i.look({str(world.path('w'))!r}).subject)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env={**world.environ, "PYTHONPATH": str(CHECKOUT)},
        stderr=subprocess.DEVNULL,
    )
    until("direnv has allowed", started.exists)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) != 0
    assert approvals(world) == set()
