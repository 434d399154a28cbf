"""A second virtual environment: ipykernel and what that needs, nothing of ours."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path


def with_ipykernel(folder: Path) -> Path:
    """Make one; give its interpreter. Needs the package index, as `make setup` does."""
    # Installed from outside: an environment without pip is made in a moment.
    venv.EnvBuilder(with_pip=False, symlinks=True).create(folder)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    done = subprocess.run(
        [*pip, "--disable-pip-version-check", "ipykernel>=6.29"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return python
