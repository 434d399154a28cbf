"""The tests mirror the tree: each module has a file of tests of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
CHECKOUT = TESTS.parent


def names(folder: Path, start: str = "") -> set[str]:
    """Give the modules of a folder whose names begin so, without that beginning."""
    return {
        path.stem.removeprefix(start)
        for path in folder.glob(f"{start}*.py")
        if path.stem not in ("__init__", "__main__")
    }


@pytest.mark.parametrize(
    ("package", "tests"),
    [
        ("kernel_client", "kernel_client"),
        ("envwatch/core", "core"),
        ("envwatch/hosts", "hosts"),
        ("envwatch/runtime", "runtime"),
        ("envwatch/views", "views"),
    ],
    ids=["kernel_client", "core", "hosts", "runtime", "views"],
)
def test_every_module_has_its_tests(package: str, tests: str) -> None:
    """`package/name.py` is tested by `tests/<package>/test_name.py`."""
    assert names(CHECKOUT / package)
    missing = names(CHECKOUT / package) - names(TESTS / tests, "test_")
    assert missing == set(), sorted(missing)


def test_every_file_of_the_client_s_tests_has_its_module() -> None:
    """Nothing is left behind when a module goes."""
    assert names(TESTS / "kernel_client", "test_") <= names(CHECKOUT / "kernel_client")
