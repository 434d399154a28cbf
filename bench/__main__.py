"""`python -m bench`: what an environment hook costs, here and now."""

from __future__ import annotations

import importlib.util
import sys

MISSING = 69


def main() -> int:
    """Say what is missing, or measure."""
    for name in ("rich", "matplotlib"):
        if importlib.util.find_spec(name) is None:
            said = f"bench: there is no {name}; pip install '.[bench]'"
            print(said, file=sys.stderr)
            return MISSING
    from bench.cli import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
