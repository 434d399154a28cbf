"""A run's output as lines that can paint nowhere else."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from envwatch.core.output import Line, Output, Span, Style, safe


def texts(output: Output) -> list[str]:
    """Give the lines without their styles."""
    return ["".join(span.text for span in line) for line in output.lines]


def of(*parts: str) -> Output:
    """Give the output of a run that prints these."""
    output = Output()
    for part in parts:
        output.add(part)
    return output


def test_lines_as_they_come() -> None:
    """A line goes on until it ends; an end adds no empty line."""
    output = of("a", "b\nc", "\n\n")
    assert texts(output) == ["ab", "c", ""]
    output.add("d")
    assert texts(output) == ["ab", "c", "", "d"]


def test_what_stands_on_lines_of_its_own() -> None:
    """A result begins a line, whatever was printed before, and ends it."""
    output = of("a")
    output.add_whole("1\n2")
    output.add("b")
    assert texts(output) == ["a", "1", "2", "b"]


@pytest.mark.parametrize(
    ("parts", "shown"),
    [
        (["10 %\r20 %\r30 %"], ["30 %"]),
        (["10 %", "\r20", " %", "\r"], ["20 %"]),
        (["10 %\r", "20 %\r", "\n", "done\r\n"], ["20 %", "done"]),
        (["a\r\nb\r", "\nc"], ["a", "b", "c"]),
    ],
)
def test_a_line_that_starts_again(parts: list[str], shown: list[str]) -> None:
    """A progress bar is one line, and touches no other."""
    assert texts(of(*parts)) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J\x1b[H", "\\x1b[2J\\x1b[H"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("\x1b[1A\x1b[31", "\\x1b[1A\\x1b[31"),
        ("a\x08b\x00\x7f\x9b", "a\\x08b\\x00\\x7f\\x9b"),
        ("\u202egnp", "\\u202egnp"),
        ("\udcff\ud800", "\\xff\\xed\\xa0\\x80"),
        ("\t|", "→   |"),
        ("\x1b[" + "1" * 5000 + "m", None),
    ],
    ids=ascii,
)
def test_everything_else_is_escaped(text: str, shown: str | None) -> None:
    """And marked as an escape, so that no text can pass for one."""
    (line,) = of(text).lines
    assert any(span.is_escape for span in line)
    if shown is not None and "\ud800" not in text:
        assert "".join(span.text for span in line) == shown
    assert all(letter.isprintable() for span in line for letter in span.text)


@given(st.lists(st.text()))
def test_nothing_unseen_comes_through(parts: list[str]) -> None:
    """Whatever is printed, in whatever pieces."""
    for line in of(*parts).lines:
        assert all(letter.isprintable() for span in line for letter in span.text)


@given(st.text(alphabet="ab\r\n\x1b[13m;"), st.integers(0, 50))
def test_pieces_change_nothing(text: str, at: int) -> None:
    """What is shown does not depend on where a piece ends."""
    assert of(text[:at], text[at:]).lines == of(text).lines


@pytest.mark.parametrize(
    ("codes", "style"),
    [
        ("1", Style(is_bold=True)),
        ("31", Style("red")),
        ("1;4;92", Style("bright_green", is_bold=True, is_underlined=True)),
        ("1;22;4;24;31;39", Style()),
        ("1;31;0", Style()),
        ("31;", Style()),
        ("38;5;1", Style()),
        ("38;2;1;4;31;1", Style(is_bold=True)),
        ("31;48;5;32", Style("red")),
        ("38:5:31", Style()),
        ("31;38;5;200", Style()),
        ("7;8;5", Style()),
    ],
)
def test_styles(codes: str, style: Style) -> None:
    """Bold, underlined, the terminal's own colours; others leave none."""
    assert of(f"\x1b[{codes}mx").lines == [(Span("x", style),)]


def test_styles_go_on_over_lines() -> None:
    """Until they are put back; not over what stands on lines of its own."""
    red = Style("red")
    output = of("\x1b[3", "1ma\nb\rc")
    assert output.lines == [(Span("a", red),), (Span("c", red),)]
    output.add_whole("r\x1b[1m")
    output.add("d")
    assert output.lines[2:] == [(Span("r"),), (Span("d"),)]


def test_a_style_of_what_a_line_starts_over() -> None:
    """The colour stays, the letters go."""
    assert of("\x1b[32mab\rc").lines == [(Span("c", Style("green")),)]


def test_of_much_output_the_end_is_kept() -> None:
    """How much is missing is said."""
    output = Output(max_lines=2)
    for number in range(4):
        output.add(f"{number}\n")
    assert texts(output) == ["(2 lines before this left out)", "2", "3"]
    assert output.lines[0][0].is_escape
    output = Output(max_lines=1)
    output.add("a\nb\n")
    assert texts(output) == ["(1 line before this left out)", "b"]


@given(st.lists(st.text(alphabet="a\r\x1b[1m"), max_size=8), st.integers(1, 3))
def test_what_is_passed_over_changes_nothing(texts: list[str], max_lines: int) -> None:
    """Much output at once shows what the same line by line does."""
    at_once, by_lines = Output(max_lines=max_lines), Output(max_lines=max_lines)
    at_once.add("".join(f"{text}\n" for text in texts))
    for text in texts:
        by_lines.add(f"{text}\n")
    assert at_once.lines == by_lines.lines


def test_of_a_long_line_the_beginning_is_kept() -> None:
    """The rest is counted, also when it comes in pieces; another line has its own."""
    output = Output(max_letters=3)
    for part in ("ab", "cd", "efg", "\n", "hi"):
        output.add(part)
    assert texts(output) == ["abc... (4 more letters)", "hi"]
    output.add("jklm\rn")
    assert texts(output)[1:] == ["n"]


def test_a_line_of_ours() -> None:
    """Colours are escaped, too."""
    line: Line = safe("a\x1b[1m\n")
    assert "".join(span.text for span in line) == "a\\x1b[1m\\n"
