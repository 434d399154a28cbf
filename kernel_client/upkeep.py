"""What becomes of what is loaded when something has moved: steps 2 to 4 of a refresh.

The folder is walked, what is loaded is compared, adopted or taken back, and where an
answer is needed it is asked for and applied in one place.
"""

from __future__ import annotations

from os import getcwd

from kernel_client import (
    checks,
    environment as env,
    notice,
    outcome as outcomes,
    result as results,
    snapshot,
)
from kernel_client.discovery import CONFIG_NAMES, Discovery
from kernel_client.errors import SidecarError
from kernel_client.result import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kernel_client.answers import Answers, Request
    from kernel_client.checks import Checks
    from kernel_client.evaluation import Evaluated
    from kernel_client.fence import Fences, Guard
    from kernel_client.loaded import Loaded
    from kernel_client.roots import Walk
    from kernel_client.settings import Settings
    from kernel_client.shown import Shown
    from kernel_client.snapshot import Snapshot

MAX_ROUNDS = 4
"""How often a refresh starts again because something changed under it."""


_UNGUARDED: Guard = (frozenset(), None, None)


class Upkeep:
    """Keeps what is `loaded` what direnv would make of a folder.

    `folder` is its absolute path, None the working folder as it is then. Whoever
    calls sees to it that one thread does, and to whatever is raised.
    """

    def __init__(
        self,
        settings: Settings,
        folder: str | None,
        *,
        loaded: Loaded,
        fences: Fences,
        answers: Answers,
        shown: Shown,
    ) -> None:
        self._settings = settings
        self._folder = folder
        self._loaded = loaded
        self._fences = fences
        self._answers = answers
        self._shown = shown
        self._discovery = Discovery(settings.direnv)
        self._asked_for: set[str] = set()
        self._broken: list[str] | None = None

    def bring(self, *, forced: bool) -> tuple[Result | None, Walk | None]:
        """Bring what is loaded up to date with the folder.

        Gives the result, None where nothing changed; and the walk whose folder may
        be passed from now on as long as nothing moves in it, None where not.
        """
        self._answers.hear_notices()
        self._loaded.synchronise()
        direnv = self._direnv()
        if direnv is None:
            changed = self._loaded.unload() if self._loaded.record else ((), ())
            self._shown.hear_once(
                notice.no_direnv(self._settings.direnv)
                if env.NAMES_ARE_UTF8
                else notice.ENCODING
            )
            return Result(results.OFF, names=changed), None
        for left in range(MAX_ROUNDS, 0, -1):
            walk = self._walk()
            root = walk.root
            if root is None or walk.dotenv is not None:
                return self._leave(walk)
            # Somebody else's reload is only followed; our own is told to all.
            due = self._answers.reload_wanted(root) or forced
            if not due and (self._is_still(root) or self._adopt(root)):
                return None, walk
            request = self._loaded.request(direnv, root, self._settings.withheld)
            self._asked_for.add(root)
            answer, answered = self._ask(request, forced=forced)
            forced = False
            if answer is None:
                changed = self._loaded.unload()
                result = Result(
                    outcomes.TIMEOUT, root, answered=answered, names=changed
                )
                return result, None
            self._fences.renew()
            self._prepare(root, answer.snapshot)
            moved = answer.outcome == outcomes.ABSENT or (
                answer.snapshot is not None
                and snapshot.compare(answer.snapshot) is None
            )
            if moved and left > 1:
                # Something changed since direnv looked: look again.
                continue
            if moved:
                # What was armed since the files moved must not vouch for them.
                self._fences.renew()
                if answer.outcome == outcomes.ABSENT or not self._discovery.allows(
                    root, request.environment
                ):
                    # It never held still, and may not even be allowed by now.
                    changed = self._loaded.unload()
                    self._shown.hear_once(notice.failed("its files keep changing"))
                    result = Result(
                        outcomes.BROKEN, root, answered=answered, names=changed
                    )
                    return result, None
            changed = self._loaded.take(request, answer)
            if answer.outcome == outcomes.BROKEN:
                self._discovery.forget_direnv()
            result = Result(answer.outcome, root, answered=answered, names=changed)
            return result, walk
        raise AssertionError("the last round returns")

    def wanted(self) -> Request | None:
        """Give the question that a refresh would have now, if it had one."""
        self._answers.hear_notices()
        self._loaded.synchronise()
        direnv = self._direnv()
        root = None if direnv is None else self._walk().root
        if direnv is None or root is None or self._loaded.still(root):
            return None
        return self._loaded.request(direnv, root, self._settings.withheld)

    def checks(self, walk: Walk) -> Checks | None:
        """Give what the fast path compares in the folder of a walk; None: it cannot."""
        record = self._loaded.record
        held = () if record is None else record.snapshot
        if walk.folder is None or held is None or (record is None and walk.root):
            return None
        guard = _UNGUARDED if record is None else self._guard(record.root, held)
        return checks.of(walk, held, guard)

    def _is_still(self, root: str) -> bool:
        """Tell whether this root file is what is held, and nothing of it changed."""
        record = self._loaded.record
        if record is not None and record.root == root:
            self._prepare(root, record.snapshot)
        return self._loaded.still(root)

    def _prepare(self, root: str, held: Snapshot | None) -> None:
        """Take up a fence; what it covers is compared right after this."""
        if held is not None:
            self._fences.prepare(root, held, self._answers.link)

    def _ask(self, request: Request, *, forced: bool) -> tuple[Evaluated | None, str]:
        """Ask; what is broken in the same words at every run is said once."""
        repeated = self._broken
        if repeated is None:
            said = len(self._shown.lines)
            answer, answered = self._answers.ask(request, forced=forced)
            lines = self._shown.lines[said:]
        else:
            lines = self._shown.mute()
            try:
                answer, answered = self._answers.ask(request, forced=forced)
            finally:
                self._shown.unmute()
            if lines != repeated:
                for line in lines:
                    self._shown.hear(line)
        broken = answer is not None and answer.outcome == outcomes.BROKEN
        self._broken = lines if broken else None
        return answer, answered

    def _adopt(self, root: str) -> bool:
        """Adopt what was inherited, and only what direnv allows as it is now."""
        if root in self._asked_for or not self._loaded.is_inherited(root):
            return False
        # Where nothing but the four was left, there is nothing to be allowed.
        is_adopted = (
            not self._loaded.has_values
            or self._discovery.allows(root, env.passed(self._loaded.base()))
        ) and self._loaded.adopt(root)
        if is_adopted:
            # Nobody waits for what may have been asked for while it was starting.
            self._answers.cancel()
        return is_adopted

    def _leave(self, walk: Walk) -> tuple[Result, Walk | None]:
        """No root file above, or nobody knows which."""
        record = self._loaded.record
        if walk.dotenv is not None:
            changed = self._loaded.unload() if record else ((), ())
            self._shown.hear_once(notice.untold(walk.dotenv))
            return Result(outcomes.BROKEN, walk.dotenv, names=changed), None
        if record is None:
            return Result(outcomes.ABSENT), walk
        if record.diff is not None:
            self._shown.hear(notice.UNLOADING)
        changed = self._loaded.unload()
        self._answers.left(record.root)
        result = Result(results.UNLOADED, answered=results.RECORD, names=changed)
        return result, walk

    def _direnv(self) -> str | None:
        if not env.NAMES_ARE_UTF8:
            # direnv's JSON is UTF-8: names and values would come out as others.
            return None
        return self._discovery.direnv(self._loaded.of_base(("PATH",)).get("PATH"))

    def _walk(self) -> Walk:
        try:
            folder = self._folder or getcwd()
        except OSError:
            # The working folder was deleted: nothing is above it.
            folder = None
        names = self._loaded.of_base(CONFIG_NAMES)
        return self._discovery.walk(folder, names, self._loaded.base)

    def _guard(self, root: str, held: Snapshot) -> Guard:
        """Have what is held guarded by a fence where there is one."""
        try:
            return self._fences.guard(root, held, self._answers.link)
        except SidecarError:
            self._answers.drop()
            return self._fences.guard(root, held, None)
