"""What this kernel loaded, and the way back. Pure.

A record stands for as long as the environment still holds the very DIRENV_DIFF
that was put there with it.
"""

from __future__ import annotations

from kernel_client import environment as env, gzenv

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kernel_client.snapshot import Snapshot


class Record:
    """One loaded root file.

    `put_back` maps each touched name to the value it had (None: it had none),
    `left` maps each set name to what was set, `snapshot` is what to compare (None:
    ask at every run), `diff` the value of DIRENV_DIFF or None.
    """

    __slots__ = ("diff", "left", "outcome", "put_back", "root", "snapshot")

    def __init__(
        self,
        root: str,
        outcome: str,
        *,
        put_back: env.PutBack,
        left: Mapping[str, str],
        snapshot: Snapshot | None,
    ) -> None:
        self.root = root
        self.outcome = outcome
        self.put_back = put_back
        self.left = dict(left)
        self.snapshot = snapshot
        self.diff = left.get("DIRENV_DIFF")

    def surviving(self, environ: Mapping[str, str]) -> env.PutBack:
        """Give the way back for an environment that somebody else rewrote.

        Only names that still hold exactly what was loaded are put back: nothing
        that a host scrubbed comes back, and nothing that was loaded stays.
        """
        return {
            name: value
            for name, value in self.put_back.items()
            if name in self.left and environ.get(name) == self.left[name]
        }

    def lost_edits(
        self, environ: Mapping[str, str], final: Mapping[str, str]
    ) -> list[str]:
        """Name the variables whose change since the load `final` throws away."""
        return sorted(
            name
            for name in self.put_back
            if name not in env.THE_FOUR
            and environ.get(name) != self.left.get(name)
            and environ.get(name) is not None
            and environ.get(name) != final.get(name)
        )


class Inherited:
    """The four as a kernel found them at its start.

    `file` is the root file that they name (or None), `put_back` and `left` the two sides of
    DIRENV_DIFF, `watches` what direnv compares (None: cannot be read).
    """

    __slots__ = ("file", "left", "put_back", "watches")

    def __init__(
        self,
        file: str | None,
        put_back: env.PutBack,
        left: Mapping[str, str],
        watches: list[gzenv.Watch] | None,
    ) -> None:
        self.file = file
        self.put_back = put_back
        self.left = left
        self.watches = watches


def inherited(environ: Mapping[str, str]) -> Inherited | None:
    """Read the four of an environment; None when they are missing or a lie.

    They are a lie when a variable that DIRENV_DIFF says it set is not there: a
    host scrubbed it, and its old value must never come back. Then only names that
    still hold exactly what was loaded can be put back, and no file is named.
    """
    text = environ.get("DIRENV_DIFF")
    if not text:
        return None
    try:
        put_back, left = gzenv.diff(text)
    except ValueError:
        return None
    if any(name not in environ for name in left if name not in env.THE_FOUR):
        still = {
            name: value
            for name, value in put_back.items()
            if name in left and environ.get(name) == left[name]
        }
        return Inherited(None, still, left, None)
    try:
        watches = gzenv.watches(environ.get("DIRENV_WATCHES", ""))
    except ValueError:
        watches = None
    return Inherited(environ.get("DIRENV_FILE"), put_back, left, watches)


def changes(
    environ: Mapping[str, str], final: Mapping[str, str], names: Iterable[str]
) -> tuple[dict[str, str], list[str]]:
    """Give what turns `environ` into `final` in these names: (set, removed)."""
    to_set: dict[str, str] = {}
    removed: list[str] = []
    for name in dict.fromkeys(names):
        value = final.get(name)
        if value == environ.get(name):
            continue
        if value is None:
            removed.append(name)
        else:
            to_set[name] = value
    return to_set, removed
