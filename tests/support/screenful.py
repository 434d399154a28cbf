"""What is to be read on the screen of a Textual program that a pilot drives."""

from __future__ import annotations

import time
from typing import Any

from textual.app import App
from textual.pilot import Pilot

from tests.support import planted

DEADLINE_S = 10.0


def text_of(app: App[Any]) -> str:
    """Give the screen as lines of text, without colours and styles."""
    strips = app.screen._compositor.render_strips()
    text = "\n".join(strip.text.rstrip() for strip in strips)
    planted.collect("a screen", text)
    return text


async def see(pilot: Pilot[Any], *texts: str, gone: tuple[str, ...] = ()) -> str:
    """Wait until all of these are on the screen, and none of `gone`; give it."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        await pilot.pause(0.01)
        screen = text_of(pilot.app)
        if all(text in screen for text in texts) and not any(
            text in screen for text in gone
        ):
            return screen
        assert time.monotonic() < deadline, f"not seen: {texts} {gone}\n{screen}"
