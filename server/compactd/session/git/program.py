"""The program git, run on a folder of ours: nothing of the user's repository is ever written.

A folder of our own plays the part of the repository: its index, its objects, hardly a config. The user's
objects are read through `GIT_ALTERNATE_OBJECT_DIRECTORIES`, so that only what changed takes room. As the
repository's own config is never read, whatever a hostile one says in it (`core.fsmonitor`, hooks, filters,
aliases) is never run. (git's documentation: "git", environment variables; "githooks"; "gitignore".)
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
"""For one snapshot, or one difference, whatever the file system does."""

LOOK_AFTER_S = 1.0
"""Once git has taken so long, the work tree is searched for a file that git waits for."""

READ_BY_GIT = frozenset({".gitignore", ".gitattributes"})
"""Files of a work tree that git opens in each folder. It waits for a writer if one is a named pipe."""


class Git:
    """Git on a folder of ours and a work tree of the user's, until a deadline."""

    def __init__(self, program: str, folder: Path, tree: WorkTree, path: str, deadline_s: float) -> None:
        """`program` is an absolute path; `path` the `PATH` for what git starts itself."""
        self._program = program
        self._root = tree.root
        self._excludes = tree.excludes
        self._deadline_s = deadline_s
        self._until = monotonic() + deadline_s
        self._environ = _environ(folder, tree, path)

    def changed_files(self) -> Sequence[bytes]:
        """Paths of files that are not in the index as they are on the disk; some twice."""
        lists = [f"--exclude-from={path}" for path in self._excludes]
        ours = ("ls-files", "-z", "-m", "-d", "-o", "--exclude-per-directory=.gitignore", *lists)
        return self.run(*ours).split(b"\0")

    def ignored_files(self) -> Sequence[bytes]:
        """Paths that git ignores; a folder with nothing else in it as one that ends in `/`."""
        lists = [f"--exclude-from={path}" for path in self._excludes]
        ours = ("ls-files", "-z", "-o", "-i", "--directory", "--exclude-per-directory=.gitignore", *lists)
        return self.run(*ours).split(b"\0")

    def run(self, *arguments: str, given: bytes = b"") -> bytes:
        """What git prints. Raises `NoTree` where it fails or takes too long."""
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
                # Nothing is left to kill if it has ended. Otherwise it would be waited for.
                process.kill()
        if process.returncode != 0:
            raise NoTree(f"git {arguments[0]} failed: {_first_line(complaint)}")
        return printed

    def _output(self, process: subprocess.Popen[bytes], given: bytes) -> tuple[bytes, bytes]:
        """What git prints, and its errors. Raises `TimeoutExpired`, `NoTree`."""
        left_s = max(0.05, self._until - monotonic())
        if left_s > LOOK_AFTER_S:
            try:
                return process.communicate(given, timeout=LOOK_AFTER_S)
            except subprocess.TimeoutExpired:
                self._look_for_endless_file()
                given = b""  # it has been taken over by the first call
        return process.communicate(given or None, timeout=max(0.05, self._until - monotonic()))

    def _look_for_endless_file(self) -> None:
        """Raises `NoTree` if git would read a pipe or a device of the work tree. Cost: O(files)."""
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


_SAFE = (
    "-c",
    "core.fsmonitor=false",
    "-c",
    f"core.hooksPath={os.devnull}",
    "-c",
    "core.untrackedCache=false",
    "-c",
    "core.splitIndex=false",
    "-c",
    "core.autocrlf=false",
    "-c",
    "core.quotePath=false",
    "-c",
    "gc.auto=0",
    "-c",
    "protocol.allow=never",
)
"""Said again although no config is read that could say otherwise."""


def _environ(folder: Path, tree: WorkTree, path: str) -> Mapping[str, str]:
    """All that git sees of an environment: nothing of the user's but the PATH."""
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
    """A path as an entry of the list of alternates, which separates by `:` and unquotes `"…"`."""
    text = str(path)
    if os.pathsep not in text and not text.startswith('"'):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _first_line(text: bytes) -> str:
    return text.decode("utf-8", "replace").strip().partition("\n")[0][:200] or "it gave no reason"
