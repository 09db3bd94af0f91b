"""numpy, brought in by a worker without holding up the loop.

An `import` loads an extension module with the interpreter held. From a cold disk that took 0.2 to 0.35 s,
and nobody was answered meanwhile (measured 2026-11: numpy 2.4, 28 MB of libraries beside 10 MB of its own).
So its files are read, and loaded by the system's loader, before the import asks for them: both without the
interpreter. What is left of the import holds it for 1 to 4 ms at a time, and breathes in between.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.machinery import EXTENSION_SUFFIXES, PathFinder
from pathlib import Path
from typing import Final

from compactd._runtime.lazy_imports import breathing_imports

MODULES: Final = ("_multiarray_umath", "_umath_linalg")
"""The extension modules that `import numpy` loads."""
FOLDERS: Final = ("_core", "core", "linalg")
"""Where they are; `core` in numpy 1."""
LIBRARIES: Final = ("../numpy.libs", ".dylibs")
"""Where a wheel keeps what they are linked to."""

READ_BYTES: Final = 1 << 18
"""Read at a time."""

LOAD_NOW: Final = 2
"""`RTLD_NOW` of dlopen(3), the same on Linux, macOS and the BSDs."""


def bring_numpy() -> None:
    """Imports numpy, in whatever thread. Raises what the import raises. O(1) from the second time on.

    Where its files are not where they are looked for, that is the import and nothing more.
    """
    if "numpy" not in sys.modules:
        # A hint that fails is no failure: what is wrong with the files the import says better.
        with suppress(ImportError, OSError, AttributeError, TypeError, ValueError):
            _prepare()
    with breathing_imports():
        import numpy  # noqa: F401


def _prepare() -> None:
    found = PathFinder.find_spec("numpy")
    if found is None or found.origin is None:
        return
    package = Path(found.origin).parent
    extensions = tuple(_extensions(package))
    for file in (*_libraries(package), *extensions):
        _read(file)
    if os.name == "posix":
        import ctypes

        # Called as a function of the C library: a call of ctypes lets go of the interpreter, `CDLL` does not.
        load = ctypes.CDLL(None).dlopen
        load.argtypes, load.restype = (ctypes.c_char_p, ctypes.c_int), ctypes.c_void_p
        for file in extensions:
            load(os.fsencode(file), LOAD_NOW)


def _extensions(package: Path) -> Iterator[Path]:
    for folder in FOLDERS:
        for module in MODULES:
            for suffix in EXTENSION_SUFFIXES:
                file = package / folder / f"{module}{suffix}"
                if file.is_file():
                    yield file
                    break


def _libraries(package: Path) -> Iterator[Path]:
    for folder in LIBRARIES:
        with suppress(OSError):
            yield from sorted(file for file in (package / folder).iterdir() if file.is_file())


def _read(file: Path) -> None:
    """Has the system fetch a file: the pages that are asked for later are in memory then."""
    handle = os.open(file, os.O_RDONLY)
    try:
        while os.read(handle, READ_BYTES):
            pass
    finally:
        os.close(handle)
