"""The provisioner: real kernels, whose interpreters start in the environment."""

from __future__ import annotations

import logging
import sys

import pytest

from tests.conftest import OLDER
from tests.support import planted
from tests.support.jupyters import Jupyter
from tests.support.worlds import World

older = pytest.mark.parametrize("version", [OLDER], indirect=True)
direct = pytest.mark.parametrize("mode", ["direct"], indirect=True)

AT_START = (
    "import os, sys; pid = os.getpid()\n"
    "at_start = dict(p.split('=', 1) for p in"
    " open('/proc/self/environ').read().split('\\0') if p)\n"
    "print(at_start.get('FOO'))"
)


@pytest.fixture(autouse=True)
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """Collect what the server logs."""
    caplog.set_level(logging.INFO)
    logging.getLogger("traitlets").propagate = True
    return caplog


def test_interpreter_starts_in_the_environment(
    world: World, jupyter: Jupyter, log: pytest.LogCaptureFixture
) -> None:
    """What counts at start counts, and the first cell has nothing to say."""
    world.write("w/lib/sitting.py", "where = 'here'\n")
    world.envrc(
        "w",
        "export FOO=1\nexport PYTHONPATH=$PWD/lib\nexport LD_LIBRARY_PATH=$PWD/lib\n"
        + planted.exports("TOKEN"),
    )
    jupyter.install()
    kernel = jupyter.kernel()
    try:
        cell = kernel.run(AT_START)
        assert (cell.out, cell.err) == ("1\n", "")
        assert kernel.run("import sitting; print(sitting.where)").out == "here\n"
        found = kernel.run("print(at_start['LD_LIBRARY_PATH'])").out
        assert found == f"{world.path('w/lib')}\n"
    finally:
        kernel.close()
    said = log.text
    planted.collect("the server's log", said)
    root = world.path("w/.envrc")
    assert f"envwatch: the kernel starts in the environment of {root}" in said


@older
@direct
def test_python_of_the_path(world: World, jupyter: Jupyter) -> None:
    """A kernelspec that leaves it to the PATH gets the workspace's interpreter."""
    world.write(
        "w/bin/python", f'#!/bin/sh\nexport VIA=w\nexec {sys.executable} "$@"\n'
    )
    world.path("w/bin/python").chmod(0o755)
    world.envrc("w", "PATH_add bin\n")
    world.write(
        jupyter.kernels / "mine" / "kernel.json",
        '{"argv": ["/usr/bin/env", "python", "-m", "ipykernel_launcher",'
        ' "-f", "{connection_file}"], "display_name": "Mine", "language": "python"}',
    )
    jupyter.install("--kernel", "mine")
    kernel = jupyter.kernel("mine-envwatch")
    try:
        assert kernel.run("import os; print(os.environ['VIA'])").out == "w\n"
    finally:
        kernel.close()


def test_blocked_file(
    world: World, jupyter: Jupyter, log: pytest.LogCaptureFixture
) -> None:
    """The kernel starts without it; the server's log and the first cell say so."""
    world.envrc("w", "export FOO=1\n", allow=False)
    jupyter.install()
    kernel = jupyter.kernel()
    try:
        said = log.text
        assert "envwatch: the kernel starts without the environment of" in said
        assert "direnv allow" not in said
        cell = kernel.run(AT_START)
        assert cell.out == "None\n"
        assert "is blocked; allowing it is up to the person" in cell.err

        world.allow("w")
        assert kernel.run("print(os.environ['FOO'])").out == "1\n"
    finally:
        kernel.close()


@older
@direct
def test_log_has_no_line_of_the_file(
    world: World, jupyter: Jupyter, log: pytest.LogCaptureFixture
) -> None:
    """`set -x` prints values: they are in the first cell, not in the server's log."""
    value = "v" * 20
    world.envrc("w", f"set -x\nexport FOO={value}\nlog_error $FOO\nexit 3\n")
    jupyter.install()
    kernel = jupyter.kernel()
    try:
        assert "/w/.envrc: failed" in log.text
        assert value not in log.text
        assert value in kernel.run("pass").err
    finally:
        kernel.close()


@older
@pytest.mark.parametrize("mode", ["sidecar"], indirect=True)
def test_reload_reaches_it(world: World, jupyter: Jupyter) -> None:
    """A kernel that had nothing to ask yet is attached to the sidecar all the same."""
    world.write("w/value", "1")
    world.envrc("w", "export FOO=$(cat value)\n")
    jupyter.install()
    kernel = jupyter.kernel()
    try:
        assert kernel.run(AT_START).out == "1\n"
        world.write("w/value", "2")
        show = "print(os.environ['FOO'])"
        assert kernel.run(show).out == "1\n"
        ended = jupyter.person.run("reload", world.path("w"))
        assert ended.out.startswith("1 kernel loads"), ended
        assert kernel.run(show).out == "2\n"
    finally:
        kernel.close()


@older
@direct
def test_restart(world: World, jupyter: Jupyter) -> None:
    """A restarted kernel starts in the environment of then, not in the first one's."""
    world.envrc("w", "export FOO=1\nexport BAR=1\n")
    jupyter.install()
    kernel = jupyter.kernel()
    try:
        assert kernel.run(AT_START).out == "1\n"
        world.envrc("w", "export FOO=2\n")
        kernel.manager.restart_kernel(now=True)
        kernel.client.wait_for_ready(timeout=50)
        assert kernel.run(AT_START).out == "2\n"
        assert kernel.run("print(at_start.get('BAR'))").out == "None\n"
    finally:
        kernel.close()


@older
@direct
def test_without_the_provisioner(world: World, jupyter: Jupyter) -> None:
    """The interpreter starts as before, the first cell has the environment."""
    world.envrc("w", "export FOO=1\n")
    jupyter.install("--no-provisioner")
    kernel = jupyter.kernel()
    try:
        cell = kernel.run(AT_START)
        assert cell.out == "None\n"
        assert "direnv: export +FOO" in cell.lines
        assert kernel.run("print(os.environ['FOO'])").out == "1\n"
    finally:
        kernel.close()


@older
@direct
def test_slow_file_does_not_hold_the_start(
    world: World, jupyter: Jupyter, log: pytest.LogCaptureFixture
) -> None:
    """After `wait_s` the kernel starts without it, and its first cell waits."""
    world.envrc("w", "[ -e go ] || sleep 1000\nexport FOO=1\n")
    folder = jupyter.install()
    spec = folder / "kernel.json"
    short = '"provisioner_name": "envwatch", "config": {"wait_s": 0.5}'
    text = spec.read_text().replace('"provisioner_name": "envwatch"', short)
    spec.write_text(text)
    kernel = jupyter.kernel()
    try:
        assert "the kernel starts without the environment of" in log.text
        world.write("w/go", "")
        assert kernel.run(AT_START + "; print(os.environ['FOO'])").out == "None\n1\n"
    finally:
        kernel.close()
