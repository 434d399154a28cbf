"""A sidecar that gives fences and asks no direnv: it also changes a tree on request.

    python -m tests.support.giver SOCKET FOLDER DIRENV

Commands come on stdin, a line each: the name of a change, or `mend`; each is
answered with a line once it is done. What a kernel gets are the real frames and a
really armed fence; only the evaluation is missing, which would take 40 ms of each
round.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import sys
from collections import deque
from pathlib import Path

from envwatch.core import frames
from kernel_client import arming, fence, instances, messages, snapshot, wire
from kernel_client.errors import FenceError
from kernel_client.view import view
from tests.support.changes import Tree

_KEPT = 8


class Giver:
    """Serves one kernel after the other."""

    def __init__(self, path: str, folder: str, direnv: str) -> None:
        self._tree = Tree(Path(folder))
        self._direnv = direnv
        self._given: deque[int] = deque()
        self._decoder = wire.Decoder()
        self._can_fence = False
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen()

    def run(self) -> None:
        """Serve until stdin ends."""
        _say("listening")
        with selectors.DefaultSelector() as waiting:
            waiting.register(0, selectors.EVENT_READ, None)
            waiting.register(self._listener, selectors.EVENT_READ, None)
            while True:
                for key, _ in waiting.select():
                    if key.fd == 0:
                        if not self._obey(os.read(0, 4096)):
                            return
                    elif key.fileobj is self._listener:
                        peer, _ = self._listener.accept()
                        self._decoder = wire.Decoder()
                        waiting.register(peer, selectors.EVENT_READ, peer)
                    elif not self._serve(key.data):
                        waiting.unregister(key.data)
                        key.data.close()

    def _obey(self, data: bytes) -> bool:
        for name in data.decode().split():
            getattr(self._tree, name)()
            _say("done")
        return bool(data)

    def _serve(self, peer: socket.socket) -> bool:
        data = peer.recv(65536)
        for frame in self._decoder.feed(data):
            if frame["type"] == "hello":
                direnv = {"path": self._direnv, "version": "0"}
                self._can_fence = messages.FENCE in frame["capabilities"]
                peer.sendall(frames.welcome("0", os.getpid(), direnv, fences=True))
            elif frame["type"] == "export":
                self._answer(peer, frame["id"], frame["root"])
        return bool(data)

    def _answer(self, peer: socket.socket, number: int, root: str) -> None:
        paths = [root, *(path for path in self._tree.watched if path != root)]
        seen = snapshot.take(paths)
        armed = self._armed(fence.present(seen)) if self._can_fence else None
        if armed is not None:
            covered = fence.named(
                path for path in fence.present(seen) if path not in armed.rest
            )
            frame = frames.fence(root, covered, armed.rest, view())
            socket.send_fds(peer, [frame], [armed.descriptor])
            self._given.append(armed.descriptor)
            if len(self._given) > _KEPT:
                instances.close_later(self._given.popleft())
        body = frames.members(
            {
                "outcome": "loaded",
                "set": {"DIRENV_DIFF": str(number), "DIRENV_FILE": root},
                "unset": [],
                "messages": [],
                "seconds": 0.0,
            }
        )
        wired = json.dumps(snapshot.to_wire(snapshot.take(paths))).encode()
        peer.sendall(
            frames.diff(number, body=body, snapshot=wired, ago_s=0, shared=False)
        )

    def _armed(self, paths: list[str]) -> arming.Armed | None:
        for _ in range(100):
            try:
                return arming.arm(paths, 1000)
            except FenceError as error:
                if error.code == "changed":
                    return None
                # Earlier ones are on their way out: closing one waits for them.
                instances.close(self._given.popleft())
        return None


def _say(word: str) -> None:
    sys.stdout.write(word + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    Giver(*sys.argv[1:]).run()
