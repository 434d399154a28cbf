"""The report is one page that fetches nothing and that no text can break."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest

from bench.findings import Distribution, Row
from bench.machine import Moment
from bench.report import plots
from bench.report.found import Found
from bench.report.page import html

EVIL = "</title><script>alert('x')</script>&\"<svg onload=x>"
CURVES = [
    Distribution("hook", "By files", label, (1e-6 * at, 2e-6 * at), at, "files")
    for label in ("refresh()", "bare")
    for at in (3.0, 30.0)
]
STEPS = [
    Distribution("hook", "Each call", label, tuple(1e-6 * at for at in range(1, 50)))
    for label in ("refresh()", "bare", EVIL)
]


class Page(HTMLParser):
    """Collects what a page would fetch or run, its names and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.tags: list[str] = []
        self.names: list[str] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep what it is, and whatever leads elsewhere."""
        self.tags.append(tag)
        for name, value in attrs:
            assert not name.startswith("on"), (tag, name)
            if name == "id":
                self.names.append(value or "")
            if name in ("src", "href", "xlink:href", "data", "action"):
                self.fetched.append(value or "")

    def handle_data(self, data: str) -> None:
        """Keep the text."""
        self.texts.append(data)


@pytest.fixture(scope="module")
def found() -> Found:
    """Give a run with each kind of row, and both kinds of chart."""
    quiet = Moment(1e-3, 0.1, 0, 1000, 7)
    noisy = Moment(2e-3, 0.1, 0, 2000, 49)
    found = Found({"cores": "2", "direnv": EVIL}, is_quick=True)
    found.moments += [quiet, noisy]
    found.add(Row("hook", EVIL, "<= 1 x", EVIL, met=False))
    found.add(Row("hook", "  beside it", "-", "cannot run: there is no mise"))
    for each in CURVES + STEPS:
        found.add(each)
    return found


def test_nothing_is_fetched(found: Found) -> None:
    """Only its own parts, and an empty icon, are pointed at."""
    text = html(found)
    page = Page(text)
    assert page.fetched
    assert all(each.startswith(("#", "data:,")) for each in page.fetched)
    assert "script" not in page.tags
    assert "@import" not in text
    outside = re.findall(r"url\((?!#)", text)
    assert outside == []


def test_text_is_text(found: Found) -> None:
    """Whatever a label has in it."""
    page = Page(html(found))
    said = "".join(page.texts)
    assert said.count(EVIL) >= 3
    assert "NOT MET" in said
    assert "cannot run: there is no mise" in said
    assert "noisy" in said
    assert "42 processes and threads" in said


def test_names_are_for_the_whole_page(found: Found) -> None:
    """Two charts do not take each other's clips."""
    page = Page(html(found))
    assert len(page.names) == len(set(page.names))
    pointed = {each[1:] for each in page.fetched if each.startswith("#")}
    assert pointed <= set(page.names)


@pytest.mark.parametrize("drawn", [CURVES, STEPS], ids=["curves", "steps"])
def test_chart(drawn: list[Distribution]) -> None:
    """It is XML, takes the page's colour and width, and has every label as text."""
    text = plots.svg(drawn)
    root = ET.fromstring(text)
    assert root.get("viewBox")
    assert root.get("width") is None
    assert root.get("height") is None
    assert "currentColor" in text
    assert "#010203" not in text
    said = "".join(root.itertext())
    for label in {each.label for each in drawn}:
        assert label in said


def test_lines_differ_without_colour() -> None:
    """By their dashes."""
    text = plots.svg(CURVES)
    dashes = re.findall(r"stroke-dasharray: ([\d., ]+)", text)
    assert dashes


def test_a_quiet_machine() -> None:
    """Is said to be quiet."""
    found = Found({"cores": "2"})
    found.moments += [Moment(1e-3, 0.1, 0, 1000, 7)] * 2
    assert "The machine was quiet." in html(found)
