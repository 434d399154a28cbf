"""`envwatch status`: every state, with both direnv versions, as a real process."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from envwatch.commands.status import lines, reported
from envwatch.state import State, Workspace
from kernel_client import Settings
from tests.conftest import OLDER
from tests.support import reference
from tests.support.daemons import Daemon, until
from tests.support.pairs import NO_COMMAND, Kernel
from tests.support.persons import Person
from tests.support.planted import exports

CANNOT_TELL = "cannot tell denied from blocked"
KEYS: dict[str, type | tuple[type, ...]] = {
    "folder": str,
    "root_file": (str, type(None)),
    "state": str,
    "notes": list,
    "kernels": (int, type(None)),
    "evaluation": (dict, type(None)),
    "direnv": dict,
    "sidecar": dict,
}
SIDECAR_KEYS = (
    *("running", "socket", "reason", "version", "pid", "uptime_s", "direnv"),
    *("kernels", "evaluations", "kept_bytes", "watching", "fences"),
)

one_version = pytest.mark.parametrize("version", [OLDER], indirect=True)


# ------------------------------------------------------------------ states


def test_no_root_file(person: Person) -> None:
    """Where no folder above has a root file, the state is `none`: exit code 3."""
    ended = person.run("status", "--json")

    assert ended.code == 3
    assert ended.object["state"] == "none"
    assert ended.object["root_file"] is None


def test_never_allowed(person: Person) -> None:
    """A file that nobody has allowed is blocked and new: exit code 10."""
    root = person.world.envrc("w", exports("A"), allow=False)

    ended = person.run("status", "w", "--json")

    assert ended.code == 10
    assert ended.object["state"] == "blocked: new"
    assert ended.object["root_file"] == str(root)


def test_allowed(person: Person) -> None:
    """An allowed file is allowed, from a folder below it too: exit code 0."""
    root = person.world.envrc("w", exports("A"))
    below = person.world.folder("w/below/it")

    ended = person.run("status", "--json", folder=below)

    assert ended.code == 0
    assert ended.object["state"] == "allowed"
    assert ended.object["root_file"] == str(root)
    assert ended.object["folder"] == str(below)


def test_changed_since_it_was_allowed(person: Person) -> None:
    """An edit of an allowed file is blocked and changed: exit code 11."""
    person.world.envrc("w", exports("A"))
    person.world.write("w/.envrc", exports("A", "B"))

    ended = person.run("status", "w", "--json")

    assert ended.code == 11
    assert ended.object["state"] == "blocked: changed"
    assert person.run("status", "w").lines[1].endswith("changed since it was allowed")


def test_approval_of_another_file_is_no_approval(person: Person) -> None:
    """Only an entry for this very path tells that the file was allowed before."""
    person.world.envrc("v", exports("A"))
    person.world.envrc("w", exports("A"), allow=False)

    assert person.run("status", "w").code == 10


def test_denied(person: Person) -> None:
    """A denied file is denied (12); 2.32 forgets, and says that it cannot tell."""
    person.world.envrc("w", exports("A"))
    person.world.deny("w")

    ended = person.run("status", "w", "--json")

    if person.world.is_newer:
        assert (ended.code, ended.object["state"]) == (12, "denied")
        assert ended.object["notes"] == []
    else:
        assert (ended.code, ended.object["state"]) == (10, "blocked: new")
        assert CANNOT_TELL in ended.object["notes"][0]


def test_allowed_needs_no_note(person: Person) -> None:
    """That 2.32 cannot tell denied from blocked is said only of a blocked file."""
    person.world.envrc("w", exports("A"))

    assert CANNOT_TELL not in person.run("status", "w").out


def test_whitelisted(person: Person) -> None:
    """direnv's own word counts, not its allow store."""
    person.world.envrc("w", exports("A"), allow=False)
    person.world.toml(f'[whitelist]\nexact = ["{person.world.path("w")}"]\n')

    assert person.run("status", "w").code == 0


def test_dotenv(person: Person) -> None:
    """A `.env` is the root file where direnv.toml says so."""
    root = person.world.write("w/.env", "A=1\n")
    assert person.run("status", "w").code == 3
    person.world.toml("[global]\nload_dotenv = true\n")

    ended = person.run("status", "w", "--json")

    assert (ended.code, ended.object["root_file"]) == (10, str(root))


@pytest.mark.parametrize("kind", ["folder", "dangling", "fifo"])
def test_unreadable(person: Person, kind: str) -> None:
    """A root file that is no file to read is told apart from none: exit code 13."""
    path = person.world.folder("w") / ".envrc"
    if kind == "folder":
        path.mkdir()
    elif kind == "dangling":
        path.symlink_to("nowhere")
    else:
        os.mkfifo(path)

    ended = person.run("status", "w", "--json")

    assert (ended.code, ended.object["state"]) == (13, "unreadable")
    assert str(path) in ended.object["notes"][0]
    assert ended.object["root_file"] == str(path)


def test_unreadable_is_passed_over(person: Person) -> None:
    """direnv takes the next file above; what it passed over is said."""
    person.world.envrc("w", exports("A"))
    path = person.world.folder("w/below/.envrc")

    ended = person.run("status", "w/below")

    assert ended.code == 0
    assert f"{path} cannot be read" in ended.out


def test_fifo_above_the_root_file_does_not_matter(person: Person) -> None:
    """direnv stops at the nearest file, and never opens what is above it."""
    person.world.envrc("w/below", exports("A"))
    os.mkfifo(person.world.path("w/.envrc"))

    assert person.run("status", "w/below").code == 0


def test_in_a_shell_that_has_moved_its_store(person: Person) -> None:
    """What the caller's own `.envrc` loaded is taken back before direnv is asked."""
    world = person.world
    world.envrc("w", f"export XDG_DATA_HOME={world.path('elsewhere')}\n")
    said = world.call("export", "json", folder=world.path("w"))
    assert said.changes is not None
    loaded = reference.applied(person.environ, said.changes)
    assert "elsewhere" in loaded["XDG_DATA_HOME"]

    assert person.run("status", "w", environ=loaded).code == 0


# ------------------------------------------------------------------ what it prints


def test_names_of_a_folder_cannot_forge_lines(person: Person) -> None:
    """A path with newlines, escapes or bytes that are no UTF-8 stays on its line."""
    name = os.fsdecode(b"x\nstate      allowed\x1b[2J\xff")
    person.world.write(Path(name, ".envrc"), exports("A"))

    ended = person.run("status", name)

    assert ended.code == 10
    assert [line for line in ended.lines if line.startswith("state")] == [
        "state      blocked: new, it was never allowed"
    ]
    assert "\x1b" not in ended.out
    in_json = person.run("status", name, "--json").object["root_file"]
    assert in_json == str(person.world.path(name) / ".envrc")


@one_version
def test_json_without_a_sidecar(person: Person) -> None:
    """The object has all its keys, and says why there is no sidecar."""
    found = person.run("status", "--json").object

    assert set(found) == set(KEYS)
    assert found["kernels"] is None
    assert found["direnv"]["version"].startswith(OLDER)
    assert found["sidecar"]["running"] is False
    assert str(person.socket) in found["sidecar"]["reason"]
    assert found["sidecar"]["watching"] is None
    assert found["sidecar"]["fences"] is None
    assert set(found["sidecar"]) == set(SIDECAR_KEYS)


def test_with_a_sidecar(attended: Person, daemon: Daemon) -> None:
    """Sidecar, kernels and the last evaluation are told, and no value is."""
    root = attended.world.envrc("w", exports("A"))
    settings = Settings(
        sidecar=NO_COMMAND, socket=str(daemon.socket), direnv=daemon.direnv
    )
    kernel = Kernel(attended.world.environ, settings)
    try:
        os.chdir(root.parent)
        assert kernel.refresh().answered == "sidecar"

        ended = attended.run("status", "w", "--json")
        text = attended.run("status", "w").out
    finally:
        kernel.close()

    found = ended.object
    assert ended.code == 0
    for key, kind in KEYS.items():
        assert isinstance(found[key], kind), key
    assert found["kernels"] == 1
    assert found["evaluation"]["outcome"] == "loaded"
    assert found["evaluation"]["served"] >= 1
    assert found["evaluation"]["ago_s"] >= 0
    assert daemon.process is not None
    sidecar = found["sidecar"]
    assert sidecar["running"] is True
    assert sidecar["pid"] == daemon.process.pid
    assert sidecar["reason"] is None
    assert sidecar["direnv"]["path"] == daemon.direnv
    assert sidecar["watching"]["state"] == "ok"
    assert set(sidecar["fences"]) == {"mode", "armed", "limit", "watches", "reason"}
    assert (sidecar["fences"]["mode"], sidecar["fences"]["reason"]) == ("auto", None)
    assert f"0 of at most {sidecar['fences']['limit']}, 0 watches" in text
    assert set(sidecar) == set(SIDECAR_KEYS)
    assert f"pid {daemon.process.pid}" in text
    assert ": loaded, served to 1 kernel" in text


def test_sidecar_with_another_direnv(attended: Person, direnvs: dict[str, str]) -> None:
    """That kernels here will not use the sidecar's answers is said."""
    other = next(path for path in direnvs.values() if path != attended.world.direnv)

    ended = attended.run("status", environ={"ENVWATCH_DIRENV": other})

    assert f"it runs {attended.world.direnv}, so kernels here ask direnv" in ended.out


def test_degraded_watching_has_its_remedy() -> None:
    """What the sidecar says of its watching is shown with what to do."""
    workspace = Workspace(folder="/w", root=None, state=State.NONE)
    watching = {
        "state": "degraded",
        "folders": 3,
        "reason": "no watches left",
        "remedy": "sysctl",
    }
    sidecar = {"running": True, "socket": "/s", "reason": None, "watching": watching}
    report = reported(workspace, "/direnv", "2", sidecar)

    *_, state, reason, remedy = lines(report, workspace.state)

    assert state.endswith("degraded, 3 folders")
    assert reason.endswith("reason: no watches left")
    assert remedy.endswith("remedy: sysctl")


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({}, "3 of at most 64, 120 watches"),
        ({"mode": "always", "armed": 0}, "0 of at most 64, 120 watches"),
        ({"reason": "that is it"}, "3 of at most 64, 120 watches; no more: that is it"),
        ({"reason": "a\nb\x1b"}, "3 of at most 64, 120 watches; no more: a\\nb\\x1b"),
        ({"mode": "off", "reason": "that is it"}, "off"),
        ({"armed": None}, None),
    ],
    ids=["armed", "always", "limit", "forged", "off", "unknown"],
)
def test_fences(told: dict[str, object], expected: str | None) -> None:
    """How many there are and why there are not more, in one line."""
    workspace = Workspace(folder="/w", root=None, state=State.NONE)
    fences = {"mode": "auto", "armed": 3, "limit": 64, "watches": 120, "reason": None}
    fences.update(told)
    more = {**fences, "more": "of a newer sidecar"}
    sidecar = {"running": True, "socket": "/s", "reason": None, "fences": more}
    report = reported(workspace, "/direnv", "2", sidecar)

    said = [line for line in lines(report, State.NONE) if "fences" in line]

    assert said == ([] if expected is None else [f"fences     {expected}"])
    assert report["sidecar"]["fences"] == fences


@one_version
def test_fences_of_a_kernel_are_told(person: Person) -> None:
    """Armed while it has the root file loaded, gone with it."""
    root = person.world.envrc("w", exports("A"))
    daemon = Daemon(person.world.direnv, "--fence", "always")
    try:
        daemon.start()
        settings = Settings(
            sidecar=NO_COMMAND, socket=str(daemon.socket), direnv=daemon.direnv
        )
        kernel = Kernel(person.world.environ, settings)
        attended = Person(person.world, daemon.socket)
        try:
            os.chdir(root.parent)
            assert kernel.refresh().answered == "sidecar"
            with_it = attended.run("status", "--json").object["sidecar"]["fences"]
        finally:
            kernel.close()
        without: list[dict[str, object]] = []

        def is_gone() -> bool:
            ended = attended.run("status", "--json")
            without.append(ended.object["sidecar"]["fences"])
            return without[-1]["armed"] == 0

        until("its fence is gone", is_gone)
    finally:
        daemon.close()

    assert (with_it["mode"], with_it["armed"]) == ("always", 1)
    assert with_it["watches"] > 1
    assert without[-1]["watches"] == 0


def test_sidecar_that_does_not_watch_yet() -> None:
    """A sidecar may leave a field out; nothing is made up for it."""
    workspace = Workspace(folder="/w", root=None, state=State.NONE)
    sidecar = {"running": True, "socket": "/s", "reason": None}

    report = reported(workspace, "/direnv", "2", sidecar)

    said = list(lines(report, State.NONE))
    for name in ("watching", "fences"):
        assert report["sidecar"][name] is None
        assert not any(line.startswith(name) for line in said)


# ------------------------------------------------------------------ errors


@one_version
def test_unsafe_socket(person: Person) -> None:
    """A socket that others could have put there is not talked to, and is named."""
    person.socket.parent.chmod(0o777)

    found = person.run("status", "--json").object["sidecar"]

    assert found["running"] is False
    assert "can be written by others" in found["reason"]
    assert stat.S_IMODE(person.socket.parent.stat().st_mode) == 0o777


@one_version
def test_no_direnv(person: Person) -> None:
    """Without direnv there is no state: exit code 69, and how to install it."""
    for environ in ({"PATH": "/nowhere"}, {"ENVWATCH_DIRENV": "/nowhere/direnv"}):
        person.run("status", environ=environ).said(69, "install")


def test_direnv_that_cannot_work(person: Person) -> None:
    """A direnv that gives no answer is an error, never a state: exit code 69."""
    person.world.envrc("w", exports("A"))
    person.world.toml("this is no toml")

    person.run("status", "w").said(69, "doctor")


@one_version
def test_setting_that_cannot_be_read(person: Person) -> None:
    """A wrong `ENVWATCH_*` is named: exit code 64."""
    person.run("status", environ={"ENVWATCH_FD": "x"}).said(64, "ENVWATCH_FD")


@one_version
def test_no_such_folder(person: Person) -> None:
    """A folder that is not there is a wrong command line: exit code 2."""
    person.run("status", "nowhere").said(2, "nowhere", "envwatch status --help")


@one_version
def test_working_folder_was_deleted(person: Person) -> None:
    """A deleted working folder is no bug of anybody's: exit code 2."""
    gone = person.world.folder("gone")
    code = (
        "import os, sys; os.rmdir(os.getcwd());"
        " from envwatch.__main__ import main; sys.exit(main(['status']))"
    )

    ended = person.python(code, folder=gone)

    ended.said(2, "deleted")
