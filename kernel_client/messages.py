"""The frames' vocabulary: constructors for a kernel, and the check for both ends.

PROTOCOL.md is the reference; this page is its code. A frame is a plain dict, so
that it can be read and written without a layer in between.
"""

from __future__ import annotations

from kernel_client.errors import ProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Frame = dict[str, Any]

PROTOCOL = 1
"""The version of the protocol that this package speaks."""

FENCE = "fence"
"""The capability of an end that can give, or take, fences."""

COUNTING = frozenset({"export", "left", "fence", "cancel", "reload"})
"""The frames of a kernel that may have a field `answered`: its counts."""

ANSWERS = ("stats", "record", "sidecar", "direnv", "none")
"""Who can have answered a refresh: the names of those counts."""

MAX_COUNT = 2**53 - 1
"""The largest number that every reader of JSON has exactly."""

_Null = type(None)

FIELDS: dict[str, dict[str, tuple[type, ...]]] = {
    "hello": {
        "protocol": (int,),
        "pid": (int,),
        "client": (str,),
        "capabilities": (list,),
        "cwd": (dict, _Null),
    },
    "export": {
        "id": (int,),
        "root": (str,),
        "fingerprint": (str,),
        "direnv": (str,),
    },
    "left": {"root": (str,)},
    "cancel": {"id": (int,), "export": (int,)},
    "reload": {"id": (int,), "root": (str,)},
    "fence": {"root": (str,)},
    "status": {"id": (int,)},
    "stop": {"id": (int,)},
    "welcome": {
        "protocol": (int,),
        "version": (str,),
        "pid": (int,),
        "direnv": (dict, _Null),
        "capabilities": (list,),
    },
    "need_base": {"id": (int,)},
    "progress": {"id": (int,), "elapsed_s": (int, float), "line": (str, _Null)},
    "diff": {
        "id": (int,),
        "outcome": (str,),
        "set": (dict,),
        "unset": (list,),
        "messages": (list,),
        "snapshot": (list, _Null),
        "seconds": (int, float),
        "evaluated_s_ago": (int, float),
        "shared": (bool,),
    },
    "changed": {"root": (str,), "reason": (str,)},
    "done": {"id": (int,)},
    "error": {"id": (int, _Null), "code": (str,), "message": (str,)},
}
"""Every frame type with its required fields and their JSON types."""


def check(frame: Frame) -> Frame:
    """Give the frame back when its required fields have the right types.

    Fields that are not listed are let through unread.

    Raises:
        ProtocolError: code `unknown` for a type that is not listed, `shape` for
            a field that is missing or of another type.
    """
    fields = FIELDS.get(frame["type"])
    if fields is None:
        raise ProtocolError("unknown", "a frame has a type that is not known")
    for name, types in fields.items():
        value = frame.get(name)
        if not isinstance(value, types) or (
            isinstance(value, bool) and bool not in types
        ):
            message = f"{frame['type']}: the field {name} is missing or of a wrong type"
            raise ProtocolError("shape", message)
        if value is None and name not in frame:
            raise ProtocolError("shape", f"{frame['type']}: no field {name}")
    return frame


def hello(
    *, pid: int, client: str, cwd: Frame | None, capabilities: Sequence[str] = ()
) -> Frame:
    """First frame of a kernel; `cwd` is {path, dev, ino}, or None without one."""
    return {
        "type": "hello",
        "protocol": PROTOCOL,
        "pid": pid,
        "client": client,
        "capabilities": list(capabilities),
        "cwd": cwd,
    }


def export(
    number: int,
    *,
    root: str,
    fingerprint: str,
    direnv: str,
    environment: dict[str, str] | None = None,
) -> Frame:
    """Ask for the diff of a root file over a base environment."""
    frame: Frame = {
        "type": "export",
        "id": number,
        "root": root,
        "fingerprint": fingerprint,
        "direnv": direnv,
    }
    if environment is not None:
        frame["environment"] = environment
    return frame


def left(root: str) -> Frame:
    """Say that the root file is not loaded here any more; has no answer."""
    return {"type": "left", "root": root}


def cancel(number: int, *, export_id: int) -> Frame:
    """Say that nobody here waits for that export any more."""
    return {"type": "cancel", "id": number, "export": export_id}


def reload(number: int, *, root: str) -> Frame:
    """Ask the sidecar to forget what it keeps of a root file."""
    return {"type": "reload", "id": number, "root": root}


def fence(root: str, *, held: bool) -> Frame:
    """Say that a fence of this root file is in use, or ask for one; has no answer."""
    return {"type": "fence", "root": root, "held": held}


def status(number: int) -> Frame:
    """Ask for the sidecar's state."""
    return {"type": "status", "id": number}


def stop(number: int) -> Frame:
    """Ask the sidecar to end."""
    return {"type": "stop", "id": number}
