"""Import numpy in a worker without blocking the event loop.

A plain `import` holds the GIL while it loads extension modules, which takes long from a cold disk. So the
files of these modules are first read, and then loaded by the system's loader, both without the GIL. The rest
of the import yields the GIL regularly.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.machinery import EXTENSION_SUFFIXES, PathFinder
from pathlib import Path
from typing import Final

from compactd._runtime.lazy_imports import yielding_imports

MODULES: Final = ("_multiarray_umath", "_umath_linalg")
"""The extension modules that `import numpy` loads."""
FOLDERS: Final = ("_core", "core", "linalg")
"""The folders of these modules in the package numpy. numpy 2 uses `_core`, numpy 1 `core`."""
LIBRARIES: Final = ("../numpy.libs", ".dylibs")
"""The folders in which numpy's wheels keep the libraries to which these modules are linked."""

READ_BYTES: Final = 1 << 18
"""The number of bytes per read."""

LOAD_NOW: Final = 2
"""`RTLD_NOW` of dlopen(3), the same on Linux, macOS and the BSDs."""


def import_numpy() -> None:
    """Import numpy, in any thread. Raises what the import raises. O(1) from the second call on.

    If numpy's files are not in the expected folders, this is a plain import.
    """
    if "numpy" not in sys.modules:
        # The preparation is optional. If something is wrong with the files, the import reports it.
        with suppress(ImportError, OSError, AttributeError, TypeError, ValueError):
            _prepare()
    with yielding_imports():
        import numpy  # noqa: F401


def _prepare() -> None:
    """Read the files of numpy's extension modules and load them without the GIL."""
    found = PathFinder.find_spec("numpy")
    if found is None or found.origin is None:
        return
    package = Path(found.origin).parent
    extensions = tuple(_extensions(package))
    for file in (*_libraries(package), *extensions):
        _read(file)
    if os.name == "posix":
        import ctypes

        # Call dlopen through ctypes, which releases the GIL; `CDLL` itself does not.
        load = ctypes.CDLL(None).dlopen
        load.argtypes, load.restype = (ctypes.c_char_p, ctypes.c_int), ctypes.c_void_p
        for file in extensions:
            load(os.fsencode(file), LOAD_NOW)


def _extensions(package: Path) -> Iterator[Path]:
    """Yield the files of the extension modules that exist."""
    for folder in FOLDERS:
        for module in MODULES:
            for suffix in EXTENSION_SUFFIXES:
                file = package / folder / f"{module}{suffix}"
                if file.is_file():
                    yield file
                    break


def _libraries(package: Path) -> Iterator[Path]:
    """Yield the files of the libraries that exist."""
    for folder in LIBRARIES:
        with suppress(OSError):
            yield from sorted(file for file in (package / folder).iterdir() if file.is_file())


def _read(file: Path) -> None:
    """Read a file, so that the system has it in its cache when the file is loaded."""
    handle = os.open(file, os.O_RDONLY)
    try:
        while os.read(handle, READ_BYTES):
            pass
    finally:
        os.close(handle)
