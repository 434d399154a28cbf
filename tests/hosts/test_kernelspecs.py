"""The person's kernelspecs, and what envwatch makes of one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.kernelspec import KernelSpecManager

from envwatch.errors import ConfigError, Unavailable
from envwatch.hosts import jupyter, kernelspecs
from envwatch.hosts.kernelspecs import LINE, Found, extended, find
from kernel_client import launcher

ARGV = [
    "/opt/x/bin/python",
    "-Xdev",
    "-m",
    "ipykernel_launcher",
    "-f",
    "{connection_file}",
]


@pytest.fixture
def specs(tmp_path: Path) -> KernelSpecManager:
    """Give Jupyter's view of two folders of kernelspecs, which are empty."""
    return KernelSpecManager(kernel_dirs=[str(tmp_path / "a"), str(tmp_path / "b")])


def write(folder: Path, spec: Any) -> Path:
    """Write a kernelspec; a text as it is."""
    folder.mkdir(parents=True)
    text = spec if isinstance(spec, str) else json.dumps(spec)
    (folder / "kernel.json").write_text(text)
    return folder


def made(spec: dict[str, Any], *, provisioned: bool = True) -> dict[str, Any]:
    """Give what envwatch makes of a kernelspec."""
    return extended(
        Found(Path("/x"), "mine", spec),
        command="/bin/envwatch",
        display_name=None,
        provisioned=provisioned,
    )


def test_found_as_jupyter_finds(specs: KernelSpecManager, tmp_path: Path) -> None:
    """The first of the folders counts, whatever the case of the name."""
    write(tmp_path / "b" / "Mine", {"argv": ["b"]})
    write(tmp_path / "a" / "MINE", {"argv": ["a"]})
    write(tmp_path / "a" / "other", {"argv": []})

    assert find(specs, "mine") == (tmp_path / "a" / "MINE", "MINE", {"argv": ["a"]})


def test_ours_is_passed_over(specs: KernelSpecManager, tmp_path: Path) -> None:
    """One that is made of another is not taken for the person's own."""
    write(tmp_path / "a" / "mine", {"argv": ["a"], "metadata": {"envwatch": {}}})
    with pytest.raises(ConfigError, match="one of envwatch's"):
        find(specs, "mine")

    write(tmp_path / "b" / "mine", {"argv": ["b"]})
    assert find(specs, "mine").spec == {"argv": ["b"]}


def test_kernel_without_a_file(specs: KernelSpecManager) -> None:
    """The interpreter's own kernel is there even where nothing is installed."""
    found = find(specs, "python3")

    assert found.spec["argv"][1:3] == ["-m", "ipykernel_launcher"]
    assert (found.folder / "logo-64x64.png").is_file()


def test_no_such_kernel(specs: KernelSpecManager, tmp_path: Path) -> None:
    """A folder without kernel.json is none."""
    (tmp_path / "a" / "mine").mkdir(parents=True)

    with pytest.raises(Unavailable, match="there is no kernel mine here"):
        find(specs, "mine")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no JSON"),
        ("\0", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("[]", "no list of strings"),
        ("{}", "no list of strings"),
        ('{"argv": "python"}', "no list of strings"),
        ('{"argv": [1]}', "no list of strings"),
        ('{"argv": [], "metadata": []}', "no object"),
    ],
)
def test_broken(specs: KernelSpecManager, tmp_path: Path, text: str, why: str) -> None:
    """The line names the file and what is wrong with it."""
    folder = write(tmp_path / "a" / "mine", text)

    with pytest.raises(ConfigError) as caught:
        find(specs, "mine")
    assert str(folder / "kernel.json") in str(caught.value)
    assert why in str(caught.value)


def test_everything_else_is_kept() -> None:
    """Unknown keys too; only what envwatch adds is new."""
    own = {
        "argv": ARGV,
        "display_name": "Mine",
        "env": {"A": "${B}"},
        "interrupt_mode": "message",
        "metadata": {"debugger": True},
        "of the future": [1],
    }
    spec = made(own)

    path = str(Path(launcher.__file__))
    assert spec == {
        **own,
        "argv": [
            *("/opt/x/bin/python", "-Xdev", "-c", LINE, path),
            *("/bin/envwatch", "ipykernel_launcher", "-f", "{connection_file}"),
        ],
        "display_name": "Mine (envwatch)",
        "metadata": {
            "debugger": True,
            "envwatch": {"kernel": "mine"},
            "kernel_provisioner": {"provisioner_name": "envwatch"},
        },
    }
    assert own["metadata"] == {"debugger": True}


def test_wrapped_interpreter() -> None:
    """What starts the interpreter may be anything."""
    argv = made({"argv": ["conda", "run", "python", "-m", "ipykernel", "-f"]})["argv"]

    assert argv[:4] == ["conda", "run", "python", "-c"]
    assert argv[-2:] == ["ipykernel", "-f"]


@pytest.mark.parametrize(
    "argv", [[], ["R"], ["python", "ipykernel"], ["python", "-m", "bash_kernel"]]
)
def test_other_kernels(argv: list[str]) -> None:
    """What is no ipykernel is refused, with what to do instead."""
    with pytest.raises(ConfigError, match="%load_ext kernel_client"):
        made({"argv": argv})


@pytest.mark.parametrize(
    "theirs",
    [
        {"provisioner_name": "slurm", "config": {"queue": "x"}},
        {"provisioner_name": "local-provisioner", "config": {"x": 1}},
        "slurm",
    ],
)
def test_provisioner_of_their_own(theirs: Any) -> None:
    """It is refused, or kept: never replaced."""
    own = {"argv": ARGV, "metadata": {"kernel_provisioner": theirs}}

    with pytest.raises(ConfigError, match="--no-provisioner"):
        made(own)
    assert made(own, provisioned=False)["metadata"]["kernel_provisioner"] == theirs


def test_local_provisioner() -> None:
    """Jupyter's own is what ours is made of."""
    own = {"kernel_provisioner": {"provisioner_name": "local-provisioner"}}
    spec = made({"argv": ARGV, "metadata": own})

    assert spec["metadata"]["kernel_provisioner"] == {"provisioner_name": "envwatch"}
    assert jupyter.NAME == kernelspecs.PROVISIONER


# ------------------------------------------------------------------ the line of code


def run(folder: Path, *arguments: str, path: str | None = None) -> Any:
    """Run the line in a bare interpreter before a module that prints what it has."""
    (folder / "module.py").write_text(
        "import json, os, sys\n"
        "print(json.dumps([sys.argv, sys.path, dict(os.environ),"
        " 'kernel_client' in sys.modules, __name__]))\n"
    )
    launched = path or str(Path(launcher.__file__))
    done = subprocess.run(
        [sys.executable, "-S", "-c", LINE, launched, "", "module", *arguments],
        cwd=folder,
        env={"A": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return [*json.loads(done.stdout), done.stderr]


def plain(folder: Path, *arguments: str) -> Any:
    """Run the same module as the person's own kernelspec does."""
    done = subprocess.run(
        [sys.executable, "-S", "-m", "module", *arguments],
        cwd=folder,
        env={"A": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def test_line_leaves_everything_else_alone(tmp_path: Path) -> None:
    """Arguments, path and environment are those of `python -m`, but for the extension."""
    argv, path, environ, is_loaded, name, said = run(tmp_path, "-f", "x")
    plainly = plain(tmp_path, "-f", "x")

    assert argv == [*plainly[0], "--ext=kernel_client"]
    assert path == plainly[1]
    assert environ == plainly[2]
    assert (is_loaded, name, said) == (True, "__main__", "")


def test_line_is_not_misled(tmp_path: Path) -> None:
    """Modules of the working folder are not taken for those of the launcher."""
    for name in ("runpy", "os", "kernel_client", "importlib"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('misled')")

    assert run(tmp_path)[3] is True


def test_line_when_envwatch_has_gone(tmp_path: Path) -> None:
    """The kernel starts as the person's own, and one line says why."""
    argv, _, _, is_loaded, _, said = run(tmp_path, "-f", "x", path="/gone/launcher.py")

    assert argv[1:] == ["-f", "x"]
    assert not is_loaded
    assert said == (
        "envwatch: /gone/launcher.py is gone; the kernel starts without it\n"
    )


def test_line_can_stand_in_a_kernelspec() -> None:
    """Jupyter would fill in braces, and some wrappers stumble over line ends."""
    assert not {"{", "}", "\n", '"'} & set(LINE)
