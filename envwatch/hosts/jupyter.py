"""The kernel provisioner: a kernel's interpreter starts in its workspace's environment.

Some variables count when an interpreter starts and never again (LD_LIBRARY_PATH,
PYTHONPATH, the PATH that finds the interpreter). The extension in the kernel comes
too late for these; the provisioner loads them before. It is named in the `metadata`
of a kernelspec that `envwatch jupyter install` has written, and is otherwise
Jupyter's own local provisioner.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

from jupyter_client.provisioning.local_provisioner import LocalProvisioner
from traitlets import Float

from envwatch.hosts.start import started

NAME = "envwatch"
"""The name of the entry point, and in a kernelspec."""


class Provisioner(LocalProvisioner):
    """Starts a local kernel in the environment that direnv gives its folder."""

    wait_s = Float(
        20.0,
        help="How long the start of a kernel waits for direnv, in seconds. Then it"
        " starts without the workspace's environment, and its first cell waits.",
    ).tag(config=True)

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Prepare the launch as the local provisioner does, then the environment."""
        prepared = await super().pre_launch(**kwargs)
        folder = os.fspath(prepared.get("cwd") or ".")
        # On a thread: the server's other kernels go on meanwhile.
        start = await asyncio.to_thread(
            started, prepared["env"], folder, wait_s=self.wait_s
        )
        for line in start.ours:
            if start.without:
                self.log.warning(line)
            else:
                self.log.info(line)
        prepared["env"] = start.environ
        return prepared
