"""A kernel of the demo: a process of its own that refreshes when it is told to.

It reads orders from stdin and answers on stdout, a JSON object on each line. What
its environment has is told by names and digests, never by values. It ends when its
stdin does, so none is left behind by a demo that was killed.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from kernel_client.client import Client
from kernel_client.environment import THE_FOUR
from kernel_client.result import Result

_BATCH = 100


def digest(environ: Mapping[str, str]) -> str:
    """Give a digest of every variable but the four."""
    text = "\0".join(
        f"{name}={value}"
        for name, value in sorted(environ.items())
        if name not in THE_FOUR
    )
    return sha256(text.encode(errors="surrogateescape")).hexdigest()


def main() -> None:
    """Answer orders until stdin ends."""
    client = Client(output=lambda _: None)
    for line in sys.stdin:
        answer = _obeyed(client, json.loads(line))
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    client.close()


def _obeyed(client: Client, order: Mapping[str, Any]) -> dict[str, Any]:
    if "folder" in order:
        os.chdir(order["folder"])
    if "count" in order:
        return {"p50_s": _p50_s(client, int(order["count"]))}
    result = client.refresh()
    return {**_told(result), "digest": digest(os.environ)}


def _told(result: Result) -> dict[str, Any]:
    return {
        "outcome": result.outcome,
        "answered": result.answered,
        "seconds": result.seconds,
        "set_names": list(result.set_names),
        "unset_names": list(result.unset_names),
    }


def _p50_s(client: Client, count: int) -> float:
    """Measure refreshes in batches, so that the clock's own cost does not show."""
    refresh = client.refresh
    times = []
    for _ in range(max(1, count // _BATCH)):
        started = time.perf_counter()
        for _ in range(_BATCH):
            refresh()
        times.append((time.perf_counter() - started) / _BATCH)
    return statistics.median(times)


if __name__ == "__main__":
    main()
