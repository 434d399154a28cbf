"""The environment that is kept, with what was loaded into it and the way back.

The one place that writes to the environment. What the environment itself says
(the four `DIRENV_*`) counts, as it does for direnv; the record only spares
decoding it, and remembers the way back when a host scrubbed it.
"""

from __future__ import annotations

import os
from _thread import RLock
from time import CLOCK_BOOTTIME, CLOCK_REALTIME, clock_gettime_ns

from kernel_client import (
    environment as env,
    notice,
    outcome as outcomes,
    record as records,
    roots,
    snapshot,
)
from kernel_client.answers import Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, MutableMapping
    from typing import Any

    from kernel_client.evaluation import Evaluated
    from kernel_client.record import Record

    Names = tuple[tuple[str, ...], tuple[str, ...]]

HELD = frozenset(
    {
        outcomes.LOADED,
        outcomes.BLOCKED,
        outcomes.DENIED,
        outcomes.FAILED,
        outcomes.DEGRADED,
        outcomes.TIMEOUT,
    }
)
"""Outcomes that stay until something changes; the others are asked for again."""

_FOUR = frozenset(env.THE_FOUR)
FILES_CLOCK = 5
"""CLOCK_REALTIME_COARSE, which Linux takes a file's times from."""


class Loaded:
    """An environment and the record of what is loaded into it."""

    def __init__(
        self, environ: MutableMapping[str, str], hear: Callable[[str], None]
    ) -> None:
        self.environ = environ
        self.record: Record | None = None
        self._hear = hear
        # os.environ keeps bytes objects in here: reading them decodes nothing,
        # and an untouched one compares by identity. Any other mapping is read
        # through its own methods.
        data = getattr(environ, "_data", None)
        if environ is os.environ and isinstance(data, dict):
            self._raw: dict[bytes, bytes] | None = data
            self.get_diff: Callable[[], Any] = _getter(data, b"DIRENV_DIFF")
        else:
            self._raw = None
            self.get_diff = _getter(environ, "DIRENV_DIFF")
        # A process got its environment when it was started, and a mapping is new.
        self._since = None if environ is os.environ else clock_gettime_ns(FILES_CLOCK)
        self._inherited: records.Inherited | None = None
        self._request: Request | None = None
        self._request_raw: dict[bytes, bytes] | None = None

    # ------------------------------------------------------------ reading

    @property
    def way_back(self) -> env.PutBack:
        """What takes back everything that is loaded, inherited or by us."""
        if self.record is not None:
            return self.record.put_back
        return {} if self._inherited is None else self._inherited.put_back

    def of_base(self, names: Iterable[str]) -> env.Environment:
        """Give these variables of the base, those that it has."""
        back = self.way_back
        found = {}
        for name in names:
            value = back[name] if name in back else self.environ.get(name)
            if value is not None:
                found[name] = value
        return found

    def base(self) -> env.Environment:
        """Give the environment with what was loaded taken back."""
        return env.take_back(self.environ, self.way_back)

    def request(self, direnv: str, root: str, withheld: tuple[str, ...]) -> Request:
        """Give the question for a root file; kept while the environment is untouched."""
        known = [entry[0] for entry in (self.record and self.record.snapshot) or ()]
        kept = self._request
        if (
            kept is not None
            and kept.root == root
            and kept.direnv == direnv
            and self._raw is not None
            and self._raw == self._request_raw
        ):
            kept.known = tuple(known)
            return kept
        self._request = Request(direnv, root, self.base(), withheld, known)
        self._request_raw = None
        return self._request

    def synchronise(self) -> None:
        """Hold the record against what the environment itself says."""
        current = self.environ.get("DIRENV_DIFF")
        record = self.record
        if record is not None and current != record.diff:
            # Somebody rewrote the four: take back what is left of our load, but
            # for what a DIRENV_DIFF that can be read accounts for itself.
            found = records.inherited(self.environ)
            covered = {} if found is None else found.left
            back = record.surviving(self.environ)
            self.record = None
            self._change(*_apart({n: v for n, v in back.items() if n not in covered}))
        self._inherited = None
        if self.record is None:
            self._inherited = records.inherited(self.environ)
            if self._inherited is None and record is not None:
                self._change({}, env.THE_FOUR)

    @property
    def has_values(self) -> bool:
        """Tell whether what is loaded has changed more than the four."""
        return any(name not in _FOUR for name in self.way_back)

    def is_inherited(self, root: str) -> bool:
        """Tell whether the four name this root file, loaded by somebody else."""
        return self._inherited is not None and self._inherited.file == root

    def adopt(self, root: str) -> bool:
        """Take an inherited environment for our own when direnv would keep it.

        And only where nothing has changed since this environment was handed over:
        direnv would not see it within the same second, nor in its own settings.
        """
        inherited = self._inherited
        if inherited is None or inherited.file != root or inherited.watches is None:
            return False
        if all(path != root for path, _, _ in inherited.watches):
            return False
        entries = snapshot.take(path for path, _, _ in inherited.watches)
        looks = {entry[0]: entry for entry in entries}
        for path, seconds, exists in inherited.watches:
            _, seen, link, _ = looks[path]
            times = [look[0] // 1_000_000_000 for look in (seen, link) if look]
            if exists != bool(times) or (times and max(times) != seconds):
                return False
        config = snapshot.take(roots.config_paths(self.base()))
        since = _started_ns() if self._since is None else self._since
        for _, seen, link, _ in (*entries, *config):
            if any(look[1] >= since for look in (seen, link) if look):
                return False
        self.record = records.Record(
            root,
            outcomes.LOADED,
            put_back={**inherited.put_back, **dict.fromkeys(env.THE_FOUR)},
            left={**inherited.left, "DIRENV_DIFF": self.environ["DIRENV_DIFF"]},
            snapshot=snapshot.with_digests((*entries, *config)),
        )
        self._inherited = None
        return True

    def still(self, root: str) -> bool:
        """Tell whether this root file is what is held, and nothing of it changed."""
        record = self.record
        if record is None or record.root != root or record.snapshot is None:
            return False
        same = snapshot.compare(record.snapshot)
        if same is None:
            return False
        record.snapshot = same
        return True

    # ------------------------------------------------------------ writing

    def take(self, request: Request, answer: Evaluated) -> Names:
        """Put an answer in the place of what was loaded before.

        Gives the names that were set and removed, as `Result` has them.
        """
        held = answer.outcome in HELD
        final = {**request.base, **(answer.set if held else {})}
        for name in answer.unset if held else ():
            final.pop(name, None)
        record = None
        if held:
            record = records.Record(
                request.root,
                answer.outcome,
                put_back=env.put_back_of(request.base, answer.set, answer.unset),
                left=answer.set,
                snapshot=answer.snapshot,
            )
        names = (*self.way_back, *answer.set, *answer.unset)
        changed = self._become(record, final, names)
        self._request_raw = None if self._raw is None else dict(self._raw)
        return changed

    def unload(self) -> Names:
        """Take back what is loaded; nothing stays that was not just confirmed."""
        back = self.way_back
        if self.record is None and not back:
            return (), ()
        # Only the touched names count: the rest need not even be decoded.
        final = {name: value for name, value in back.items() if value is not None}
        return self._become(None, final, back)

    def _become(
        self, record: Record | None, final: Mapping[str, str], names: Iterable[str]
    ) -> Names:
        """Make the environment `final` in these names and the four; keep `record`."""
        lost = (
            [] if self.record is None else self.record.lost_edits(self.environ, final)
        )
        to_set, removed = records.changes(self.environ, final, (*names, *env.THE_FOUR))
        with _writing:
            old = self.way_back
            try:
                self._change(to_set, removed)
            except BaseException:
                # Half an environment is worse than a late interrupt: go on. What
                # still cannot be written must be taken back with the rest.
                if record is not None:
                    record.put_back = {**old, **record.put_back}
                self._change(to_set, removed)
                raise
            finally:
                self.record, self._inherited = record, None
        for name in lost:
            self._hear(notice.lost_edit(name))
        return (
            tuple(sorted(set(to_set) - _FOUR)),
            tuple(sorted(set(removed) - _FOUR)),
        )

    def _change(self, to_set: Mapping[str, str], removed: Iterable[str]) -> None:
        failed: Exception | None = None
        with _writing:
            for name in removed:
                try:
                    self.environ.pop(name, None)
                except Exception as error:  # noqa: BLE001 - the rest must still go
                    failed = error
            for name, value in to_set.items():
                try:
                    self.environ[name] = value
                except Exception as error:  # noqa: BLE001 - the rest must still come
                    failed = error
        if failed is not None:
            raise failed


def _started_ns() -> int:
    """Tell when this process was started, in time since the epoch; 0: not known.

    Rather too early, by up to two of the ticks (10 ms) that Linux counts it in.
    Where it is not known, nothing is adopted.
    """
    try:
        with open("/proc/self/stat", "rb") as file:
            ticks = int(file.read().rpartition(b")")[2].split()[19])
        ticks_per_s = os.sysconf("SC_CLK_TCK")
        booted = clock_gettime_ns(CLOCK_REALTIME) - clock_gettime_ns(CLOCK_BOOTTIME)
        return booted + (ticks - 1) * 1_000_000_000 // ticks_per_s
    except (OSError, ValueError, IndexError):
        return 0


def _apart(back: env.PutBack) -> tuple[dict[str, str], list[str]]:
    """Give (set, removed) of a way back."""
    to_set = {name: value for name, value in back.items() if value is not None}
    return to_set, [name for name, value in back.items() if value is None]


def _getter(mapping: Mapping[Any, Any], name: Any) -> Callable[[], Any]:
    from functools import partial

    return partial(mapping.get, name)


_writing = RLock()


def _renew_lock() -> None:
    global _writing  # noqa: PLW0603 - the parent's lock means nothing in a child
    _writing = RLock()


# No child is forked off in the middle of a change: it would keep half of it.
os.register_at_fork(
    before=lambda: _writing.acquire(),  # noqa: PLW0108 - the lock of that moment
    after_in_parent=lambda: _writing.release(),  # noqa: PLW0108
    after_in_child=_renew_lock,
)
