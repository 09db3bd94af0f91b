"""Other threads keep running while a worker computes in short calls."""

from __future__ import annotations

import subprocess
import sys

ALONE = """
import sys, threading
from compactd._runtime.yield_gil import yield_gil

told = threading.Event()

def work():
    while not told.is_set():
        yield_gil()

worker = threading.Thread(target=work)
sys.setswitchinterval(1000.0)
worker.start()
told.set()
worker.join()
print("went on")
"""


def test_whoever_waits_goes_on_while_another_breathes_though_nobody_is_interrupted() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ALONE], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout == "went on\n"
