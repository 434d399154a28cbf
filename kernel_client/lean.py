"""JSON and SHA-256 without importing the json package or hashlib.

Each costs milliseconds where nobody else has imported it: the json package brings `re`
with it and takes four, a third of what starting a program through `envwatch exec`
costs. What is quick about it is in C, in `_json`; that is used as the package uses it.
Whatever that cannot do, or only might not, the package does, so that the two never
tell two things. Pure.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class _Context:
    """What the scanner in C asks its decoder for; the package's defaults."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


_quick: list[tuple[Callable[[str, int], tuple[Any, int]], Callable[[str], str]]] = []


def _is_quick() -> bool:
    """Tell whether to do without the package; where it is there, it is as quick."""
    if "json" in sys.modules:
        return False
    if not _quick:
        try:
            from _json import encode_basestring_ascii, make_scanner

            context: Any = _Context()
            _quick.append((make_scanner(context), encode_basestring_ascii))
        except Exception:  # noqa: BLE001 - another Python's inside
            return False
    return True


_hashes: list[Callable[[bytes], Any]] = []


def sha256(data: bytes) -> str:
    """Give the SHA-256 in hexadecimal; hashlib would load OpenSSL for it."""
    if not _hashes:
        # Looked for once: a search for a module that is not there is a slow one.
        _hashes.append(_hash())
    digest: str = _hashes[0](data).hexdigest()
    return digest


def _hash() -> Callable[[bytes], Any]:
    for name in ("_sha2", "_sha256", "hashlib"):
        try:
            found: Callable[[bytes], Any] = __import__(name).sha256
        except ImportError:
            continue
        return found
    raise AssertionError("hashlib is always there")


def dumps(value: Any) -> str:
    """Give the JSON of a value without spaces, in ASCII."""
    if _is_quick():
        try:
            return _text(value)
        except (TypeError, RecursionError):
            pass
    import json

    return json.dumps(value, separators=(",", ":"))


def loads(data: bytes) -> Any:
    """Read JSON; raises ValueError or RecursionError as the package does."""
    if _is_quick():
        try:
            text = data.decode().strip(" \t\n\r")
            value, end = _quick[0][0](text, 0)
            if end == len(text):
                return value
        except (ValueError, StopIteration, RecursionError):
            pass
    import json

    return json.loads(data)


def _text(value: Any) -> str:
    kind = type(value)
    if kind is str:
        return _quick[0][1](value)
    if kind is dict:
        return "{" + ",".join([_pair(*pair) for pair in value.items()]) + "}"
    if kind is list or kind is tuple:
        return "[" + ",".join([_text(item) for item in value]) + "]"
    if kind is int:
        return str(value)
    if value is None:
        return "null"
    if kind is bool:
        return "true" if value else "false"
    raise TypeError("for the package")


def _pair(name: Any, value: Any) -> str:
    if type(name) is not str:
        raise TypeError("for the package")
    return _quick[0][1](name) + ":" + _text(value)
