"""The rows of an MCP client's file, wrapped and unwrapped. Pure."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from envwatch.errors import BadFile
from envwatch.jsonc import parse
from envwatch.servers import State, rows, unwrapped, wrapped

PROGRAM = "/opt/bin/envwatch"
EXEC = ["exec", "--", "/w"]


def wrap(text: str, *options: str) -> str:
    """Wrap for the workspace /w."""
    return wrapped(text, PROGRAM, "/w", options)


def file(row: Any, section: str = "mcpServers") -> str:
    """Give a file with one row."""
    return json.dumps({section: {"a": row}})


def only(text: str) -> Any:
    """Give the one row of a file."""
    return next(iter(json.loads(text).values()))["a"]


@pytest.mark.parametrize("section", ["mcpServers", "servers"])
@pytest.mark.parametrize("more", [{}, {"type": "stdio"}, {"cwd": "/x", "unknown": [1]}])
def test_shapes(section: str, more: dict[str, Any]) -> None:
    """The usual clients' shapes; what is beside command and args stays."""
    text = file({**more, "command": "npx", "args": ["-y", "srv"]}, section)

    row = only(wrap(text))

    assert row == {**more, "command": PROGRAM, "args": [*EXEC, "npx", "-y", "srv"]}
    assert list(row) == [*more, "command", "args"]


@pytest.mark.parametrize(
    ("row", "args"),
    [
        ({"command": "srv"}, [*EXEC, "srv"]),
        ({"command": "srv", "args": []}, [*EXEC, "srv"]),
        ({"args": ["x"], "command": "srv"}, [*EXEC, "srv", "x"]),
        ({"command": 'a "b" \\ é'}, [*EXEC, 'a "b" \\ é']),
        ({"command": "envwatch", "args": ["mcp"]}, [*EXEC, "envwatch", "mcp"]),
        ({"command": "srv", "env": {}}, [*EXEC, "srv"]),
    ],
)
def test_args(row: dict[str, Any], args: list[str]) -> None:
    """The original command and its arguments come after the workspace."""
    assert only(wrap(file(row)))["args"] == args


def test_own_env_of_a_row() -> None:
    """A row's own names are kept by name; their values stay where they are."""
    row = {"command": "srv", "env": {"API_KEY": "hidden", "ENV": "x", "A=B": ""}}

    made = only(wrap(file(row), "--clear=DSH_"))

    options = ["--clear=DSH_", "--keep=API_KEY", "--keep=ENV", "--keep=A=B"]
    assert made["args"] == ["exec", *options, "--", "/w", "srv"]
    assert made["env"] == row["env"]


LEFT = [
    ({"url": "x"}, "URL"),
    ({"type": "http", "url": "x"}, "URL"),
    ({"type": "sse", "command": "x"}, "type"),
    ({"type": 1, "command": "x"}, "type"),
    ({"command": "x", "serverUrl": "x"}, "URL"),
    ({"command": ""}, "no command"),
    ({"command": ["x"]}, "no command"),
    ({"args": ["x"]}, "no command"),
    ({}, "no command"),
    ({"command": "x", "args": "y"}, "args"),
    ({"command": "x", "args": [1]}, "args"),
    ({"command": "x", "args": None}, "args"),
    ({"command": "x", "env": []}, "env"),
    ({"command": "envwatch", "args": ["exec", "/w"]}, "cannot be read"),
    ("x", "not an object"),
    (None, "not an object"),
]


@pytest.mark.parametrize(("row", "reason"), LEFT)
def test_left_as_it_is(row: Any, reason: str) -> None:
    """Rows over HTTP and rows that are not understood stay, with a reason."""
    text = file(row)

    assert wrap(text) == text == unwrapped(text)
    (found,) = rows(text)
    assert found.state is State.LEFT
    assert reason in found.reason


def test_key_that_is_there_twice() -> None:
    """Which of the two counts is the client's affair."""
    text = '{"servers": {"a": {"command": "x", "command": "y"}}}'

    assert wrap(text) == text


@pytest.mark.parametrize(
    "text", ["", "[]", "{", "null", '{"x": 1}', '{"servers": []}', '{"mcpServers": 1}']
)
def test_no_such_file(text: str) -> None:
    """Broken JSON, and files of something else."""
    for change in (rows, wrap, unwrapped):
        with pytest.raises(BadFile):
            change(text)


def test_wrapping_twice() -> None:
    """Changes nothing, also for another workspace."""
    text = wrap(file({"command": "x", "env": {"A": "1"}}))

    assert wrap(text) == text
    assert wrapped(text, "/other/envwatch", "/other", ()) == text


def test_rows() -> None:
    """In order, over both sections, with the workspace of those that have one."""
    text = '{"servers": {"a": {"command": "x"}, "b": {"url": ""}}, "mcpServers": {"a": {"command": "y"}}}'
    states = [(row.name, row.state) for row in rows(text)]
    assert states == [("a", State.LOCAL), ("b", State.LEFT), ("a", State.LOCAL)]

    found = rows(wrap(text))

    assert [row.state for row in found] == [State.WRAPPED, State.LEFT, State.WRAPPED]
    assert found[0].workspace == "/w"


STYLES = {
    "lines": """{
  // mine
  "mcpServers": {
    "a": {
      "command": "npx", // c
      "args": [
        "-y", /* why */
        "srv", // last
      ],
    },
  }, // end
}
""",
    "one line": '{"servers": {"a": {"command": "npx", "args": ["-y"]}}}',
    "compact": '{"servers":{"a":{"args":["-y"],"command":"npx"},"b":{"command":"x"}}}',
    "tabs": '{\n\t"servers": {\n\t\t"a": {\n\t\t\t"command": "x"\n\t\t}\n\t}\n}',
    "crlf": '{\r\n "servers": {\r\n  "a": {\r\n   "command": "x",\r\n   "args": [\r\n    "y"\r\n   ]\r\n  },\r\n  "b": {\r\n   "command": "z"\r\n  }\r\n }\r\n}\r\n',
    "comments": '{"servers": {"a": {/*1*/"command"/*2*/:/*3*/"x"/*4*/,/*5*/"args"/*6*/:/*7*/[/*8*/"y"/*9*/,/*a*/]/*b*/}}}',
    "empty": '{"servers": {"a": {"command": "x", "args": [ /* none */ ]}, "b": {"command": "x", "args": [\n\n]}}}',
    "missing": '{"servers": {"a": {"command": "x"}, "b": {"command": "x", "args": []}, "c": {"command":"x","args":[]}}}',
    "escaped": r'{"servers": {"a": {"command": "np\u0078 \/", "args": ["\u0061"]}}}',
    "bom": '\ufeff{"servers": {"a": {"command": "x"}}}',
}


@pytest.mark.parametrize("text", STYLES.values(), ids=STYLES)
def test_unwrapping_gives_every_byte_back(text: str) -> None:
    """Comments, commas, spaces, escapes: all as it was."""
    made = wrap(text)

    assert made != text
    assert all(row.state is State.WRAPPED for row in rows(made))
    assert unwrapped(made) == text


def test_style_is_followed() -> None:
    """What is added looks like what is there."""
    assert '"command": "/opt/bin/envwatch", // c\n' in wrap(STYLES["lines"])
    assert '[\n        "exec",\n        "--",\n        "/w",\n' in wrap(STYLES["lines"])
    assert f'"command": "{PROGRAM}",\n\t\t\t"args": [' in wrap(STYLES["tabs"])
    assert "\n" not in wrap(STYLES["crlf"]).replace("\r\n", "")
    assert " " not in wrap(STYLES["compact"])


SPACE = st.sampled_from(["", " ", "  ", "\n", "\n  ", "\r\n\t", " /* , */ ", " // ]\n"])


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Give a file of any style with rows of any shape."""

    def spaced(*tokens: str) -> str:
        return "".join(draw(SPACE) + token for token in tokens) + draw(SPACE)

    def joined(opened: str, closed: str, pieces: list[str]) -> str:
        last = draw(st.sampled_from(["", ","])) if pieces else ""
        return spaced(opened + ",".join(pieces) + last + draw(SPACE) + closed)

    def string(value: str) -> str:
        return json.dumps(value, ensure_ascii=draw(st.booleans()))

    def row() -> str:
        fields = {"command": string(draw(st.text(min_size=1)))}
        if draw(st.booleans()):
            args = draw(st.lists(st.text(), max_size=3))
            fields["args"] = joined("[", "]", [spaced(string(each)) for each in args])
        if draw(st.booleans()):
            fields["env"] = '{"A": "1"}'
        if draw(st.booleans()):
            fields["url"] = '"x"'
        names = draw(st.permutations(list(fields)))
        return joined("{", "}", [spaced(f'"{n}"', ":", fields[n]) for n in names])

    section = joined(
        "{", "}", [spaced(f'"{n}"', ":", row()) for n in range(draw(st.integers(0, 3)))]
    )
    return joined("{", "}", [spaced('"mcpServers"', ":", section)])


@given(texts())
def test_every_style(text: str) -> None:
    """Whatever a file looks like: wrapped it is JSON still, and it comes back."""
    before = [row.state for row in rows(text)]
    made = wrap(text)
    parse(made)

    after = [row.state for row in rows(made)]
    expected = {State.LOCAL: State.WRAPPED}
    assert after == [expected.get(state, state) for state in before]
    assert wrap(made) == made
    assert unwrapped(made) == text


@given(texts(), st.sampled_from([None, 1, 4]), st.booleans())
def test_rewritten_by_a_client(
    text: str, indent: int | None, is_compact: object
) -> None:
    """A client that writes its file anew loses the style, and no row its meaning."""
    made = _meaning(wrap(text))
    separators = (",", ":") if is_compact else None
    again = json.dumps(made, indent=indent, separators=separators)

    restored = _meaning(unwrapped(again))

    assert _with_args(restored) == _with_args(_meaning(text))


def _meaning(text: str) -> Any:
    def of(value: Any) -> Any:
        if value.members:
            return {each.key.text: of(each.value) for each in value.members}
        if value.items:
            return [of(item) for item in value.items]
        text_of = text[value.start : value.end]
        return (
            {"{": {}, "[": []}.get(text_of[0])
            if text_of[0] in "{["
            else json.loads(text_of)
        )

    return of(parse(text))


def _with_args(found: Any) -> Any:
    """Take no `args` for empty ones: a server cannot tell them apart."""
    for row in found["mcpServers"].values():
        row.setdefault("args", [])
    return found


def test_edited_meanwhile() -> None:
    """Only our rows are taken back; what somebody added stays."""
    made = json.loads(wrap(file({"command": "x", "args": ["y"]})))
    made["mcpServers"]["b"] = {"command": "new"}
    made["mcpServers"]["a"]["args"].append("z")
    made["mcpServers"]["a"]["env"] = {"A": "1"}

    found = json.loads(unwrapped(json.dumps(made, indent=1)))

    assert found["mcpServers"] == {
        "a": {"command": "x", "args": ["y", "z"], "env": {"A": "1"}},
        "b": {"command": "new"},
    }


@pytest.mark.parametrize(
    "args",
    [
        '["exec", "--", "/w", "x",]',
        '["exec","--","/w","x",]',
        '["exec",\n"--",\n"/w",\n"x", // c\n]',
    ],
)
def test_comma_that_was_added(args: str) -> None:
    """A trailing comma after our last item goes with it."""
    text = f'{{"servers": {{"a": {{"command": "{PROGRAM}", "args": {args}}}}}}}'

    found = unwrapped(text)

    assert parse(found).members
    assert rows(found)[0].state is State.LOCAL
    args_value = rows(found)[0].value.get("args")
    assert args_value is not None
    assert args_value.items == []


def test_args_moved_away_from_command() -> None:
    """Where somebody put a key in between, the key `args` stays, empty."""
    text = f'{{"servers": {{"a": {{"command": "{PROGRAM}", "env": {{}}, "args": ["exec","--","/w","x"]}}}}}}'

    assert only(unwrapped(text)) == {"command": "x", "env": {}, "args": []}


def test_comment_beside_added_args() -> None:
    """A comment that somebody wrote before the key `args` is not taken away."""
    command = f'"command": "{PROGRAM}", /* mine */'
    text = f'{{"servers": {{"a": {{{command} "args": ["exec","--","/w","x"]}}}}}}'

    found = unwrapped(text)

    assert found == '{"servers": {"a": {"command": "x", /* mine */ "args": []}}}'
