"""Run the program git on a folder of compactd, so that the user's repository is never written.

compactd's folder acts as the repository: it has the index, the objects and a minimal config. The user's
objects are read through `GIT_ALTERNATE_OBJECT_DIRECTORIES`, so only changes take space. The user's config is
never read, so programs that a hostile config names (`core.fsmonitor`, hooks, filters, aliases) are never run.
(git's documentation: "git", environment variables; "githooks"; "gitignore".)
"""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic

from compactd.session.git.work_tree import NoTree, WorkTree

DEADLINE_S = 20.0
"""The most seconds that one snapshot or one diff may take."""

PIPE_CHECK_AFTER_S = 1.0
"""Seconds after which compactd looks for a named pipe in the work tree that git may be waiting for."""

READ_BY_GIT = frozenset({".gitignore", ".gitattributes"})
"""Files that git opens in each folder. If one is a named pipe, git waits for a writer."""


class Git:
    """A runner of git commands on compactd's folder and the user's work tree. All commands of one `Git` share
    one deadline.
    """

    def __init__(self, program: str, folder: Path, tree: WorkTree, path: str, deadline_s: float) -> None:
        """`program` is the absolute path of git. `folder` is compactd's folder with the index and the
        objects. `path` is the `PATH` for programs that git starts. Commands fail when `deadline_s` seconds
        have passed since this call.
        """
        self._program = program
        self._root = tree.root
        self._excludes = tree.excludes
        self._deadline_s = deadline_s
        self._until = monotonic() + deadline_s
        self._environ = _environ(folder, tree, path)

    def changed_files(self) -> Sequence[bytes]:
        """Return the paths of files in the work tree that differ from the git index in compactd's folder. A
        path can occur twice. Raises `NoTree`.
        """
        return self._list_files("-m", "-d")

    def ignored_files(self) -> Sequence[bytes]:
        """Return the paths that git ignores. A folder that contains only ignored files is one path that ends
        in `/`. Raises `NoTree`.
        """
        return self._list_files("-i", "--directory")

    def _list_files(self, *options: str) -> Sequence[bytes]:
        lists = [f"--exclude-from={path}" for path in self._excludes]
        ours = ("ls-files", "-z", "-o", *options, "--exclude-per-directory=.gitignore", *lists)
        return self.run(*ours).split(b"\0")

    def run(self, *arguments: str, given: bytes = b"") -> bytes:
        """Run git with `given` as its input, and return its output. Raises `NoTree` if git fails or the
        deadline has passed.
        """
        command = [self._program, *_SAFE, *arguments]
        pipe = subprocess.PIPE
        try:
            process = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=self._root, env=self._environ
            )
        except OSError as refused:
            raise NoTree(f"git could not be run: {refused.strerror}") from None
        with process:
            try:
                printed, complaint = self._output(process, given)
            except subprocess.TimeoutExpired:
                raise NoTree(f"git took longer than {self._deadline_s:g} seconds") from None
            finally:
                # Does nothing if git has ended. Otherwise leaving the `with` block would wait for it.
                process.kill()
        if process.returncode != 0:
            raise NoTree(f"git {arguments[0]} failed: {_first_line(complaint)}")
        return printed

    def _output(self, process: subprocess.Popen[bytes], given: bytes) -> tuple[bytes, bytes]:
        """Wait for git, and return (its standard output, its standard error). Raises `TimeoutExpired` at the
        deadline, and `NoTree` if git waits for a pipe.
        """
        left_s = max(0.05, self._until - monotonic())
        if left_s > PIPE_CHECK_AFTER_S:
            try:
                return process.communicate(given, timeout=PIPE_CHECK_AFTER_S)
            except subprocess.TimeoutExpired:
                self._look_for_endless_file()
                given = b""  # the first call has already passed it on
        return process.communicate(given or None, timeout=max(0.05, self._until - monotonic()))

    def _look_for_endless_file(self) -> None:
        """Raise `NoTree` if git would read a pipe or a device in the work tree. O(files)."""
        for folder, folders, names in os.walk(self._root):
            if monotonic() > self._until:
                return
            if ".git" in folders:
                folders.remove(".git")
            for name in READ_BY_GIT.intersection(names):
                path = os.path.join(folder, name)  # noqa: PTH118 - os.walk gives texts
                try:
                    mode = os.lstat(path).st_mode
                except OSError:
                    continue
                if not stat.S_ISREG(mode) and not stat.S_ISLNK(mode):
                    where = os.path.relpath(path, self._root)
                    raise NoTree(f"{where} is not a regular file, and git waits for it: remove it")


_SETTINGS = (
    "core.fsmonitor=false",
    f"core.hooksPath={os.devnull}",
    "core.untrackedCache=false",
    "core.splitIndex=false",
    "core.autocrlf=false",
    "core.quotePath=false",
    "gc.auto=0",
    "protocol.allow=never",
)
_SAFE = tuple(part for setting in _SETTINGS for part in ("-c", setting))
"""Options with safe values for git's settings. They are set although compactd's git reads no config that
could change them."""


def _environ(folder: Path, tree: WorkTree, path: str) -> Mapping[str, str]:
    """Return the environment variables for git, which works on the repository in `folder` and the files in
    `tree`. Of the user's variables they contain only `path` as the PATH."""
    given = {name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}
    return {
        **given,
        "PATH": path,
        "LC_ALL": "C",
        "GIT_DIR": str(folder),
        "GIT_WORK_TREE": str(tree.root),
        "GIT_INDEX_FILE": str(folder / "index"),
        "GIT_OBJECT_DIRECTORY": str(folder / "objects"),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": _quoted(tree.objects),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_LITERAL_PATHSPECS": "1",
    }


def _quoted(path: Path) -> str:
    """Return a path in the form that `GIT_ALTERNATE_OBJECT_DIRECTORIES` needs: quoted if it contains the
    separator.
    """
    text = str(path)
    if os.pathsep not in text and not text.startswith('"'):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _first_line(text: bytes) -> str:
    return text.decode("utf-8", "replace").strip().partition("\n")[0][:200] or "it gave no reason"
