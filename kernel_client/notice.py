"""What direnv said -> what the cell shows. Pure, a line at a time."""

from __future__ import annotations

UNLOADING = "direnv: unloading"
"""What direnv says when it takes an environment back."""

STARTS_WITHOUT = "; this run starts without"
"""From here on a line speaks of a kernel's run; `envwatch exec` runs nothing then."""

ENCODING = (
    "envwatch: this process reads names as another encoding than UTF-8, so no .envrc"
    " is loaded; set LC_ALL to a UTF-8 locale, or to C"
)
"""Said once where direnv and we would name the same files differently."""

STILL = "direnv is still evaluating"
"""In the line of a hold that lasts, which explains no outcome."""

_COLOUR = "\x1b["
_ADVICE = r"(direnv: .* (?:is blocked|requires approval))\..*direnv allow.*"
_PERSON = "; allowing it is up to the person"


def shown(line: str, *, colour: bool = False) -> str:
    """Give the line as a kernel shows it.

    Colour is stripped unless asked for, nothing that reads it is told to run
    `direnv allow`, and bytes that no output could encode are escaped.
    """
    advises = "direnv allow" in line
    if not colour or advises:
        line = _without_colour(line)
    if advises:
        import re

        line = re.sub(_ADVICE, rf"\1{_PERSON}", line)
    return line.encode("utf-8", "backslashreplace").decode("utf-8")


def _without_colour(line: str) -> str:
    """Drop each `ESC [ numbers m`; by hand, since importing `re` takes longer."""
    plain, *parts = line.split(_COLOUR)
    for part in parts:
        rest = part.lstrip("0123456789;")
        plain += rest[1:] if rest.startswith("m") else _COLOUR + part
    return plain


def held(root: str, seconds: float) -> str:
    """Say that a run is still held by an evaluation."""
    return f"envwatch: {STILL} {root} ({seconds:.0f} s)"


def gave_up(root: str, seconds: float) -> str:
    """Say that the hold has ended before the evaluation did."""
    return (
        f"envwatch: {root} is not evaluated after {seconds:g} s"
        f"{STARTS_WITHOUT} it, the evaluation goes on"
    )


def lost_edit(name: str) -> str:
    """Say that a reload or unload threw away the person's own change."""
    return f"envwatch: {name} was changed here since it was loaded; that change is gone"


def no_direnv(name: str | None) -> str:
    """Say once that nothing can be loaded; `name` is a direnv that was asked for."""
    if name is not None:
        return (
            f"envwatch: {name} cannot be run, so no .envrc is loaded;"
            " change or unset ENVWATCH_DIRENV"
        )
    return "envwatch: no direnv on PATH, so no .envrc is loaded; `envwatch doctor` tells how to install it"


def failed(what: str) -> str:
    """Say that the environment could not be brought up to date."""
    return f"envwatch: {what}{STARTS_WITHOUT} the workspace's environment"


def untold(path: str) -> str:
    """Say that direnv did not answer whether a `.env` counts."""
    return failed(f"`direnv status` failed, so it is unknown whether {path} counts")
