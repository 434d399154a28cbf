"""A run after an edit: evaluated already by the sidecar, or not, or by nobody else."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from bench import clients
from bench.findings import CannotRunError, Row
from bench.measures import Middle, ratio_of, readable, seconds
from bench.worlds import World, round_trip, wait_until, worn
from kernel_client.client import Client

EDITS = 7
"""Edits of one workspace: a sidecar delays what is edited more often at once."""

TEXTS = ("export FOO=1 BAR=one\n", "export FOO=2 BAR=two\n")
TARGET_S = 1e-3
RELOAD_RATIO = 30
ROUND_TRIP_RATIO = 4


def edit(world: World, *, quick: bool) -> Iterator[Row]:
    """Row 5: edit, wait until it is precomputed, then time the next refresh().

    The bare round trip is timed before it or after it, by turns, so that the
    wait has cooled both in the same way.
    """
    world.serve()
    first = world.workspace("w", *TEXTS)
    request, reply_bytes = world.exchange(first)
    exchange = round_trip(world.echo(reply_bytes), request)
    exchange()
    ours: list[float] = []
    bare: list[float] = []
    reload: list[float] = []
    for number in range(2 if quick else 6):
        folder = world.workspace(f"w{number}", *TEXTS)
        with worn(world.environ):
            os.chdir(folder)
            client = clients.quiet(world.settings)
            client.refresh()
            if os.environ.get("FOO") != "1":
                raise CannotRunError("the workspace was not loaded")
            # Without its watches direnv reloads, even within the same second.
            given = {**os.environ, "DIRENV_WATCHES": ""}
            own_reload = world.hook(given, folder)
            for turn in range(EDITS):
                text = TEXTS[(turn + 1) % 2]
                edited(world, folder, partial((folder / ".envrc").write_text, text))
                if turn % 2:
                    bare.append(seconds(exchange))
                ours.append(_refreshed(client, str((turn + 1) % 2 + 1)))
                if not turn % 2:
                    bare.append(seconds(exchange))
                reload.append(seconds(own_reload))
                if not own_reload():
                    raise CannotRunError("direnv did not reload")
            client.close()
        os.chdir("/")
    trip = ratio_of(list(zip(ours, bare, strict=True)))
    beside = ratio_of(list(zip(ours, reload, strict=True))).inverse()
    middle = Middle.of(ours)
    yield Row(
        "reload",
        "edited, precomputed, through the sidecar",
        f"p50 < {readable(TARGET_S)}",
        f"{middle}, {len(ours)} edits",
        middle.middle < TARGET_S,
        middle.figures(),
    )
    yield Row(
        "reload",
        "  beside direnv's own reload",
        f">= {RELOAD_RATIO} x cheaper",
        f"{beside}: {readable(beside.ours_s)} / {readable(beside.other_s)}",
        beside.middle >= RELOAD_RATIO,
        beside.figures(),
    )
    yield Row(
        "reload",
        "  beside a bare round trip",
        f"<= {ROUND_TRIP_RATIO} x",
        f"{trip}: {readable(trip.ours_s)} / {readable(trip.other_s)}"
        f" ({len(request)} bytes there, {reply_bytes} back)",
        trip.middle <= ROUND_TRIP_RATIO,
        trip.figures(),
    )


def edited(world: World, folder: Path, edit: Callable[[], object]) -> None:
    """Edit a root file, and wait until the sidecar has evaluated it."""
    before = world.status()["evaluations"]
    edit()

    def precomputed() -> bool:
        if world.status()["evaluations"] == before:
            return False
        return bool(world.of_root(folder)["state"] == "idle")

    wait_until("the edit is precomputed", precomputed)


def _refreshed(client: Client, expected: str) -> float:
    taken_s = seconds(client.refresh)
    if os.environ.get("FOO") != expected:
        raise CannotRunError("refresh() did not load the edit")
    return taken_s
