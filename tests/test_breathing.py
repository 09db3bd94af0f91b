"""Others get the interpreter while a worker imports or computes in short calls."""

from __future__ import annotations

import importlib
import subprocess
import sys
import threading
from pathlib import Path

from compactd.imports import breathing_imports

ALONE = """
import sys, threading
from compactd.core.breath import breathe

told = threading.Event()

def work():
    while not told.is_set():
        breathe()

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


def test_what_is_imported_is_the_same_and_nothing_stays_behind(tmp_path: Path) -> None:
    (tmp_path / "breathing_one.py").write_text(
        "import breathing_two\nVALUE = breathing_two.VALUE + 1\n", "utf-8"
    )
    (tmp_path / "breathing_two.py").write_text("VALUE = 1\n", "utf-8")
    before = list(sys.meta_path)
    sys.path.insert(0, str(tmp_path))
    try:
        with breathing_imports():
            found = importlib.import_module("breathing_one")
    finally:
        sys.path.remove(str(tmp_path))

    assert found.VALUE == 2
    assert sys.meta_path == before


def test_two_threads_that_breathe_do_not_take_each_others_breath_away() -> None:
    before = list(sys.meta_path)
    meet = threading.Barrier(2)

    def work() -> None:
        with breathing_imports():
            meet.wait()
        meet.wait()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sys.meta_path == before
