"""Which root file counts for a folder, and which paths would change that.

Only looks: the nearest `.envrc` that is a regular file that opens for reading,
as direnv finds it. `.env` counts where direnv.toml says `load_dotenv`; that is
direnv's word, passed in as `dotenv`.
"""

from __future__ import annotations

import os
import stat as mode_bits

from kernel_client import snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel_client.snapshot import Entry, Snapshot


class Walk:
    """What lies between a folder and its root file, or `/`.

    `root`: path of the root file or None; `absent`: paths where a nearer root
    file would appear, all missing now; `present`: snapshot entries of nearer paths that are
    there but cannot load (a folder, a FIFO, an unreadable file); `dotenv`: the first
    `.env` that would count if `load_dotenv` were on, when that is not known;
    `folder`: where the walk began, None when it was deleted; `config`: snapshot
    of direnv's settings, which could change which file counts.
    """

    __slots__ = ("absent", "config", "dotenv", "folder", "present", "root")

    def __init__(self) -> None:
        self.folder: str | None = None
        self.config: Snapshot = ()
        self.root: str | None = None
        self.absent: list[str] = []
        self.present: list[Entry] = []
        self.dotenv: str | None = None


def above(folder: str) -> list[str]:
    """Give a folder and the folders above it, up to `/`."""
    found = [folder]
    while folder != "/":
        folder = os.path.dirname(folder) or "/"
        found.append(folder)
    return found


def walk(folder: str, *, dotenv: bool | None = False) -> Walk:
    """Look from an absolute folder upwards for its root file.

    `dotenv` True lets `.env` count beside `.envrc`; False ignores it; None means
    not known: then a `.env` that is met first is named in `Walk.dotenv`, and the
    walk goes on without it.
    """
    seen = Walk()
    names = (".envrc",) if dotenv is False else (".envrc", ".env")
    for place in above(folder):
        for name in names:
            path = os.path.join(place, name)
            entry = (path, *snapshot.look(path), None)
            kind = _kind(path)
            if kind is None:
                seen.absent.append(path)
            elif not kind:
                seen.present.append(entry)
            elif name == ".envrc" or dotenv:
                seen.root = path
                return seen
            else:
                seen.present.append(entry)
                seen.dotenv = seen.dotenv or path
    return seen


def loadable(path: str) -> bool:
    """Tell whether direnv could open this as a root file."""
    return bool(_kind(path))


def config_paths(environ: Mapping[str, str]) -> list[str]:
    """Give the paths outside the workspace that direnv reads for every load.

    direnv.toml or config.toml, direnvrc, lib/*.sh, ~/.direnvrc: none of them is
    in direnv's own watches (DIRENV.md case 21). Where the folder is missing, the
    folder itself is named.
    """
    found: list[str] = []
    home = environ.get("HOME", "")
    folder = config_folder(environ)
    if folder is not None:
        if os.path.isdir(folder):
            found += toml_paths(folder)
            found.append(os.path.join(folder, "direnvrc"))
            library = os.path.join(folder, "lib")
            found.append(library)
            try:
                names = sorted(os.listdir(library))
            except OSError:
                names = []
            found += [
                os.path.join(library, name) for name in names if name.endswith(".sh")
            ]
        else:
            found.append(folder)
    if home:
        found.append(os.path.join(home, ".direnvrc"))
    return [path for path in found if path.startswith("/")]


def config_folder(environ: Mapping[str, str]) -> str | None:
    """Give direnv's configuration folder for an environment, or None."""
    folder = environ.get("DIRENV_CONFIG")
    if folder:
        return folder
    folder = environ.get("XDG_CONFIG_HOME")
    if folder:
        return os.path.join(folder, "direnv")
    home = environ.get("HOME")
    return os.path.join(home, ".config", "direnv") if home else None


def toml_paths(folder: str) -> list[str]:
    """Give the two names that direnv's settings can have in its folder."""
    return [os.path.join(folder, "direnv.toml"), os.path.join(folder, "config.toml")]


def _kind(path: str) -> bool | None:
    """None: missing. False: there, but cannot load. True: a root file."""
    try:
        seen = os.stat(path)
    except FileNotFoundError:
        # A dangling link is there, and could come alive.
        return False if os.path.islink(path) else None
    except (OSError, ValueError):
        return False
    return mode_bits.S_ISREG(seen.st_mode) and os.access(path, os.R_OK)
