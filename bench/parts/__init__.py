"""The parts of the benchmark, by name.

Each function measures in a world of its own and gives rows and distributions. Those
of `scored` give the rows of the scoreboard, those of `more` what else is worth seeing.
"""

from __future__ import annotations

from typing import NamedTuple

from bench.findings import Measuring
from bench.parts.costs import by_cost
from bench.parts.daemon import by_kernels, idle, starts
from bench.parts.fences import fences
from bench.parts.herd import by_count, herd
from bench.parts.hook import hook
from bench.parts.imports import imports
from bench.parts.leave import leave
from bench.parts.monorepo import deep, monorepo
from bench.parts.programs import programs
from bench.parts.reload import edit
from bench.parts.unchanged import by_depth, by_size, by_watches


class Part(NamedTuple):
    """A part; `about` says what it is about."""

    about: str
    scored: tuple[Measuring, ...]
    more: tuple[Measuring, ...] = ()


PARTS = {
    "hook": Part(
        "refresh() where nothing has changed",
        (hook, fences, leave),
        (by_watches, by_depth, by_size),
    ),
    "reload": Part("from an edit to its environment", (edit,), (by_cost,)),
    "herd": Part("many kernels after one edit", (herd,), (by_count,)),
    "monorepo": Part("a tree of very many folders", (monorepo,), (deep,)),
    "daemon": Part("the sidecar itself", (idle,), (starts, by_kernels)),
    "import": Part("import kernel_client", (imports,)),
    "exec": Part("envwatch exec", (programs,)),
}
