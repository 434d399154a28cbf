"""What the person does while direnv runs (DESIGN 4).

The direnv that is asked is a wrapper around the real one: after each answer, before
it is handed over, it runs one more act of the person's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest

from tests.support.pairs import Kernel, settings_of
from tests.support.planted import PLANTED, exports, secret
from tests.support.worlds import World

Racing = Callable[..., Kernel]


@pytest.fixture
def racing(world: World) -> Iterator[Racing]:
    """Give a maker of kernels whose person acts right after each evaluation."""
    with ExitStack() as stack:

        def make(*acts: str) -> Kernel:
            tools = world.folder("tools")
            for number, act in enumerate(acts, 1):
                (tools / f"act{number}").write_text(f"cd '{world.path('w')}'\n{act}\n")
            wrapper = tools / "direnv"
            wrapper.write_text(
                f"#!/bin/sh\n'{world.direnv}' \"$@\"\ncode=$?\n"
                f'if [ "$1" = export ]; then\n'
                f"  echo x >>'{tools}/runs'\n"
                f"  n=$(wc -l <'{tools}/runs')\n"
                f"  [ -e '{tools}/act'$n ] && . '{tools}/act'$n >&2\n"
                f"fi\nexit $code\n"
            )
            wrapper.chmod(0o755)
            os.chdir(world.path("w"))
            settings = settings_of(None, direnv=str(wrapper))
            return stack.enter_context(closing(Kernel(world.environ, settings)))

        yield make


def acted(world: World, acts: int) -> bool:
    """Tell whether all acts have been done."""
    return (world.path("tools") / "runs").read_text().count("x") >= acts


def allowing(world: World) -> str:
    """Give the act of allowing."""
    return f"'{world.direnv}' allow 2>/dev/null"


NOISE = "echo x >>noise"
WATCH = "watch_file noise\n"

BEFORE = pytest.mark.parametrize("before", [(), (NOISE,)], ids=["first", "second"])
"""The act falls into the first evaluation, or into the one that a first act caused."""


def test_allowed_during_the_evaluation(world: World, racing: Racing) -> None:
    """A file that is allowed while direnv finds it blocked is loaded."""
    world.envrc("w", WATCH + exports("FOO"), allow=False)
    kernel = racing(allowing(world))

    kernel.refresh()
    kernel.refresh()

    assert kernel.environ["FOO"] == secret("FOO")
    assert kernel.client.outcome == "loaded"


def test_allowed_during_the_second_evaluation(world: World, racing: Racing) -> None:
    """The same when the first evaluation had been overtaken by an edit already."""
    world.envrc("w", WATCH + exports("FOO"), allow=False)
    kernel = racing("echo '# more' >>.envrc", allowing(world))

    kernel.refresh()
    kernel.refresh()

    assert acted(world, 2)
    assert kernel.environ["FOO"] == secret("FOO")
    assert kernel.client.outcome == "loaded"


@BEFORE
def test_approval_taken_away_during_an_evaluation(
    world: World, racing: Racing, before: tuple[str, ...]
) -> None:
    """A file whose approval goes while it is evaluated does not stay loaded."""
    world.envrc("w", WATCH + exports("FOO"))
    kernel = racing(*before, f"rm '{world.approval('w')}'")

    for _ in range(3):
        kernel.refresh()

    assert acted(world, len(before) + 1)
    assert PLANTED not in "".join(kernel.environ.values())
    assert kernel.client.outcome == "blocked"


@BEFORE
def test_watched_file_is_edited_during_an_evaluation(
    world: World, racing: Racing, before: tuple[str, ...]
) -> None:
    """A watched file that is edited while it was read is read again."""
    world.write("w/value", f"{PLANTED}1")
    world.envrc("w", 'watch_file noise value\nexport FOO="$(cat value)"\n')
    kernel = racing(*before, f"printf %s '{PLANTED}2' >value")

    for _ in range(3):
        kernel.refresh()

    assert acted(world, len(before) + 1)
    assert kernel.environ["FOO"] == f"{PLANTED}2"


@BEFORE
def test_edited_within_the_second_during_an_evaluation(
    world: World, racing: Racing, before: tuple[str, ...]
) -> None:
    """An edit with its mtime put back, while the file was evaluated, is noticed."""
    world.envrc("w", WATCH + exports("FOO"))
    world.write("w/other", exports("BAR"))
    kernel = racing(
        *before, "cp -p .envrc kept; cat other >.envrc; touch -r kept .envrc"
    )

    for _ in range(3):
        kernel.refresh()

    assert acted(world, len(before) + 1)
    assert PLANTED not in "".join(kernel.environ.values())
    assert kernel.client.outcome == "blocked"
