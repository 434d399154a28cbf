"""From a `status` frame to lines and rows, without a terminal."""

from __future__ import annotations

import os
from typing import Any

import pytest

from envwatch.views import overview
from envwatch.views.overview import Pace

HOME = "/home/me"


def workspace(root: str = f"{HOME}/w/.envrc", **changes: Any) -> dict[str, Any]:
    """Give what a sidecar tells of a workspace."""
    return {
        "root": root,
        "kernels": 3,
        "fences": 1,
        "state": "idle",
        "kept": 1,
        "answered": {"stats": 98, "record": 0, "sidecar": 2, "direnv": 0, "none": 0},
        "last": {
            "outcome": "loaded",
            "seconds": 0.041,
            "ago_s": 12.0,
            "served": 1,
            "shared_by": 3,
        },
        **changes,
    }


def status(*workspaces: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Give what a sidecar tells."""
    return {
        "version": "0.1.0",
        "protocol": 1,
        "pid": 4711,
        "uptime_s": 720.0,
        "direnv": {"path": "/usr/bin/direnv", "version": "2.37.1"},
        "kernels": 4,
        "watching": {"state": "ok", "folders": 5, "reason": None, "remedy": None},
        "fences": {
            "mode": "auto",
            "armed": 1,
            "limit": 64,
            "watches": 20,
            "reason": None,
        },
        "workspaces": list(workspaces),
        "evaluations": 1,
        "kept_bytes": 2048,
        "answered": {"stats": 0, "record": 0, "sidecar": 0, "direnv": 0, "none": 0},
        "frames": {"received": 10, "sent": 10},
        **changes,
    }


def table(*workspaces: dict[str, Any], width: int | None = 80) -> list[str]:
    """Give the table of these workspaces."""
    return list(overview.table(status(*workspaces), HOME, width))


# ------------------------------------------------------------------ the table


def test_a_table() -> None:
    """A line for each workspace, in columns; what is not known is a dash."""
    assert table(
        workspace(),
        workspace(f"{HOME}/.env", state="running", kernels=12, last=None),
        workspace("/srv/x/.envrc", state="dirty"),
    ) == [
        "WORKSPACE  STATE    KERNELS  OUTCOME  ENDED  TOOK   SHARED",
        "~/w        idle     3        loaded   12 s   41 ms  3",
        "~/.env     running  12       -        -      -      -",
        "/srv/x     dirty    3        loaded   12 s   41 ms  3",
    ]


def test_no_workspace_is_a_title() -> None:
    """A script finds the columns all the same."""
    assert len(table()) == 1


def test_it_fits_80_columns() -> None:
    """The path is cut, at its beginning; the longest words of the rest are whole."""
    last = {"outcome": "cancelled", "seconds": 0.9994, "ago_s": 7199, "shared_by": 300}
    lines = table(
        workspace("/srv/" + "long/" * 20 + "end/.envrc", state="running", last=last)
    )
    assert max(map(overview.columns, lines)) <= 80
    assert lines[1].startswith("…")
    assert "long/end  running  3        cancelled  120 min  999 ms  300" in lines[1]


def test_a_script_gets_whole_paths() -> None:
    """Nothing is cut where no terminal bounds it."""
    path = "/srv/" + "long/" * 20 + "end"
    assert table(workspace(f"{path}/.envrc"), width=None)[1].startswith(f"{path}  idle")


def test_letters_of_two_columns() -> None:
    """Columns stand below each other, whatever the folders are called."""
    title, first, second = table(workspace("/srv/工作/.envrc"), workspace("/a/.envrc"))
    at = title.index("STATE")
    assert overview.columns(first[: first.index("idle")]) == at
    assert second.index("idle") == at
    assert overview.shortened("/srv/工作区", 6) == "…作区"
    assert overview.shortened("/srv/工作区", 5) == "…作区"
    assert overview.shortened("工", 1) == "…"


@pytest.mark.parametrize(
    ("root", "name"),
    [
        ("/home/me/w/.envrc", "~/w"),
        ("/home/me/.envrc", "~"),
        ("/home/meow/.envrc", "/home/meow"),
        ("/home/me/w/.env", "~/w/.env"),
        ("/.envrc", "/"),
    ],
)
def test_names(root: str, name: str) -> None:
    """A workspace is called by its folder; `.env` is said, as it is the exception."""
    assert overview.named(root, HOME) == name


@pytest.mark.parametrize("home", ["", "/"])
def test_a_home_that_is_none(home: str) -> None:
    """Not everything is below home then."""
    assert overview.named("/w/.envrc", home) == "/w"


def test_what_a_path_has_in_it_stays_a_path() -> None:
    """No escape, no newline, no byte that is no UTF-8, nothing that turns lines round."""
    root = os.fsdecode(b"/w\x1b[2J\n\xff\xe2\x80\xae/.envrc")
    told = status(workspace(root, state="a\nb"))
    lines = [
        *overview.table(told, HOME, 80),
        *overview.details(told, root, HOME),
    ]
    assert all(line.isprintable() for line in lines)
    assert lines[1].startswith("/w\\x1b[2J\\n\\udcff\\u202e  a\\nb")


# ------------------------------------------------------------------ the rest


def test_heading() -> None:
    """What is true of the whole sidecar; the one who asks is no kernel."""
    assert list(overview.heading(status(), (2.04, 0.0))) == [
        "sidecar     0.1.0, pid 4711, up for 12 min",
        "direnv      2.37.1, /usr/bin/direnv",
        "kernels     3 attached, 1 evaluation so far, 2 KiB of answers kept",
        "refreshes   none told so far; kernels tell with what they send anyway",
        "frames      2.0 in and 0.0 out per second",
        "watching    ok, 5 folders; fences 1 of 64",
    ]


def test_heading_of_an_old_sidecar() -> None:
    """What it does not know yet is said, and nothing breaks."""
    old = status(workspace())
    del old["answered"], old["frames"], old["workspaces"][0]["answered"]
    del old["workspaces"][0]["last"]["shared_by"]
    lines = list(overview.heading(old, None))
    assert lines[3].endswith("this sidecar does not count them")
    assert lines[4].endswith("being counted")
    assert list(overview.details(old, f"{HOME}/w/.envrc", HOME))[3].endswith(
        "1 waited, shared by 1 kernel"
    )
    assert list(overview.heading({}, None))


def test_details() -> None:
    """Everything of one workspace."""
    told = status(workspace(), workspace("/other/.envrc", last=None, state="dirty"))
    assert list(overview.details(told, f"{HOME}/w/.envrc", HOME)) == [
        "root file   ~/w/.envrc",
        "state       idle: nothing runs",
        "kernels     3 with it loaded, 1 fence, 1 answer kept",
        "evaluated   12 s ago in 41 ms: loaded; 1 waited, shared by 3 kernels",
        "refreshes   stats 98 (98 %), record 0, sidecar 2, direnv 0, none 0",
    ]
    allowed = status(workspace(root_state="allowed", state="running"))
    assert list(overview.details(allowed, f"{HOME}/w/.envrc", HOME))[1] == (
        "state       allowed; running: an evaluation is under way"
    )
    other = list(overview.details(told, "/other/.envrc", HOME))
    assert other[1] == (
        "state       dirty: something changed, one more evaluation follows"
    )
    assert other[3] == "evaluated   not yet"
    assert list(overview.details(told, "/gone/.envrc", HOME)) == []


def test_blocked_is_told_by_the_row() -> None:
    """So that a view can ask; what was denied never asks."""
    last = workspace()["last"]
    rows = overview.rows(
        status(
            *(
                workspace(last={**last, "outcome": outcome})
                for outcome in ("blocked", "denied", "loaded")
            ),
            workspace(last=None),
        )
    )
    assert [row.is_blocked for row in rows] == [True, False, False, False]


def test_problems() -> None:
    """Each is one line that says what helps."""
    assert list(overview.problems(status())) == []
    watching = {"state": "degraded", "folders": 1, "reason": "why\n", "remedy": "this"}
    lines = list(overview.problems(status(direnv=None, watching=watching)))
    assert lines[0].startswith("no direnv: ")
    assert "install direnv" in lines[0]
    assert lines[1] == "watching is degraded: why\\n; this"


def test_fences() -> None:
    """Off, or how many there are, and why not more."""
    fences = status()["fences"]
    off = list(overview.heading(status(fences={**fences, "mode": "off"}), None))
    assert off[-1] == "watching    ok, 5 folders; fences off"
    few = list(overview.heading(status(fences={**fences, "reason": "full"}), None))
    assert few[-1] == "watching    ok, 5 folders; fences 1 of 64, no more: full"


@pytest.mark.parametrize(
    ("count", "said"),
    [(0, "0 bytes"), (1023, "0.999 KiB"), (5 * 2**20, "5 MiB"), (2**31, "2 GiB")],
)
def test_sizes(count: int, said: str) -> None:
    """In a unit of its own."""
    line = list(overview.heading(status(kept_bytes=count), None))[2]
    assert line.endswith(f", {said} of answers kept")


# ------------------------------------------------------------------ frames


def frames(received: int, sent: int, **changes: Any) -> dict[str, Any]:
    """Give a status with these totals."""
    return status(frames={"received": received, "sent": sent}, **changes)


def test_the_pace_is_of_two_answers() -> None:
    """Without the question and the answer that tell it."""
    pace = Pace()
    assert pace.of(frames(10, 9), 1.0) is None
    assert pace.of(frames(11, 10), 2.0) == (0.0, 0.0)
    assert pace.of(frames(22, 16), 4.0) == (5.0, 2.5)


def test_another_sidecar_begins_anew() -> None:
    """Totals of two processes have nothing to do with each other."""
    pace = Pace()
    pace.of(frames(1000, 1000), 1.0)
    assert pace.of(frames(5, 5, pid=2), 2.0) is None
    assert pace.of(frames(7, 6, pid=2), 3.0) == (1.0, 0.0)


def test_a_sidecar_that_does_not_count() -> None:
    """There is no pace, and no error."""
    old = status()
    del old["frames"]
    pace = Pace()
    pace.of(frames(1, 1), 1.0)
    assert pace.of(old, 2.0) is None
    assert pace.of(frames(9, 9), 3.0) is None
    assert pace.of(frames(9, 9), 3.0) is None
