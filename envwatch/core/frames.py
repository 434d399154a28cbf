"""The sidecar's frames as bytes; what many kernels get alike is encoded once."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from kernel_client import messages, wire

Direnv = dict[str, str] | None


def welcome(version: str, pid: int, direnv: Direnv, *, fences: bool) -> bytes:
    """Answer to `hello`."""
    return wire.encode(
        {
            "type": "welcome",
            "protocol": messages.PROTOCOL,
            "version": version,
            "pid": pid,
            "direnv": direnv,
            "capabilities": [messages.FENCE] if fences else [],
        }
    )


def need_base(number: int) -> bytes:
    """Answer to an `export` over an environment that is not known."""
    return wire.encode({"type": "need_base", "id": number})


def progress(number: int, elapsed_s: float, line: str | None) -> bytes:
    """Tell a kernel that waits that its evaluation goes on."""
    return wire.encode(
        {
            "type": "progress",
            "id": number,
            "elapsed_s": round(elapsed_s, 3),
            "line": line,
        }
    )


def line(text: str) -> bytes:
    """Encode a line of direnv's for `said`: once for all who hear it."""
    return json.dumps(text).encode("ascii")


def said(number: int, elapsed_s: float, lines: Iterable[bytes]) -> bytes:
    """Give the `progress` of each of these lines, in one piece."""
    head = b'{"type":"progress","id":%d,"elapsed_s":%.3f,"line":' % (number, elapsed_s)
    return head + (b"}\n" + head).join(lines) + b"}\n"


def diff(
    number: int, *, body: bytes, snapshot: bytes, ago_s: float, shared: bool
) -> bytes:
    """Splice an id and an age into the members that every kernel gets alike."""
    head = b'{"type":"diff","id":%d,"evaluated_s_ago":%.3f,"shared":%b,' % (
        number,
        max(0.0, ago_s),
        b"true" if shared else b"false",
    )
    return b"".join((head, body, b',"snapshot":', snapshot, b"}\n"))


def fence(root: str, paths: str, rest: Iterable[str], view: str) -> bytes:
    """Give what is sent with a fence's descriptor."""
    return wire.encode(
        {
            "type": messages.FENCE,
            "root": root,
            "paths": paths,
            "rest": sorted(rest),
            "view": view,
        }
    )


def changed(root: str, reason: str) -> bytes:
    """Give the notice."""
    return wire.encode({"type": "changed", "root": root, "reason": reason})


def done(number: int, **fields: Any) -> bytes:
    """Answer to everything that is only done."""
    return wire.encode({"type": "done", "id": number, **fields})


def error(number: int | None, code: str, message: str) -> bytes:
    """Answer to what cannot be done; the message is one line without values."""
    return wire.encode(
        {"type": "error", "id": number, "code": code, "message": message}
    )


def members(fields: dict[str, Any]) -> bytes:
    """Give the JSON of an object's members without its braces, for `diff`."""
    return json.dumps(fields, separators=(",", ":")).encode("ascii")[1:-1]
