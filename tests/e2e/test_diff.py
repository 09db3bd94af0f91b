"""`session/diff`: what changed in a git work tree from turn to turn, with nothing of the user's touched."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.client import Daemon
from e2e.conftest import Spawn
from e2e.own_loop import MODELS, Talk, environment
from e2e.talk import CHARS4, assistant, call, result, turns, user
from providers.loopback import Answer, Call, Loopback

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder: Path, *arguments: str) -> str:
    """What git says, with no settings of this machine's."""
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        **{f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    }
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=env, check=True, capture_output=True, text=True
    )
    return done.stdout


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A work tree with one commit."""
    root = tmp_path / "tree"
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.py").write_text("one\ntwo\nthree\n")
    (root / "src" / "old.py").write_text("old\n")
    (root / ".gitignore").write_text("build/\n*.log\n")
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "first")
    return root


def started(daemon: Daemon, folder: Path | None, **more: Any) -> str:
    params: dict[str, Any] = {"snapshots": True, "compaction": CHARS4, **more}
    if folder is not None:
        params["working_dir"] = str(folder)
    return str(daemon.call("session/start", **params)["session_id"])


def asked(daemon: Daemon, session: str) -> str:
    """A user's message and the begin of its turn; its entry."""
    (entry_id,) = daemon.call("session/append", session_id=session, messages=[user(5)])["entry_ids"]
    daemon.call("turn/begin", session_id=session)
    return str(entry_id)


def ended(daemon: Daemon, session: str) -> None:
    daemon.call("turn/end", session_id=session, messages=[assistant(5)])


def diff(daemon: Daemon, session: str, **span: str) -> dict[str, Any]:
    return dict(daemon.call("session/diff", session_id=session, **span))


def lines_of(answer: dict[str, Any]) -> dict[str, tuple[str, int, int]]:
    return {one["file"]: (one["status"], one["additions"], one["deletions"]) for one in answer["files"]}


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every file below a folder: what it holds and when it was written."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


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
    }


def test_from_and_to_name_the_turns_between_which_is_compared(
    daemon: Daemon, tree: Path
) -> None:
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


# --- where there is nothing to tell -----------------------------------------------------------------


def test_where_nothing_can_be_told_the_reason_is(spawn: Spawn, tree: Path, tmp_path: Path) -> None:
    daemon = spawn()
    plain, gone = tmp_path / "plain", tmp_path / "gone"
    plain.mkdir()
    gone.mkdir()
    bare = tmp_path / "bare.git"
    bare.mkdir()
    git(bare, "init", "-q", "--bare")
    sessions = {
        "snapshots": started(daemon, tree, snapshots=False),
        "no git work tree": started(daemon, plain),
        "in no git": started(daemon, bare),
        "not there any more": started(daemon, gone),
        "no working_dir": started(daemon, None),
        "memory": started(daemon, tree, persist=False),
        "not an absolute path": started(daemon, Path("relative")),
    }
    gone.rmdir()
    for session in sessions.values():
        asked(daemon, session)
        ended(daemon, session)

    answers = {reason: diff(daemon, session) for reason, session in sessions.items()}

    assert all(answer["files"] == [] for answer in answers.values())
    assert {reason: reason in answer["reason"] for reason, answer in answers.items()} == dict.fromkeys(
        answers, True
    )
    assert not (daemon.home / "snapshots").exists()


def test_without_git_turns_go_on_and_the_reason_is_told(spawn: Spawn, tree: Path, tmp_path: Path) -> None:
    daemon = spawn(env={"PATH": str(tmp_path / "empty")})
    session = started(daemon, tree)
    asked(daemon, session)
    ended(daemon, session)

    answer = diff(daemon, session)

    assert answer["files"] == []
    assert "git is not installed" in answer["reason"]


def test_a_work_tree_that_was_deleted_ends_no_turn(daemon: Daemon, tree: Path) -> None:
    session = started(daemon, tree)
    asked(daemon, session)
    ended(daemon, session)
    shutil.rmtree(tree)

    asked(daemon, session)
    ended(daemon, session)

    answer = diff(daemon, session)
    assert (answer["files"], answer["reason"]) == ([], "the session's working_dir is not there any more")


def test_a_git_that_hangs_holds_up_no_other_session(spawn: Spawn, tree: Path, tmp_path: Path) -> None:
    gate, bin_ = tmp_path / "gate", tmp_path / "bin"
    os.mkfifo(gate)
    bin_.mkdir()
    (bin_ / "git").write_text(f'#!/bin/sh\nread line < {gate}\nexec {shutil.which("git")} "$@"\n')
    (bin_ / "git").chmod(0o755)
    daemon = spawn(env={"PATH": f"{bin_}:{os.environ['PATH']}"})
    session = started(daemon, tree)
    daemon.call("session/append", session_id=session, messages=[user(5)])

    waiting = daemon.ask("turn/begin", session_id=session)
    other = daemon.call("session/start")["session_id"]
    daemon.call("session/append", session_id=other, messages=turns(1, 5))
    daemon.call("turn/begin", session_id=other)
    state = daemon.call("agent/state", session_id=session)

    assert not daemon.answered_so_far(waiting)
    assert state["message_count"] == 1
    with gate.open("w") as opened:
        opened.write("go\n")
    daemon.kill()


# --- what is kept -----------------------------------------------------------------------------------


def test_a_deleted_session_leaves_no_snapshots(daemon: Daemon, tree: Path) -> None:
    session = started(daemon, tree)
    asked(daemon, session)
    (tree / "secret.txt").write_text("x\n")
    ended(daemon, session)
    kept = list((daemon.home / "snapshots").iterdir())

    daemon.call("session/delete", session_id=session)

    assert kept
    assert not any(folder.exists() for folder in kept if session in folder.name)


def test_a_redaction_takes_the_snapshots_before_it_away(daemon: Daemon, tree: Path) -> None:
    session = started(daemon, tree)
    first = asked(daemon, session)
    (tree / "key.txt").write_text("the key\n")
    ended(daemon, session)
    folder = next(one for one in (daemon.home / "snapshots").iterdir() if session in one.name)

    daemon.call("session/redact", session_id=session, entry_ids=[first])

    gone = diff(daemon, session)
    assert (folder.exists(), gone["files"]) == (False, [])
    assert "session/redact" in gone["reason"]
    asked(daemon, session)
    (tree / "later.txt").write_text("x\n")
    ended(daemon, session)
    assert lines_of(diff(daemon, session)) == {"later.txt": ("added", 1, 0)}


def test_snapshots_are_for_the_user_alone(daemon: Daemon, tree: Path) -> None:
    session = started(daemon, tree)
    asked(daemon, session)
    ended(daemon, session)

    folder = daemon.home / "snapshots"

    assert oct(folder.stat().st_mode & 0o777) == "0o700"
    assert {oct(one.stat().st_mode & 0o777) for one in folder.iterdir()} == {"0o700"}
