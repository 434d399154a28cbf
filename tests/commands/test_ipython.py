"""`envwatch ipython`: a start-up file is written and taken back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import OLDER
from tests.support.persons import Person

pytestmark = pytest.mark.parametrize("version", [OLDER], indirect=True)

HOME = "home/.ipython/profile_default/startup/50-envwatch.py"


def paths(top: Path) -> list[str]:
    """Name every path below a folder."""
    return sorted(str(path.relative_to(top)) for path in top.rglob("*"))


def test_there_and_back(person: Person) -> None:
    """A file in the profile, and nothing when it was taken back."""
    before = paths(person.world.top)
    path = person.world.path(HOME)
    ended = person.run("ipython", "install")

    assert ended == (
        0,
        f"{path} is read by every new `ipython` of that profile\n",
        "",
    )
    compile(path.read_text(), str(path), "exec")
    assert person.run("ipython", "uninstall") == (0, f"{path} is gone\n", "")
    assert paths(person.world.top) == before


def test_profile_and_folder(person: Person) -> None:
    """IPYTHONDIR and `--profile` say where, as they do for IPython."""
    given = {"IPYTHONDIR": str(person.world.path("i"))}
    for word in ("install", "uninstall"):
        ended = person.run("ipython", word, "--profile", "mine", environ=given)
        assert ended.code == 0
        assert str(person.world.path("i/profile_mine/startup")) in ended.out


def test_twice(person: Person) -> None:
    """The second time changes nothing, and one taking back is enough."""
    before = paths(person.world.top)
    person.run("ipython", "install")
    text = person.world.path(HOME).read_text()
    person.run("ipython", "install")
    assert person.world.path(HOME).read_text() == text

    person.run("ipython", "uninstall")
    assert paths(person.world.top) == before


def test_edited_since(person: Person) -> None:
    """It stays."""
    person.run("ipython", "install")
    path = person.world.path(HOME)
    path.write_text(path.read_text() + "# mine\n")

    for word in ("install", "uninstall"):
        person.run("ipython", word).said(77, str(path), "was changed since")
    assert path.read_text().endswith("# mine\n")


def test_file_of_the_person_s_own(person: Person) -> None:
    """It is not written over."""
    path = person.world.write(HOME, "# mine\n")

    for word in ("install", "uninstall"):
        person.run("ipython", word).said(77, str(path), "not envwatch's")
    assert path.read_text() == "# mine\n"


def test_not_installed(person: Person) -> None:
    """Nothing to take back is an error."""
    person.run("ipython", "uninstall").said(
        69, "50-envwatch.py", "nothing to take back"
    )


def test_folder_that_cannot_be_written(person: Person) -> None:
    """One line, its exit code, and nothing half written."""
    blocker = person.world.write("home/.ipython", "in the way")

    person.run("ipython", "install").said(74, "cannot be written")
    assert blocker.read_text() == "in the way"


@pytest.mark.parametrize("profile", ["", "../x", "a/b"])
def test_profiles_that_are_none(person: Person, profile: str) -> None:
    """A path is no name."""
    person.run("ipython", "install", "--profile", profile).said(2, "slashes")
