"""The package in an interpreter that cannot import it by name."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import kernel_client
from kernel_client import launcher

PATH = Path(launcher.__file__)


def run(
    code: str, *, path: Path = PATH, environ: Mapping[str, str] | None = None
) -> tuple[Any, str]:
    """Run code in a bare interpreter after `namespace` of the launcher; give its answer."""
    before = f"import json, runpy, sys; namespace = runpy.run_path({str(path)!r})\n"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", before + code],
        env={"PATH": "/usr/bin:/bin", **(environ or {})},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout), done.stderr


def test_whole_package_by_its_path() -> None:
    """Its modules can be imported, and no folder is on `sys.path` for that."""
    code = (
        "before = list(sys.path)\n"
        "package = namespace['load']()\n"
        "import kernel_client.client\n"
        "print(json.dumps([package.__file__, sys.path == before,"
        " sys.modules['kernel_client'] is package]))"
    )
    assert run(code) == ([kernel_client.__file__, True, True], "")


def test_again() -> None:
    """Loaded once, it stays the same, with one finder."""
    code = (
        "package = namespace['load']()\n"
        "again = namespace['load']()\n"
        "print(json.dumps([package is again, sum('Finder' == type(each).__name__"
        " for each in sys.meta_path)]))"
    )
    assert run(code)[0] == [True, 1]


def test_reload() -> None:
    """`importlib.reload` finds it again."""
    code = (
        "import importlib\n"
        "package = namespace['load']()\n"
        "print(json.dumps(importlib.reload(package) is package))"
    )
    assert run(code)[0] is True


def test_arguments() -> None:
    """ipykernel is told to load the extension."""
    code = "a = ['x']; namespace['prepare'](a, ''); print(json.dumps(a))"

    assert run(code)[0] == ["x", "--ext=kernel_client"]


def test_package_that_cannot_be_loaded(tmp_path: Path) -> None:
    """A kernel starts all the same, with one line that says so."""
    shutil.copy(PATH, tmp_path)
    (tmp_path / "__init__.py").write_text("raise ValueError('a value')")
    code = (
        "a = ['x']; namespace['prepare'](a, '')\n"
        "print(json.dumps([a, 'kernel_client' in sys.modules, len(sys.meta_path)]))"
    )
    (arguments, is_loaded, finders), said = run(code, path=tmp_path / "launcher.py")

    assert (arguments, is_loaded, finders) == (["x"], False, 3)
    assert said.startswith("envwatch: kernel_client cannot be loaded (ValueError)")
    assert "a value" not in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize(
    ("setting", "used"),
    [(None, "/bin/sh"), ("off", "off"), ("/bin/true", "/bin/true")],
)
def test_command_of_the_sidecar(setting: str | None, used: str) -> None:
    """It is used where the person has not said otherwise, and where it can be run."""
    environ = {} if setting is None else {"ENVWATCH_SIDECAR": setting}
    code = (
        "namespace['load'](COMMAND)\nimport kernel_client\n"
        "print(json.dumps(kernel_client.default_client().settings.sidecar))"
    )
    assert run(code.replace("COMMAND", "'/bin/sh'"), environ=environ)[0] == used
    gone = run(code.replace("COMMAND", "'/gone'"), environ=environ)[0]
    assert gone == (setting or "auto")


def test_finder() -> None:
    """It finds the package, and nothing that is named otherwise."""
    finder = launcher.Finder(os.path.dirname(kernel_client.__file__))
    spec = finder.find_spec("kernel_client")

    assert spec is not None
    assert spec.origin == kernel_client.__file__
    assert finder.find_spec("envwatch") is None
    assert finder.find_spec("kernel_client.client") is None
