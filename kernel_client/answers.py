"""Who answers: the sidecar where there is one that can be used, else direnv.

Owns the connection and whatever evaluation still runs. The two ways give the
same answer because they run the same `evaluate`; whenever the sidecar is absent,
silent, gone or says something odd, direnv is asked directly.
"""

from __future__ import annotations

import time

from kernel_client import (
    environment as env,
    notice,
    outcome as outcomes,
    result as results,
)
from kernel_client.echo import Echo
from kernel_client.errors import SidecarError
from kernel_client.settings import OFF

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kernel_client import sidecar, wire
    from kernel_client.evaluation import Evaluated
    from kernel_client.hold import Asked, Direct
    from kernel_client.settings import Settings
    from kernel_client.tally import Tally

START_AGAIN_S = 60.0
"""A sidecar that did not come up is not started again sooner."""

_FIRST_NOTE_S = 5.0


class Request:
    """What a kernel wants to know: a root file over a base.

    `environment` is what an evaluation may see of the base, `fingerprint` its
    name on the pipe.
    """

    __slots__ = ("base", "direnv", "environment", "fingerprint", "known", "root")

    def __init__(
        self,
        direnv: str,
        root: str,
        base: env.Environment,
        withheld: tuple[str, ...],
        known: Iterable[str],
    ) -> None:
        self.direnv = direnv
        self.root = root
        self.base = base
        self.environment = env.passed(base, withheld)
        self.fingerprint = env.fingerprint(self.environment)
        self.known = tuple(known)


class Answers:
    """Asks, waits, streams what direnv says, and gives one answer.

    `link` is the connection to the sidecar, or None.
    """

    def __init__(
        self,
        settings: Settings,
        hear: Callable[[str], None],
        on_fence: Callable[[wire.Frame, int], None],
        tally: Tally | None = None,
    ) -> None:
        self._tally = tally
        self._on_fence = None if settings.fence == OFF else on_fence
        self._settings = settings
        self._hear = hear
        self.link: sidecar.Link | None = None
        self._asked: Asked | None = None
        self._direct: Direct | None = None
        self._direct_key: tuple[str, str, bool] | None = None
        self._start_after = 0.0
        self._echo = Echo(hear)
        self._reload_wanted: set[str] = set()
        self._shared = settings.fd is not None or settings.sidecar != OFF

    # ------------------------------------------------------------ the pipe

    def hear_notices(self) -> None:
        """Read what the sidecar sent unasked; notice when it has gone."""
        link = self.link
        if link is None or not link.poll(0):
            return
        try:
            while link.poll(0):
                for frame in link.receive(0):
                    self._notice(frame)
        except SidecarError:
            self.drop()

    def reload_wanted(self, root: str) -> bool:
        """Tell, once, whether somebody asked for a reload of this root file."""
        if root not in self._reload_wanted:
            return False
        self._reload_wanted.discard(root)
        # What was asked for before the reload does not answer it.
        self.cancel()
        return True

    def left(self, root: str) -> None:
        """Tell the sidecar that the root file is not loaded here any more."""
        from kernel_client import messages

        if self.link is None:
            return
        try:
            self.link.send(messages.left(root))
        except SidecarError:
            self.drop()

    def drop(self) -> None:
        """Give up the connection; the next question tries again."""
        link, self.link = self.link, None
        self._asked = None
        if link is not None:
            link.close()

    def close(self) -> None:
        """Drop the connection and end what still runs."""
        self.cancel()
        self.drop()

    def forget(self) -> None:
        """In a forked child: connection and evaluations belong to the parent."""
        self.drop()
        self._direct = None

    # ------------------------------------------------------------ questions

    def prefetch(self, request: Request) -> None:
        """Send the question without waiting; `ask` will use its answer."""
        link = self._linked(request)
        if link is not None and not self._is_asked(request, link):
            self._asked = self._send(link, request)

    def ask(self, request: Request, *, forced: bool) -> tuple[Evaluated | None, str]:
        """Give (answer, who answered); no answer when the hold ended first.

        `forced` asks for a new evaluation even where a kept diff would do.
        """
        deadline = time.monotonic() + self._settings.wait_s
        waiting = self._waiting(request.root)
        self._echo = Echo(self._hear)
        whole = False
        try:
            link = self._linked(request)
            if link is not None:
                answer = self._of_sidecar(
                    link, request, deadline, waiting, forced=forced
                )
                if answer is None:
                    self._hear(notice.gave_up(request.root, self._settings.wait_s))
                    return None, results.SIDECAR
                whole = self._withheld(answer)
                if answer.outcome not in _ASK_DIRENV and not whole:
                    return answer, results.SIDECAR
        except SidecarError:
            self.drop()
        return self._of_direnv(request, deadline, waiting, whole=whole), results.DIRENV

    def cancel(self) -> None:
        """Nobody waits any more: end what runs for this kernel."""
        direct, self._direct = self._direct, None
        if direct is not None:
            direct.cancel()
        asked, self._asked = self._asked, None
        if asked is not None:
            try:
                asked.cancel()
            except SidecarError:
                self.drop()

    # ------------------------------------------------------------ one way each

    def _of_sidecar(
        self,
        link: sidecar.Link,
        request: Request,
        deadline: float,
        waiting: Callable[[str], None],
        *,
        forced: bool,
    ) -> Evaluated | None:
        from kernel_client import messages

        if forced:
            link.send(messages.reload(link.number(), root=request.root))
        asked = self._asked
        was_asked = not forced and self._is_asked(request, link)
        if asked is None or not was_asked:
            if asked is not None and asked.link is link:
                asked.cancel()
            asked = self._asked = self._send(link, request)
        answer = asked.wait(
            deadline - time.monotonic(), self._echo, waiting, self._notice
        )
        if answer is None:
            return None
        self._asked = None
        if was_asked and answer.snapshot is None:
            # Asked for earlier, and cannot be compared: it may be older than now.
            return self._of_sidecar(link, request, deadline, waiting, forced=False)
        return answer

    def _of_direnv(
        self,
        request: Request,
        deadline: float,
        waiting: Callable[[str], None],
        *,
        whole: bool = False,
    ) -> Evaluated | None:
        """Run direnv here; `whole` passes withheld variables too."""
        from kernel_client.hold import Direct

        self._echo.again()
        key = (request.root, request.fingerprint, whole)
        was_running = self._direct is not None and self._direct_key == key
        if self._direct is None or not was_running:
            if self._direct is not None:
                self._direct.cancel()
            self._direct = Direct(
                request.direnv,
                request.root,
                env.passed(request.base) if whole else request.environment,
                known=request.known,
                kill_s=self._settings.kill_s,
            )
            self._direct_key = key
        left_s = max(0.0, deadline - time.monotonic())
        answer = self._direct.wait(left_s, self._echo, waiting)
        if answer is None:
            self._hear(notice.gave_up(request.root, self._settings.wait_s))
            return None
        self._direct = None
        if was_running and answer.snapshot is None:
            # Begun earlier, and cannot be compared: it may be older than now.
            return self._of_direnv(request, deadline, waiting, whole=whole)
        if not whole and self._withheld(answer):
            return self._of_direnv(request, deadline, waiting, whole=True)
        return answer

    def _linked(self, request: Request) -> sidecar.Link | None:
        if self.link is None and self._shared:
            from kernel_client import sidecar

            try:
                self.link = sidecar.connect(
                    self._settings, request.base, request.direnv, self._on_fence
                )
                self.link.tally = self._tally
                self._start_after = 0.0
            except SidecarError as error:
                if error.code == "absent":
                    self._start(request.base)
        return self.link

    def _start(self, base: Mapping[str, str]) -> None:
        now = time.monotonic()
        if now < self._start_after:
            return
        self._start_after = now + START_AGAIN_S
        from kernel_client import sidecar

        program = sidecar.command(self._settings, base)
        if program is not None:
            try:
                sidecar.start(program, self._settings, base)
            except SidecarError:
                return

    def _send(self, link: sidecar.Link, request: Request) -> Asked:
        from kernel_client.hold import Asked

        return Asked(
            link,
            request.root,
            request.fingerprint,
            request.direnv,
            request.environment,
        )

    def _is_asked(self, request: Request, link: sidecar.Link) -> bool:
        asked = self._asked
        return (
            asked is not None
            and asked.link is link
            and asked.root == request.root
            and asked.fingerprint == request.fingerprint
        )

    def _notice(self, frame: wire.Frame) -> None:
        """Take a frame that answers no question that is being waited for."""
        if frame["type"] == "changed" and frame["reason"] == "reload":
            self._reload_wanted.add(frame["root"])
        elif self._asked is not None:
            self._asked.keep(frame)

    def _withheld(self, answer: Evaluated) -> bool:
        patterns = self._settings.withheld
        return any(
            env.is_withheld(name, patterns) for name in (*answer.set, *answer.unset)
        )

    def _waiting(self, root: str) -> Callable[[str], None]:
        """Give what is called about once a second of a silent hold."""
        started = time.monotonic()
        said = False

        def note(_: str) -> None:
            nonlocal said
            elapsed_s = time.monotonic() - started
            if not said and elapsed_s >= _FIRST_NOTE_S:
                said = True
                self._hear(notice.held(root, elapsed_s))

        return note


_ASK_DIRENV = frozenset({outcomes.BROKEN, outcomes.CANCELLED})
"""Answers of the sidecar that a kernel does not take on trust."""
