"""Many parked kernels: processes that have imported `kernel_client` and wait.

    python -m bench.actors.kernels COUNT FOLDER

stands in FOLDER, forks COUNT kernels, and reads a command from each line of its
stdin. All kernels do it at once, and one line of JSON tells what it came to:

    refresh     refresh() once
    spawn       what a kernel without envwatch does: direnv export json
    echo PATH N exchange a line of N bytes with the peer at PATH

`wall` is from the first kernel that was told to the last one that was done.
"""

from __future__ import annotations

import json
import os
import select
import socket
import statistics
import struct
import subprocess
import sys
import time

from kernel_client import Client, Settings

REPORT = struct.Struct("<ddB")
WAIT_S = 300.0


class Kernel:
    """What one process does; it ends with its input."""

    def __init__(self) -> None:
        self._client = Client(
            output=lambda _: None,
            settings=Settings(
                sidecar="/nonexistent/envwatch",
                socket=os.environ["ENVWATCH_SOCKET"],
                direnv=os.environ["ENVWATCH_DIRENV"],
            ),
        )
        self._peer: socket.socket | None = None

    def serve(self, commands: int, reports: int) -> None:
        """Obey until the commands end."""
        while command := os.read(commands, 4096):
            words = command.decode().split()
            started = time.monotonic()
            try:
                is_good = self._obey(words)
            except OSError:
                is_good = False
            now = time.monotonic()
            os.write(reports, REPORT.pack(now, now - started, is_good))

    def _obey(self, words: list[str]) -> bool:
        match words:
            case ["refresh"]:
                result = self._client.refresh()
                return result.outcome == "loaded" and result.answered == "sidecar"
            case ["spawn"]:
                return self._spawn()
            case ["echo", path, size]:
                return self._echo(path, int(size))
        return False

    def _spawn(self) -> bool:
        # Without its watches direnv reloads, even within the same second.
        done = subprocess.run(
            [os.environ["ENVWATCH_DIRENV"], "export", "json"],
            env={**os.environ, "DIRENV_WATCHES": ""},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        return bool(done.stdout)

    def _echo(self, path: str, size: int) -> bool:
        if self._peer is None:
            self._peer = socket.socket(socket.AF_UNIX)
            self._peer.connect(path)
        self._peer.sendall(b"x" * (size - 1) + b"\n")
        while not self._peer.recv(256 * 1024).endswith(b"\n"):
            pass
        return True


def main(count: int, folder: str) -> None:
    """Fork the kernels, and pass every command on to all of them."""
    os.chdir(folder)
    reading, reports = os.pipe()
    gates: list[int] = []
    pids: list[int] = []
    for _ in range(count):
        commands, gate = os.pipe()
        pid = os.fork()
        if not pid:
            for other in (*gates, gate, reading, 0):
                os.close(other)
            try:
                Kernel().serve(commands, reports)
            finally:
                os._exit(0)
        os.close(commands)
        gates.append(gate)
        pids.append(pid)
    os.close(reports)
    print(json.dumps({"ready": count}), flush=True)
    for line in sys.stdin:
        print(json.dumps(_all(line.encode(), gates, reading)), flush=True)
    for gate in gates:
        os.close(gate)
    for pid in pids:
        os.waitpid(pid, 0)


def _all(command: bytes, gates: list[int], reading: int) -> dict[str, float]:
    """Have all do it; give the wall time and what each kernel saw."""
    started = time.monotonic()
    for gate in gates:
        os.write(gate, command)
    data = b""
    while len(data) < len(gates) * REPORT.size:
        if not select.select([reading], [], [], WAIT_S)[0]:
            break
        more = os.read(reading, 65536)
        if not more:
            break
        data += more
    found = list(REPORT.iter_unpack(data))
    return {
        "wall": max(end for end, _, _ in found) - started,
        "median": statistics.median(own for _, own, _ in found),
        "good": sum(good for _, _, good in found),
    }


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
