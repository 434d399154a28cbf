"""`envwatch mcp` as a real process: files, links, modes, and what is refused."""

from __future__ import annotations

import contextlib
import io
import json
import os
import stat
import sys
from pathlib import Path

import pytest

from envwatch.__main__ import main
from envwatch.commands import mcp
from tests.conftest import OLDER
from tests.support.children import as_ordinary_user
from tests.support.persons import Person
from tests.support.planted import secret

pytestmark = pytest.mark.parametrize("version", [OLDER], indirect=True)

IMPORTED = mcp.command
"""Imported here: a child that is no superuser may not be able to read it."""

COMMAND = str(Path(sys.executable).parent / "envwatch")
TEXT = f"""{{
  // the servers
  "mcpServers": {{
    "one": {{"command": "npx", "args": ["-y"], "env": {{"KEY": "{secret("key")}"}}}},
    "two": {{"url": "http://localhost"}},
  }}
}}"""


@pytest.fixture
def file(person: Person) -> Path:
    """Give a client's file without a newline at its end."""
    person.world.folder("w")
    made = person.world.write("client.json", TEXT)
    made.chmod(0o640)
    return made


def test_wrap(person: Person, file: Path) -> None:
    """One line for each server; mode and the rest of the file are kept."""
    ended = person.run("mcp", "wrap", file, "--workspace", "w")

    w = str(person.world.path("w"))
    assert ended.lines == [
        f"one  now starts in {w}",
        "two  left as it is: reached by a URL",
    ]
    added = f'"exec", "--keep=KEY", "--", "{w}", "npx", "-y"'
    expected = TEXT.replace('"npx"', f'"{COMMAND}"', 1).replace('"-y"', added)
    assert file.read_text() == expected
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert [path.name for path in file.parent.iterdir() if "client" in path.name] == [
        "client.json"
    ]


def test_wrap_twice(person: Person, file: Path) -> None:
    """The second time nothing is written."""
    person.run("mcp", "wrap", file, "--workspace", "w")
    before = file.stat()

    ended = person.run("mcp", "wrap", file, "--workspace", "w")

    assert (ended.code, ended.err) == (0, "")
    assert ended.lines[0] == f"one  starts in {person.world.path('w')}"
    after = file.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize("options", [["v"], ["w", "--clear=A_"], ["w", "env"]], ids=str)
def test_wrap_otherwise(person: Person, file: Path, options: list[str]) -> None:
    """What is wrapped in another way stays so, and that is said: exit code 77."""
    person.world.folder("v")
    person.run("mcp", "wrap", file, "--workspace", "w")
    text = file.read_text().replace(
        '"two": {"url"', '"new": {"command": "x"}, "u": {"url"'
    )
    if "env" in options:
        text = text.replace('"env": {', '"env": {"MORE": "1", ')
        options = ["w"]
    file.write_text(text)

    ended = person.run("mcp", "wrap", file, "--workspace", *options)

    w, now = person.world.path("w"), person.world.path(options[0])
    ended.said(77, "wrapped otherwise", "unwrap")
    assert ended.lines[:2] == [
        f"one  starts in {w}, wrapped otherwise: unwrap first",
        f"new  now starts in {now}",
    ]
    before, _, rest = text.partition('"new"')
    assert file.read_text().startswith(before)
    assert file.read_text() != before + '"new"' + rest


def test_wrapped_is_never_too_long_to_unwrap(
    person: Person, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused before anything is written: exit code 65."""
    monkeypatch.setattr(mcp, "MAX_BYTES", len(TEXT.encode()))
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        workspace = str(person.world.path("w"))
        code = main(["mcp", "wrap", str(file), "--workspace", workspace])

    assert code == 65
    assert "longer than what unwrap reads" in said.getvalue()
    assert file.read_text() == TEXT


def test_name_that_no_argument_can_have(person: Person, file: Path) -> None:
    """A lone surrogate in a name of env: that row is left, with a reason."""
    file.write_text('{"servers": {"a": {"command": "x", "env": {"\\ud800": "1"}}}}')

    ended = person.run("mcp", "wrap", file, "--workspace", "w")

    assert ended == (0, "a  left as it is: a name in its env is not UTF-8\n", "")
    prefix = os.fsdecode(b"--clear=\xff")
    person.run("mcp", "wrap", file, "--workspace", "w", prefix).said(
        2, "--clear", "UTF-8"
    )


def test_hard_link(person: Person, file: Path) -> None:
    """Its other name would keep the old file: exit code 74."""
    other = person.world.path("other.json")
    other.hardlink_to(file)

    person.run("mcp", "wrap", file, "--workspace", "w").said(74, "2 names")

    assert file.samefile(other)
    assert file.read_text() == TEXT


def test_unwrap(person: Person, file: Path) -> None:
    """The file is as it was, byte for byte."""
    person.run("mcp", "wrap", file, "--workspace", "w", "--clear", "DSH_")

    ended = person.run("mcp", "unwrap", file)

    assert ended.lines[0] == "one  now starts as it is"
    assert file.read_text() == TEXT
    assert person.run("mcp", "unwrap", file).lines[0] == "one  starts as it is"


def test_status(person: Person, file: Path) -> None:
    """What each server is; never what it is started with."""
    assert person.run("mcp", "status", file).lines == [
        "one  starts as it is",
        "two  left as it is: reached by a URL",
    ]
    person.run("mcp", "wrap", file, "--workspace", "w")

    ended = person.run("mcp", "status", file, "--json")

    assert ended.object == {
        "file": str(file),
        "servers": [
            {
                "name": "one",
                "state": "wrapped",
                "workspace": str(person.world.path("w")),
                "reason": None,
            },
            {
                "name": "two",
                "state": "left",
                "workspace": None,
                "reason": "reached by a URL",
            },
        ],
    }


def test_clear(person: Person, file: Path) -> None:
    """A prefix of the host's is cleared in every server."""
    person.run("mcp", "wrap", file, "--workspace", "w", "--clear", "A_", "--clear=B_")

    assert (
        '["exec", "--clear=A_", "--clear=B_", "--keep=KEY", "--",' in file.read_text()
    )


def test_link(person: Person, file: Path) -> None:
    """The link stays one; the file that it leads to is written."""
    link = person.world.path("link.json")
    link.symlink_to("client.json")

    assert person.run("mcp", "wrap", link, "--workspace", "w").code == 0

    assert link.is_symlink()
    assert "exec" in file.read_text()


def test_no_servers(person: Person) -> None:
    """An empty section is one."""
    made = person.world.write("client.json", '{"servers": {}}')

    assert person.run("mcp", "status", made) == (0, "no servers\n", "")
    assert person.run("mcp", "wrap", made, "--workspace", ".").code == 0


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{"mcpServers": {', "line 1"),
        (b'{"x": 1}', "no object mcpServers or servers"),
        (b"\xff{}", "not UTF-8"),
        (b"", "not JSON"),
    ],
)
@pytest.mark.parametrize(
    "arguments", [["wrap", "--workspace=."], ["unwrap"], ["status"]]
)
def test_bad_file(
    person: Person, data: bytes, words: str, arguments: list[str]
) -> None:
    """It stays as it is; one line says why: exit code 65."""
    made = person.world.write("client.json", data)
    before = made.stat()

    name, *options = arguments
    person.run("mcp", name, made, *options).said(65, str(made), words)

    assert made.read_bytes() == data
    assert made.stat().st_ino == before.st_ino


def test_fifo(person: Person) -> None:
    """What is no file is not waited for."""
    path = person.world.path("fifo")
    os.mkfifo(path)

    person.run("mcp", "status", path).said(65, "is no file")


def test_very_long_file(person: Person) -> None:
    """Nobody's configuration is so long."""
    path = person.world.path("long")
    with path.open("wb") as made:
        made.truncate(1 << 30)

    person.run("mcp", "status", path).said(65, "very long")


@pytest.mark.parametrize("what", ["file", "folder"])
def test_not_writable(person: Person, file: Path, what: str) -> None:
    """A read-only file, or folder, is left alone: exit code 74."""

    def tried() -> tuple[int, str]:
        # In this process: an ordinary user may not reach the Python that runs us.
        (file if what == "file" else file.parent).chmod(0o555)
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            workspace = str(person.world.path("w"))
            code = main(["mcp", "wrap", str(file), "--workspace", workspace])
        file.parent.chmod(0o755)
        return code, said.getvalue()

    code, err = as_ordinary_user(person.world.top, tried)

    assert code == 74
    assert err == f"envwatch: {file} cannot be written: Permission denied\n"
    assert file.read_text() == TEXT


def test_written_meanwhile(person: Person, file: Path) -> None:
    """Somebody else's change is not lost: exit code 75."""
    code = (
        "import sys; from envwatch import __main__; from envwatch.commands import mcp;"
        " replace = mcp._replace;"
        f" write = lambda *a: (open({str(file)!r}, 'w').write('{{}}'), replace(*a));"
        " mcp._replace = write;"
        f" sys.exit(__main__.main(['mcp', 'wrap', {str(file)!r}, '--workspace', 'w']))"
    )

    person.python(code, folder=person.world.top).said(75, "written meanwhile")

    assert file.read_text() == "{}"
    assert not list(file.parent.glob(".client*"))


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["wrap", "client.json"], "--workspace"),
        (["wrap", "client.json", "--workspace", "missing"], "missing"),
        (["wrap", "client.json", "--workspace", "client.json"], "client.json"),
        (["wrap", "client.json", "--workspace", "w", "--clear", ""], "--clear"),
        (["wrap", "nothing.json", "--workspace", "w"], "nothing.json"),
        (["status", "w"], "is a directory"),
        (["status"], "FILE"),
        (["nonsense"], "nonsense"),
    ],
)
def test_wrong_command_line(
    person: Person, file: Path, arguments: list[str], word: str
) -> None:
    """One line that says where help is: exit code 2."""
    person.run("mcp", *arguments).said(2, word, "--help")


def test_workspace_that_json_cannot_name(person: Person, file: Path) -> None:
    """A path that is not UTF-8."""
    os.mkdir(os.fsencode(person.world.top) + b"/\xff")

    person.run("mcp", "wrap", file, "--workspace", os.fsdecode(b"\xff")).said(
        2, "UTF-8"
    )


def test_no_command(person: Person, file: Path) -> None:
    """Without an `envwatch` command there is nothing a client could start."""
    code = (
        "import sys; sys.executable = '/nowhere/python'; from envwatch import __main__;"
        f" sys.exit(__main__.main(['mcp', 'wrap', {str(file)!r}, '--workspace', 'w']))"
    )

    person.python(code, folder=person.world.top).said(69, "no envwatch command")


def test_command_as_it_was_called(person: Person, file: Path) -> None:
    """A link to the command is what the client gets: it outlives an upgrade."""
    link = person.world.path("envwatch")
    link.symlink_to(COMMAND)
    code = (
        f"import sys; sys.argv[0] = {str(link)!r}; from envwatch import __main__;"
        f" sys.exit(__main__.main(['mcp', 'wrap', {str(file)!r}, '--workspace', 'w']))"
    )

    assert person.python(code, folder=person.world.top).code == 0

    text = "\n".join(line for line in file.read_text().splitlines() if "//" not in line)
    assert f'"command": "{link}"' in text
    assert json.dumps(str(link)) in text
