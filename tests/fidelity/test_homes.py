"""HOME, PATH and bash (DIRENV.md cases 36, 38, section D rules 16 and 22)."""

from __future__ import annotations

import pytest

from tests.support.pairs import Pair
from tests.support.planted import PLANTED, exports, secret


def test_no_home(pair: Pair) -> None:
    """Without HOME it works where the XDG folders are named."""
    pair.unset("HOME")
    pair.world.envrc("w", exports("FOO"))

    pair.step("w", outcome="loaded")


def test_no_home_and_no_folders(pair: Pair) -> None:
    """Without HOME and XDG folders direnv cannot work: said, and nothing loaded.

    The hook gets rc 1 and no answer, so it has nothing either.
    """
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        pair.unset(name)
    pair.world.envrc("w", exports("FOO"))

    result = pair.step("w", outcome="broken", messages=False, alone=True).result

    assert len(result.messages) >= 1


def test_direnv_cannot_work_is_said_once(pair: Pair) -> None:
    """Asking again at each run says it only once while nothing is different."""
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        pair.unset(name)
    pair.world.envrc("w", exports("FOO"))
    pair.step("w", outcome="broken", messages=False, alone=True)

    assert pair.step(messages=False, alone=True).result.messages == ()


def test_no_bash(pair: Pair) -> None:
    """Without bash on PATH direnv cannot work; DIRENV_BASH helps."""
    pair.world.envrc("w", exports("FOO"))
    tools = pair.world.folder("tools")
    (tools / "direnv").symlink_to(pair.world.direnv)
    pair.set("PATH", str(tools))
    bare = Pair(
        pair.world, socket=pair.socket, environ=pair.environ, direnv=pair.world.direnv
    )
    try:
        bare.step("w", outcome="broken", messages=False, alone=True)
        bare.set("DIRENV_BASH", "/bin/bash")
        bare.step(outcome="loaded", messages=False)
    finally:
        bare.close()


def test_no_direnv(pair: Pair) -> None:
    """Without direnv nothing runs, one line says so, and only the first time."""
    pair.world.envrc("w", exports("FOO"))
    pair.set("PATH", str(pair.world.folder("empty")))
    before = dict(pair.environ)
    pair.go("w")

    first, second = pair.kernel.refresh(), pair.kernel.refresh()

    assert (first.outcome, second.outcome) == ("off", "off")
    assert (len(first.messages), len(second.messages)) == (1, 0)
    assert pair.environ == before


@pytest.mark.parametrize(
    "name", ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "DIRENV_CONFIG"]
)
def test_file_moves_the_store(pair: Pair, name: str) -> None:
    """A file that moves HOME or the XDG folders can still be reloaded.

    Deliberate: we evaluate from the base, in which they are the person's own; the
    hook looks for approvals where the file says, and calls it blocked (case 36).
    """
    elsewhere = pair.world.folder("elsewhere")
    path = pair.world.envrc("w", f"{exports('FOO')}export {name}='{elsewhere}'\n")
    pair.step("w", outcome="loaded")
    pair.step(outcome="unchanged")
    loaded = dict(pair.environ)
    pair.world.stamp(path)
    pair.world.allow("w")

    result = pair.kernel.refresh()

    assert result.outcome == "loaded"
    assert {k: v for k, v in pair.environ.items() if not k.startswith("DIRENV_")} == {
        k: v for k, v in loaded.items() if not k.startswith("DIRENV_")
    }
    if name in ("HOME", "XDG_DATA_HOME"):
        said = pair.shell.prompt()
        if name == "XDG_DATA_HOME":
            assert said.code == 1
            assert "FOO" not in pair.shell.environ
    pair.go("")
    pair.kernel.refresh()
    assert pair.environ == pair.world.environ


@pytest.mark.parametrize("path", ["", "/nonexistent"])
def test_file_breaks_path(pair: Pair, path: str) -> None:
    """A file that leaves a PATH without bash or direnv can be reloaded and left.

    Deliberate: the hook cannot run any more (no bash: rc 1, nothing reverted).
    """
    envrc = pair.world.envrc("w", f"{exports('FOO')}export PATH='{path}'\n")
    pair.step("w", outcome="loaded")
    assert pair.step(outcome="unchanged", messages=False).said.code == 1
    pair.world.stamp(envrc)
    assert pair.shell.prompt().code == 1

    assert pair.kernel.refresh().outcome == "loaded"
    assert pair.environ["PATH"] == path
    pair.go("")
    assert pair.kernel.refresh().outcome == "unloaded"
    assert pair.environ == pair.world.environ


def test_file_sets_path_to_another_direnv(pair: Pair) -> None:
    """A direnv that the file itself puts on PATH is not the one that is asked."""
    fake = pair.world.write("w/bin/direnv", "#!/bin/sh\nexit 7\n")
    fake.chmod(0o755)
    envrc = pair.world.envrc("w", f"PATH_add bin\n{exports('FOO')}")
    pair.step("w", outcome="loaded")
    pair.world.stamp(envrc)

    pair.step(outcome="loaded")


def test_callers_bash_env(pair: Pair) -> None:
    """What the caller's BASH_ENV exports is part of the load, as with the hook."""
    path = pair.world.write("bash_env", exports("FROM_BASH_ENV"))
    pair.set("BASH_ENV", str(path))
    pair.world.envrc("w", exports("FOO"))

    pair.step("w", outcome="loaded")
    pair.step("", outcome="unloaded")


def test_files_bash_env(pair: Pair) -> None:
    """A BASH_ENV that the file sets does not run in its own reload."""
    path = pair.world.write("bash_env", exports("FROM_BASH_ENV"))
    envrc = pair.world.envrc("w", f"{exports('FOO')}export BASH_ENV='{path}'\n")
    pair.step("w", outcome="loaded")
    pair.world.stamp(envrc)
    pair.go("w")
    result = pair.kernel.refresh()

    assert result.outcome == "loaded"
    assert "FROM_BASH_ENV" not in pair.environ
    assert PLANTED in pair.environ["FOO"]


def test_callers_oldpwd(pair: Pair) -> None:
    """A file that reads OLDPWD does not see the folder that the caller came from.

    Deliberate (DESIGN 2: evaluated in the workspace): an answer must not depend on
    which folder below it was asked for first. The hook shows the caller's folder.
    """
    pair.world.envrc("w", f'{exports("FOO")}export CAME="{PLANTED}$OLDPWD"\n')
    deep = pair.world.folder("w/deep")
    pair.go("w/deep")
    pair.shell.prompt()
    assert pair.shell.environ["CAME"] == f"{PLANTED}{deep}"

    pair.kernel.refresh()

    assert pair.environ["CAME"] != f"{PLANTED}{deep}"
    assert pair.environ["FOO"] == secret("FOO")
