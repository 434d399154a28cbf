"""The environment that a program of `envwatch exec` starts with. Pure.

direnv has had its say; what is the caller's alone is put right here:

- `BASH_ENV` and `ENV` go: the program, or a shell it starts, would run the files
  that they name before anything else.
- A name with a protected prefix has the value that the caller had, and only that:
  what an `.envrc` set with it is gone, what it changed or removed is back.
- A name with a cleared prefix is gone, whoever set it.
- A name that is kept by itself has the caller's value, when the caller had one; it
  is the most exact word of all, so it holds against the three others.

DIRENV_DIFF forgets these names too: it would carry what an `.envrc` set into the
program, and a shell or a kernel there would bring it back when it unloads.
"""

from __future__ import annotations

from kernel_client import environment as env, gzenv

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from kernel_client.record import Inherited

STARTUP = frozenset({"BASH_ENV", "ENV"})
"""Names of files that shells read when they start, asked or not."""


class Rules:
    """What of an environment is the caller's: prefixes and names."""

    __slots__ = ("clear", "keep", "protect")

    def __init__(
        self,
        *,
        protect: tuple[str, ...] = (),
        clear: tuple[str, ...] = (),
        keep: tuple[str, ...] = (),
    ) -> None:
        self.protect = protect
        self.clear = clear
        self.keep = keep


def frozen(
    loaded: Mapping[str, str],
    caller: Mapping[str, str],
    base: Mapping[str, str],
    inherited: Inherited | None,
    rules: Rules,
) -> dict[str, str]:
    """Give the program's environment.

    `loaded` is what direnv made of `base`; `base` is the environment of the
    `caller` with what it `inherited` from another load taken back.
    """
    after = dict(loaded)
    ruled: set[str] = set()
    for name in {*loaded, *caller, *base}:
        if name in env.THE_FOUR:
            continue
        if name in rules.keep and name in caller:
            value: str | None = caller[name]
        elif name in STARTUP or name.startswith(rules.clear):
            value = None
        elif name.startswith(rules.protect):
            value = _callers_own(name, caller, base, inherited)
        else:
            continue
        ruled.add(name)
        if value is None:
            after.pop(name, None)
        else:
            after[name] = value
    if ruled and "DIRENV_DIFF" in after:
        after["DIRENV_DIFF"] = _without(after["DIRENV_DIFF"], ruled)
    return after


def _callers_own(
    name: str,
    caller: Mapping[str, str],
    base: Mapping[str, str],
    inherited: Inherited | None,
) -> str | None:
    """Give the caller's value; what another `.envrc` left there is not the caller's."""
    has = caller.get(name)
    if (
        inherited is not None
        and name in inherited.put_back
        and has == inherited.left.get(name)
    ):
        return base.get(name)
    return has


def _without(diff: str, names: set[str]) -> str:
    """Give a DIRENV_DIFF without these names; the same text where it has none."""
    try:
        value: Any = gzenv.decode(diff)
        sides = [value["p"], value["n"]]
        if all(names.isdisjoint(side) for side in sides):
            return diff
    except (ValueError, TypeError, KeyError):
        # Nobody can read it, so nobody will take anything back with it.
        return diff
    for side in sides:
        for name in names & side.keys():
            del side[name]
    return gzenv.encode(value)
