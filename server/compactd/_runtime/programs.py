"""Look up other programs (git, a pager, an ACP agent) without ever running one that a project brought along.

The PATH may hold an empty entry, `.` or another relative path: they lead into the current folder, and agents
and editors start us inside a project (POSIX.1-2024, 8.3, `PATH`). It may also hold a folder of that project.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

MARKS = (".git", ".hg", "pyproject.toml", "setup.py", "package.json")
"""A folder that holds one of these is a project."""


def project_root(folder: str | Path) -> Path:
    """The outermost project that `folder` is in, or `folder` itself. Absolute, links resolved.

    A project inside a project belongs to the outer one. The user's home, and what is above it, is no project
    even if it holds a mark: a repository of one's own settings is not a stranger's.
    """
    start = Path(folder).resolve()
    root = start
    own = _own_folders()
    for each in (start, *start.parents):
        if each in own:
            break
        if any((each / mark).exists() for mark in MARKS):
            root = each
    return root


def _own_folders() -> set[Path]:
    """The user's home and all folders above it; at least the root of the file system."""
    try:
        home = Path.home().resolve()
    except (RuntimeError, OSError):
        home = Path(os.sep).resolve()
    return {home, *home.parents}


def safe_entries(path: str | None, project: Path | None) -> Iterator[str]:
    """The folders of a `PATH` that are absolute and not inside `project`, in their order."""
    for entry in (path if path is not None else os.defpath).split(os.pathsep):
        if Path(entry).is_absolute() and not (project is not None and is_inside(entry, project)):
            yield entry


def is_inside(path: str | Path, project: Path) -> bool:
    """`path`, as it is written or with its links resolved, is `project` or below it."""
    written = Path(os.path.normpath(path))
    return any(each == project or project in each.parents for each in (written, written.resolve()))


def find_program(name: str, path: str | None, project: Path | None) -> str | None:
    """The absolute path of the program `name`, or None.

    Looks in the `safe_entries` of `path` alone. A program that is a link into `project` is passed over.
    """
    endings = os.environ.get("PATHEXT", ".EXE").split(";") if sys.platform == "win32" else [""]
    for entry in safe_entries(path, project):
        for ending in endings:
            found = os.path.join(entry, name + ending)  # noqa: PTH118 - as the PATH writes it
            if _is_program(found) and not (project is not None and is_inside(found, project)):
                return found
    return None


def _is_program(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode) and os.access(path, os.X_OK)  # noqa: PTH116 - text
    except (OSError, ValueError):
        return False


def resolved_command(name: str, path: str | None, folder: str | Path) -> str:
    """`name` as a command to run from `folder`: a bare name is looked up by `find_program`, anything with a
    folder in it is meant as it is written. Raises `FileNotFoundError`."""
    if os.path.dirname(name):  # noqa: PTH120 - text
        return name
    project = project_root(folder)
    found = find_program(name, path, project)
    if found is None and shutil.which(name, path=path) is not None:
        why = (
            f"found only inside {project} or by a relative entry of the PATH; to run that one, give its path"
        )
        raise FileNotFoundError(errno.ENOENT, why, name)
    if found is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    return found
