"""`session/import` and `session/export`: what is refused, who may call them, what continues meanwhile."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

from tests.e2e.carried import FORMATS, again, export, rich, seen
from tests.e2e.conftest import Spawn
from tests.e2e.test_while_compacting import long_talk
from tests.support.client import Daemon
from tests.support.talk import turns


def test_a_format_that_is_not_known_is_1010_with_the_list_of_those_that_are(daemon: Daemon) -> None:
    session = rich(daemon)

    errors = [
        daemon.refusal("session/import", content="hello there"),
        daemon.refusal("session/import", content="[]", format="word-perfect"),
        daemon.refusal("session/export", session_id=session, format="word-perfect"),
        daemon.refusal("session/export", session_id=session, format="auto"),
    ]

    assert [error.code for error in errors] == [1010] * 4
    assert "claude-code" in errors[0].data["supported"]
    assert errors[2].data["supported"][: 1 + len(FORMATS)] == ["compactd", *FORMATS]
    assert {"claude-code", "pi", "codex"} < set(errors[2].data["supported"])


def test_a_path_that_is_no_file_is_refused_with_what_it_is(daemon: Daemon, tmp_path: Path) -> None:
    pipe, huge, empty, secret = (tmp_path / name for name in ("pipe", "huge", "empty", "secret"))
    os.mkfifo(pipe)
    with huge.open("wb") as file:
        file.truncate(256 * 1024 * 1024 + 1)
    empty.write_text(" \n")
    sessions = daemon.call("session/list")

    errors = [
        daemon.refusal("session/import", path="relative.jsonl"),
        daemon.refusal("session/import", path=str(tmp_path / "missing")),
        daemon.refusal("session/import", path=str(tmp_path)),
        daemon.refusal("session/import", path=str(pipe)),
        daemon.refusal("session/import", path=str(huge)),
        daemon.refusal("session/import", path=str(empty)),
        daemon.refusal("session/import", path="/dev/zero"),
        daemon.refusal("session/import", path=str(secret) + "\0"),
        daemon.refusal("session/import", path=str(empty), content="[]"),
        daemon.refusal("session/import"),
    ]

    assert [error.code for error in errors] == [-32602] * 4 + [1009] + [-32602] * 5
    assert all(error.data["path"] in ("$.path", "$.content") for error in errors if error.code == -32602)
    assert daemon.call("session/list") == sessions


def test_an_export_to_a_path_is_for_the_user_alone_and_never_over_a_file(
    daemon: Daemon, tmp_path: Path
) -> None:
    session = rich(daemon)
    path = tmp_path / "out.jsonl"

    done = daemon.call("session/export", session_id=session, format="compactd", path=str(path))
    errors = [
        daemon.refusal("session/export", session_id=session, format="neutral", path=str(path)),
        daemon.refusal("session/export", session_id=session, format="neutral", path=str(tmp_path)),
        daemon.refusal("session/export", session_id=session, format="neutral", path="out.json"),
        daemon.refusal(
            "session/export", session_id=session, format="neutral", path=str(tmp_path / "no" / "x")
        ),
    ]

    assert done == {"format": "compactd", "warnings": [], "path": str(path)}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text("utf-8") == export(daemon, session)
    assert [(error.code, error.data["path"]) for error in errors] == [(-32602, "$.path")] * 4
    assert daemon.call("session/import", path=str(path))["format"] == "compactd"


def test_whoever_reads_along_may_export(spawn: Spawn) -> None:
    owner, reader = spawn(), spawn()
    session = rich(owner, session_id="s")
    reader.call("session/start", session_id=session)

    texts = [
        export(daemon, session, format) for daemon in (owner, reader) for format in ("compactd", "openai")
    ]

    assert texts[:2] == texts[2:]


def test_a_session_in_memory_alone_can_be_exported_and_comes_in_as_one_on_the_disk(daemon: Daemon) -> None:
    session = rich(daemon, persist=False)

    answer = daemon.call("session/import", content=export(daemon, session))

    assert seen(daemon, again(daemon, answer)) == seen(daemon, session)


def test_other_sessions_are_answered_while_a_large_file_comes_in_and_the_client_is_told_how_far_it_is(
    spawn: Spawn, tmp_path: Path
) -> None:
    daemon = spawn()
    path = tmp_path / "large.json"
    path.write_text(json.dumps([message for batch in long_talk(120) for message in batch]))
    daemon.call("session/start", session_id="short")

    asked = daemon.ask("session/import", path=str(path), workDoneToken="tok")
    short = daemon.answer(daemon.ask("session/append", session_id="short", messages=turns(1, 5)))
    answer = daemon.answer(asked)

    assert answer.value["result"]["message_count"] == 480
    assert short.at < answer.at
    told = [g.value["params"]["value"] for g in daemon.received if g.value.get("method") == "$/progress"]
    assert [told[0]["kind"], told[-1]["kind"]] == ["begin", "end"]
    shares = [value["percentage"] for value in told if value["kind"] == "report"]
    assert shares == sorted(shares)
    assert shares[-1] == 90


def test_an_import_that_is_cancelled_leaves_no_session(spawn: Spawn, tmp_path: Path) -> None:
    daemon = spawn()
    path = tmp_path / "large.json"
    path.write_text(json.dumps([message for batch in long_talk(120) for message in batch]))

    asked = daemon.ask("session/import", path=str(path))
    daemon.notify("$/cancelRequest", id=asked)

    assert daemon.refused(asked).code == -32800
    daemon.call("session/import", content=[{"role": "user", "content": "x"}])
    assert len(daemon.call("session/list")["sessions"]) == 1
