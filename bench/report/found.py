"""All that one run has found, and how it was made."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from bench.findings import Distribution, Finding, Measuring, Row
from bench.machine import Moment, noise

METHOD = """
What is compared is measured in turn, A B A B, within one run; ratios are taken pair by
pair, and the median and the quartiles of them are given.

The first turns warm up and do not count. Percentiles are of single calls, each timed by
itself; rows with a ratio are of turns of up to fifty calls.

Each part has a home, a direnv store and a sidecar of its own in a temporary folder;
nothing is kept from one part to the next, and no cache is used that a person would not
have. Kernels, sidecars and direnvs are real processes; where many attached kernels share
a process, the row says so.

Processes started are those that Linux counts on the whole machine meanwhile, threads
included. A machine is called noisy when a fixed loop takes 10 % longer at one time than
at another, when its host takes more than 2 % of the time away, or when it was busy at
the start.
"""


@dataclass
class Found:
    """Rows, distributions and moments of one run.

    `facts` is what is known of the machine, `methods` what each part's functions say
    that they do.
    """

    facts: dict[str, str]
    is_quick: bool = False
    rows: list[Row] = field(default_factory=list)
    distributions: list[Distribution] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)
    methods: dict[str, list[str]] = field(default_factory=dict)

    def add(self, finding: Finding) -> None:
        """Keep what a part gives."""
        if isinstance(finding, Row):
            self.rows.append(finding)
        else:
            self.distributions.append(finding)

    def keep_scored(self) -> None:
        """Leave the rows with a target alone: the scoreboard."""
        self.rows = [row for row in self.rows if row.is_scored]
        self.distributions = []

    def hear(self, part: str, measuring: Measuring) -> None:
        """Keep what a function says that it measures."""
        while isinstance(measuring, partial):
            measuring = measuring.func
        told = " ".join((inspect.getdoc(measuring) or "").split())
        self.methods.setdefault(part, []).append(told)

    @property
    def noise(self) -> tuple[str, ...]:
        """What was noisy."""
        return noise(self.moments, int(self.facts["cores"])) if self.moments else ()

    @property
    def started(self) -> int:
        """How many processes and threads the machine has started meanwhile."""
        if not self.moments:
            return 0
        return self.moments[-1].forks - self.moments[0].forks

    def about(self) -> str:
        """Say what machine this was, and whether it was quiet."""
        told = ", ".join(f"{name} {value}" for name, value in self.facts.items())
        quiet = "; ".join(self.noise)
        kind = "quick run, " if self.is_quick else ""
        return f"{kind}{told}, {self.started} processes and threads started\n" + (
            f"NOISY: {quiet}" if quiet else "the machine was quiet"
        )

    def plain(self) -> dict[str, Any]:
        """Give it as JSON has it."""
        return {
            "machine": self.facts,
            "quick": self.is_quick,
            "noise": list(self.noise),
            "started": self.started,
            "method": METHOD.strip(),
            "methods": self.methods,
            "rows": [row.plain() for row in self.rows],
            "distributions": [each.plain() for each in self.distributions],
        }
