"""A kernel's random life, compared with the strict reference after each refresh."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from pprint import pformat
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.support import planted, reference
from tests.support.children import forked
from tests.support.daemons import Daemon
from tests.support.pairs import Kernel, settings_of
from tests.support.planted import PLANTED
from tests.support.strict import StrictShell
from tests.support.worlds import World

STEPS = 30
RUNS = 30
"""For each of the eight combinations of mode, version and fence: 240 runs in all."""

SOAKING = settings.default is settings.get_profile("soak")
SOAK_RUNS = settings.get_profile("soak").max_examples
TIMEOUT_S = 0 if SOAKING else 600

PROJECTS = ("a", "a/in", "b")
FOLDERS = ("out", "a", "a/deep", "a/in", "a/in/deep", "b")

LENGTH = 200
"""Every body is padded to it: the size of a file must not give an edit away."""

BODIES = (
    "export FOO='{0}.1'\nexport BAR='{0}.1'\n",
    "export FOO='{0}.2'\nexport BAR='{0}.2'\n",
    "export FOO='{0}.3' KEEP='{0}.3'\nPATH_add bin\n",
    'watch_file value\nexport FOO="{0}.4$(cat value 2>/dev/null)"\n',
    'export FOO="{0}.5${{MINE-}}"\nunset MINE\n',
    'export BAR="{0}.6${{FOO-}}${{KEEP-}}"\n',
    "export FOO='{0}.7'\nexit 3\n",
    "export FOO='{0}.8'\nreturn 1\n",
    "source_up_if_exists\nexport BAR='{0}.9'\n",
    "watch_dir d\nexport BAR='{0}.10'\n",
    "",
    "type own >/dev/null 2>&1 && own\nexport BAR='{0}.11'\n",
    "export FOO='{0}.12'\nunset DIRENV_WATCHES\n",
    "export FOO='{0}.13'\nno_such_command\nexport BAR='{0}.13'\n",
)
SOURCES_UP = 8

TOMLS = (
    None,
    None,
    "",
    "[global]\nstrict_env = true\n",
    "[global]\nload_dotenv = true\n",
    "[whitelist]\nprefix = ['{top}/b']\n",
    "this is not toml\n",
)
DIRENVRCS = (None, f"own() {{ export LIB='{planted.secret('lib.1')}'; }}\n", "exit 3\n")

NAMES = st.sampled_from(("MINE", "KEEP", "FOO", "BAR", "LANG", "PATH"))
PROJECT = st.sampled_from(("here", "here", "here", *PROJECTS))
"""Mostly the one that the kernel is in: that is where things happen."""
BODY = st.sampled_from(range(len(BODIES)))
ALLOWED = st.sampled_from((True, True, False))
LOOK = st.sampled_from((True, True, False))
WRITTEN = ("tick", "same second", "mtime put back", "now", "renamed")


class Life(RuleBasedStateMachine):
    """Two kernels, a person who edits and allows, and perhaps a sidecar."""

    fenced = 0
    """How often a refresh left a kernel with a fence, over all lives."""

    def __init__(
        self, direnv: str, *, is_newer: bool, daemon: Daemon | None, fence: str
    ) -> None:
        super().__init__()
        self.daemon = daemon
        self.killed = False
        self.world = World(direnv, is_newer=is_newer)
        socket = None
        if daemon is not None:
            socket = daemon.socket
            if daemon.process is None:
                daemon.start()
        self.kernels = [
            Kernel(self.world.environ, settings_of(socket, fence=fence))
            for _ in range(2)
        ]
        self.shells = [
            StrictShell(direnv, self.world.environ, self.world.config) for _ in range(2)
        ]
        self.dotenv = False
        self.broken = False

    @initialize(bodies=st.tuples(BODY, BODY, BODY), at=st.sampled_from(PROJECTS))
    def begin(self, bodies: tuple[int, ...], at: str) -> None:
        """Every project has a file, two of them are allowed."""
        for folder in FOLDERS:
            self.world.folder(folder)
        for project, body in zip(PROJECTS, bodies, strict=True):
            self.world.envrc(project, self.body(project, body), allow=project != "b")
        self.world.write("a/deep/.env", f"DOT={planted.secret('a/deep.1')}\n")
        self.world.allow("a/deep/.env")
        os.chdir(self.world.path(at))

    def teardown(self) -> None:
        """End the kernels and remove the folders."""
        os.chdir("/")
        for kernel in self.kernels:
            kernel.close()
        self.world.close()

    # -------------------------------------------------------------- the person

    @rule(
        look=LOOK,
        project=PROJECT,
        body=BODY,
        how=st.sampled_from(WRITTEN),
        allowed=ALLOWED,
    )
    def write(
        self, project: str, body: int, how: str, *, allowed: bool, look: bool
    ) -> None:
        """Write a root file, in one of the ways in which editors and people do."""
        project = self.place(project)
        path = self.world.path(project) / ".envrc"
        if path.is_dir():
            path.rmdir()
        seen = path.stat() if path.exists() else None
        text = self.body(project, body)
        if how == "renamed":
            fresh = self.world.write(f"{project}/.fresh", text)
            fresh.rename(path)
        elif how == "now":
            path.write_text(text)
        elif how == "mtime put back" and seen is not None:
            path.write_text(text)
            os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
        else:
            self.world.write(path, text, tick=how != "same second", in_place=True)
        if allowed:
            self.call_allow(project)
        self.then(look=look)

    @rule(body=BODY, how=st.sampled_from(WRITTEN), allowed=ALLOWED)
    def write_here(self, body: int, how: str, *, allowed: bool) -> None:
        """Write the file that counts, and run something right away."""
        self.refresh()
        self.write("here", body, how, allowed=allowed, look=True)

    @rule(
        bodies=st.tuples(BODY, BODY),
        how=st.sampled_from(("same second", "mtime put back")),
    )
    def sly_edit(self, bodies: tuple[int, int], how: str) -> None:
        """Edit a loaded file so that the hook could not see it, allowed or not."""
        self.write("here", bodies[0], "tick", allowed=True, look=True)
        self.write("here", bodies[1], how, allowed=False, look=True)

    @rule(look=LOOK, project=PROJECT)
    def allow(self, project: str, *, look: bool) -> None:
        """Allow a file as it is."""
        project = self.place(project)
        self.call_allow(project)
        self.then(look=look)

    @rule(look=LOOK, project=PROJECT)
    def deny(self, project: str, *, look: bool) -> None:
        """Deny a file; with 2.32 that takes its approval away, where it has one."""
        project = self.place(project)
        if (self.world.path(project) / ".envrc").is_file():
            self.world.call("deny", folder=self.world.path(project))
        self.then(look=look)

    @rule(look=LOOK, project=PROJECT)
    def revoke(self, project: str, *, look: bool) -> None:
        """Delete the approval of a file by hand."""
        project = self.place(project)
        if (self.world.path(project) / ".envrc").is_file():
            self.world.approval(project).unlink(missing_ok=True)
        self.then(look=look)

    @rule(look=LOOK, project=PROJECT, folder=st.booleans())
    def delete(self, project: str, *, folder: bool, look: bool) -> None:
        """Delete a root file, or put a folder in its place."""
        project = self.place(project)
        path = self.world.path(project) / ".envrc"
        if path.is_file():
            path.unlink()
            if folder:
                path.mkdir()
        self.then(look=look)

    @rule(
        look=LOOK,
        project=PROJECT,
        name=st.sampled_from(("value", "d/x", "d/y")),
        text=st.sampled_from((None, "", "1", "2")),
        how=st.sampled_from(("tick", "same second", "now")),
    )
    def watched(
        self, project: str, name: str, text: str | None, how: str, *, look: bool
    ) -> None:
        """Write or delete something that a file may watch."""
        project = self.place(project)
        path = self.world.path(project) / name
        if text is None:
            path.unlink(missing_ok=True)
        elif how == "now":
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        else:
            self.world.write(path, text, tick=how == "tick", in_place=True)
        self.then(look=look)

    @rule(look=LOOK, project=PROJECT, name=st.sampled_from((".envrc", "value", "d")))
    def touch(self, project: str, name: str, *, look: bool) -> None:
        """Touch something that may be watched."""
        project = self.place(project)
        path = self.world.path(project) / name
        if path.exists():
            os.utime(path)
        self.then(look=look)

    @rule(look=LOOK, text=st.sampled_from(TOMLS))
    def toml(self, text: str | None, *, look: bool) -> None:
        """Write or remove direnv.toml."""
        if text is None:
            (self.world.config / "direnv.toml").unlink(missing_ok=True)
        else:
            self.world.toml(text.replace("{top}", str(self.world.top)))
        self.dotenv = text is not None and "load_dotenv" in text
        self.broken = text is not None and "not toml" in text
        self.then(look=look)

    @rule(look=LOOK, text=st.sampled_from(DIRENVRCS))
    def direnvrc(self, text: str | None, *, look: bool) -> None:
        """Write or remove direnvrc."""
        if text is None:
            (self.world.config / "direnvrc").unlink(missing_ok=True)
        else:
            self.world.write(self.world.config / "direnvrc", text)
        self.then(look=look)

    # -------------------------------------------------------------- the kernel

    @rule(folder=st.sampled_from((*FOLDERS, "gone")))
    def go(self, folder: str) -> None:
        """Change the working folder, perhaps to one that is deleted at once."""
        os.chdir(self.world.folder(folder))
        if folder == "gone":
            os.rmdir(self.world.path("gone"))
        self.refresh()

    @rule(name=NAMES, value=st.sampled_from((None, "mine", "other")))
    def change(self, name: str, value: str | None) -> None:
        """Set or remove a variable, as a run does with its own environment."""
        for environ in (self.kernels[0].environ, self.shells[0].environ):
            if name == "PATH":
                environ[name] = f"{self.world.environ['PATH']}:/{value}"
            elif value is None:
                environ.pop(name, None)
            else:
                environ[name] = value

    @rule()
    def refresh(self) -> None:
        """Refresh before a run."""
        self.kernels[0].refresh()
        self.shells[0].prompt(dotenv=self.dotenv)
        self.compare(0)
        Life.fenced += self.kernels[0].client._fences._held is not None

    @rule()
    def refresh_twice(self) -> None:
        """Refresh twice: the second time nothing may happen."""
        self.refresh()
        self.refresh()

    @rule()
    def other_kernel(self) -> None:
        """Refresh a second kernel over the same folders."""
        self.kernels[1].refresh()
        self.shells[1].prompt(dotenv=self.dotenv)
        self.compare(1)

    @rule()
    def reload(self) -> None:
        """Forget and evaluate again."""
        self.kernels[0].reload()
        self.shells[0].prompt(dotenv=self.dotenv, forced=True)
        self.compare(0)

    @rule()
    def fork(self) -> None:
        """Fork: the child follows its folder by itself, and the parent is as before."""
        kernel = self.kernels[0]

        def child() -> dict[str, str]:
            kernel.refresh()
            return dict(kernel.environ)

        shell = self.shells[0].copy()
        shell.prompt(dotenv=self.dotenv)
        ours: Any = forked(child)
        found = reference.difference(ours, shell.environ)
        assert not found, found

    @precondition(lambda self: self.daemon is not None and not self.killed)
    @rule()
    def kill_sidecar(self) -> None:
        """Kill the sidecar as `kill -9` does; once in a life, since it costs time."""
        assert self.daemon is not None
        self.daemon.kill()
        self.killed = True

    @precondition(lambda self: self.daemon is not None and self.daemon.process is None)
    @rule()
    def start_sidecar(self) -> None:
        """Start it again."""
        assert self.daemon is not None
        self.daemon.start()

    # -------------------------------------------------------------- what must hold

    def compare(self, number: int) -> None:
        """Compare a whole environment, and look for what nobody has allowed."""
        kernel, shell = self.kernels[number], self.shells[number]
        ours, last = kernel.environ, kernel.last
        found = reference.difference(ours, shell.environ)
        if found:
            said = () if last is None else last.messages
            raise AssertionError(pformat((number, last, said, shell.root, found)))
        held = {
            tag
            for value in ours.values()
            for tag in re.findall(rf"{PLANTED}\.([\w/]+)\.", value)
        }
        held -= {"lib"}
        if shell.root is not None and "source_up" in Path(shell.root).read_text():
            held -= {"a"}  # direnv does not ask whether the file above is allowed
        for tag in held:
            assert self.is_allowed(tag), (
                f"{tag} is not allowed, and its values are here"
            )

    def is_allowed(self, project: str) -> bool:
        """Tell whether direnv's own store says that a file is allowed as it is."""
        name = ".env" if project == "a/deep" else ".envrc"
        path = self.world.path(project) / name
        if not path.is_file():
            return False
        if self.world.is_newer and self.world.denial(path).exists():
            return False
        toml = self.world.config / "direnv.toml"
        listed = project == "b" and toml.exists() and "whitelist" in toml.read_text()
        return listed or self.world.approval(path).exists()

    def body(self, project: str, number: int) -> str:
        """Give a body whose values name the project."""
        text = BODIES[number].format(planted.secret(project))
        return text.ljust(LENGTH - 1, "#") + "\n"

    def call_allow(self, project: str) -> None:
        """Run `direnv allow`."""
        if (self.world.path(project) / ".envrc").is_file():
            said = self.world.call("allow", folder=self.world.path(project))
            assert said.code == 0 or self.broken, said

    def place(self, project: str) -> str:
        """Give the project that is meant by `here`."""
        if project != "here":
            return project
        folder = reference.working_folder()
        inside = os.path.relpath(folder or "/", self.world.top)
        return {"a": "a", "a/deep": "a", "b": "b"}.get(inside, "a/in")

    def then(self, *, look: bool) -> None:
        """Refresh right after the person has done something, or later."""
        if look:
            self.refresh()


@pytest.fixture
def life_daemon(
    direnvs: dict[str, str], version: str, mode: str, fence: str
) -> Iterator[Daemon | None]:
    """Give a sidecar that the lives of one combination share and kill, or None."""
    if mode == "direct":
        yield None
        return
    daemon = Daemon(direnvs[version], "--fence", fence)
    yield daemon
    daemon.close()


@pytest.mark.soak
@pytest.mark.timeout(TIMEOUT_S)
@pytest.mark.parametrize("fence", ["auto", "always"])
def test_life(
    direnvs: dict[str, str], version: str, life_daemon: Daemon | None, fence: str
) -> None:
    """After each refresh the environment is what a fresh hook would have left.

    So it is when every workspace has a fence, however little it watches.
    """
    Life.fenced = 0
    before = os.getcwd()

    class One(Life):
        """A life with this version, in this mode."""

        def __init__(self) -> None:
            newer = version != "2.32"
            super().__init__(
                direnvs[version], is_newer=newer, daemon=life_daemon, fence=fence
            )

    try:
        run_state_machine_as_test(
            One,
            settings=settings(
                max_examples=SOAK_RUNS if SOAKING else RUNS,
                stateful_step_count=STEPS,
                deadline=None,
                derandomize=False,
                print_blob=True,
                phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
                suppress_health_check=list(HealthCheck),
            ),
        )
    finally:
        os.chdir(before)
    assert bool(Life.fenced) is (fence == "always")
