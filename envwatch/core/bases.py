"""Base environments by fingerprint, as long as somebody uses them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kernel_client import environment as env
from kernel_client.errors import ProtocolError

Environment = dict[str, str]


@dataclass(slots=True)
class Bases:
    """Environments that evaluations are made over; sizes in bytes, roughly."""

    size: int = 0
    _bases: dict[str, Environment] = field(
        default_factory=dict[str, Environment], repr=False
    )

    def __contains__(self, fingerprint: str) -> bool:
        return fingerprint in self._bases

    def get(self, fingerprint: str) -> Environment | None:
        """Give an environment, or None when it is not known."""
        return self._bases.get(fingerprint)

    def add(self, fingerprint: str, environment: Mapping[Any, Any]) -> None:
        """Take in an environment that a kernel sent.

        Raises:
            ProtocolError: it is no environment, or not the one of the fingerprint.
        """
        if fingerprint in self._bases:
            return
        base: Environment = {}
        for name, value in environment.items():
            if not isinstance(name, str) or not isinstance(value, str):
                raise ProtocolError("shape", "export: environment is not all strings")
            base[name] = value
        try:
            found = env.fingerprint(base)
        except UnicodeEncodeError:
            raise ProtocolError("shape", "export: environment is not UTF-8") from None
        if found != fingerprint:
            raise ProtocolError(
                "fingerprint", "the environment is not the one of its fingerprint"
            )
        self._bases[fingerprint] = base
        self.size += self.size_of(fingerprint)

    def size_of(self, fingerprint: str) -> int:
        """Give about how many bytes an environment takes."""
        base = self._bases.get(fingerprint)
        return 0 if base is None else env.size_bytes(base)

    def keep_only(self, fingerprints: set[str]) -> None:
        """Forget all environments but these."""
        for fingerprint in self._bases.keys() - fingerprints:
            self.size -= self.size_of(fingerprint)
            del self._bases[fingerprint]
