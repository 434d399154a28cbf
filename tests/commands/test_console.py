"""`envwatch console` where there can be no console: one line, and an exit code."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from envwatch.commands.console import INSTALL, spec_of
from envwatch.errors import ConfigError, Unavailable
from envwatch.hosts import kernelspecs
from tests.conftest import OLDER
from tests.support.persons import Person
from tests.support.terminals import Terminal

older = pytest.mark.parametrize("version", [OLDER], indirect=True)

WITHOUT = """
import sys
from unittest import mock
sys.modules[{module!r}] = None
sys.stdin, sys.argv = mock.Mock(), ["envwatch", "console"]
sys.stdout.isatty = sys.stdin.isatty = lambda: True
from envwatch.__main__ import main
sys.exit(main())
"""


@older
def test_without_a_terminal(alone: Person) -> None:
    """Nobody could talk to it."""
    alone.run("console").said(2, "the console needs a terminal")


@older
def test_what_is_no_folder(alone: Person) -> None:
    """Said before anything is started."""
    file = alone.world.write("file", "")
    alone.run("console", file).said(2, "is a file")
    alone.run("console", "nowhere").said(2, "does not exist")


@older
@pytest.mark.parametrize("module", ["textual", "jupyter_client", "ipykernel"])
def test_without_what_it_needs(alone: Person, module: str) -> None:
    """One line that says what to install."""
    ended = alone.python(WITHOUT.format(module=module), folder=alone.world.top)
    ended.said(69, INSTALL)


@older
def test_a_kernel_that_is_not_there(alone: Person) -> None:
    """As with `envwatch jupyter install`."""
    terminal = Terminal(
        alone,
        *("console", "--kernel", "nowhere"),
        JUPYTER_DATA_DIR=str(alone.world.top),
    )
    try:
        assert terminal.wait() == 69
        assert terminal.said() == (
            "envwatch: there is no kernel nowhere here;"
            " `jupyter kernelspec list` names them"
        )
    finally:
        terminal.close()


@older
def test_help_has_the_exit_codes(alone: Person) -> None:
    """All that the README has."""
    ended = alone.run("console", "--help")
    assert ended.code == 0
    for code in ("0", "2", "64", "69", "129", "143"):
        assert f" {code} " in ended.out.replace(",", " ").replace("\n", " ")


def test_the_kernel_of_this_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the default, with the hook in it, whatever Jupyter lists."""
    spec = spec_of(None)
    assert spec["argv"][0] == sys.executable
    assert any(part.endswith("kernel_client/launcher.py") for part in spec["argv"])
    monkeypatch.setattr(kernelspecs, "native", lambda: None)
    with pytest.raises(Unavailable, match="needs an ipykernel"):
        spec_of(None)


def test_a_kernel_that_jupyter_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gets the hook, too, where it is an ipykernel."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path))
    for name, module in (("mine", "ipykernel"), ("other", "xeus")):
        folder = tmp_path / "kernels" / name
        folder.mkdir(parents=True)
        argv = ["/venv/bin/python", "-m", module, "-f", "{connection_file}"]
        spec = {"argv": argv, "display_name": name, "language": "python"}
        (folder / "kernel.json").write_text(json.dumps(spec))
    assert spec_of("mine")["argv"][0] == "/venv/bin/python"
    assert "kernel_provisioner" not in spec_of("mine")["metadata"]
    with pytest.raises(ConfigError, match="is not started by"):
        spec_of("other")
