"""From an edit to a usable environment, by what the evaluation costs."""

from __future__ import annotations

import os
from pathlib import Path

from bench import clients
from bench.findings import CannotRunError, Distribution, Findings
from bench.measures import seconds
from bench.parts.reload import edited
from bench.progress import ticking
from bench.worlds import World, round_trip
from kernel_client import Settings

NIX_VARIABLES = 200
NIX_BYTES = 300
EDITS = 3
"""Of one workspace, twice each: a sidecar delays what is edited more often at once."""


def trivial(value: int) -> str:
    """Give a `.envrc` of one line."""
    return f"export FOO={value}\n"


def slow(value: int) -> str:
    """Give one that takes half a second."""
    return f"sleep 0.5\nexport FOO={value}\n"


def large(value: int) -> str:
    """Give one whose diff has 60 KB, as that of a nix shell."""
    lines = (
        f"export NIX_{number:03}={'x' * NIX_BYTES}" for number in range(NIX_VARIABLES)
    )
    return "\n".join((*lines, f"export FOO={value}", ""))


COSTS = {
    "a one-line .envrc": (trivial, 12),
    "a .envrc that sleeps 0.5 s": (slow, 3),
    "a diff of 60 KB, as of nix": (large, 6),
}
"""What an `.envrc` is like, and how many turns it gets; the quick run has a third."""


class Edited:
    """A workspace with a kernel of its own, which is asked after each edit."""

    def __init__(
        self, world: World, folder: Path, texts: tuple[str, str], settings: Settings
    ) -> None:
        self._texts = texts
        self._turn = 0
        self.folder = world.workspace(str(folder), *texts)
        self.environ = dict(world.environ)
        self._client = clients.quiet(settings, self.environ)
        self.seconds()

    def edit(self) -> None:
        """Write the other text."""
        self._turn = 1 - self._turn
        (self.folder / ".envrc").write_text(self._texts[self._turn])

    def seconds(self) -> float:
        """Refresh; gives the seconds that it took."""
        os.chdir(self.folder)
        taken_s = seconds(self._client.refresh)
        if self.environ.get("FOO") != str(self._turn):
            raise CannotRunError("refresh() did not load the edit")
        return taken_s

    def close(self) -> None:
        """Drop its connection."""
        self._client.close()


class Pair:
    """Two workspaces alike: one of a kernel alone, one of a kernel with a sidecar.

    While one is measured the sidecar has nothing to do for the other.
    """

    def __init__(self, world: World, place: Path, texts: tuple[str, str]) -> None:
        self._world = world
        alone = Settings(sidecar="off", direnv=world.direnv)
        self._direct = Edited(world, place / "direct", texts, alone)
        self._shared = Edited(world, place / "shared", texts, world.settings)
        # Without its watches direnv reloads, even within the same second.
        given = {**self._direct.environ, "DIRENV_WATCHES": ""}
        self._spawn = world.hook(given, self._direct.folder)

    def taken(self) -> dict[str, float]:
        """Edit, and give the seconds until the environment is there, each way."""
        direct, shared = self._direct, self._shared
        direct.edit()
        taken = {"direnv export json, from Python": seconds(self._spawn)}
        taken["refresh(), no sidecar"] = direct.seconds()
        shared.edit()
        taken["refresh(), sidecar, at once after the edit"] = shared.seconds()
        edited(self._world, shared.folder, shared.edit)
        taken["refresh(), sidecar, precomputed"] = shared.seconds()
        return taken

    def close(self) -> None:
        """Drop their connections."""
        self._direct.close()
        self._shared.close()


def by_cost(world: World, *, quick: bool) -> Findings:
    """Five ways in turn, each right after an edit."""
    world.serve()
    for name, (text, many) in COSTS.items():
        texts = (text(0), text(1))
        found: dict[str, list[float]] = {}
        request, reply_bytes = world.exchange(world.workspace("asked", text(0)))
        exchange = round_trip(world.echo(reply_bytes), request)
        exchange()
        turns = max(2, many // 3) if quick else many
        pair: Pair | None = None
        for turn in ticking(range(turns), f"reload: {name}"):
            if pair is None or turn % EDITS == 0:
                if pair is not None:
                    pair.close()
                pair = Pair(world, world.top / f"{text.__name__}{turn}", texts)
            taken = pair.taken()
            taken["a bare round trip of as many bytes"] = seconds(exchange)
            for label, taken_s in taken.items():
                found.setdefault(label, []).append(taken_s)
        if pair is not None:
            pair.close()
        os.chdir("/")
        for label, samples in found.items():
            chart = f"From an edit to its environment: {name}"
            yield Distribution("reload", chart, label, tuple(samples))
