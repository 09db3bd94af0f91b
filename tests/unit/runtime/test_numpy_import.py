"""A worker loads numpy's libraries before numpy is imported, and only if numpy is needed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def printed(script: str, *arguments: str) -> list[str]:
    """The lines that a Python of its own prints."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", script, *arguments], check=True, capture_output=True, encoding="utf-8"
    )
    return done.stdout.split()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at /proc/self/maps")
def test_the_libraries_are_in_the_process_before_the_import() -> None:
    script = (
        "import sys; from pathlib import Path; from compactd._runtime import numpy_import\n"
        "held = lambda: '_multiarray_umath' in Path('/proc/self/maps').read_text()\n"
        "print(held()); numpy_import._prepare(); print(held(), 'numpy' in sys.modules)\n"
        "numpy_import.import_numpy(); import numpy; print(numpy.arange(3).sum())"
    )

    assert printed(script) == ["False", "True", "False", "3"]


def test_the_engine_of_compactions_alone_brings_no_numpy() -> None:
    script = (
        "import sys, compactd.compaction.run, compactd._runtime.numpy_import; print('numpy' in sys.modules)"
    )

    assert printed(script) == ["False"]


def test_a_numpy_whose_files_are_elsewhere_is_imported_all_the_same(tmp_path: Path) -> None:
    package = tmp_path / "numpy"
    package.mkdir()
    (package / "__init__.py").write_text("here = True\n", "utf-8")
    (package / "_core").write_text("a file, not a folder", "utf-8")
    (tmp_path / "numpy.libs").write_text("a file, not a folder", "utf-8")
    script = (
        "import sys; from compactd._runtime.numpy_import import import_numpy\n"
        "sys.path.insert(0, sys.argv[1]); import_numpy(); import numpy; print(numpy.here)"
    )

    assert printed(script, str(tmp_path)) == ["True"]


def test_without_numpy_the_import_says_so() -> None:
    script = (
        "import sys; from compactd._runtime.numpy_import import import_numpy\n"
        "sys.path.clear()\n"
        "try: import_numpy()\n"
        "except ImportError as error: print(error.name)"
    )

    assert printed(script) == ["numpy"]
