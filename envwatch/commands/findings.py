"""What `envwatch doctor` looks at: each check gives findings with their remedy."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from envwatch.commands import sidecars
from envwatch.commands.programs import INSTALL, direnv_of
from envwatch.commands.status import sidecar_of
from envwatch.config import Config
from envwatch.errors import EnvwatchError
from kernel_client import direnv as program, sidecar
from kernel_client.errors import DirenvError, SettingError
from kernel_client.settings import Settings

OLDEST_DIRENV = (2, 32)
"""The oldest direnv that the tests run against."""

MIN_WATCHES = 8192
MIN_INSTANCES = 128
"""Less than what Linux itself has by default is low."""

MAX_SOCKET_BYTES = 107
"""What a Unix socket's address has room for, its final NUL left out."""

NETWORK_TYPES = frozenset(
    {"9p", "afs", "ceph", "cifs", "glusterfs", "lustre", "ncpfs", "nfs", "nfs4"}
    | {"smb3", "smbfs", "virtiofs"}
)
"""Filesystems where others write without an event here; so are those of FUSE."""

_ESCAPED = re.compile(r"\\([0-7]{3})")


class Grade(StrEnum):
    """How much a finding matters."""

    OK = "ok"
    NOTE = "note"
    """It works, but something is slower or less than it could be."""
    FIX = "fix"
    """It does not work before this is mended."""


@dataclass(frozen=True)
class Finding:
    """One line about one thing, with what to do about it."""

    grade: Grade
    subject: str
    text: str
    remedy: str | None = None


def settings(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Check that every `ENVWATCH_*` variable can be read."""
    try:
        Settings.of(environ)
        Config.of(environ)
    except (SettingError, EnvwatchError) as error:
        yield Finding(Grade.FIX, "settings", str(error), "change or unset it")
    else:
        yield Finding(Grade.OK, "settings", "every ENVWATCH_* variable can be read")


def direnv(environ: Mapping[str, str], folder: str) -> Iterator[Finding]:
    """Check that there is a direnv, that it answers, and that it can work here."""
    try:
        path = direnv_of(environ)
    except SettingError:
        return
    except EnvwatchError as error:
        text, _, _ = str(error).partition("; ")
        yield Finding(Grade.FIX, "direnv", text, INSTALL)
        return
    limit_s = Settings.of(environ).check_s
    try:
        version = program.version(path, environ, limit_s=limit_s)
    except DirenvError as error:
        limit = f"it was given {limit_s:g} s; {INSTALL}"
        yield Finding(Grade.FIX, "direnv", str(error), limit)
        return
    text = f"{version}, {path}"
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if numbers and numbers < OLDEST_DIRENV:
        yield Finding(Grade.NOTE, "direnv", text, "older than what is tested: 2.32")
    else:
        yield Finding(Grade.OK, "direnv", text)
    try:
        program.status(path, folder, environ)
    except DirenvError as error:
        remedy = "`direnv status` says why: most often a direnv.toml, HOME or bash"
        yield Finding(Grade.FIX, "direnv", str(error), remedy)


def bash(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Check that direnv will find a bash."""
    name = environ.get("DIRENV_BASH") or "bash"
    found = program.find(environ, name)
    if found is None:
        remedy = "install bash, put it on PATH, or set DIRENV_BASH to its path"
        yield Finding(Grade.FIX, "bash", f"{name} cannot be run", remedy)
    else:
        yield Finding(Grade.OK, "bash", found)


def home(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Check that direnv finds its settings, its approvals and its cache."""
    names = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")
    missing = [name for name in names if not environ.get(name)]
    place = environ.get("HOME")
    if place is None and missing:
        text = f"HOME is not set, and neither is {' or '.join(missing)}"
        yield Finding(Grade.FIX, "home", text, "set HOME: direnv cannot work without")
    elif missing and place and not Path(place).is_dir():
        text = f"HOME is {place}, which is no folder"
        yield Finding(Grade.NOTE, "home", text, "direnv keeps its approvals there")
    else:
        moved = [name for name in names if environ.get(name)]
        said = f" with {', '.join(moved)}" if moved else ""
        yield Finding(Grade.OK, "home", f"{place or 'none'}{said}")


def inotify(limits: Path = Path("/proc/sys/fs/inotify")) -> Iterator[Finding]:
    """Check the limits that watching has, and that one more instance can be had."""
    for name, least in (
        ("max_user_watches", MIN_WATCHES),
        ("max_user_instances", MIN_INSTANCES),
    ):
        try:
            value = int((limits / name).read_text())
        except (OSError, ValueError):
            remedy = "changes are found by sweeps where there are no events"
            yield Finding(Grade.NOTE, "inotify", f"{name} cannot be read", remedy)
            continue
        grade = Grade.OK if value >= least else Grade.NOTE
        remedy = f"sudo sysctl fs.inotify.{name}={least * 4}"
        text = f"{name} is {value}"
        yield Finding(
            grade, "inotify", text, None if grade is Grade.OK else f"low: {remedy}"
        )
    reason = _no_instance()
    if reason is not None:
        remedy = f"sudo sysctl fs.inotify.max_user_instances={MIN_INSTANCES * 4}"
        text = f"no instance is left for watching ({reason})"
        yield Finding(Grade.NOTE, "inotify", text, remedy)


def socket(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Check that the socket's path can be used and that its folder is safe."""
    path = sidecar.socket_path(environ)
    if len(os.fsencode(path)) > MAX_SOCKET_BYTES:
        remedy = f"set ENVWATCH_SOCKET to one of at most {MAX_SOCKET_BYTES} bytes"
        yield Finding(Grade.FIX, "socket", f"{path} is too long a path", remedy)
        return
    folder = Path(path).parent
    try:
        problem = sidecar.folder_problem(str(folder))
    except OSError:
        yield from _unmade(folder, path)
        return
    if problem is not None:
        remedy = "mend the folder, or set ENVWATCH_SOCKET to one in another folder"
        yield Finding(Grade.FIX, "socket", problem, remedy)
    else:
        yield Finding(Grade.OK, "socket", path)


def running(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Check that the sidecar answers, or that a kernel can start one."""
    try:
        chosen = Settings.of(environ)
        found = sidecar_of(environ)
    except SettingError:
        return
    if not found["running"]:
        yield _absent(environ, chosen, found["reason"])
        return
    text = f"{found['version']}, pid {found['pid']}"
    mine = program.find(environ, chosen.direnv or "direnv")
    theirs = (found.get("direnv") or {}).get("path")
    if mine is not None and theirs != mine:
        remedy = "kernels here ask their own; `envwatch stop`, and the next one fits"
        yield Finding(
            Grade.NOTE, "sidecar", f"{text}, runs another direnv: {theirs}", remedy
        )
    else:
        yield Finding(Grade.OK, "sidecar", text)
    watching = found.get("watching") or {}
    if watching.get("state") == "degraded":
        text = f"watching is degraded: {watching.get('reason')}"
        yield Finding(Grade.NOTE, "sidecar", text, watching.get("remedy"))


def filesystem(
    folder: str, mounts: Path = Path("/proc/self/mountinfo")
) -> Iterator[Finding]:
    """Check whether events come from the filesystem of the working folder."""
    kind = filesystem_type(folder, mounts)
    if kind is None:
        remedy = "changes are found by sweeps where there are no events"
        yield Finding(Grade.NOTE, "filesystem", "its type cannot be read", remedy)
    elif kind in NETWORK_TYPES or kind.startswith("fuse"):
        remedy = "others' changes send no events; sweeps and every run find them"
        yield Finding(Grade.NOTE, "filesystem", f"{kind}, at {folder}", remedy)
    else:
        yield Finding(Grade.OK, "filesystem", f"{kind}, at {folder}")


def filesystem_type(folder: str, mounts: Path) -> str | None:
    """Give the type of the filesystem that a folder is in, or None."""
    try:
        lines = os.fsdecode(mounts.read_bytes()).split("\n")
    except OSError:
        return None
    kind, longest = None, -1
    for line in lines:
        before, mark, after = line.partition(" - ")
        fields = before.split(" ")
        if not mark or len(fields) < 5:  # noqa: PLR2004 - proc_pid_mountinfo(5)
            continue
        point = _ESCAPED.sub(lambda found: chr(int(found[1], 8)), fields[4])
        inside = point in ("/", folder) or folder.startswith(f"{point}/")
        # A later mount on the same folder hides the one before.
        if inside and len(point) >= longest:
            kind, longest = after.split(" ")[0], len(point)
    return kind


def _no_instance() -> str | None:
    """Try to get an inotify instance, and give it back; tell why there is none."""
    library = ctypes.CDLL(None, use_errno=True)
    try:
        descriptor = int(library.inotify_init1(os.O_CLOEXEC))
    except AttributeError:
        return "this system has no inotify"
    if descriptor < 0:
        return os.strerror(ctypes.get_errno())
    os.close(descriptor)
    return None


def _unmade(folder: Path, path: str) -> Iterator[Finding]:
    there = next(above for above in folder.parents if above.exists())
    if there.is_dir() and os.access(there, os.W_OK | os.X_OK):
        yield Finding(Grade.OK, "socket", f"{path}, made when it is needed")
    else:
        remedy = "set ENVWATCH_SOCKET, or XDG_RUNTIME_DIR to a folder of your own"
        yield Finding(Grade.FIX, "socket", f"{folder} cannot be made", remedy)


def _absent(environ: Mapping[str, str], chosen: Settings, reason: str) -> Finding:
    if chosen.sidecar == "off":
        text = "off, since ENVWATCH_SIDECAR says so: kernels ask direnv themselves"
        return Finding(Grade.OK, "sidecar", text)
    if sidecars.is_absent(environ):
        if sidecar.command(chosen, environ) is None:
            remedy = "put `envwatch` on PATH, or run `envwatch serve`"
            text = "not running, and kernels find no command that starts it"
            return Finding(Grade.NOTE, "sidecar", text, remedy)
        text = "not running: the first kernel that needs it starts it"
        return Finding(Grade.OK, "sidecar", text)
    remedy = "until then kernels ask direnv themselves"
    return Finding(Grade.FIX, "sidecar", f"cannot be used: {reason}", remedy)
