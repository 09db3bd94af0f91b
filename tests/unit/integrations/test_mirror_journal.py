"""The mirror of an agent's session is a normal session: the daemon opens it, and search finds its text."""

from __future__ import annotations

from pathlib import Path

from compactd.client import Client
from compactd.integrations.hooks.hook_state import files_of, mirror_id
from compactd.storage.locks import Lock, take_lock
from tests.support.agent_transcripts import HASH, LIMIT, SUMMARY, Turn, past
from tests.support.command_line import environment, run
from tests.support.hook_runs import Agent
from tests.support.outputs import log


def opened(home: Path, agent: Agent) -> tuple[Client, str]:
    client = Client(env=environment(home))
    session_id = mirror_id(agent.agent, agent.session.session_id)
    client.session_start(session_id=session_id)
    return client, session_id


def test_the_daemon_opens_a_mirror_and_its_context_begins_with_the_agents_summary(tmp_path: Path) -> None:
    agent = Agent("claude-code", tmp_path)
    agent.session.say(*past(3))
    agent.stop()
    agent.session.compact().say(Turn("user", "What is next?"))
    agent.stop()

    client, session_id = opened(tmp_path, agent)
    with client:
        history = client.session_history(session_id=session_id).entries
        context = client.session_context(session_id=session_id).messages

    kinds = [entry.kind for entry in history]
    assert kinds == ["message"] * 17 + ["compaction", "message"]
    assert [SUMMARY in str(bytes(message)) for message in context] == [True, False]


def test_search_finds_what_was_compacted_away(tmp_path: Path) -> None:
    agent = Agent("codex", tmp_path)
    agent.session.say(*past(3)).compact()
    agent.stop()

    found = run(tmp_path, "search", HASH)

    assert (found.code, HASH in found.out) == (0, True)


def test_while_another_process_holds_the_mirror_nothing_is_lost(tmp_path: Path) -> None:
    agent = Agent("claude-code", tmp_path)
    agent.session.say(Turn("user", "first"))
    agent.stop()
    files = files_of({"COMPACTD_HOME": str(tmp_path / "data")}, "claude-code", agent.session.session_id)
    journal = files.folder.parent / "sessions" / f"{files.stem}.jsonl"
    before = journal.read_bytes()
    lock = take_lock(journal.with_suffix(".lock"))
    assert isinstance(lock, Lock)
    agent.session.say(*past(2)).compact()
    answer = agent.prompt()
    held = journal.read_bytes()
    lock.release()
    agent.session.say(Turn("user", "last"))
    agent.stop()

    client, session_id = opened(tmp_path, agent)
    with client:
        entries = client.session_history(session_id=session_id).entries
    texts = "".join(bytes(entry.message).decode() for entry in entries if entry.kind == "message")
    assert held == before
    assert LIMIT in answer.text
    assert [text in texts for text in ("first", LIMIT, "last")] == [True, True, True]


def test_what_another_program_added_to_the_mirror_stays(tmp_path: Path) -> None:
    agent = Agent("claude-code", tmp_path)
    agent.session.say(*past(2))
    agent.stop()
    client, session_id = opened(tmp_path, agent)
    with client:
        client.session_append(session_id=session_id, messages=[{"role": "user", "content": "a note"}])
    agent.session.say(Turn("user", "behind the note"))
    agent.stop()

    client, session_id = opened(tmp_path, agent)
    with client:
        entries = client.session_history(session_id=session_id).entries
    assert [entry.entry_id for entry in entries] == [f"e{n + 1}" for n in range(len(entries))]
    assert [b"a note" in bytes(entry.message) for entry in entries[-2:]] == [True, False]
    assert b"behind the note" in bytes(entries[-1].message)


def test_a_mirror_that_was_deleted_is_begun_anew_with_what_comes(tmp_path: Path) -> None:
    agent = Agent("claude-code", tmp_path)
    agent.session.say(*past(2))
    agent.stop()
    run(tmp_path, "sessions", "delete", mirror_id("claude-code", agent.session.session_id), "--yes")
    agent.session.say(Turn("user", "after the deletion"))
    agent.stop()

    client, session_id = opened(tmp_path, agent)
    with client:
        entries = client.session_history(session_id=session_id).entries
    assert [entry.entry_id for entry in entries] == ["e1"]
    assert b"after the deletion" in bytes(entries[0].message)


def test_a_run_that_was_killed_before_it_could_say_so_is_not_repeated(tmp_path: Path) -> None:
    agent = Agent("gemini-cli", tmp_path)
    agent.session.say(*past(2))
    agent.stop()
    files = files_of({"COMPACTD_HOME": str(tmp_path / "data")}, "gemini-cli", agent.session.session_id)
    before = files.path(".json").read_bytes()
    agent.session.say(Turn("user", "said once")).compact().say(Turn("assistant", "and this"))
    agent.stop()
    files.path(".json").write_bytes(before)
    agent.stop()

    client, session_id = opened(tmp_path, agent)
    with client:
        entries = client.session_history(session_id=session_id).entries
    assert [entry.entry_id for entry in entries] == [f"e{n + 1}" for n in range(len(entries))]
    assert [entry.kind for entry in entries][-4:] == ["message", "compaction", "message", "message"]


def test_outputs_that_were_reduced_in_a_mirror_keep_their_ids(tmp_path: Path) -> None:
    agent = Agent("claude-code", tmp_path)
    agent.session.say(*past(2))
    agent.stop()
    client, session_id = opened(tmp_path, agent)
    with client:
        kept = client.session_reduce(session_id=session_id, name="Bash", content=log(), call_id="t1")
        for at in range(80):
            client.session_reduce(session_id=session_id, name="Bash", content=log(60 + at), observe=True)
    agent.session.say(*past(1), Turn("user", "after the reductions"))
    agent.stop()

    client, session_id = opened(tmp_path, agent)
    with client:
        entries = client.session_history(session_id=session_id).entries
        (original,) = client.session_expand(session_id=session_id, entry_id=kept.entry_id).entries
        branched = client.session_branch(session_id=session_id, entry_id=entries[-1].entry_id)
    ids = [entry.entry_id for entry in entries]
    assert len({*ids, kept.entry_id}) == len(ids) + 1
    assert b"worker 100 is ready" in bytes(original.message)
    assert b"after the reductions" in bytes(entries[-1].message)
    assert branched.message_count == len(entries)
