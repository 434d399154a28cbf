"""The program's environment: what of it an `.envrc` cannot change. Pure."""

from __future__ import annotations

import pytest

from envwatch.frozen import Rules, frozen
from kernel_client import gzenv
from kernel_client.record import Inherited

CALLER = {"PATH": "/bin", "DSH_TOKEN": "host's", "BASH_ENV": "/rc", "KEY": "row's"}


def made(
    loaded: dict[str, str],
    *,
    caller: dict[str, str] | None = None,
    inherited: Inherited | None = None,
    base: dict[str, str] | None = None,
    rules: Rules | None = None,
) -> dict[str, str]:
    """Freeze over a caller that has nothing loaded, unless said."""
    caller = CALLER if caller is None else caller
    return frozen(
        loaded, caller, caller if base is None else base, inherited, rules or Rules()
    )


def test_without_rules() -> None:
    """Only what shells read when they start is taken out."""
    loaded = {**CALLER, "FOO": "1", "DSH_TOKEN": "forged", "ENV": "/x"}

    assert made(loaded) == {
        "PATH": "/bin",
        "DSH_TOKEN": "forged",
        "KEY": "row's",
        "FOO": "1",
    }


@pytest.mark.parametrize("forged", [None, "forged", ""])
def test_protected_name_that_the_caller_has(forged: str | None) -> None:
    """Changed, emptied or removed: the caller's value is back."""
    loaded = {name: value for name, value in CALLER.items() if name != "DSH_TOKEN"}
    if forged is not None:
        loaded["DSH_TOKEN"] = forged

    after = made(loaded, rules=Rules(protect=("DSH_",)))

    assert after["DSH_TOKEN"] == "host's"


def test_protected_name_that_is_forged() -> None:
    """What the caller does not have, the program does not get."""
    after = made({**CALLER, "DSH_NEW": "x", "DSH": "y"}, rules=Rules(protect=("DSH_",)))

    assert "DSH_NEW" not in after
    assert after["DSH"] == "y"


def test_several_prefixes() -> None:
    """Each of them counts."""
    rules = Rules(protect=("A_", "B_"))

    assert made({"A_1": "", "B_1": "", "C_1": ""}, rules=rules) == {"C_1": ""}


def test_cleared() -> None:
    """A cleared prefix is an empty snapshot: the caller's go too."""
    after = made({**CALLER, "DSH_NEW": "x"}, rules=Rules(clear=("DSH_",)))

    assert set(after) == {"PATH", "KEY"}


def test_kept() -> None:
    """A name that is kept has the caller's value, where the caller has one."""
    rules = Rules(keep=("KEY", "OTHER"))

    after = made({"KEY": "the file's", "OTHER": "the file's"}, rules=rules)

    assert after == {"KEY": "row's", "OTHER": "the file's"}


def test_kept_holds_against_the_other_rules() -> None:
    """The most exact word counts: also for BASH_ENV, which the caller named itself."""
    rules = Rules(keep=("DSH_TOKEN", "BASH_ENV"), clear=("DSH_",), protect=("BASH",))

    after = made(
        {"DSH_TOKEN": "forged", "BASH_ENV": "forged", "DSH_X": ""}, rules=rules
    )

    assert after == {"DSH_TOKEN": "host's", "BASH_ENV": "/rc"}


def test_what_another_file_left_is_not_the_callers() -> None:
    """A protected name that an inherited load set goes back to what the host had."""
    put_back = {"DSH_TOKEN": "host's", "DSH_NEW": None, "DSH_EDITED": None}
    left = {"DSH_TOKEN": "forged", "DSH_NEW": "forged", "DSH_EDITED": "forged"}
    caller = {"DSH_TOKEN": "forged", "DSH_NEW": "forged", "DSH_EDITED": "host's"}
    base = {"DSH_TOKEN": "host's"}

    after = made(
        dict(base),
        caller=caller,
        base=base,
        inherited=Inherited("/o/.envrc", put_back, left, []),
        rules=Rules(protect=("DSH_",)),
    )

    assert after == {"DSH_TOKEN": "host's", "DSH_EDITED": "host's"}


def test_what_another_file_removed_is_back() -> None:
    """A protected name that an inherited load removed is the host's again."""
    base = {"DSH_TOKEN": "host's"}

    after = made(
        dict(base),
        caller={},
        base=base,
        inherited=Inherited("/o/.envrc", {"DSH_TOKEN": "host's"}, {}, []),
        rules=Rules(protect=("DSH_",)),
    )

    assert after == base


def diffed(p: dict[str, str], n: dict[str, str]) -> str:
    """Give a DIRENV_DIFF."""
    return gzenv.encode({"p": p, "n": n})


def test_difference_forgets_the_names() -> None:
    """No forged value travels in DIRENV_DIFF, and nothing brings one back."""
    diff = diffed({"DSH_TOKEN": "host's", "PATH": "/bin"}, {"ENV": "x", "DSH_NEW": "x"})
    loaded = {**CALLER, "ENV": "x", "DSH_NEW": "x", "DIRENV_DIFF": diff}

    after = made(loaded, rules=Rules(protect=("DSH_",)))

    assert gzenv.decode(after["DIRENV_DIFF"]) == {"p": {"PATH": "/bin"}, "n": {}}


@pytest.mark.parametrize(
    "diff", ["", "nonsense", gzenv.encode([]), diffed({"PATH": "/bin"}, {"FOO": "1"})]
)
def test_difference_without_the_names(diff: str) -> None:
    """direnv's own bytes stay wherever they can, and what cannot be read stays."""
    after = made({**CALLER, "DIRENV_DIFF": diff}, rules=Rules(protect=("DSH_",)))

    assert after["DIRENV_DIFF"] == diff


def test_the_four_are_not_the_callers() -> None:
    """A prefix that fits direnv's own four leaves them alone."""
    loaded = {"DIRENV_FILE": "/w/.envrc", "DIRENV_MINE": "x"}
    caller = {"DIRENV_FILE": "/o/.envrc"}

    after = made(loaded, caller=caller, base={}, rules=Rules(protect=("DIRENV_",)))

    assert after == {"DIRENV_FILE": "/w/.envrc"}
