"""direnv's encoding of DIRENV_DIFF and DIRENV_WATCHES (DIRENV.md case 39).

URL-safe base64, with padding, of zlib of JSON. Pure.
"""

from __future__ import annotations

from kernel_client import lean
from kernel_client.environment import is_passable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

    Diff = tuple[dict[str, Optional[str]], dict[str, str]]
    Watch = tuple[str, int, bool]

MAX_DECODED_BYTES = 64 * 1024 * 1024
"""A text that unpacks to more than this is refused."""


def decode(text: str) -> Any:
    """Give the value that direnv packed; raises ValueError for anything else."""
    import base64
    import zlib

    try:
        packed = base64.b64decode(text.encode("ascii"), b"-_", validate=True)
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(packed, MAX_DECODED_BYTES)
        if not unpacker.eof:
            raise ValueError("not direnv's encoding")
        return lean.loads(data)
    except (ValueError, zlib.error, RecursionError):
        raise ValueError("not direnv's encoding") from None


def encode(value: Any) -> str:
    """Pack a JSON value as direnv does; direnv reads it back."""
    import base64
    import zlib

    data = lean.dumps(value).encode()
    return base64.urlsafe_b64encode(zlib.compress(data)).decode("ascii")


def diff(text: str) -> Diff:
    """Read DIRENV_DIFF: (what to put back, what was set).

    Putting back means: each name of the first to its value, or removed where
    that is None; the second is what loading left in the environment.
    Raises ValueError.
    """
    value = decode(text)
    if not isinstance(value, dict):
        raise ValueError("DIRENV_DIFF is not an object")
    old, new = _side(value, "p"), _side(value, "n")
    put_back: dict[str, str | None] = dict.fromkeys(new)
    put_back.update(old)
    return put_back, new


def _side(value: dict[str, Any], name: str) -> dict[str, str]:
    side = value.get(name)
    if isinstance(side, dict) and all(
        isinstance(text, str) and is_passable(name, text) for name, text in side.items()
    ):
        return side
    raise ValueError("DIRENV_DIFF has not the sides p and n")


def watches(text: str) -> list[Watch]:
    """Read DIRENV_WATCHES: (path, whole seconds of mtime, exists) each.

    2.32 writes `Path`, later versions `path`; both are read. Raises ValueError.
    """
    value = decode(text)
    if not isinstance(value, list):
        raise ValueError("DIRENV_WATCHES is not a list")
    found: list[Watch] = []
    for entry in value:
        if not isinstance(entry, dict):
            raise ValueError("DIRENV_WATCHES has an entry that is not an object")
        lower = {name.lower(): field for name, field in entry.items()}
        path = lower.get("path")
        seconds = lower.get("modtime", 0)
        exists = lower.get("exists", False)
        if not isinstance(path, str) or "\0" in path or not isinstance(seconds, int):
            raise ValueError("DIRENV_WATCHES has an entry of another shape")
        found.append((path, seconds, bool(exists)))
    return found
