"""The reader's own workspace, read only.

Nothing is allowed, and nothing of ours is written in it or in direnv's folders. What
direnv allows is evaluated once, as a shell does that comes in; what an `.envrc` itself
writes then, it writes.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from bench import clients
from bench.findings import CannotRunError, Distribution, Findings, Row
from bench.measures import Timed, in_turn, readable, seconds, timed
from bench.parts.unchanged import FROM_SHELL, SPAWNED, bare, shell
from bench.worlds import World
from envwatch import state
from kernel_client import Settings, direnv as program
from kernel_client.errors import DirenvError

CHART = "Before each run, in this workspace"
ITS_OWN = "its calls, bare Python"


def own(world: World, *, folder: Path, quick: bool) -> Findings:
    """An unchanged refresh in it, beside direnv; spawned in turn with each other.

    `world` has the reader's own environment, with nothing loaded.
    """
    try:
        version = program.version(world.direnv, world.environ, limit_s=5.0)
        seen = state.look(world.direnv, str(folder), world.environ, version=version)
    except DirenvError as error:
        raise CannotRunError(str(error)) from None
    yield Row("workspace", "state, by direnv", "-", str(seen.state))
    world.serve()
    os.chdir(folder)
    client = clients.quiet(world.settings, dict(world.environ))
    first = client.refresh()
    yield Row(
        "workspace",
        "the first refresh()",
        "-",
        clients.told(client, readable(first.seconds)),
    )
    environ = clients.environ_of(client)
    alone = clients.quiet(Settings(sidecar="off", direnv=world.direnv), dict(environ))
    alone.refresh()
    works = {"refresh(), sidecar": timed(client.refresh)}
    if client.refresh().answered == "stats":
        works |= bare(client, None, ITS_OWN)
    turns = 300 if quick else 3000
    found = in_turn(works, turns=turns)
    found |= in_turn({"refresh(), no sidecar": timed(alone.refresh)}, turns=turns)
    with contextlib.ExitStack() as ends:
        ends.callback(client.close)
        ends.callback(alone.close)
        spawn = world.hook(environ, folder)
        taken_s = seconds(spawn)
        if seen.state == state.State.ALLOWED and spawn():
            # It would be evaluated each time: that is for its owner to do.
            found[f"{SPAWNED}: it reloads each time"] = (taken_s,)
        else:
            spawned: dict[str, Timed] = {SPAWNED: timed(spawn)}
            if seen.state in (state.State.ALLOWED, state.State.NONE):
                # What direnv says of a blocked file would be taken for an answer.
                shells = shell(world.direnv, folder, environ)
                spawned[FROM_SHELL] = ends.enter_context(shells)
            found |= in_turn(spawned, turns=20 if quick else 200)
    os.chdir("/")
    for name, samples in found.items():
        yield Distribution("workspace", CHART, name, samples)
