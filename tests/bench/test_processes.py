"""What the system tells of a process, of real ones."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

from bench import processes
from kernel_client import arming, instances

ECHO = "import sys\nfor line in iter(sys.stdin.readline, ''): print(line, end='', flush=True)"
BURN_OF_A_THREAD = "import time\nwhile time.thread_time() < 0.2: pass"
BURN = "import time\nwhile time.process_time() < 0.2: pass"


def test_cpu_of_itself_and_of_its_children() -> None:
    """A child counts once it has ended."""
    before = processes.cpu_s(os.getpid())
    subprocess.run([sys.executable, "-c", BURN], check=True)
    assert processes.cpu_s(os.getpid()) - before >= 0.19


def test_memory() -> None:
    """In KiB: more than a megabyte, less than all there is."""
    assert 1024 < processes.rss_kb(os.getpid()) < 2**26


def test_wake_ups() -> None:
    """A process that waits twice goes to sleep at least twice."""
    with subprocess.Popen(
        [sys.executable, "-c", ECHO],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        asked, told = child.stdin, child.stdout
        assert asked is not None
        assert told is not None

        def exchange() -> None:
            asked.write("x\n")
            asked.flush()
            assert told.readline() == "x\n"
            while Path(f"/proc/{child.pid}/stat").read_text().split()[2] != "S":
                assert child.poll() is None

        exchange()
        before = processes.sleeps(child.pid)
        exchange()
        exchange()
        after = processes.sleeps(child.pid)
        assert processes.wake_ups(before, after) >= 2
        asked.close()


def test_threads_that_have_ended() -> None:
    """What they did is not lost, and none of it is counted against the others."""
    before = processes.cpu_s(os.getpid())
    thread = threading.Thread(target=exec, args=(BURN_OF_A_THREAD,))
    thread.start()
    thread.join()
    assert processes.cpu_s(os.getpid()) - before >= 0.19
    assert processes.wake_ups({1: 5, 2: 100}, {1: 7, 3: 4}) == 6


def test_watches(tmp_path: Path) -> None:
    """Each watch of each instance."""
    for name in "abc":
        (tmp_path / name).write_text("")
    before = processes.watches(os.getpid())
    armed = arming.arm([str(tmp_path / name) for name in "abc"], 1000)
    assert processes.watches(os.getpid()) - before == len(armed.watches)
    instances.close(armed.descriptor)
