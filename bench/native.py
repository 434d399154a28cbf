"""The bare system calls of a refresh in C: what no Python can be cheaper than."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bench.findings import CannotRunError
from bench.measures import Timed

_SOURCE = r"""
#include <poll.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* One refresh: getcwd, each access, each stat, one poll; gives nanoseconds. */
long long bare(int absent, const char **missing, int present, const char **there,
               int descriptor)
{
    struct timespec before, after;
    struct pollfd waited = {descriptor, POLLIN, 0};
    struct stat seen;
    char folder[4096];
    long long sum = 0;
    clock_gettime(CLOCK_MONOTONIC, &before);
    sum += getcwd(folder, sizeof folder) != 0;
    for (int at = 0; at < absent; at++)
        sum += access(missing[at], F_OK) == 0;
    for (int at = 0; at < present; at++)
        sum += stat(there[at], &seen) + seen.st_size;
    if (descriptor >= 0)
        sum += poll(&waited, 1, 0);
    clock_gettime(CLOCK_MONOTONIC, &after);
    /* What was seen counts, or the compiler could leave it out. */
    missing[absent] = (const char *)sum;
    return (after.tv_sec - before.tv_sec) * 1000000000LL
         + (after.tv_nsec - before.tv_nsec);
}
"""


class Native:
    """A loop in C, built in a folder that is thrown away.

    Raises:
        CannotRunError: there is no C compiler, or it does not build.
    """

    def __init__(self, folder: Path) -> None:
        compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
        if compiler is None:
            raise CannotRunError("there is no C compiler (cc, gcc or clang)")
        source, library = folder / "bare.c", folder / "bare.so"
        source.write_text(_SOURCE)
        try:
            subprocess.run(
                [compiler, "-O2", "-shared", "-fPIC", "-o", library, source],
                check=True,
                capture_output=True,
                timeout=60,
            )
            self._bare = ctypes.CDLL(str(library)).bare
        except (OSError, subprocess.SubprocessError):
            raise CannotRunError(f"{compiler} does not build the loop in C") from None
        self._bare.restype = ctypes.c_longlong

    def calls(
        self, absent: Sequence[str], there: Sequence[str], descriptor: int
    ) -> Timed:
        """Give the loop for these paths, which times itself; -1: no poll."""
        # One place more: the loop writes there.
        missing = (ctypes.c_char_p * (len(absent) + 1))(*map(os.fsencode, absent))
        present = (ctypes.c_char_p * max(1, len(there)))(*map(os.fsencode, there))

        def once() -> float:
            taken: int = self._bare(
                len(absent), missing, len(there), present, descriptor
            )
            return taken / 1e9

        return once
