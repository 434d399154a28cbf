"""`envwatch jupyter`: a kernel is installed and taken back, or an error says why not."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import OLDER
from tests.support.jupyters import Jupyter
from tests.support.persons import Ended
from tests.support.worlds import World

pytestmark = pytest.mark.parametrize("version", [OLDER], indirect=True)

SPEC = {
    "argv": ["/opt/x/python", "-m", "ipykernel_launcher", "-f", "{connection_file}"],
    "display_name": "Mine",
    "language": "python",
}


@pytest.fixture
def jupyter(world: World) -> Jupyter:
    """Give a person's Jupyter, where nothing is installed."""
    return Jupyter(world, None)


@pytest.fixture
def run(jupyter: Jupyter) -> Callable[..., Ended]:
    """Run `envwatch jupyter` to its end."""
    return lambda *arguments: jupyter.person.run("jupyter", *arguments)


def own(jupyter: Jupyter, name: str = "mine", spec: object = SPEC) -> Path:
    """Write a kernelspec of the person's own; a text as it is."""
    text = spec if isinstance(spec, str) else json.dumps(spec)
    path = jupyter.world.write(jupyter.kernels / name / "kernel.json", text)
    jupyter.world.write(path.parent / "logo.svg", "<svg/>")
    return path.parent


def tree(top: Path) -> dict[str, bytes | None]:
    """Give every path below a folder with its bytes (a folder: None)."""
    return {
        str(path.relative_to(top)): path.read_bytes() if path.is_file() else None
        for path in sorted(top.rglob("*"))
    }


def test_there_and_back(jupyter: Jupyter, run: Callable[..., Ended]) -> None:
    """A kernel beside the person's own, with its files; then it is gone."""
    own(jupyter)
    before = tree(jupyter.data)
    ended = run("install", "--kernel", "mine")

    folder = jupyter.kernels / "mine-envwatch"
    assert ended == (0, f"Mine (envwatch) is in {folder}\n", "")
    assert (folder / "logo.svg").read_text() == "<svg/>"
    spec = json.loads((folder / "kernel.json").read_text())
    assert spec["argv"][0] == "/opt/x/python"
    assert spec["language"] == "python"
    assert jupyter.specs.get_kernel_spec("mine-envwatch").display_name == (
        "Mine (envwatch)"
    )

    assert run("uninstall", "--kernel", "mine") == (0, f"{folder} is gone\n", "")
    assert tree(jupyter.data) == before


def test_files_that_are_read_only(jupyter: Jupyter, run: Callable[..., Ended]) -> None:
    """A kernelspec in a store of packages: the copy is the person's to remove."""
    folder = own(jupyter)
    for path in (*folder.iterdir(), folder):
        path.chmod(path.stat().st_mode & ~0o222)
    assert run("install", "--kernel", "mine").code == 0

    made = jupyter.kernels / "mine-envwatch"
    for path in (*made.iterdir(), made):
        assert path.stat().st_mode & 0o200, path
    assert run("uninstall", "--kernel", "mine").code == 0


def test_python3_is_the_default(jupyter: Jupyter, run: Callable[..., Ended]) -> None:
    """Without any kernelspec the kernel of envwatch's interpreter is taken."""
    assert run("install").code == 0
    assert (jupyter.kernels / "python3-envwatch" / "kernel.json").is_file()
    assert run("uninstall").code == 0
    assert tree(jupyter.data) == {}


def test_names(jupyter: Jupyter, run: Callable[..., Ended]) -> None:
    """Both the name and what menus show can be chosen."""
    own(jupyter)
    run("install", "--kernel", "mine", "--name", "New", "--display-name", "Shown")
    assert jupyter.specs.get_kernel_spec("new").display_name == "Shown"
    assert run("uninstall", "--name", "new").code == 0


@pytest.mark.parametrize("option", ["--prefix", "--sys-prefix", "--user"])
def test_places(jupyter: Jupyter, run: Callable[..., Ended], option: str) -> None:
    """Each place is the one that Jupyter means by that word."""
    own(jupyter)
    where = (
        ["--prefix", str(jupyter.world.path("p"))] if option == "--prefix" else [option]
    )
    # Of a name of its own: the last place is that of the environment we run in.
    arguments = [*where, "--kernel", "mine", "--name", "envwatch-test-of-places"]
    top = {
        "--prefix": jupyter.world.path("p/share/jupyter"),
        "--sys-prefix": Path(sys.prefix) / "share" / "jupyter",
        "--user": jupyter.data,
    }[option]
    folder = top / "kernels" / "envwatch-test-of-places"
    try:
        ended = run("install", *arguments)
        assert ended.lines[0] == f"Mine (envwatch) is in {folder}"
        unseen = f"Jupyter does not look in {folder.parent} here"
        assert (unseen in ended.lines) == (option == "--prefix")
        assert (folder / "kernel.json").is_file()
    finally:
        run("uninstall", *arguments)
    assert not folder.exists()
    assert not jupyter.world.path("p").exists()


def test_two_places(jupyter: Jupyter, run: Callable[..., Ended]) -> None:
    """One place at a time."""
    run("install", "--user", "--sys-prefix").said(2, "one of --user", "--help")
    assert tree(jupyter.data) == {}


def test_twice(jupyter: Jupyter, run: Callable[..., Ended]) -> None:
    """The second time is made of the person's own again, not of the first."""
    own(jupyter)
    run("install", "--kernel", "mine")
    first = tree(jupyter.data)

    assert run("install", "--kernel", "mine").code == 0
    assert tree(jupyter.data) == first


def test_made_of_one_of_ours(jupyter: Jupyter, run: Callable[..., Ended]) -> None:
    """It is refused."""
    own(jupyter)
    run("install", "--kernel", "mine")
    before = tree(jupyter.data)

    run("install", "--kernel", "mine-envwatch").said(64, "one of envwatch's")
    assert tree(jupyter.data) == before


def test_in_the_place_of_the_person_s_own(
    jupyter: Jupyter, run: Callable[..., Ended]
) -> None:
    """What is not envwatch's is never written over, nor taken away."""
    own(jupyter)
    before = tree(jupyter.data)

    run("install", "--kernel", "mine", "--name", "mine").said(77, "not envwatch's")
    run("uninstall", "--name", "mine").said(77, "not envwatch's")
    assert tree(jupyter.data) == before


def test_edited_since(jupyter: Jupyter, run: Callable[..., Ended]) -> None:
    """It stays, and the line says which file it was."""
    own(jupyter)
    run("install", "--kernel", "mine")
    path = jupyter.kernels / "mine-envwatch" / "kernel.json"
    path.write_text(path.read_text().replace("Mine", "My own"))
    before = tree(jupyter.data)

    for word in ("install", "uninstall"):
        run(word, "--kernel", "mine").said(77, str(path), "was changed since")
    assert tree(jupyter.data) == before


def test_not_installed(jupyter: Jupyter, run: Callable[..., Ended]) -> None:
    """Nothing to take back is an error."""
    run("uninstall").said(69, "python3-envwatch", "nothing to take back")


def test_no_such_kernel(jupyter: Jupyter, run: Callable[..., Ended]) -> None:
    """It says where the names are."""
    run("install", "--kernel", "nonsense").said(
        69, "nonsense", "jupyter kernelspec list"
    )
    assert tree(jupyter.data) == {}


@pytest.mark.parametrize("name", ["", "a/b", "..x/", "ä", "a b"])
def test_names_that_jupyter_does_not_take(
    jupyter: Jupyter, run: Callable[..., Ended], name: str
) -> None:
    """They are wrong command lines."""
    run("install", "--name", name).said(2, "letters, digits")
    run("install", "--kernel", name).said(2, "letters, digits")


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("{", "no JSON"),
        ({**SPEC, "argv": "python"}, "no list of strings"),
        ({**SPEC, "argv": ["R"]}, "not started by `python -m ipykernel_launcher`"),
        (
            {**SPEC, "metadata": {"kernel_provisioner": {"provisioner_name": "slurm"}}},
            "--no-provisioner",
        ),
    ],
)
def test_kernels_that_cannot_be_extended(
    jupyter: Jupyter, run: Callable[..., Ended], spec: object, why: str
) -> None:
    """The line says why, and nothing is written."""
    own(jupyter, spec=spec)
    before = tree(jupyter.data)

    run("install", "--kernel", "mine").said(64, "mine", why)
    assert tree(jupyter.data) == before


def test_folder_that_cannot_be_written(
    jupyter: Jupyter, run: Callable[..., Ended]
) -> None:
    """One line, its exit code, and nothing half written."""
    jupyter.kernels.write_text("in the way")

    run("install").said(74, "cannot be written", str(jupyter.kernels))
    assert tree(jupyter.data) == {"kernels": b"in the way"}


def test_jupyter_is_not_there(jupyter: Jupyter) -> None:
    """It says what to install."""
    code = (
        "import sys; sys.modules['jupyter_client.kernelspec'] = None\n"
        "from envwatch.__main__ import main; sys.exit(main(['jupyter', 'install']))"
    )
    ended = jupyter.person.python(code, folder=jupyter.world.top)
    ended.said(69, "jupyter_client is not installed", "pip install")
