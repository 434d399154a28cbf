"""Kernels that are attached: what each has loaded, was told, and waits for."""

from __future__ import annotations

from dataclasses import dataclass, field

from envwatch.core.events import Key

MAX_GIVEN = 16
"""How many diffs a session is remembered to have been given."""

MAX_PENDING = 1024
"""More exports at once than this are no kernel's."""


@dataclass(slots=True)
class Pending:
    """An export that has no answer yet; `since` in monotonic seconds."""

    key: Key
    since: float


@dataclass(slots=True)
class Session:
    """One connection.

    `greeted` after a good `hello`; `loaded` is what the kernel has loaded as far
    as it said; `can_pass` whether descriptors can be sent to it, `can_fence`
    whether it also takes fences, `fence` the number of the one it was given;
    `told` are the reasons of the notices since its last export;
    `given` maps keys to the serials of the diffs that it was given.
    """

    number: int
    since: float
    can_pass: bool = False
    can_fence: bool = False
    fence: int | None = None
    greeted: bool = False
    looking: bool = False
    closing: bool = False
    client: str = ""
    loaded: Key | None = None
    told: set[str] = field(default_factory=set[str])
    pending: dict[int, Pending] = field(default_factory=dict[int, Pending])
    given: dict[Key, int] = field(default_factory=dict[Key, int])

    def give(self, key: Key, serial: int) -> None:
        """Remember that it was given a diff."""
        self.given.pop(key, None)
        self.given[key] = serial
        if len(self.given) > MAX_GIVEN:
            del self.given[next(iter(self.given))]


@dataclass(slots=True)
class Sessions:
    """All sessions, and who has loaded what."""

    _sessions: dict[int, Session] = field(default_factory=dict[int, Session])
    _by_key: dict[Key, dict[int, Session]] = field(
        default_factory=dict[Key, dict[int, Session]]
    )
    _by_root: dict[str, int] = field(default_factory=dict[str, int])
    waiting: dict[int, Session] = field(default_factory=dict[int, Session])
    strangers: dict[int, Session] = field(default_factory=dict[int, Session])

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def attached(self) -> int:
        """How many have said hello."""
        return len(self._sessions) - len(self.strangers)

    def add(self, number: int, now: float, *, can_pass: bool = False) -> Session:
        """Take in a new connection."""
        session = self._sessions[number] = Session(number, now, can_pass)
        self.strangers[number] = session
        return session

    def get(self, number: int) -> Session | None:
        """Give a session, or None when it has gone."""
        return self._sessions.get(number)

    def remove(self, number: int) -> Session | None:
        """Forget a session; gives it a last time."""
        session = self._sessions.pop(number, None)
        self.strangers.pop(number, None)
        self.waiting.pop(number, None)
        return session

    def load(self, session: Session, key: Key | None) -> Key | None:
        """Note what a session has loaded; gives a key that nobody has any more."""
        old = session.loaded
        if old == key:
            return None
        session.loaded = key
        if key is not None:
            self._by_key.setdefault(key, {})[session.number] = session
            self._by_root[key.root] = self._by_root.get(key.root, 0) + 1
        if old is None:
            return None
        self._by_root[old.root] -= 1
        if not self._by_root[old.root]:
            del self._by_root[old.root]
        users = self._by_key[old]
        del users[session.number]
        if users:
            return None
        del self._by_key[old]
        return old

    def having(self, key: Key) -> list[Session]:
        """Give the sessions that have a key loaded."""
        return list(self._by_key.get(key, {}).values())

    def having_root(self, root: str) -> list[Session]:
        """Give the sessions that have a root file loaded, over whatever base."""
        if root not in self._by_root:
            return []
        return [
            session
            for key, users in self._by_key.items()
            if key.root == root
            for session in users.values()
        ]

    def is_loaded(self, key: Key) -> bool:
        """Tell whether any session has a key loaded."""
        return key in self._by_key

    def kernels(self, root: str) -> int:
        """Tell how many sessions have a root file loaded."""
        return self._by_root.get(root, 0)

    def fingerprints(self) -> set[str]:
        """Give the fingerprints that sessions use or wait for."""
        used = {key.fingerprint for key in self._by_key}
        for session in self.waiting.values():
            used |= {pending.key.fingerprint for pending in session.pending.values()}
        return used
