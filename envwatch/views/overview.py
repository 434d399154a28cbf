"""From a `status` frame to what a person reads: lines, rows and columns. Pure.

Everything that tells something is a word or a number. What comes from a path or
from the sidecar is written so that it stays on its line and forges nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from unicodedata import east_asian_width

from envwatch.text import duration, plain
from kernel_client import messages, outcome

Status = Mapping[str, Any]

TITLES = ("WORKSPACE", "STATE", "KERNELS", "OUTCOME", "ENDED", "TOOK", "SHARED")
"""The columns. ENDED: how long ago; SHARED: by how many kernels."""

GAP = "  "

_NEVER = "-"
_LABEL = 12
_MIN_PATH = 12
_KIB = 1024
_THREE_DIGITS = 999.5
_QUESTIONABLE = (outcome.BLOCKED,)
_STATES = {
    "idle": "idle: nothing runs",
    "running": "running: an evaluation is under way",
    "dirty": "dirty: something changed, one more evaluation follows",
}


@dataclass(frozen=True)
class Row:
    """One workspace: its root file as it is, and its cells but for the first."""

    root: str
    cells: tuple[str, ...]
    is_blocked: bool

    def path(self, home: str, width: int | None) -> str:
        """Give the first cell, in at most `width` columns: the end says more."""
        name = named(self.root, home)
        return name if width is None else shortened(name, width)


# ------------------------------------------------------------------ the table


def rows(status: Status) -> list[Row]:
    """Give a row for each workspace, in the order of their paths."""
    return [_row(each) for each in _workspaces(status)]


def _row(workspace: Status) -> Row:
    last = workspace.get("last")
    cells = [plain(str(workspace.get("state"))), str(workspace.get("kernels"))]
    if last is None:
        cells += [_NEVER] * 4
    else:
        cells += [
            plain(str(last.get("outcome"))),
            duration(_real(last, "ago_s")),
            duration(_real(last, "seconds")),
            str(last.get("shared_by", last.get("served"))),
        ]
    is_blocked = last is not None and last.get("outcome") in _QUESTIONABLE
    return Row(str(workspace["root"]), tuple(cells), is_blocked)


def table(status: Status, home: str, width: int | None) -> Iterator[str]:
    """Write the table, a line for each workspace; None: as wide as it has to be."""
    found = rows(status)
    lines = [TITLES[1:], *(row.cells for row in found)]
    widths = [max(map(columns, column)) for column in zip(*lines, strict=True)]
    left = None
    if width is not None:
        left = max(_MIN_PATH, width - sum(widths) - len(widths) * len(GAP))
    paths = [TITLES[0], *(row.path(home, left) for row in found)]
    widest = max(map(columns, paths))
    for path, cells in zip(paths, lines, strict=True):
        line = [padded(path, widest)]
        line += [padded(cell, to) for cell, to in zip(cells, widths, strict=True)]
        yield GAP.join(line).rstrip()


# ------------------------------------------------------------------ all of it


def heading(status: Status, frames: tuple[float, float] | None) -> Iterator[str]:
    """Write what is true of the whole sidecar; `frames`: in and out, per second.

    The one who asks is a kernel to the sidecar, and is left out here.
    """
    uptime = duration(_real(status, "uptime_s"))
    yield _line(
        "sidecar",
        f"{status.get('version')}, pid {status.get('pid')}, up for {uptime}",
    )
    yield _line("direnv", _direnv(status.get("direnv")))
    kernels = max(0, int(_real(status, "kernels")) - 1)
    yield _line(
        "kernels",
        f"{kernels} attached, {_many(status.get('evaluations'), 'evaluation')}"
        f" so far, {_size(_real(status, 'kept_bytes'))} of answers kept",
    )
    yield _line("refreshes", answered(status.get("answered")))
    if frames is None:
        yield _line("frames", "being counted")
    else:
        yield _line("frames", "{:.1f} in and {:.1f} out per second".format(*frames))
    yield _line("watching", _watching(status))


def answered(counts: Any) -> str:
    """Say how refreshes were answered, as far as kernels have told."""
    if not isinstance(counts, Mapping):
        return "this sidecar does not count them"
    known = {name: int(_real(counts, name)) for name in messages.ANSWERS}
    whole = sum(known.values())
    if not whole:
        return "none told so far; kernels tell with what they send anyway"
    share = known["stats"] * 100 / whole
    others = ", ".join(f"{name} {known[name]}" for name in messages.ANSWERS[1:])
    return f"stats {known['stats']} ({share:.4g} %), {others}"


def details(status: Status, root: str, home: str) -> Iterator[str]:
    """Write what is known of one workspace; nothing when it has gone."""
    for each in _workspaces(status):
        if each["root"] == root:
            yield from _details(each, home)


def _details(workspace: Status, home: str) -> Iterator[str]:
    yield _line("root file", plain(_from_home(str(workspace["root"]), home)))
    state = str(workspace.get("state"))
    said = workspace.get("root_state")
    by_direnv = "" if said is None else f"{plain(str(said))}; "
    yield _line("state", by_direnv + _STATES.get(state, plain(state)))
    fences = int(_real(workspace, "fences"))
    yield _line(
        "kernels",
        f"{workspace.get('kernels')} with it loaded,"
        f" {_many(fences, 'fence')}, {_many(workspace.get('kept'), 'answer')} kept",
    )
    last = workspace.get("last")
    if last is None:
        yield _line("evaluated", "not yet")
    else:
        shared = last.get("shared_by", last.get("served"))
        yield _line(
            "evaluated",
            f"{duration(_real(last, 'ago_s'))} ago in"
            f" {duration(_real(last, 'seconds'))}: {plain(str(last.get('outcome')))};"
            f" {last.get('served')} waited, shared by {_many(shared, 'kernel')}",
        )
    yield _line("refreshes", answered(workspace.get("answered")))


def problems(status: Status) -> Iterator[str]:
    """Write what a person may want to mend, with what helps."""
    if status.get("direnv") is None:
        yield (
            "no direnv: this sidecar evaluates nothing, and kernels without one load"
            " nothing; install direnv, then `envwatch stop`"
        )
    watching = status.get("watching") or {}
    if watching.get("state") == "degraded":
        why, remedy = watching.get("reason"), watching.get("remedy")
        yield plain(f"watching is degraded: {why}" + (f"; {remedy}" if remedy else ""))


def _direnv(direnv: Any) -> str:
    if not isinstance(direnv, Mapping):
        return "none"
    return plain(f"{direnv.get('version')}, {direnv.get('path')}")


def _watching(status: Status) -> str:
    watching, fences = status.get("watching") or {}, status.get("fences") or {}
    text = f"{watching.get('state')}, {_many(watching.get('folders'), 'folder')}"
    if fences.get("mode") == "off":
        return plain(f"{text}; fences off")
    text += f"; fences {fences.get('armed')} of {fences.get('limit')}"
    why = fences.get("reason")
    return plain(text if why is None else f"{text}, no more: {why}")


# ------------------------------------------------------------------ frames


@dataclass
class Pace:
    """How many frames come and go per second, but for those of the one who asks.

    Each answer tells the totals; two of one sidecar give a pace.
    """

    _before: tuple[int, float, int, int] | None = None

    def of(self, status: Status, now: float) -> tuple[float, float] | None:
        """Take in an answer that came at a time; None: not known yet."""
        frames = status.get("frames")
        if not isinstance(frames, Mapping):
            self._before = None
            return None
        here = (
            int(_real(status, "pid")),
            now,
            int(_real(frames, "received")),
            int(_real(frames, "sent")),
        )
        before, self._before = self._before, here
        if before is None or before[0] != here[0] or now <= before[1]:
            return None
        spent = now - before[1]
        # One frame each way is this question and the answer to the one before.
        received = max(0, here[2] - before[2] - 1)
        sent = max(0, here[3] - before[3] - 1)
        return received / spent, sent / spent


# ------------------------------------------------------------------ words


def named(root: str, home: str) -> str:
    """Name a workspace: its folder, or the file where that is no `.envrc`."""
    folder, _, name = root.rpartition("/")
    path = (folder or "/") if name == ".envrc" else root
    return plain(_from_home(path, home))


def _from_home(path: str, home: str) -> str:
    if home not in ("", "/") and (path == home or path.startswith(home + "/")):
        return "~" + path[len(home) :]
    return path


def columns(text: str) -> int:
    """Tell how many columns of a terminal a text takes."""
    return sum(1 + (east_asian_width(letter) in "WF") for letter in text)


def shortened(text: str, width: int) -> str:
    """Give the end of a text in at most so many columns."""
    if columns(text) <= width:
        return text
    left = width - 1
    for start in range(len(text)):
        if columns(text[start:]) <= left:
            return "…" + text[start:]
    return "…"


def padded(text: str, width: int) -> str:
    """Give a text in exactly so many columns, or as many as it needs."""
    return text + " " * (width - columns(text))


def _line(name: str, text: str) -> str:
    return f"{name:<{_LABEL}}{text}"


def _many(count: Any, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _size(count: float) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if count < _THREE_DIGITS:
            return f"{count:.3g} {unit}"
        count /= _KIB
    return f"{count:.3g} GiB"


def _real(found: Status, name: str) -> float:
    """Give a number of the sidecar's; 0 for what is none."""
    value = found.get(name)
    return value if isinstance(value, (int, float)) else 0


def _workspaces(status: Status) -> Iterable[Status]:
    found: Sequence[Any] = status.get("workspaces") or ()
    return [
        each
        for each in found
        if isinstance(each, Mapping) and isinstance(each.get("root"), str)
    ]
