"""Snapshots of a git work tree: bounded in time, and complete after an earlier one was interrupted."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from compactd.session.git.snapshots import GitTrees
from compactd.session.git.work_tree import NoTree, work_tree_of
from tests.support.git_marks import needs_git

pytestmark = needs_git

PATH = os.environ["PATH"]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A work tree with one staged file."""
    root = tmp_path / "tree"
    root.mkdir()
    (root / "a").write_text("a\n")
    env = {"PATH": PATH, "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
    for arguments in (("init", "-q"), ("add", "-A")):
        subprocess.run(["git", *arguments], cwd=root, env=env, check=True)
    return root


def trees_of(tmp_path: Path, **more: float) -> GitTrees:
    return GitTrees(tmp_path / "home" / "snapshots" / "s", PATH, **more)


def test_the_same_files_make_the_same_tree_and_others_another_one(tree: Path, tmp_path: Path) -> None:
    trees = trees_of(tmp_path)

    first = trees.snapshot(str(tree))
    again = trees.snapshot(str(tree))
    (tree / "a").write_text("b\n")
    other = trees.snapshot(str(tree))

    assert first == again != other
    assert [(one.file, one.before, one.after) for one in trees.difference(first, other, str(tree))] == [
        ("a", "a\n", "b\n")
    ]
    assert trees.difference(first, again, str(tree)) == ()


@pytest.mark.parametrize("name", [".gitignore", "sub/.gitignore"])
def test_a_pipe_that_git_would_wait_for_is_named_and_git_is_ended(
    name: str, tree: Path, tmp_path: Path
) -> None:
    (tree / "sub").mkdir()
    (tree / "sub" / "b").write_text("b\n")
    os.mkfifo(tree / name)

    with pytest.raises(NoTree, match=r"gitignore is not a regular file, and git waits for it"):
        trees_of(tmp_path, deadline_s=120.0).snapshot(str(tree))

    (tree / name).unlink()
    assert trees_of(tmp_path).snapshot(str(tree))


def test_a_pipe_among_the_lists_of_what_is_ignored_is_not_read(tree: Path, tmp_path: Path) -> None:
    exclude = tree / ".git" / "info" / "exclude"
    exclude.parent.mkdir(exist_ok=True)
    exclude.unlink(missing_ok=True)
    os.mkfifo(exclude)

    assert trees_of(tmp_path, deadline_s=120.0).snapshot(str(tree))


def test_what_a_git_that_was_killed_left_behind_is_in_nobodys_way(tree: Path, tmp_path: Path) -> None:
    trees = trees_of(tmp_path)
    first = trees.snapshot(str(tree))
    (tmp_path / "home" / "snapshots" / "s" / "index.lock").write_text("")
    (tree / "b").write_text("b\n")

    second = trees.snapshot(str(tree))

    assert [one.file for one in trees.difference(first, second, str(tree))] == ["b"]


def test_a_git_that_never_ends_is_given_up_in_time(tree: Path, tmp_path: Path) -> None:
    gate, folder = tmp_path / "gate", tmp_path / "bin"
    os.mkfifo(gate)
    folder.mkdir()
    (folder / "git").write_text(f"#!/bin/sh\nread line < {gate}\n")
    (folder / "git").chmod(0o755)
    trees = GitTrees(tmp_path / "home" / "snapshots" / "s", f"{folder}:{PATH}", deadline_s=0.1)

    with pytest.raises(NoTree, match=r"longer than 0\.1 seconds"):
        trees.snapshot(str(tree))


def test_objects_that_are_gone_are_a_reason(tree: Path, tmp_path: Path) -> None:
    trees = trees_of(tmp_path)
    first = trees.snapshot(str(tree))
    trees.forget()

    with pytest.raises(NoTree, match="no longer exist"):
        trees.difference(first, first, str(tree))
    second = trees.snapshot(str(tree))
    with pytest.raises(NoTree, match="failed"):
        trees.difference("0" * 39 + "1", second, str(tree))


def test_a_folder_whose_name_git_would_split_is_read_too(tmp_path: Path, tree: Path) -> None:
    odd = tmp_path / 'a:b "c"'
    tree.rename(odd)
    trees = trees_of(tmp_path)
    first = trees.snapshot(str(odd))
    (odd / "b").write_text("b\n")

    assert [one.file for one in trees.difference(first, trees.snapshot(str(odd)), str(odd))] == ["b"]


def test_no_config_decides_where_the_work_tree_is(tree: Path, tmp_path: Path) -> None:
    with (tree / ".git" / "config").open("a") as config:
        config.write(f"[core]\n\tworktree = {tmp_path}\n")

    assert work_tree_of(str(tree)).root == tree.resolve()


@pytest.mark.parametrize("text", ["", "gitdir: nowhere\n", "gitdir: /\n", "nonsense"])
def test_a_git_file_that_leads_nowhere_is_no_work_tree(tmp_path: Path, text: str) -> None:
    (tmp_path / ".git").write_text(text)

    with pytest.raises(NoTree, match=r"not a repository|not in a git work tree"):
        work_tree_of(str(tmp_path))
