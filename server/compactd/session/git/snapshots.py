"""The files of a work tree, kept as git trees in a session's own folder. It blocks: it is for a thread."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

from compactd._runtime.programs import find_program, is_inside, project_root, safe_entries
from compactd.session.git.difference import Changed, difference
from compactd.session.git.program import DEADLINE_S, Git
from compactd.session.git.work_tree import NoTree, WorkTree, work_tree_of

LARGE_BYTES = 5 * 1024 * 1024
"""Larger files are left out: they are data, and would be copied."""

INDEX_BYTES = 128 * 1024 * 1024
"""A larger index is not copied: the first snapshot reads every file instead."""


MAX_HIDDEN = 1000
"""Paths of ignored files that are told at most."""

TICK_S = 0.02
"""File systems read a clock that is behind by up to one tick: 10 ms at 100 Hz (Linux, `CONFIG_HZ`)."""


class GitTrees:
    """The trees of one session, in `folder`, which is made at the first need."""

    def __init__(self, folder: Path, path: str | None, deadline_s: float = DEADLINE_S) -> None:
        self._folder = folder
        self._path = path
        """The environment's `PATH`, to find git by."""
        self._deadline_s = deadline_s
        self._busy = threading.Lock()
        self._is_over = False

    def snapshot(self, working_dir: str) -> str:
        """The name of a tree with the files as they are now, ignored and large ones left out.

        The first one reads every file that git tracks; later ones those that changed. Raises `NoTree`.
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
                # The user's index is of a kind that cannot be copied (split in two): begin with none.
                (self._folder / "index").unlink(missing_ok=True)
                changed = git.changed_files()
            given = b"\0".join(_worth_keeping(tree.root, self._folder.parent.parent, changed))
            git.run("update-index", "-z", "--add", "--remove", "--replace", "--stdin", given=given)
            return git.run("write-tree", "--missing-ok").decode("ascii").strip()

    def difference(self, before: str, after: str, working_dir: str) -> tuple[Changed, ...]:
        """The files that differ between two trees, by their paths. Writes nothing. Raises `NoTree`."""
        tree = work_tree_of(working_dir)
        if not (self._folder / "HEAD").is_file():
            raise NoTree("the session's snapshots are not there any more")
        if not _attributes_file(self._folder).is_file():
            # Snapshots of an older version have none yet.
            with self._busy, contextlib.suppress(OSError):
                _override_attributes(self._folder)
        return difference(self._git(tree), before, after)

    def hidden_since(self, since: float, working_dir: str) -> tuple[str, ...]:
        """Paths that git ignores and that were made or changed after `since`, in Unix seconds; in no tree.

        A folder of which everything is ignored is one path that ends in `/`. It is listed if an entry was
        added to it or removed from it. Sorted, at most `MAX_HIDDEN`. O(files). Raises `NoTree`.
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
        """Removes all of it; `for_good`: and takes no further snapshot, be it asked for already."""
        self._is_over = self._is_over or for_good
        with self._busy:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _git(self, tree: WorkTree) -> Git:
        project = project_root(tree.root)
        program = find_program("git", self._path, project)
        if program is None:
            raise NoTree("git is not installed, or not on the PATH of compactd outside the work tree")
        path = os.pathsep.join(safe_entries(self._path, project))
        return Git(program, self._folder, tree, path, self._deadline_s)

    def _prepare(self, tree: WorkTree) -> bool:
        """True where the folder was made just now."""
        try:
            is_new = not (self._folder / "HEAD").is_file()
            if is_new:
                _make(self._folder, tree)
            _override_attributes(self._folder)
            # Nobody else uses it: this is what a git that was killed left behind.
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
        # With its time: what changed in the same moment is looked at again by that (git's "racy-git").
        shutil.copy2(tree.index, folder / "index")
    # Last: it says that the others are there.
    (folder / "HEAD").write_text("ref: refs/heads/none\n")


_ATTRIBUTES = "* !diff !working-tree-encoding !filter !ident !merge\n"
"""What the work tree's own `.gitattributes` may not say, as this file goes before them (gitattributes: "When
deciding what attributes are assigned to a path"). `text` and `eol` stay: they only decide on line ends."""


def _attributes_file(folder: Path) -> Path:
    return folder / "info" / "attributes"


def _override_attributes(folder: Path) -> None:
    """No `.gitattributes` hides what a file says, or makes git refuse to read it."""
    file = _attributes_file(folder)
    if file.is_file():
        return
    file.parent.mkdir(mode=0o700, exist_ok=True)
    file.write_text(_ATTRIBUTES)


def _show_all(git: Git, root: Path) -> None:
    """Takes the marks out of the copied index that make git believe a file is as it was: `assume-unchanged`
    (a lower-case tag of `ls-files -v`), and `skip-worktree` (`S`) of files that are there."""
    marked = [
        line[2:]
        for line in git.run("ls-files", "-v", "-z").split(b"\0")
        if line[:1].islower() or (line[:1] == b"S" and os.path.lexists(os.fsencode(root) + b"/" + line[2:]))
    ]
    if marked:
        for option in ("--no-assume-unchanged", "--no-skip-worktree"):
            git.run("update-index", option, "-z", "--stdin", given=b"\0".join(marked))


def _worth_keeping(root: Path, home: Path, paths: Iterable[bytes]) -> Iterator[bytes]:
    """Files of a size to keep, links, and what is gone; each once, and none of `home`, which is ours."""
    seen: set[bytes] = set()
    top, ours = os.fsencode(root), os.fsencode(home.resolve()) + b"/"
    links: dict[bytes, bool] = {}
    for path in paths:
        # Another repository in this one ends in `/`.
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
    """A folder of the path is a link now: git follows none, and takes the link for what was there."""
    if not folder:
        return False
    if folder not in known:
        is_link = os.path.islink(top + b"/" + folder)  # noqa: PTH114 - names of files are bytes
        known[folder] = is_link or _is_behind_link(top, os.path.dirname(folder), known)  # noqa: PTH120
    return known[folder]
