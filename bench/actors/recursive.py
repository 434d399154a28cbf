"""A recursive watch of one tree: what a watcher without a list of files has to do.

    python -m bench.actors.recursive FOLDER

prints one line of JSON when all of it is watched, and ends with its stdin.
"""

from __future__ import annotations

import json
import sys
import time

from watchfiles import _rust_notify


def main(folder: str) -> None:
    """Watch, tell, and wait."""
    started = time.perf_counter()
    try:
        watcher = _rust_notify.RustNotify([folder], False, False, 300, True, False)  # noqa: FBT003 - it has no names for them
    except (OSError, _rust_notify.WatchfilesRustInternalError) as error:
        print(json.dumps({"error": str(error).partition(" about ")[0]}), flush=True)
        return
    taken_s = time.perf_counter() - started
    print(json.dumps({"seconds": taken_s}), flush=True)
    with watcher:
        sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1])
