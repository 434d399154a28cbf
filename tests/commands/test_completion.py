"""`envwatch completion`: the script that a shell loads, and what it completes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import OLDER
from tests.support.persons import Person

pytestmark = pytest.mark.parametrize("version", [OLDER], indirect=True)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script(person: Person, shell: str) -> None:
    """The script asks the command itself what fits."""
    ended = person.run("completion", shell)

    assert ended.code == 0
    assert ended.err == ""
    assert f"_ENVWATCH_COMPLETE={shell}_complete" in ended.out


def test_bash_completes(person: Person) -> None:
    """A real bash, with the script loaded, completes commands and options."""
    script = person.run("completion", "bash").out
    program = person.world.folder("bin") / "envwatch"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m envwatch "$@"\n')
    program.chmod(0o755)
    asking = (
        "COMP_WORDS=(envwatch st); COMP_CWORD=1;"
        f' _envwatch_completion "{program}"; printf "%s\\n" "${{COMPREPLY[@]}}"'
    )

    said = subprocess.run(
        ["bash", "-c", f"{script}\n{asking}"],
        check=True,
        env=person.environ,
        stdout=subprocess.PIPE,
        timeout=30,
    ).stdout.decode()

    assert said.split() == ["status", "stop"]


def test_unknown_shell(person: Person) -> None:
    """A shell that is not known is a wrong command line: exit code 2."""
    person.run("completion", "tcsh").said(2, "tcsh", "bash")
