"""What asks a sidecar once a second, with a sidecar that is scripted, or real."""

from __future__ import annotations

import queue
from collections.abc import Iterator

import pytest

from envwatch.views.feed import Feed, Heard, Lost, Reloaded, Told
from kernel_client import Settings, messages, sidecar
from kernel_client.errors import SidecarError
from tests.conftest import OLDER
from tests.support.daemons import Daemon, until
from tests.support.pairs import NO_COMMAND

pytestmark = pytest.mark.parametrize("version", [OLDER], indirect=True)

DEADLINE_S = 20.0


class Ears:
    """Hears what comes; every wait has an end."""

    def __init__(self) -> None:
        self._heard: queue.Queue[Heard] = queue.Queue()
        self.hear = self._heard.put

    def next(self) -> Heard:
        """Give what comes next."""
        return self._heard.get(timeout=DEADLINE_S)

    def until(self, kind: type[Heard]) -> Heard:
        """Give the next of one kind."""
        while not isinstance(heard := self.next(), kind):
            pass
        return heard


class Feeding:
    """A feed of a real sidecar, and the connections that it has made."""

    def __init__(self, daemon: Daemon) -> None:
        self.settings = Settings(sidecar=NO_COMMAND, socket=str(daemon.socket))
        self.ears = Ears()
        self.links: list[sidecar.Link] = []
        self.feed = Feed(self.connect, self.ears.hear, every_s=0.02)

    def connect(self) -> sidecar.Link:
        """Connect as the command does."""
        self.links.append(sidecar.connect(self.settings, {}, None))
        return self.links[-1]


@pytest.fixture
def feeding(daemon: Daemon) -> Iterator[Feeding]:
    """Give one that asks already."""
    made = Feeding(daemon)
    made.feed.open()
    yield made
    made.feed.close()


def test_it_asks_again_and_again_over_one_connection(feeding: Feeding) -> None:
    """Each answer has its time; the sidecar sees one that asks."""
    told = [feeding.ears.until(Told) for _ in range(5)]
    assert len(feeding.links) == 1
    times = [each.at for each in told if isinstance(each, Told)]
    assert times == sorted(set(times))
    assert all(isinstance(each, Told) and each.status["kernels"] == 1 for each in told)


def test_it_sends_nothing_but_its_questions(feeding: Feeding) -> None:
    """One frame each way for one question: so the view can leave its own out."""
    first, second = feeding.ears.until(Told), feeding.ears.until(Told)
    assert isinstance(first, Told)
    assert isinstance(second, Told)
    before, after = first.status["frames"], second.status["frames"]
    assert after["received"] - before["received"] == 1
    assert after["sent"] - before["sent"] == 1


def test_a_sidecar_that_dies_and_comes_back(daemon: Daemon, feeding: Feeding) -> None:
    """It is said that it has gone, then that nobody listens, and it goes on."""
    feeding.ears.until(Told)
    daemon.kill()
    lost = feeding.ears.until(Lost)
    assert isinstance(lost, Lost)
    assert lost.is_absent
    while "no sidecar listens" not in lost.reason:
        lost = feeding.ears.until(Lost)
        assert isinstance(lost, Lost)
    daemon.start()
    assert isinstance(feeding.ears.until(Told), Told)


def test_a_reload_is_told_at_once(feeding: Feeding) -> None:
    """It goes over the same connection, and what it came to is said."""
    feeding.ears.until(Told)
    feeding.feed.reload("/w/.envrc")
    assert feeding.ears.until(Reloaded) == Reloaded("/w/.envrc", 0)
    assert len(feeding.links) == 1


def test_a_reload_without_a_sidecar(daemon: Daemon, feeding: Feeding) -> None:
    """That it reached nobody is said too."""
    daemon.kill()
    feeding.ears.until(Lost)
    feeding.feed.reload("/w/.envrc")
    assert feeding.ears.until(Reloaded) == Reloaded("/w/.envrc", None)


def test_other_trouble_is_not_absence(version: str) -> None:
    """Where a sidecar could not be used, none is to be started beside it."""

    def connect() -> sidecar.Link:
        raise SidecarError("unsafe", "the folder can be written by others")

    ears = Ears()
    feed = Feed(connect, ears.hear, every_s=0.02)
    feed.open()
    try:
        lost = ears.next()
    finally:
        feed.close()
    assert lost == Lost("the folder can be written by others", is_absent=False)


def test_closed_means_quiet(daemon: Daemon) -> None:
    """The thread has ended, its connection is closed, and nothing comes any more."""
    made = Feeding(daemon)
    made.feed.open()
    made.ears.until(Told)
    made.feed.close()
    assert not made.feed._thread.is_alive()
    link = sidecar.connect(made.settings, {}, None)
    try:
        until(
            "only this connection is left",
            lambda: (
                link.request(messages.status(link.number()))["status"]["kernels"] == 1
            ),
        )
    finally:
        link.close()
