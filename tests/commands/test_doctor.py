"""`envwatch doctor`: each finding, its remedy, and the exit code."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from envwatch.commands import findings
from envwatch.commands.findings import Grade
from tests.conftest import OLDER
from tests.support.daemons import Daemon
from tests.support.persons import Ended, Person

one_version = pytest.mark.parametrize("version", [OLDER], indirect=True)


def found(ended: Ended, subject: str) -> list[tuple[str, str]]:
    """Give (grade, text with its remedy) of each finding about a subject."""
    rows: list[list[str]] = []
    for line in ended.lines:
        if line.startswith(" "):
            rows[-1][2] += line
        else:
            rows.append(line.split(maxsplit=2))
    return [(grade, text) for grade, about, text in rows if about == subject]


def test_all_is_well(attended: Person, daemon: Daemon) -> None:
    """Where nothing is to be mended the exit code is 0, and everything is named."""
    ended = attended.run("doctor")

    assert ended.code == 0, ended
    assert ended.err == ""
    subjects = {line.split()[1] for line in ended.lines if not line.startswith(" ")}
    assert subjects >= {
        *("settings", "home", "bash", "direnv", "socket", "sidecar"),
        *("inotify", "filesystem"),
    }
    assert not any(line.startswith("fix") for line in ended.lines)
    assert daemon.process is not None
    assert found(ended, "sidecar")[0][0] == "ok"
    assert f"pid {daemon.process.pid}" in found(ended, "sidecar")[0][1]
    assert attended.world.direnv in found(ended, "direnv")[0][1]


@one_version
def test_no_direnv(person: Person) -> None:
    """No direnv must be mended; the remedy says how to install it."""
    ended = person.run("doctor", environ={"PATH": "/usr/nowhere:/bin/nowhere"})

    assert ended.code == 1
    [(grade, text)] = found(ended, "direnv")
    assert grade == "fix"
    assert "install" in text


@one_version
def test_direnv_that_is_none(person: Person) -> None:
    """A program that does not tell direnv's version must be replaced."""
    fake = person.world.write("fake", "#!/bin/sh\nexit 3\n")
    fake.chmod(0o755)

    ended = person.run("doctor", environ={"ENVWATCH_DIRENV": str(fake)})

    assert ended.code == 1
    assert found(ended, "direnv")[0][0] == "fix"


@one_version
@pytest.mark.parametrize("limit_s", ["", "0.3"])
def test_direnv_that_hangs(person: Person, limit_s: str) -> None:
    """A direnv that does not answer is given up after five seconds, or as is said."""
    fake = person.world.write("fake", "#!/bin/sh\nexec sleep 60\n")
    fake.chmod(0o755)

    environ = {"ENVWATCH_DIRENV": str(fake), "ENVWATCH_CHECK_S": limit_s}

    ended = person.run("doctor", environ=environ)

    assert ended.code == 1
    assert f"given {limit_s or 5} s" in found(ended, "direnv")[0][1]


@one_version
def test_older_direnv_than_tested(person: Person) -> None:
    """A version that no test has seen is noted."""
    fake = person.world.write(
        "fake",
        f'#!/bin/sh\n[ "$1" = version ] && echo 2.20.0 && exit\n'
        f'exec {person.world.direnv} "$@"\n',
    )
    fake.chmod(0o755)

    ended = person.run("doctor", environ={"ENVWATCH_DIRENV": str(fake)})

    assert found(ended, "direnv")[0][0] == "note"
    assert ended.code == 0


def test_direnv_that_cannot_work(person: Person) -> None:
    """A direnv.toml that cannot be read must be mended."""
    person.world.toml("this is no toml")

    ended = person.run("doctor")

    assert ended.code == 1
    assert [grade for grade, _ in found(ended, "direnv")] == ["ok", "fix"]


@one_version
def test_no_home(person: Person) -> None:
    """Without HOME and XDG folders direnv cannot work."""
    names = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")

    ended = person.run("doctor", environ=dict.fromkeys(names))

    assert ended.code == 1
    assert found(ended, "home")[0][0] == "fix"
    assert "XDG_DATA_HOME" in found(ended, "home")[0][1]


@one_version
def test_home_that_is_no_folder(person: Person) -> None:
    """A HOME that is not there is noted."""
    environ = {"HOME": "/nowhere", "XDG_DATA_HOME": None}

    assert found(person.run("doctor", environ=environ), "home")[0][0] == "note"


@one_version
def test_no_bash(person: Person) -> None:
    """direnv needs a bash."""
    ended = person.run("doctor", environ={"DIRENV_BASH": "/nowhere/bash"})

    assert ended.code == 1
    assert found(ended, "bash")[0][0] == "fix"


@one_version
def test_unsafe_socket(person: Person) -> None:
    """A socket folder that others can write to must be mended."""
    person.socket.parent.chmod(0o777)

    ended = person.run("doctor")

    assert ended.code == 1
    assert "chmod 700" in found(ended, "socket")[0][1]
    assert found(ended, "sidecar")[0][0] == "fix"


@one_version
def test_socket_with_too_long_a_path(person: Person) -> None:
    """A path that no socket can have must be changed."""
    path = str(person.world.path("x" * 120))

    ended = person.run("doctor", environ={"ENVWATCH_SOCKET": path})

    assert ended.code == 1
    assert "too long" in found(ended, "socket")[0][1]


@one_version
def test_socket_folder_is_made_when_needed(person: Person) -> None:
    """A folder that is not there yet is fine where it can be made, and only there."""
    path = str(person.world.path("new/sock"))
    assert found(person.run("doctor", environ={"ENVWATCH_SOCKET": path}), "socket") == [
        ("ok", f"{path}, made when it is needed")
    ]

    file = person.world.write("file", "")
    path = str(file / "new" / "sock")
    ended = person.run("doctor", environ={"ENVWATCH_SOCKET": path})

    assert found(ended, "socket")[0][0] == "fix"
    assert ended.code == 1


@one_version
def test_no_sidecar(person: Person) -> None:
    """No sidecar is fine: kernels start one, where they find the command."""
    with_command = person.world.write("bin/envwatch", "#!/bin/sh\n")
    with_command.chmod(0o755)

    ended = person.run("doctor", environ={"ENVWATCH_SIDECAR": str(with_command)})
    without = person.run("doctor", environ={"ENVWATCH_SIDECAR": "/nowhere"})
    off = person.run("doctor", environ={"ENVWATCH_SIDECAR": "off"})

    assert (ended.code, found(ended, "sidecar")[0][0]) == (0, "ok")
    assert (without.code, found(without, "sidecar")[0][0]) == (0, "note")
    assert "off" in found(off, "sidecar")[0][1]


@one_version
def test_sidecar_with_another_direnv(attended: Person, direnvs: dict[str, str]) -> None:
    """A sidecar that runs another direnv is noted: its answers are not used."""
    other = next(path for path in direnvs.values() if path != attended.world.direnv)

    ended = attended.run("doctor", environ={"ENVWATCH_DIRENV": other})

    assert ended.code == 0
    assert found(ended, "sidecar")[0][0] == "note"


@one_version
def test_setting_that_cannot_be_read(person: Person) -> None:
    """A wrong setting of the client or of the sidecar must be changed."""
    for name in ("ENVWATCH_WAIT_S", "ENVWATCH_IDLE_S"):
        ended = person.run("doctor", environ={name: "soon"})

        assert ended.code == 1
        assert name in found(ended, "settings")[0][1]


@one_version
def test_working_folder_was_deleted(person: Person) -> None:
    """A deleted working folder is noted, and everything else is looked at."""
    code = (
        "import os, sys; os.rmdir(os.getcwd());"
        " from envwatch.__main__ import main; sys.exit(main(['doctor']))"
    )

    ended = person.python(code, folder=person.world.folder("gone"))

    assert ended.code == 0
    assert "deleted" in found(ended, "folder")[0][1]
    assert found(ended, "direnv")[0][0] == "ok"


# ------------------------------------------------------------------ limits, mounts


def test_low_inotify_limits(tmp_path: Path) -> None:
    """Low limits are noted with the sysctl that raises them."""
    (tmp_path / "max_user_watches").write_text("100\n")
    (tmp_path / "max_user_instances").write_text("8\n")

    watches, instances = findings.inotify(tmp_path)

    assert (watches.grade, instances.grade) == (Grade.NOTE, Grade.NOTE)
    assert "100" in watches.text
    assert "sysctl fs.inotify.max_user_watches=" in (watches.remedy or "")
    assert "sysctl fs.inotify.max_user_instances=" in (instances.remedy or "")


def test_limits_that_cannot_be_read(tmp_path: Path) -> None:
    """A system that does not tell its limits is noted."""
    assert [each.grade for each in findings.inotify(tmp_path)] == [Grade.NOTE] * 2


@pytest.fixture
def no_descriptors() -> Iterator[None]:
    """Leave this process no descriptor to open."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(name) for name in os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest, before[1]))
    taken = []
    try:
        while True:
            try:
                taken.append(os.dup(0))
            except OSError:
                break
        yield
    finally:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_no_inotify_instance_left(no_descriptors: None) -> None:
    """That no instance can be had is found by trying."""
    *_, last = findings.inotify(Path("/proc/sys/fs/inotify"))

    assert last.grade is Grade.NOTE
    assert "no instance is left" in last.text


@pytest.mark.parametrize(
    ("folder", "kind", "grade"),
    [
        ("/home/me/project", "nfs4", Grade.NOTE),
        ("/home/me/ssh fs/x", "fuse.sshfs", Grade.NOTE),
        ("/home/meadow", "ext4", Grade.OK),
        ("/hidden", "tmpfs", Grade.OK),
    ],
)
def test_filesystem(tmp_path: Path, folder: str, kind: str, grade: Grade) -> None:
    """The nearest mount above counts, the last one on the same folder first."""
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "1 0 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
        "2 1 0:3 / /home/me rw shared:2 master:1 - nfs4 host:/me rw\n"
        "3 2 0:4 / /home/me/ssh\\040fs rw - fuse.sshfs host: rw\n"
        "4 1 0:5 / /hidden rw - nfs host:/hidden rw\n"
        "5 1 0:6 / /hidden rw - tmpfs tmpfs rw\n"
    )

    [finding] = findings.filesystem(folder, mounts)

    assert finding.text == f"{kind}, at {folder}"
    assert finding.grade is grade


def test_filesystem_that_cannot_be_read(tmp_path: Path) -> None:
    """Where no mounts can be read, that is noted."""
    [finding] = findings.filesystem("/", tmp_path / "missing")

    assert finding.grade is Grade.NOTE
