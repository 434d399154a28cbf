"""The demo's stage, kernels and notebook, and when something goes wrong on it."""

from __future__ import annotations

import array
import contextlib
import fcntl
import os
import signal
import sys
import termios
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from envwatch.commands.demonstration.kernels import Notebook, asked
from envwatch.commands.demonstration.stage import Stage
from envwatch.commands.demonstration.story import Story
from envwatch.errors import Temporary
from tests.conftest import OLDER
from tests.support.daemons import until
from tests.support.processes import ipykernels, processes


@pytest.fixture
def stage(direnvs: dict[str, str]) -> Iterator[Stage]:
    """Give a stage, with nobody on it."""
    made = Stage(direnvs[OLDER])
    yield made
    made.close()
    assert not made.top.exists()


def test_kernel_that_was_killed(stage: Stage) -> None:
    """A kernel that has ended is said to have, by an order and by its answer."""
    kernels = stage.start_kernels(1)
    asked(kernels)
    kernels[0]._process.kill()
    kernels[0]._process.wait()

    for _ in range(2):
        with pytest.raises(Temporary, match="has ended"):
            asked(kernels)


def test_kernel_that_does_not_answer(stage: Stage) -> None:
    """The demo's own time is over before a kernel's is."""
    stage.deadline = time.monotonic()

    with pytest.raises(Temporary, match="in time"):
        asked(stage.start_kernels(1))


def test_what_does_not_happen(stage: Stage) -> None:
    """A wait names what did not come true."""
    stage.deadline = time.monotonic()

    with pytest.raises(Temporary, match="in time that pigs fly"):
        stage.until("pigs fly", lambda: False)


def test_sidecar_that_cannot_serve(stage: Stage) -> None:
    """A sidecar that ends at its start says why."""
    stage.environ["ENVWATCH_IDLE_S"] = "soon"

    with pytest.raises(Temporary, match="ended at once: envwatch: ENVWATCH_IDLE_S"):
        stage.start_sidecar()


def test_direnv_that_cannot_allow(stage: Stage) -> None:
    """A `direnv allow` that fails ends the demo."""
    with pytest.raises(Temporary, match="direnv allow"):
        stage.allow()


# ---------------------------------------------------------------- the notebook


class Said(Notebook):
    """A notebook whose kernel is not there: it answers what the test says."""

    def __init__(self, **answer: Any) -> None:
        self._answer = answer

    def tell(self, order: Mapping[str, Any]) -> None:
        """Take an order, and do nothing."""

    def answer(self) -> dict[str, Any]:
        """Give the one answer."""
        return {"seconds": 0.1, "said": [], "p50_s": 1e-6, **self._answer}


def shown(stage: Stage) -> tuple[Story, list[str]]:
    """Give a story whose shell has loaded the workspace, and what it says."""
    said: list[str] = []
    story = Story(stage, said.append)
    stage.write("first")
    stage.allow()
    stage.prompt(story._shell)
    return story, said


def test_notebook(stage: Stage) -> None:
    """The three steps with a real kernel; none of the values is in what is said."""
    story, said = shown(stage)
    story._notebook()

    text = "\n".join(said)
    assert story.wrong == []
    assert [line[:2] for line in said if line[0] != " "] == ["1.", "2.", "3."]
    assert f"its output: direnv: error {stage.workspace}/.envrc is blocked" in text
    assert "DEMO_TOKEN" not in text
    assert "noted" not in text


@pytest.mark.parametrize("module", ["jupyter_client", "ipykernel"])
def test_no_jupyter(stage: Stage, monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    """Without Jupyter it is said what to install, and nothing is wrong with that."""
    monkeypatch.setitem(sys.modules, module, None)
    said: list[str] = []
    story = Story(stage, said.append)
    story._notebook()

    assert story.wrong == []
    assert said[0].startswith("1. a notebook")
    assert said[1:] == ["   left out; what it needs: pip install 'envwatch[jupyter]'"]


def test_notebook_that_follows_nothing(stage: Stage) -> None:
    """A kernel that never has the values, and says nothing, is found out."""
    story, _ = shown(stage)
    bare = story._set_here(stage.environ)
    story._notebook_loads(Said(digest=bare, digest_at_start=bare))
    story._notebook_is_blocked(Said(digest=bare))
    story._notebook_is_allowed(Said(digest=bare))

    assert [line.partition(": not so: ")[2] for line in story.wrong] == [
        "its interpreter has started with what direnv's hook gives a shell there",
        "its first cell has it",
        "the output of that cell says so",
        "it has the new value: every one is what direnv's hook gives a shell there",
    ]


def test_notebook_that_keeps_what_it_has(stage: Stage) -> None:
    """A kernel that loads once, and keeps the values of a blocked file, is too."""
    story, _ = shown(stage)
    first = story._set_here(story._shell)
    story._notebook_loads(Said(digest=first, digest_at_start=first))
    assert story.wrong == []
    story._notebook_is_blocked(Said(digest=first, said=["... is blocked"]))
    story._notebook_is_allowed(Said(digest=first))

    assert [line.partition(": not so: ")[2] for line in story.wrong] == [
        "what the .envrc had set is gone in the next cell",
        "it has the new value: every one is what direnv's hook gives a shell there",
    ]


def test_notebook_that_is_closed_in_a_cell(stage: Stage) -> None:
    """A kernel that does not come to the end of its cell ends with the stage."""
    shown(stage)
    notebook = stage.start_notebook()
    asked([notebook], folder=str(stage.workspace))
    (pid,) = ipykernels(stage.top)
    os.kill(pid, signal.SIGSTOP)
    notebook.tell({"names": ["PATH"]})
    until("the order is taken", lambda: unread(notebook) == 0)

    try:
        notebook.close()
        assert processes(stage.top) == {}
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def unread(notebook: Notebook) -> int:
    """Give how many bytes of its orders are still in the pipe."""
    left = array.array("i", [0])
    fcntl.ioctl(notebook._orders.fileno(), termios.FIONREAD, left)
    return left[0]


def test_jupyter_of_the_person(stage: Stage) -> None:
    """Nothing that names the person's own Jupyter reaches the demo's."""
    names = ("IPYTHONDIR", "JPY_PARENT_PID", "JUPYTER_PATH", "PYTHONSTARTUP")
    stage.environ.update(dict.fromkeys(names, "/person"))
    notebook = stage.start_notebook()
    pid = notebook._process.pid
    # Before it is another program, a child has the environment of its parent.
    until("it runs", lambda: str(stage.top) in environ_of(pid))

    assert "/person" not in environ_of(pid)
    assert f"JUPYTER_DATA_DIR={stage.top}/" in environ_of(pid)


def environ_of(pid: int) -> str:
    """Give what a process has started with."""
    return os.fsdecode(Path(f"/proc/{pid}/environ").read_bytes())


def test_notebook_that_cannot_be_installed(stage: Stage) -> None:
    """What `envwatch jupyter install` says is what the demo says."""
    theirs = stage.top / "home/jupyter/data/kernels/python3-envwatch"
    theirs.mkdir(parents=True)

    with pytest.raises(
        Temporary, match=r"`envwatch jupyter install` .* not envwatch's"
    ):
        asked([stage.start_notebook()], folder=str(stage.workspace))


def test_notebook_that_fails(stage: Stage) -> None:
    """Any other failure is told by its kind: its text could have anything in it."""
    notebook = stage.start_notebook()
    with pytest.raises(Temporary, match="has no kernel"):
        asked([notebook], names=["PATH"])
    (stage.top / "home/jupyter").write_text("")

    with pytest.raises(Temporary, match=r"notebook failed \(NotADirectoryError\)"):
        asked([notebook], folder=str(stage.workspace))
