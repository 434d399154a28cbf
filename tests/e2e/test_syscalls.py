"""What an unchanged refresh asks of the system: counted by strace."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.conftest import Start
from tests.support.planted import exports
from tests.support.worlds import World

COUNT = 1000
STATS = {"stat", "lstat", "newfstatat", "access", "faccessat", "faccessat2"}
STARTS = {"clone", "clone3", "fork", "vfork", "execve"}
CALL = re.compile(r"^(?:\d+ +)?(\w+)\(|<\.\.\. (\w+) resumed>")
MARK = "os.access('/ew-mark', 0)\n"


def calls(trace: Path) -> Counter[str]:
    """Count the calls of all threads between the two marks."""
    lines = trace.read_text(errors="replace").splitlines()
    marks = [number for number, line in enumerate(lines) if "/ew-mark" in line]
    first, last = marks
    found: Counter[str] = Counter()
    for line in lines[first + 1 : last]:
        match = CALL.match(line)
        if match and match[1]:
            found[match[1]] += 1
        else:
            assert match, line
    return found


@pytest.mark.parametrize("version", ["2.37"])
@pytest.mark.parametrize("loaded", ["loaded", "blocked", "nothing", "below"])
def test_unchanged_refresh(
    world: World, start: Start, socket: Path | None, mode: str, loaded: str
) -> None:
    """1,000 of them: the stats, one getcwd, one poll where there is a sidecar.

    Nothing else is called, in no thread, and no process is started.
    """
    world.folder("w/a/b")
    if loaded != "nothing":
        world.envrc("w", exports("FOO"), allow=loaded != "blocked")
    trace = world.path("trace")
    kernel = start(
        "w/a/b" if loaded == "below" else "w",
        listening=socket,
        coverage=False,
        before=["strace", "-f", "-qq", "-o", str(trace)],
    )
    outcome = {"nothing": "absent", "below": "loaded"}.get(loaded, loaded)
    assert kernel.refresh()["outcome"] == outcome
    # The first ones may still read a notice of the sidecar's.
    kernel.run("for _ in range(50): kernel_client.refresh()")
    code = f"import gc; gc.disable()\nbefore = kernel_client.refresh()\n{MARK}"
    code += f"for _ in range({COUNT}): result = kernel_client.refresh()\n{MARK}"
    code += "answer = result is before and result.outcome"
    assert kernel.run(code) in ("unchanged", "absent")
    found = calls(trace)

    stats = sum(found[name] for name in STATS)
    assert found["getcwd"] == COUNT
    polls = COUNT if mode == "sidecar" and loaded != "nothing" else 0
    assert found["poll"] <= COUNT
    assert found["poll"] == polls
    assert stats
    assert stats % COUNT == 0
    assert set(found) - STATS <= {"getcwd", "poll"}, found
    assert not any(found[name] for name in STARTS)
