"""Neither a repository's settings nor an agent can hide a change from `session/diff`."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from compactd.session.git.snapshots import TICK_S
from tests.support.client import Daemon
from tests.support.git_marks import needs_git
from tests.support.work_trees import asked, diff, ended, git, lines_of, made_tree, started

pytestmark = needs_git


@pytest.mark.parametrize(
    "attributes",
    [
        "* working-tree-encoding=UTF-16\n",
        "* working-tree-encoding=no-such-thing\n",
        "* -diff\n",
        "* binary\n",
        "[attr]quiet -diff working-tree-encoding=UTF-32\n* quiet\n",
        "* filter=gone ident diff=gone\n",
    ],
)
@pytest.mark.parametrize("folder", [".", "src"])
def test_no_gitattributes_hides_what_a_file_says(
    daemon: Daemon, tmp_path: Path, attributes: str, folder: str
) -> None:
    tree = made_tree(tmp_path)
    (tree / folder / ".gitattributes").write_text(attributes)
    session = started(daemon, tree)
    asked(daemon, session)
    (tree / "src" / "a.py").write_text("one\n2\nthree\n")
    ended(daemon, session)

    told = diff(daemon, session)

    assert [(one["file"], one["before"], one["after"]) for one in told["files"]] == [
        ("src/a.py", "one\ntwo\nthree\n", "one\n2\nthree\n")
    ]
    assert "reason" not in told


def test_attributes_that_an_agent_writes_in_its_turn_hide_nothing_of_it(
    daemon: Daemon, tmp_path: Path
) -> None:
    tree = made_tree(tmp_path)
    session = started(daemon, tree)
    asked(daemon, session)
    (tree / ".gitattributes").write_text("* -diff working-tree-encoding=UTF-16\n")
    (tree / ".git" / "info").mkdir(exist_ok=True)
    (tree / ".git" / "info" / "attributes").write_text("* -diff\n")
    (tree / "evil.py").write_text("evil\n")
    ended(daemon, session)

    assert lines_of(diff(daemon, session)) == {".gitattributes": ("added", 1, 0), "evil.py": ("added", 1, 0)}


@pytest.mark.parametrize("list_of_ignored", [".gitignore", "src/.gitignore", ".git/info/exclude"])
def test_what_an_agent_has_git_ignore_is_named(daemon: Daemon, tmp_path: Path, list_of_ignored: str) -> None:
    tree = made_tree(tmp_path)
    session = started(daemon, tree)
    asked(daemon, session)
    with (tree / list_of_ignored).open("a") as rules:
        rules.write("evil.py\nevil-folder/\n")
        if list_of_ignored == "src/.gitignore":
            rules.write(".gitignore\n")
    (tree / "src" / "evil.py").write_text("evil\n")
    (tree / "src" / "evil-folder").mkdir()
    (tree / "src" / "evil-folder" / "more.py").write_text("evil\n")
    ended(daemon, session)

    told = diff(daemon, session)

    hides_itself = {"src/.gitignore"} if list_of_ignored == "src/.gitignore" else set()
    assert set(told["hidden"]) == {"src/evil.py", "src/evil-folder/", *hides_itself}


def test_an_ignored_file_that_an_agent_changes_is_named_and_one_it_leaves_alone_is_not(
    daemon: Daemon, tmp_path: Path
) -> None:
    tree = made_tree(tmp_path)
    (tree / "old.log").write_text("before\n")
    (tree / "left-alone.log").write_text("before\n")
    born = (tree / "left-alone.log").stat().st_ctime
    while time.time() - born <= 2 * TICK_S:
        # What is as young as the file system's clock is coarse counts as changed.
        os.sched_yield()
    session = started(daemon, tree)
    asked(daemon, session)
    with (tree / "old.log").open("a") as file:
        file.write("and now\n")
    os.utime(tree / "old.log", (0, 0))
    ended(daemon, session)

    assert diff(daemon, session)["hidden"] == ["old.log"]


@pytest.mark.parametrize("mark", ["--assume-unchanged", "--skip-worktree"])
def test_a_file_that_the_users_index_says_not_to_look_at_is_looked_at(
    daemon: Daemon, tmp_path: Path, mark: str
) -> None:
    """An earlier turn may have set the mark, or an archive may bring an index with it."""
    tree = made_tree(tmp_path)
    git(tree, "update-index", mark, "src/a.py")
    session = started(daemon, tree)
    asked(daemon, session)
    (tree / "src" / "a.py").write_text("one\n2\nthree\n")
    ended(daemon, session)

    assert lines_of(diff(daemon, session)) == {"src/a.py": ("modified", 1, 1)}
