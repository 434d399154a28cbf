"""`envwatch status [DIR] [--json]`: the workspace of a folder, and the sidecar.

It works without a sidecar too. The exit code is the workspace's state:

    0    allowed             direnv would load the root file
    3    none                there is no root file above the folder
    10   blocked: new        never allowed
    11   blocked: changed    changed since it was allowed
    12   denied              the person has said no (direnv 2.33 and later know)
    13   unreadable          there is a root file, but it cannot be read
    69   -                   no direnv, or one that gives no answer

`--json` prints one object: `folder`, `root_file`, `state`, `notes`, `kernels` (that
have it loaded), `evaluation` (null, or the last one of this root file: `outcome`,
`seconds`, `ago_s`, `served`), `direnv` (`path`, `version`) and `sidecar` (`running`,
`socket`, `reason`, `version`, `pid`, `uptime_s`, `direnv`, `kernels`, `evaluations`,
`kept_bytes`, `watching`: null, or `state`, `folders`, `reason`, `remedy`). What is
not known is null. No value of a variable is ever printed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

import click

from envwatch import state
from envwatch.commands import arguments, sidecars
from envwatch.commands.programs import direnv_of
from envwatch.errors import EnvwatchError
from envwatch.state import State, Workspace
from envwatch.text import duration, plain
from kernel_client import direnv as program, messages
from kernel_client.settings import Settings
from kernel_client.sidecar import socket_path

EXIT_CODES = {
    State.ALLOWED: 0,
    State.NONE: 3,
    State.NEW: 10,
    State.CHANGED: 11,
    State.DENIED: 12,
    State.UNREADABLE: 13,
}
"""What `status` ends with for each state."""

SAID = {
    State.ALLOWED: "allowed",
    State.NONE: "none",
    State.NEW: "blocked: new, it was never allowed",
    State.CHANGED: "blocked: changed since it was allowed",
    State.DENIED: "denied",
    State.UNREADABLE: "unreadable",
}
"""How each state is said to a person."""

_OF_SIDECAR = ("version", "pid", "uptime_s", "direnv", "kernels", "evaluations")
_OF_EVALUATION = ("outcome", "seconds", "ago_s", "served")
_OF_FENCES = ("mode", "armed", "limit", "watches", "reason")
_OF_WATCHING = ("state", "folders", "reason", "remedy")


@click.command("status")
@arguments.folder
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(folder: str, *, as_json: bool) -> int:
    """Tell what state the workspace of DIR and the sidecar are in.

    The exit code tells the states apart: 0 allowed, 3 none, 10 blocked: new, 11
    blocked: changed, 12 denied, 13 unreadable.
    """
    base = state.base(os.environ)
    workspace, report = _looked(folder, base)
    if as_json:
        click.echo(json.dumps(report, indent=2))
    else:
        for line in lines(report, workspace.state):
            click.echo(line)
    return EXIT_CODES[workspace.state]


def told(folder: str, base: Mapping[str, str]) -> list[str]:
    """Give the lines of a folder (absolute, without links), `base` being a base.

    Raises:
        EnvwatchError: there is no direnv.
        DirenvError: it gives no answer.
    """
    workspace, report = _looked(folder, base)
    return list(lines(report, workspace.state))


def _looked(folder: str, base: Mapping[str, str]) -> tuple[Workspace, dict[str, Any]]:
    direnv = direnv_of(base)
    version = program.version(direnv, base, limit_s=Settings.of(base).check_s)
    workspace = state.look(direnv, folder, base, version=version)
    return workspace, reported(workspace, direnv, version, sidecar_of(base))


def sidecar_of(base: Mapping[str, str]) -> dict[str, Any]:
    """Ask the sidecar for its status; without one, `running` is false with a reason."""
    settings = Settings.of(base)
    found: dict[str, Any] = {
        "running": False,
        "socket": None if settings.fd is not None else socket_path(base),
        "reason": None,
    }
    try:
        with sidecars.reached(base) as link:
            found["version"], found["pid"] = link.version, link.pid
            answer = link.request(messages.status(link.number()))
            found.update(sidecars.status_of(answer), running=True)
            if isinstance(found.get("kernels"), int):
                # We are attached too, while we ask.
                found["kernels"] -= 1
    except EnvwatchError as error:
        found["reason"] = str(error)
    return found


def reported(
    workspace: Workspace, direnv: str, version: str, sidecar: Mapping[str, Any]
) -> dict[str, Any]:
    """Give what `--json` prints: always the same keys."""
    of_root: Mapping[str, Any] = next(
        (
            each
            for each in sidecar.get("workspaces") or ()
            if isinstance(each, dict) and each.get("root") == workspace.root
        ),
        {},
    )
    return {
        "folder": workspace.folder,
        "root_file": workspace.root,
        "state": str(workspace.state),
        "notes": list(workspace.notes),
        "kernels": of_root.get("kernels", 0 if sidecar["running"] else None),
        "evaluation": _picked(of_root.get("last"), _OF_EVALUATION),
        "direnv": {"path": direnv, "version": version},
        "sidecar": {
            "running": sidecar["running"],
            "socket": sidecar["socket"],
            "reason": sidecar["reason"],
            **{name: sidecar.get(name) for name in (*_OF_SIDECAR, "kept_bytes")},
            "watching": _picked(sidecar.get("watching"), _OF_WATCHING),
            "fences": _picked(sidecar.get("fences"), _OF_FENCES),
        },
    }


def lines(report: Mapping[str, Any], workspace: State) -> Iterator[str]:
    """Write a report for a person, a line for each thing."""
    yield _row("root file", plain(report["root_file"] or "none"))
    yield _row("state", SAID[workspace])
    for note in report["notes"]:
        yield _row("", plain(note))
    if report["root_file"] is not None:
        yield _row("evaluated", _evaluation(report["evaluation"]))
    direnv = report["direnv"]
    yield _row("direnv", f"{direnv['version']}, {plain(direnv['path'])}")
    sidecar = report["sidecar"]
    if not sidecar["running"]:
        yield _row("sidecar", plain(f"not running: {sidecar['reason']}"))
        return
    yield _row("sidecar", _sidecar(sidecar))
    other = (sidecar["direnv"] or {}).get("path")
    if other != direnv["path"]:
        mine = f"it runs {plain(str(other))}, so kernels here ask direnv themselves"
        yield _row("", mine)
    yield _row("kernels", _kernels(report["kernels"], sidecar["kernels"]))
    yield from _watching(sidecar["watching"])
    yield from _fences(sidecar["fences"])


def _row(name: str, text: str) -> str:
    return f"{name:<11}{text}"


def _evaluation(last: Mapping[str, Any] | None) -> str:
    if last is None:
        return "not by a sidecar that runs now"
    kernels = "kernel" if last["served"] == 1 else "kernels"
    return (
        f"{duration(last['ago_s'])} ago in {duration(last['seconds'])}:"
        f" {plain(str(last['outcome']))}, served to {last['served']} {kernels}"
    )


def _sidecar(sidecar: Mapping[str, Any]) -> str:
    uptime = duration(sidecar["uptime_s"] or 0)
    return (
        f"{plain(str(sidecar['version']))}, pid {sidecar['pid']}, up for {uptime},"
        f" {sidecar['evaluations']} evaluations"
    )


def _kernels(here: int | None, attached: int | None) -> str:
    return f"{here or 0} with this root file, {attached or 0} attached in all"


def _watching(watching: Mapping[str, Any] | None) -> Iterator[str]:
    if watching is None:
        return
    yield _row("watching", f"{watching['state']}, {watching['folders']} folders")
    for name in ("reason", "remedy"):
        if watching[name] is not None:
            yield _row("", plain(f"{name}: {watching[name]}"))


def _fences(fences: Mapping[str, Any] | None) -> Iterator[str]:
    if fences is None or fences["armed"] is None:
        return
    if fences["mode"] == "off":
        yield _row("fences", "off")
        return
    text = (
        f"{fences['armed']} of at most {fences['limit']}, {fences['watches']} watches"
    )
    why = fences["reason"]
    yield _row("fences", text if why is None else plain(f"{text}; no more: {why}"))


def _picked(found: Any, names: tuple[str, ...]) -> dict[str, Any] | None:
    if not isinstance(found, dict):
        return None
    return {name: found.get(name) for name in names}
