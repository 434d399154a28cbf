"""What a kernel tells a front end that asks: its folder, and what the hook came to.

`envwatch console` asks in silent requests (`user_expressions`), so none of it is in
the person's history or output. Each answer is JSON in ASCII, so that a path that is
no UTF-8 gets through too, and never has a value of a variable.
"""

from __future__ import annotations

import json
import os

from kernel_client import default_client, ipython

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kernel_client.result import Result

SAID = "envwatch"
"""In the metadata of a `display_data`: what direnv said, no output of the cell."""


def attach() -> str:
    """Have what direnv says be told apart from what cells print; report."""
    default_client().output = _publish
    return report()


def report() -> str:
    """Tell where this kernel is, and what the hook came to since the last report.

    `outcome` is null where no refresh was made since; `is_told`: it was shown.
    """
    hook = ipython.hook_of(_shell())
    last = None if hook is None else hook.last
    is_new = last is not None and last is not _reported.get("last")
    _reported["last"] = last
    return json.dumps(
        {
            "folder": _folder(),
            "is_on": hook is not None and hook.is_on,
            "outcome": last.outcome if last is not None and is_new else None,
            "is_told": bool(last is not None and is_new and last.messages),
        }
    )


def move(folder: str) -> str:
    """Change the working folder; `error` of the report says why it was not."""
    error = None
    try:
        os.chdir(os.path.expanduser(folder))
    except (OSError, ValueError) as problem:
        error = getattr(problem, "strerror", None) or "it is no path"
    return json.dumps({**json.loads(report()), "error": error})


def _publish(line: str) -> None:
    _shell().display_pub.publish({"text/plain": line}, metadata={SAID: "said"})


def _folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None


def _shell() -> Any:
    from IPython.core.getipython import get_ipython

    return get_ipython()


_reported: dict[str, Result | None] = {}
