"""`session/diff`: what changed in a git work tree from turn to turn. It changes nothing of the user's."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Spawn
from tests.support.client import Daemon
from tests.support.git_marks import needs_git
from tests.support.loopback import Answer, Call, Loopback
from tests.support.own_loop import MODELS, Talk, environment
from tests.support.talk import call, result
from tests.support.work_trees import asked, contents, diff, ended, git, lines_of, made_tree, started

pytestmark = needs_git


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return made_tree(tmp_path)


# --- what changed -----------------------------------------------------------------------------------


def test_a_session_tells_which_files_changed_with_their_lines_before_and_after(
    daemon: Daemon, tree: Path
) -> None:
    session = started(daemon, tree)
    asked(daemon, session)
    (tree / "src" / "a.py").write_text("one\n2\nthree\nfour\n")
    (tree / "src" / "old.py").unlink()
    (tree / "new file.txt").write_text("Grüße\n")
    (tree / "build").mkdir()
    (tree / "build" / "out.bin").write_text("ignored")
    (tree / "x.log").write_text("ignored")
    ended(daemon, session)

    answer = diff(daemon, session)

    assert answer == {
        "root": str(tree),
        "files": [
            {
                "file": "new file.txt",
                "status": "added",
                "additions": 1,
                "deletions": 0,
                "before": "",
                "after": "Grüße\n",
            },
            {
                "file": "src/a.py",
                "status": "modified",
                "additions": 2,
                "deletions": 1,
                "before": "one\ntwo\nthree\n",
                "after": "one\n2\nthree\nfour\n",
            },
            {
                "file": "src/old.py",
                "status": "deleted",
                "additions": 0,
                "deletions": 1,
                "before": "old\n",
                "after": "",
            },
        ],
        "hidden": ["build/", "x.log"],
    }


def test_from_and_to_name_the_turns_between_which_is_compared(daemon: Daemon, tree: Path) -> None:
    session = started(daemon, tree)
    ids = []
    for name in ("b1", "b2", "b3"):
        ids.append(asked(daemon, session))
        (tree / name).write_text(name)
        ended(daemon, session)
        (tree / f"between-{name}").write_text(name)

    assert list(lines_of(diff(daemon, session))) == ["b1", "b2", "b3", "between-b1", "between-b2"]
    assert list(lines_of(diff(daemon, session, **{"from": ids[1], "to": ids[1]}))) == ["b2"]
    assert list(lines_of(diff(daemon, session, **{"from": ids[1]}))) == ["b2", "b3", "between-b2"]
    assert list(lines_of(diff(daemon, session, to=ids[0]))) == ["b1"]
    errors = [
        daemon.refusal("session/diff", session_id=session, **{"from": "e99"}),
        daemon.refusal("session/diff", session_id=session, to="e2"),
        daemon.refusal("session/diff", session_id=session, **{"from": ids[2], "to": ids[0]}),
    ]
    assert [(error.code, error.data["path"]) for error in errors] == [
        (-32602, "$.from"),
        (-32602, "$.to"),
        (-32602, "$.to"),
    ]


def test_tools_between_two_requests_of_one_turn_belong_to_it(daemon: Daemon, tree: Path) -> None:
    session = started(daemon, tree)
    first = asked(daemon, session)
    daemon.call("turn/end", session_id=session, messages=[call("t1", "write")])
    (tree / "written.py").write_text("x\n")
    daemon.call("session/append", session_id=session, messages=[result("t1", 3)])
    daemon.call("turn/begin", session_id=session)
    ended(daemon, session)
    second = asked(daemon, session)
    ended(daemon, session)

    assert lines_of(diff(daemon, session, to=first)) == {"written.py": ("added", 1, 0)}
    assert diff(daemon, session, **{"from": second})["files"] == []


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        yield running


def test_the_daemons_own_loop_takes_them_too(spawn: Spawn, server: Loopback, tree: Path) -> None:
    daemon = spawn(env=environment("anthropic", server.base_url))
    session = started(daemon, tree, model=MODELS["anthropic"], tools=[{"name": "run", "input_schema": {}}])

    def tool(name: str, arguments: Any) -> dict[str, Any]:
        (tree / "made.py").write_text("made\n")
        return {"content": "done"}

    talk = Talk(daemon, session, tool)
    server.play(Answer(calls=(Call("run", "{}", "c1"),)), Answer(text="There."))
    end = talk.ask("Make a file")
    talk.stop()

    assert end["type"] == "agent_end"
    assert lines_of(diff(daemon, session)) == {"made.py": ("added", 1, 0)}


def test_a_resume_keeps_snapshots_and_what_was_taken(spawn: Spawn, tree: Path) -> None:
    daemon = spawn()
    session = started(daemon, tree)
    asked(daemon, session)
    (tree / "b1").write_text("1\n")
    ended(daemon, session)
    daemon.kill()

    again = spawn()
    again.call("session/start", session_id=session)
    asked(again, session)
    (tree / "b2").write_text("2\n")
    ended(again, session)

    assert list(lines_of(diff(again, session))) == ["b1", "b2"]


def test_whoever_reads_along_sees_what_changed(spawn: Spawn, tree: Path) -> None:
    owner, reader = spawn(), spawn()
    session = started(owner, tree, session_id="s")
    asked(owner, session)
    (tree / "b1").write_text("1\n")
    ended(owner, session)

    assert reader.call("session/start", session_id=session)["read_only"] is True
    assert diff(reader, session) == diff(owner, session)


def test_links_binaries_and_large_files(daemon: Daemon, tree: Path) -> None:
    session = started(daemon, tree)
    asked(daemon, session)
    (tree / "blob").write_bytes(bytes(range(256)) * 10)
    (tree / "long.txt").write_text("line\n" * 100_000)
    (tree / "huge.txt").write_bytes(b"x" * (5 * 1024 * 1024 + 1))
    (tree / "link").symlink_to("/etc/hostname")
    os.mkfifo(tree / "pipe")
    locked = tree / "locked"
    locked.write_text("x")
    (tree / "latin").write_bytes(b"caf\xe9\n")
    ended(daemon, session)

    answer = diff(daemon, session)

    found = {one["file"]: (one["additions"], "after" in one) for one in answer["files"]}
    assert found == {
        "blob": (0, False),
        "latin": (1, False),
        "link": (1, True),
        "locked": (1, True),
        "long.txt": (100_000, False),
    }
    assert "too large" in answer["reason"]
    assert next(one for one in answer["files"] if one["file"] == "link")["after"] == "/etc/hostname"


def test_a_folder_becomes_a_file_and_a_link_and_a_folder_again(daemon: Daemon, tree: Path) -> None:
    session = started(daemon, tree)
    ids = [asked(daemon, session)]
    shutil.rmtree(tree / "src")
    (tree / "src").write_text("a file now\n")
    ended(daemon, session)
    ids.append(asked(daemon, session))
    (tree / "src").unlink()
    (tree / "other").mkdir()
    (tree / "other" / "a.py").write_text("elsewhere\n")
    (tree / "src").symlink_to("other")
    ended(daemon, session)

    first, second = (lines_of(diff(daemon, session, **{"from": one, "to": one})) for one in ids)

    assert first == {
        "src": ("added", 1, 0),
        "src/a.py": ("deleted", 0, 3),
        "src/old.py": ("deleted", 0, 1),
    }
    assert set(second) == {"src", "other/a.py"}


# --- what is the user's -----------------------------------------------------------------------------


def test_nothing_of_the_users_repository_is_touched_or_read_as_an_order(
    daemon: Daemon, tree: Path, tmp_path: Path
) -> None:
    trap = tmp_path / "sprung"
    script = tmp_path / "trap.sh"
    script.write_text(f"#!/bin/sh\ntouch {trap}\ncat\n")
    script.chmod(0o755)
    for name, value in (
        ("core.fsmonitor", str(script)),
        ("core.hooksPath", str(tmp_path)),
        ("core.pager", str(script)),
        ("filter.evil.clean", str(script)),
        ("filter.evil.process", str(script)),
        ("filter.evil.required", "true"),
        ("diff.evil.command", str(script)),
        ("diff.evil.textconv", str(script)),
        ("diff.external", str(script)),
        ("alias.write-tree", f"!{script}"),
    ):
        git(tree, "config", name, value)
    (tree / ".gitattributes").write_text("* filter=evil diff=evil\n")
    (tree / ".git" / "info" / "exclude").write_text("private\n")
    for hook in ("post-index-change", "pre-commit", "reference-transaction"):
        shutil.copy(script, tree / ".git" / "hooks" / hook)
    before = contents(tree / ".git")
    session = started(daemon, tree / "src")
    asked(daemon, session)
    (tree / "src" / "a.py").write_text("changed\n")
    (tree / "private").write_text("excluded\n")
    ended(daemon, session)

    answer = lines_of(diff(daemon, session))

    assert answer == {"src/a.py": ("modified", 1, 3)}
    assert contents(tree / ".git") == before
    assert not trap.exists()


def test_what_the_user_staged_and_committed_meanwhile_is_his_own(daemon: Daemon, tree: Path) -> None:
    session = started(daemon, tree)
    asked(daemon, session)
    (tree / "staged").write_text("s\n")
    git(tree, "add", "staged")
    ended(daemon, session)
    asked(daemon, session)
    git(tree, "commit", "-q", "-m", "second")
    (tree / "src" / "a.py").write_text("one\n")
    ended(daemon, session)

    assert lines_of(diff(daemon, session)) == {"src/a.py": ("modified", 0, 2), "staged": ("added", 1, 0)}
    assert git(tree, "status", "--short") == " M src/a.py\n"
    assert git(tree, "for-each-ref", "--format=%(refname)").splitlines() in (
        ["refs/heads/master"],
        ["refs/heads/main"],
    )


@pytest.mark.parametrize(
    "kind", ["split index", "sparse checkout", "sha256", "worktree", "submodule", "no commit"]
)
def test_repositories_of_other_kinds(daemon: Daemon, tree: Path, tmp_path: Path, kind: str) -> None:
    match kind:
        case "split index":
            git(tree, "update-index", "--split-index")
            (tree / "more").write_text("m\n")
            git(tree, "add", "more")
        case "sparse checkout":
            git(tree, "sparse-checkout", "set", "--cone", "--sparse-index", "none")
        case "sha256":
            tree = tmp_path / "sha"
            tree.mkdir()
            git(tree, "init", "-q", "--object-format=sha256")
            (tree / "a").write_text("a\n")
            git(tree, "add", "-A")
            git(tree, "commit", "-q", "-m", "x")
        case "worktree":
            git(tree, "worktree", "add", "-q", str(tmp_path / "second"))
            tree = tmp_path / "second"
        case "submodule":
            git(tree, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tree), "sub")
            (tree / "sub" / "inside").write_text("x")
        case _:
            tree = tmp_path / "fresh"
            tree.mkdir()
            git(tree, "init", "-q")
    session = started(daemon, tree)
    asked(daemon, session)
    (tree / "made.txt").write_text("made\n")
    ended(daemon, session)

    answer = diff(daemon, session)

    assert answer.get("reason") is None
    assert lines_of(answer) == {"made.txt": ("added", 1, 0)}


def test_our_own_data_folder_in_the_work_tree_is_left_out(spawn: Spawn, tree: Path) -> None:
    daemon = spawn(tree / "home")
    session = started(daemon, tree)
    asked(daemon, session)
    (tree / "made.txt").write_text("made\n")
    ended(daemon, session)

    assert lines_of(diff(daemon, session)) == {"made.txt": ("added", 1, 0)}
