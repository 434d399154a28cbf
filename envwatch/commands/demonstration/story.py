"""The demo's steps: what happens, whether it is as it should be, what it costs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from envwatch.commands import sidecars
from envwatch.commands.demonstration.kernel import digest
from envwatch.commands.demonstration.kernels import Kernel, Notebook, asked
from envwatch.commands.demonstration.stage import Stage
from envwatch.core.workspace import FIRST_DELAY_S
from envwatch.text import duration, plain

KERNELS = 20
_REFRESHES = 10_000
_PROMPTS = 15
_EDITS = 5
_JUPYTER = ("jupyter_client", "ipykernel")
_SET = ("DEMO_PLACE", "DEMO_TOKEN", "PATH")
_PAUSE_S = FIRST_DELAY_S * 1.1
"""Between two edits: sooner, a sidecar takes them for a file that touches itself."""

Answers = Sequence[Mapping[str, Any]]


class Story:
    """Plays the steps on a stage; `wrong` lists what was not as it should be."""

    def __init__(self, stage: Stage, say: Callable[[str], None]) -> None:
        self.wrong: list[str] = []
        self._stage = stage
        self._say = say
        self._step = 0
        self._kernels: list[Kernel] = []
        self._shells = [dict(stage.environ) for _ in range(KERNELS)]
        self._shell = self._shells[0]
        self._bare = digest(stage.environ)

    def play(self) -> None:
        """Play every step, in order."""
        stage = self._stage
        stage.write("first")
        stage.allow()
        self._kernels = stage.start_kernels(KERNELS)
        stage.start_sidecar()
        self._loads()
        self._costs_nothing()
        self._edit_is_blocked()
        self._allowed_for_all()
        self._edits()
        self._leaves()
        self._sidecar_is_killed()
        self._sidecar_is_back()
        self._notebook()

    # ------------------------------------------------------------ the steps

    def _loads(self) -> None:
        self._title(f"{KERNELS} kernels stand in a workspace whose .envrc is allowed")
        started = time.perf_counter()
        answers = asked(self._kernels, folder=str(self._stage.workspace))
        took_s = time.perf_counter() - started
        self._expect("loaded", answers)
        self._expect_one_evaluation(0)
        hooks_s = sum(self._stage.prompt(shell) for shell in self._shells)
        self._expect_shell(answers, self._shell)
        self._compare("all of them have it", took_s, f"{KERNELS} hooks", hooks_s)

    def _costs_nothing(self) -> None:
        self._title("nothing has changed")
        p50_s = self._ask_one(count=_REFRESHES)["p50_s"]
        hook_s = self._hook_p50_s()
        self._check("an unchanged refresh is cheaper than the hook", p50_s < hook_s)
        self._compare("refresh, p50", p50_s, "hook, p50", hook_s)

    def _edit_is_blocked(self) -> None:
        self._title("somebody edits the .envrc: nobody has allowed that")
        before = self._stage.evaluations()
        self._stage.write("second")
        answers = asked(self._kernels)
        self._expect("blocked", answers)
        self._expect_evaluations(before)
        self._expect_gone(answers)

    def _allowed_for_all(self) -> None:
        self._title("the person runs `direnv allow`, and every kernel starts a run")
        before = self._stage.evaluations()
        self._stage.allow()
        started = time.perf_counter()
        answers = asked(self._kernels)
        took_s = time.perf_counter() - started
        self._expect("loaded", answers, answered="sidecar")
        self._expect_one_evaluation(before)
        hooks_s = sum(self._stage.prompt(shell) for shell in self._shells)
        self._expect_shell(answers, self._shell)
        self._compare("all of them have it", took_s, f"{KERNELS} hooks", hooks_s)

    def _edits(self) -> None:
        self._title(f"{_EDITS} more edits, allowed while the person reads on")
        ours, hooks = [], []
        with sidecars.reached(self._stage.environ) as link:
            for number in range(_EDITS):
                self._stage.pause(_PAUSE_S)
                before = self._stage.evaluations()
                self._stage.write(f"edit-{number}")
                self._stage.allow()
                self._stage.wait_precomputed(link, before + 1)
                answer = self._ask_one()
                self._expect("loaded", [answer], answered="sidecar")
                self._expect_evaluations(before + 1)
                ours.append(answer["seconds"])
                hooks.append(self._stage.prompt(self._shell))
                self._expect_shell([answer], self._shell)
        ours_s, hooks_s = statistics.median(ours), statistics.median(hooks)
        self._compare("refresh, p50", ours_s, "hook, p50", hooks_s)

    def _leaves(self) -> None:
        self._title("every kernel leaves the workspace")
        asked(self._kernels)
        before = self._stage.evaluations()
        answers = asked(self._kernels, folder=str(self._stage.outside))
        self._expect("unloaded", answers, answered="record")
        self._expect_evaluations(before)
        self._expect_gone(answers)
        hook_s = self._prompt_outside()
        ours_s = statistics.median(answer["seconds"] for answer in answers)
        self._compare("refresh, p50", ours_s, "hook", hook_s)

    def _sidecar_is_killed(self) -> None:
        self._title("they come back, and the sidecar is killed with -9")
        asked(self._kernels, folder=str(self._stage.workspace))
        self._stage.kill_sidecar()
        self._stage.write("without a sidecar")
        self._expect("blocked", answers := asked(self._kernels), answered="direnv")
        self._expect_gone(answers)
        self._stage.allow()
        answers = asked(self._kernels)
        self._expect("loaded", answers, answered="direnv")
        self._stage.prompt(self._shell)
        self._expect_shell(answers, self._shell)

    def _sidecar_is_back(self) -> None:
        self._title("a sidecar listens again")
        self._stage.start_sidecar()
        before = self._stage.evaluations()
        self._stage.write("back")
        self._stage.allow()
        answers = asked(self._kernels)
        self._expect("loaded", answers, answered="sidecar")
        self._expect_one_evaluation(before)
        self._stage.prompt(self._shell)
        self._expect_shell(answers, self._shell)

    # ------------------------------------------------------------ the notebook

    def _notebook(self) -> None:
        self._title("a notebook: a real ipykernel, after `envwatch jupyter install`")
        if None in map(find_spec, _JUPYTER):
            self._say("   left out; what it needs: pip install 'envwatch[jupyter]'")
            return
        notebook = self._stage.start_notebook()
        self._notebook_loads(notebook)
        self._notebook_is_blocked(notebook)
        self._notebook_is_allowed(notebook)

    def _notebook_loads(self, notebook: Notebook) -> None:
        ready_s = asked([notebook], folder=str(self._stage.workspace))[0]["seconds"]
        cell = self._cell(notebook)
        given = self._set_here(self._shell)
        self._hold(
            "its interpreter has started with what direnv's hook gives a shell there",
            cell["digest_at_start"] == given,
        )
        self._hold("its first cell has it", cell["digest"] == given)
        p50_s = asked([notebook], count=_REFRESHES)[0]["p50_s"]
        hook_s = self._hook_p50_s()
        self._check("an unchanged refresh is cheaper than the hook", p50_s < hook_s)
        self._compare("refresh before a cell, p50", p50_s, "hook, p50", hook_s)
        self._say(f"   the kernel was ready after {duration(ready_s)}")

    def _notebook_is_blocked(self, notebook: Notebook) -> None:
        self._title("somebody edits the .envrc while the notebook is open")
        before = self._stage.evaluations()
        self._stage.write("noted")
        cell = self._cell(notebook)
        self._expect_evaluations(before)
        bare = self._set_here(self._stage.environ)
        self._hold(
            "what the .envrc had set is gone in the next cell", cell["digest"] == bare
        )
        said = [line for line in cell["said"] if "is blocked" in line]
        self._check("the output of that cell says so", bool(said))
        for line in said:
            self._say(f"   its output: {plain(line)}")
        self._beside_hook(cell)

    def _notebook_is_allowed(self, notebook: Notebook) -> None:
        self._title("the person runs `direnv allow`, and one more cell")
        self._stage.allow()
        cell = self._cell(notebook)
        self._beside_hook(cell)
        self._hold(
            "it has the new value: every one is what direnv's hook gives a shell there",
            cell["digest"] == self._set_here(self._shell),
        )

    def _cell(self, notebook: Notebook) -> Mapping[str, Any]:
        return asked([notebook], names=_SET)[0]

    def _set_here(self, environ: Mapping[str, str]) -> str:
        """Give a digest of what the `.envrc` sets; a kernel adds names of its own."""
        return digest({name: environ[name] for name in _SET if name in environ})

    def _beside_hook(self, cell: Mapping[str, Any]) -> None:
        hook_s = self._stage.prompt(self._shell)
        self._say(
            f"   the whole cell: {duration(cell['seconds'])};"
            f" hook alone: {duration(hook_s)}"
        )

    # ------------------------------------------------------------ what should be

    def _title(self, text: str) -> None:
        self._step += 1
        self._say(f"{self._step}. {text}")

    def _check(self, what: str, is_so: bool) -> None:  # noqa: FBT001
        if not is_so:
            self.wrong.append(f"step {self._step}: not so: {what}")
            self._say(f"   NOT SO: {what}")

    def _hold(self, what: str, is_so: bool) -> None:  # noqa: FBT001
        self._check(what, is_so)
        if is_so:
            self._say(f"   {what}")

    def _expect(
        self, outcome: str, answers: Answers, *, answered: str | None = None
    ) -> None:
        number = sum(answer["outcome"] == outcome for answer in answers)
        by = sorted({str(answer["answered"]) for answer in answers})
        if len(answers) > 1:
            said = f"{outcome} in {number} of {len(answers)}"
            self._say(f"   {said}, answered by: {', '.join(by)}")
        self._check(f"{outcome} in all {len(answers)}", number == len(answers))
        if answered is not None:
            self._check(f"answered by {answered}, not {by}", by == [answered])

    def _expect_evaluations(self, number: int) -> None:
        found = self._stage.evaluations()
        self._check(f"evaluations in all: {number}, not {found}", found == number)

    def _expect_one_evaluation(self, before: int) -> None:
        self._expect_evaluations(before + 1)
        if self._stage.evaluations() == before + 1:
            self._say(f"   one evaluation for {KERNELS} kernels: the .envrc counts")

    def _expect_gone(self, answers: Answers) -> None:
        is_so = all(answer["digest"] == self._bare for answer in answers)
        self._hold("what the .envrc had set is gone in every kernel", is_so)

    def _expect_shell(self, answers: Answers, shell: Mapping[str, str]) -> None:
        same = digest(shell)
        is_so = same != self._bare and all(
            answer["digest"] == same for answer in answers
        )
        self._check("every variable is what the shell's hook gives", is_so)
        if is_so and len(answers) > 1:
            self._say("   every variable is what direnv's hook gives a shell there")

    def _compare(self, ours: str, ours_s: float, hook: str, hook_s: float) -> None:
        ratio = hook_s / ours_s
        times = f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.1f}"  # noqa: PLR2004
        self._say(
            f"   {ours}: {duration(ours_s)}; {hook}: {duration(hook_s)} (1 : {times})"
        )

    def _ask_one(self, **order: Any) -> Mapping[str, Any]:
        return asked(self._kernels[:1], **order)[0]

    def _hook_p50_s(self) -> float:
        return statistics.median(
            self._stage.prompt(self._shell) for _ in range(_PROMPTS)
        )

    def _prompt_outside(self) -> float:
        outside: Path = self._stage.outside
        took_s = self._stage.prompt(self._shell, folder=outside)
        self._check("the shell is bare again", digest(self._shell) == self._bare)
        return took_s
