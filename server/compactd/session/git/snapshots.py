"""Snapshots of a work tree's files, stored as git trees in the session's folder.

All functions block, so call them in a thread.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

from compactd._runtime.programs import find_program, is_inside, project_root, safe_entries
from compactd.protocol.wire import FileDiff
from compactd.session.git.difference import difference
from compactd.session.git.program import DEADLINE_S, Git
from compactd.session.git.work_tree import NoTree, WorkTree, work_tree_of

LARGE_BYTES = 5 * 1024 * 1024
"""The size in bytes of the largest file in a snapshot. Larger files are left out: they are probably data, and
each would be copied."""

INDEX_BYTES = 128 * 1024 * 1024
"""The size in bytes of the largest git index that is copied from the user's repository. Without the copy, the
first snapshot must read every file."""


MAX_HIDDEN = 1000
"""The most ignored files that a diff lists."""

TICK_S = 0.02
"""Seconds by which a file's time may be behind the clock. Linux sets file times once per tick, which is 10 ms
at 100 Hz (`CONFIG_HZ`)."""


class GitTrees:
    """The snapshots of one session. Each snapshot is a git tree object in `folder`, which the first snapshot
    creates."""

    def __init__(self, folder: Path, path: str | None, deadline_s: float = DEADLINE_S) -> None:
        self._folder = folder
        self._path = path
        """The list of folders, in the form of `PATH`, in which the program git is searched."""
        self._deadline_s = deadline_s
        self._busy = threading.Lock()
        self._is_over = False

    def snapshot(self, working_dir: str) -> str:
        """Store the work tree's files as they are now, except ignored and large ones, and return the name
        (hash) of their git tree.

        Only files that changed since the last snapshot are read. The first snapshot compares with a copy of
        the user's git index, or reads every file if there is no usable index. Raises `NoTree`.
        """
        with self._busy:
            if self._is_over:
                raise NoTree("the session was deleted")
            tree = work_tree_of(working_dir)
            git = self._git(tree)
            is_new = self._prepare(tree)
            try:
                if is_new:
                    _show_all(git, tree.root)
                changed = git.changed_files()
            except NoTree:
                if not is_new:
                    raise
                # Git cannot use the copy of the user's index (a split index). Begin without an index.
                (self._folder / "index").unlink(missing_ok=True)
                changed = git.changed_files()
            given = b"\0".join(_paths_to_store(tree.root, self._folder.parent.parent, changed))
            git.run("update-index", "-z", "--add", "--remove", "--replace", "--stdin", given=given)
            return git.run("write-tree", "--missing-ok").decode("ascii").strip()

    def difference(self, before: str, after: str, working_dir: str) -> tuple[FileDiff, ...]:
        """Return the files that differ between two snapshots, sorted by path. `before` and `after` are names
        that `snapshot` returned. Raises `NoTree`.
        """
        tree = work_tree_of(working_dir)
        if not (self._folder / "HEAD").is_file():
            raise NoTree("the session's snapshots no longer exist")
        if not _attributes_file(self._folder).is_file():
            # Snapshots of an older version of compactd do not have this file yet.
            with self._busy, contextlib.suppress(OSError):
                _override_attributes(self._folder)
        return difference(self._git(tree), before, after)

    def hidden_since(self, since: float, working_dir: str) -> tuple[str, ...]:
        """Return the paths that git ignores and that were created or changed after `since` (Unix seconds). No
        snapshot contains such files.

        A folder in which git ignores everything is one path that ends in `/`. It is listed if a file or
        folder directly in it was added or removed. The result is sorted and has at most `MAX_HIDDEN` paths.
        O(files). Raises `NoTree`.
        """
        tree = work_tree_of(working_dir)
        top = os.fsencode(tree.root)
        home = self._folder.parent.parent.resolve()
        found: list[str] = []
        for path in self._git(tree).ignored_files():
            whole = top + b"/" + path
            if not path or is_inside(os.fsdecode(whole), home):
                continue
            with contextlib.suppress(OSError):
                if os.lstat(whole).st_ctime > since - TICK_S:
                    found.append(path.decode("utf-8", "replace"))
        return tuple(sorted(found)[:MAX_HIDDEN])

    def forget(self, *, for_good: bool = False) -> None:
        """Delete all snapshots. With `for_good`, every later call of `snapshot` raises `NoTree`, even a call
        that is waiting for the deletion to end.
        """
        self._is_over = self._is_over or for_good
        with self._busy:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _git(self, tree: WorkTree) -> Git:
        project = project_root(tree.root)
        program = find_program("git", self._path, project)
        if program is None:
            raise NoTree(
                "git was not found: compactd looks for it in the folders of PATH outside the work tree"
            )
        path = os.pathsep.join(safe_entries(self._path, project))
        return Git(program, self._folder, tree, path, self._deadline_s)

    def _prepare(self, tree: WorkTree) -> bool:
        """Create the session's folder of git objects if needed. Return true if it is new. Raises `NoTree`."""
        try:
            is_new = not (self._folder / "HEAD").is_file()
            if is_new:
                _make(self._folder, tree)
            _override_attributes(self._folder)
            # Only this process uses the folder, so a lock was left behind by a git that was killed.
            (self._folder / "index.lock").unlink(missing_ok=True)
            return is_new
        except OSError as refused:
            raise NoTree(f"the snapshots could not be written: {refused.strerror}") from None


def _make(folder: Path, tree: WorkTree) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("objects/info", "objects/pack", "refs/heads"):
        (folder / name).mkdir(parents=True, mode=0o700)
    for one in (folder.parent, folder):
        one.chmod(0o700)
    version, kind = ("1", "\n[extensions]\n\tobjectformat = sha256") if tree.is_sha256 else ("0", "")
    config = f"[core]\n\trepositoryformatversion = {version}\n\tbare = false{kind}\n"
    (folder / "config").write_text(config)
    if tree.index.is_file() and tree.index.stat().st_size <= INDEX_BYTES:
        # Keep the file's time: git uses it to recheck files that changed at the same moment ("racy-git").
        shutil.copy2(tree.index, folder / "index")
    # Written last: its presence means that the rest is complete.
    (folder / "HEAD").write_text("ref: refs/heads/none\n")


_ATTRIBUTES = "* !diff !working-tree-encoding !filter !ident !merge\n"
"""The content of compactd's own attributes file. It overrides attributes in the work tree's `.gitattributes`,
because git gives this file precedence (gitattributes: "When deciding what attributes are assigned to a
path"). `text` and `eol` stay: they affect only line endings."""


def _attributes_file(folder: Path) -> Path:
    return folder / "info" / "attributes"


def _override_attributes(folder: Path) -> None:
    """Write compactd's attributes file, so that the user's `.gitattributes` can neither hide a file's content
    from diffs nor make git refuse to read the file.
    """
    file = _attributes_file(folder)
    if file.is_file():
        return
    file.parent.mkdir(mode=0o700, exist_ok=True)
    file.write_text(_ATTRIBUTES)


def _show_all(git: Git, root: Path) -> None:
    """Remove marks in the copied index that make git treat a file as unchanged.

    They are `assume-unchanged` (a lower-case tag of `ls-files -v`) and, for existing files, `skip-worktree`
    (`S`).
    """
    marked = [
        line[2:]
        for line in git.run("ls-files", "-v", "-z").split(b"\0")
        if line[:1].islower() or (line[:1] == b"S" and os.path.lexists(os.fsencode(root) + b"/" + line[2:]))
    ]
    if marked:
        for option in ("--no-assume-unchanged", "--no-skip-worktree"):
            git.run("update-index", option, "-z", "--stdin", given=b"\0".join(marked))


def _paths_to_store(root: Path, home: Path, paths: Iterable[bytes]) -> Iterator[bytes]:
    """Yield, once each, those of `paths` that a snapshot stores: files that are not too large, links and
    deleted files. Paths inside `home`, compactd's data folder, are left out.
    """
    seen: set[bytes] = set()
    top, ours = os.fsencode(root), os.fsencode(home.resolve()) + b"/"
    links: dict[bytes, bool] = {}
    for path in paths:
        # A path that ends in `/` is a nested repository.
        if not path or path in seen or path.endswith(b"/"):
            continue
        seen.add(path)
        whole = top + b"/" + path
        if whole.startswith(ours) or _is_behind_link(top, os.path.dirname(path), links):  # noqa: PTH120 - bytes
            continue
        try:
            facts = os.lstat(whole)
        except OSError:
            yield path
            continue
        is_file = stat.S_ISREG(facts.st_mode) and facts.st_size <= LARGE_BYTES and os.access(whole, os.R_OK)
        if is_file or stat.S_ISLNK(facts.st_mode):
            yield path


def _is_behind_link(top: bytes, folder: bytes, known: dict[bytes, bool]) -> bool:
    """Return true if `folder` or a folder above it, below `top`, is now a symbolic link. Git refuses paths
    behind a link. `known` caches the results by folder.
    """
    if not folder:
        return False
    if folder not in known:
        is_link = os.path.islink(top + b"/" + folder)  # noqa: PTH114 - names of files are bytes
        known[folder] = is_link or _is_behind_link(top, os.path.dirname(folder), known)  # noqa: PTH120
    return known[folder]
