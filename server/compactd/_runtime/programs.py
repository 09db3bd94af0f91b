"""Find other programs (git, a pager, an ACP agent), but never one that is part of a project.

Running a program from a project would run a stranger's code. The PATH can lead into a project in two ways.
One is a relative entry: an empty one, `.` or another relative path (POSIX.1-2024, 8.3, `PATH`). It starts
from the current folder, which is inside a project if an agent or editor started compactd. The other is an
entry that names a folder of the project.
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
"""Names of files and folders. A folder that contains one of them is a project."""


def project_root(folder: str | Path) -> Path:
    """Return the folder of the outermost project that contains `folder`; `folder` itself if there is none.
    The path is absolute, with links resolved.

    If a project is inside another project, the outer one is returned. The user's home and the folders above
    it never count as a project: a repository in the home folder contains the user's own settings, not a
    stranger's code.
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
    """Return the user's home and all folders above it; only the root of the file system if the home is
    unknown."""
    try:
        home = Path.home().resolve()
    except (RuntimeError, OSError):
        home = Path(os.sep).resolve()
    return {home, *home.parents}


def safe_entries(path: str | None, project: Path | None) -> Iterator[str]:
    """Yield the folders of a `PATH` that are absolute and not inside `project`, in order."""
    for entry in (path if path is not None else os.defpath).split(os.pathsep):
        if Path(entry).is_absolute() and not (project is not None and is_inside(entry, project)):
            yield entry


def is_inside(path: str | Path, project: Path) -> bool:
    """Return whether `path`, as it is written or with its links resolved, is `project` or below it."""
    written = Path(os.path.normpath(path))
    return any(each == project or project in each.parents for each in (written, written.resolve()))


def find_program(name: str, path: str | None, project: Path | None) -> str | None:
    """Return the absolute path of the program `name`; None if it is not found.

    Only the `safe_entries` of `path`, a `PATH`, are searched. A program that is a link into `project` is
    skipped.
    """
    endings = os.environ.get("PATHEXT", ".EXE").split(";") if sys.platform == "win32" else [""]
    for entry in safe_entries(path, project):
        for ending in endings:
            found = os.path.join(entry, name + ending)  # noqa: PTH118 - as the PATH writes it
            if _is_program(found) and not (project is not None and is_inside(found, project)):
                return found
    return None


def _is_program(path: str) -> bool:
    """Return whether the path is a file that can be run."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode) and os.access(path, os.X_OK)  # noqa: PTH116 - text
    except (OSError, ValueError):
        return False


def resolve_command(name: str, path: str | None, folder: str | Path) -> str:
    """Return the path to run for the program `name` if the current folder is `folder`. Raises
    `FileNotFoundError` if the program is not found.

    A name without a folder is searched in `path`, a `PATH`, with `find_program`. A name with a folder is
    returned unchanged, without a search.
    """
    if os.path.dirname(name):  # noqa: PTH120 - text
        return name
    project = project_root(folder)
    found = find_program(name, path, project)
    if found is None and shutil.which(name, path=path) is not None:
        why = (
            f"found only inside the project {project} or through a relative entry of the PATH, and compactd "
            "runs no program from there; to run it, give its full path"
        )
        raise FileNotFoundError(errno.ENOENT, why, name)
    if found is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    return found
