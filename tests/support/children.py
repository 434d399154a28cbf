"""Forked children of a test: a kernel that forks, and an ordinary user."""

from __future__ import annotations

import json
import os
import select
import signal
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

NOBODY = 65534
DEADLINE_S = 40.0


def forked(work: Callable[[], Any]) -> Any:
    """Run `work` in a forked child and give what it returned, through JSON.

    Its failure is this process's failure, with the child's traceback.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reading)
            try:
                text = json.dumps(["gave", work()])
            except BaseException:  # noqa: BLE001 - the parent raises it
                text = json.dumps(["failed", traceback.format_exc()])
            with open(writing, "w", encoding="utf-8") as pipe:
                pipe.write(text)
        finally:
            os._exit(0)
    os.close(writing)
    try:
        with open(reading, encoding="utf-8") as pipe:
            if not select.select([pipe], [], [], DEADLINE_S)[0]:
                os.kill(pid, signal.SIGKILL)
                raise AssertionError("the forked child gave nothing in time")
            text = pipe.read()
    finally:
        _, status = os.waitpid(pid, 0)
    assert text, f"the child ended with wait status {status} and gave nothing"
    how, value = json.loads(text)
    assert how == "gave", value
    return value


def as_ordinary_user(top: Path, work: Callable[[], Any]) -> Any:
    """Run `work` in a child that is no superuser and owns everything below `top`."""
    if os.getuid() != 0:
        return forked(work)
    for folder, folders, files in os.walk(top):
        for name in (".", *folders, *files):
            os.lchown(os.path.join(folder, name), NOBODY, NOBODY)

    def demoted() -> Any:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        return work()

    return forked(demoted)
