"""Other threads keep running while a worker imports modules or computes in short calls."""

from __future__ import annotations

import importlib
import subprocess
import sys
import threading
from pathlib import Path

from compactd._runtime.lazy_imports import yielding_imports

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


def test_what_is_imported_is_the_same(tmp_path: Path) -> None:
    (tmp_path / "breathing_one.py").write_text(
        "import breathing_two\nVALUE = breathing_two.VALUE + 1\n", "utf-8"
    )
    (tmp_path / "breathing_two.py").write_text("VALUE = 1\n", "utf-8")
    sys.path.insert(0, str(tmp_path))
    try:
        with yielding_imports():
            found = importlib.import_module("breathing_one")
    finally:
        sys.path.remove(str(tmp_path))

    assert found.VALUE == 2


def test_who_walks_along_the_finders_meanwhile_passes_over_none() -> None:
    """Removing a finder while another thread iterates over `sys.meta_path` could make that thread skip the
    next finder and raise `ModuleNotFoundError` for a module that exists."""
    for finders_passed in range(1, len(sys.meta_path) + 1):
        with yielding_imports():
            walk = iter(sys.meta_path)
            passed = [next(walk) for _ in range(finders_passed)]

        assert [*passed, *walk] == sys.meta_path


def test_however_often_threads_breathe_one_finder_is_asked() -> None:
    with yielding_imports():
        once = list(sys.meta_path)
    meet = threading.Barrier(3)

    def work() -> None:
        with yielding_imports(), yielding_imports():
            meet.wait()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sys.meta_path == once
