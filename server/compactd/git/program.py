"""The program git, run on a folder of ours: nothing of the user's repository is ever written.

A folder of our own plays the part of the repository: its index, its objects, hardly a config. The user's
objects are read through `GIT_ALTERNATE_OBJECT_DIRECTORIES`, so that only what changed takes room. As the
repository's own config is never read, whatever a hostile one says in it (`core.fsmonitor`, hooks, filters,
aliases) is never run. (git's documentation: "git", environment variables; "githooks"; "gitignore".)
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic

from compactd.git.work_tree import NoTree, WorkTree

DEADLINE_S = 20.0
"""For one snapshot, or one difference, whatever the file system does."""


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
        try:
            done = subprocess.run(
                command,
                input=given,
                capture_output=True,
                cwd=self._root,
                env=self._environ,
                timeout=max(0.05, self._until - monotonic()),
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise NoTree(f"git took longer than {self._deadline_s:g} seconds") from None
        except OSError as refused:
            raise NoTree(f"git could not be run: {refused.strerror}") from None
        if done.returncode != 0:
            raise NoTree(f"git {arguments[0]} failed: {_first_line(done.stderr)}")
        return done.stdout


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
