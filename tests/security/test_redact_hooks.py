"""A secret that was redacted or deleted is gone from what the hooks store, and no hook gives it back."""

from __future__ import annotations

import json
from array import array
from pathlib import Path
from uuid import uuid4

import pytest

from compactd.core.redaction.blank_message import message_words
from compactd.formats.messages.neutral_out import encode_message
from compactd.integrations.hooks.hook_state import files_of
from compactd.protocol.messages import Message, Text
from compactd.storage.hook_files import KEY, message_key, read_redactions, with_key
from tests.support.agent_transcripts import AGENTS, HASH, LIMIT, NAME, PATH, Turn, past
from tests.support.client import Daemon
from tests.support.hook_runs import Agent
from tests.support.redacted import on_disk

SECRET = "sk-live-SECRETSECRET123"
PASTED = f"Always use {SECRET} in {PATH} and in {NAME}."


@pytest.fixture(params=AGENTS)
def agent(request: pytest.FixtureRequest, tmp_path: Path) -> Agent:
    agent = Agent(request.param, tmp_path)
    agent.prompt()
    agent.session.say(Turn("user", PASTED), *past())
    agent.stop()
    return agent


def name_of(agent: Agent) -> str:
    return f"{agent.agent}:{agent.session.session_id}"


def redacted(agent: Agent) -> dict:
    """The answer to a redaction of whatever message holds the secret."""
    with Daemon(agent.home / "data") as daemon:
        daemon.call("session/start", session_id=name_of(agent))
        hits = daemon.call("session/search", session_id=name_of(agent), query=SECRET)["hits"]
        entry_ids = [hit["entry_id"] for hit in hits]
        return dict(daemon.call("session/redact", session_id=name_of(agent), entry_ids=entry_ids))


def data(agent: Agent) -> Path:
    return agent.home / "data"


def test_a_redaction_takes_it_out_of_the_hooks_files_before_it_answers(agent: Agent) -> None:
    assert {name.rpartition(".")[2] for name in on_disk(data(agent), SECRET)} == {"jsonl", "stretch"}

    answer = redacted(agent)

    assert on_disk(data(agent), SECRET) == []
    assert "hook" in [row["where"] for row in answer["cleaned"]]
    transcript = [row for row in answer["left"] if row["where"] == "transcript"]
    assert [row["path"] for row in transcript] == [str(agent.session.path)]


def test_after_a_redaction_the_hook_gives_back_the_rest_and_not_the_secret(agent: Agent) -> None:
    redacted(agent)
    agent.session.say(Turn("user", "And now the next step."))
    agent.before()
    agent.session.compact()

    answer = agent.prompt()

    assert SECRET not in answer.text
    assert "SECRET" not in answer.text
    assert LIMIT in answer.text
    assert on_disk(data(agent), SECRET) == []


def test_what_a_compaction_took_already_is_not_given_back_either(agent: Agent) -> None:
    agent.before()
    agent.session.compact(f"The user said: {PASTED}")
    agent.stop()
    assert any(not name.endswith(".jsonl") for name in on_disk(data(agent), SECRET))

    redacted(agent)
    answer = agent.prompt()

    assert SECRET not in answer.text
    assert on_disk(data(agent), SECRET) == []


def test_a_transcript_that_is_read_anew_does_not_bring_it_back(agent: Agent) -> None:
    redacted(agent)
    environ = {"COMPACTD_HOME": str(data(agent))}
    files = files_of(environ, agent.agent, agent.session.session_id)
    for ending in (".json", ".stretch", ".gone"):
        # As after an upgrade; and then as after a month of silence.
        files.path(ending).unlink(missing_ok=True)
    agent.stop()
    once = on_disk(data(agent), SECRET)
    for ending in (".json", ".stretch", ".gone", ".ids"):
        files.path(ending).unlink(missing_ok=True)
    agent.stop()
    agent.session.compact()
    answer = agent.prompt()

    assert (once, on_disk(data(agent), SECRET), SECRET in answer.text) == ([], [], False)


def test_words_that_wait_while_a_daemon_has_the_mirror_open_are_cleaned_and_nothing_else_is_lost(
    agent: Agent,
) -> None:
    with Daemon(data(agent)) as daemon:
        daemon.call("session/start", session_id=name_of(agent))
        agent.session.say(Turn("assistant", "The tables are sorted now."), Turn("user", "Thanks, go on."))
        agent.session.compact(f"The user said: {PASTED}")
        agent.stop()
        hits = daemon.call("session/search", session_id=name_of(agent), query=SECRET)["hits"]
        assert any(name.endswith(".wait") for name in on_disk(data(agent), SECRET))

        daemon.call("session/redact", session_id=name_of(agent), entry_ids=[hit["entry_id"] for hit in hits])
        left = on_disk(data(agent), SECRET)
        daemon.call("session/close", session_id=name_of(agent))

        agent.stop()
        daemon.call("session/start", session_id=name_of(agent))
        found = daemon.call("session/search", session_id=name_of(agent), query="tables are sorted")["hits"]
        assert (left, on_disk(data(agent), SECRET), len(found)) == ([], [], 1)


def test_a_deletion_removes_every_word_that_the_hook_keeps_and_none_comes_back(agent: Agent) -> None:
    agent.before()
    agent.session.compact(f"The user said: {PASTED}")
    agent.stop()

    with Daemon(data(agent)) as daemon:
        answer = daemon.call("session/delete", session_id=name_of(agent))
    files = files_of({"COMPACTD_HOME": str(data(agent))}, agent.agent, agent.session.session_id)
    words = (SECRET, LIMIT, NAME, HASH)
    deleted = [on_disk(data(agent), word) for word in words]
    agent.session.say(Turn("user", "And after the deletion?"))
    agent.stop()
    went_on = [on_disk(data(agent), word) for word in words]
    for ending in (".json", ".stretch", ".gone"):
        files.path(ending).unlink(missing_ok=True)  # as after an upgrade
    agent.stop()
    upgraded = [on_disk(data(agent), word) for word in words]

    assert [row["path"] for row in answer["left"]] == [str(agent.session.path)]
    assert (deleted, went_on, upgraded) == ([[]] * 4, [[]] * 4, [[]] * 4)
    assert any(name.endswith(".jsonl") for name in on_disk(data(agent), "And after the deletion?"))


def forked(agent: Agent) -> Agent:
    """Return the same agent in a session with another id, whose transcript begins with a copy."""
    copied = agent.session.path.read_text()
    other = Agent(agent.agent, agent.home)
    agent.session.path.write_text(copied)
    old, new = agent.session.session_id, uuid4().hex[:8] + agent.session.session_id[8:]
    other.session.session_id = new
    other.session.path = agent.session.path.with_name(f"fork-{agent.session.path.name}")
    other.session.path.write_text(copied.replace(old, new))
    return other


def test_a_fork_of_the_agents_session_does_not_bring_it_back(agent: Agent) -> None:
    redacted(agent)

    fork = forked(agent)
    fork.prompt()
    fork.stop()

    assert name_of(fork) != name_of(agent)
    assert on_disk(data(agent), LIMIT) != []
    assert on_disk(data(agent), SECRET) == []


def test_a_fork_mirrored_before_the_redaction_is_named_until_it_is_redacted_too(
    agent: Agent,
) -> None:
    fork = forked(agent)
    fork.prompt()
    fork.stop()

    first, second = redacted(agent), redacted(fork)

    mirrors = [[row["path"] for row in one["left"] if row["where"] == "mirror"] for one in (first, second)]
    stem = files_of({"COMPACTD_HOME": str(data(agent))}, fork.agent, fork.session.session_id).stem
    assert mirrors == [[str(data(agent) / "sessions" / f"{stem}.jsonl")], []]
    assert on_disk(data(agent), SECRET) == []


def guesses() -> list[int]:
    """Return the hashes that someone could compute who guesses the message and has no key."""
    message = Message(role="user", content=(Text(text=PASTED),))
    return [message_key(message_words(message)), message_key(encode_message(message)), message_key(PASTED)]


def known(agent: Agent) -> set[int]:
    """Return the stored hashes by which the hook recognises messages."""
    paths = (data(agent) / "hooks").glob("*.ids")
    return {key for path in paths for key in array("Q", path.read_bytes())}


@pytest.mark.parametrize("method", ["session/redact", "session/delete"])
def test_what_was_redacted_cannot_be_guessed_from_the_hashes_without_the_key(
    agent: Agent, method: str
) -> None:
    before = known(agent)
    if method == "session/redact":
        redacted(agent)
    else:
        with Daemon(data(agent)) as daemon:
            daemon.call("session/delete", session_id=name_of(agent))

    lists = [read_redactions(path) for path in (data(agent) / "hooks").glob("*.redacted")]
    key = data(agent) / "hooks" / KEY
    assert lists
    assert [one.keys for one in lists] == [() for _ in lists]
    assert {one for each in lists for one in each.keyed}.isdisjoint((*before, *guesses()))
    assert known(agent).isdisjoint(guesses())
    assert (key.stat().st_mode & 0o777, len(key.read_bytes())) == (0o600, 32)
    keyed = {with_key(one, key.read_bytes()) for one in before}
    assert keyed & known(agent), "what was redacted is known by its keyed hash"


def test_a_list_of_an_earlier_version_is_honoured_and_keyed_when_it_is_next_written(agent: Agent) -> None:
    of_agent = data(agent) / "hooks" / f"{agent.agent}.redacted"
    of_agent.write_bytes(json.dumps({"keys": guesses()}).encode())

    first = forked(agent)
    first.prompt()
    first.stop()
    with Daemon(data(agent)) as daemon:
        daemon.call("session/start", session_id=name_of(first))
        hits = daemon.call("session/search", session_id=name_of(first), query=SECRET)["hits"]
    redacted(agent)
    second = forked(agent)
    second.prompt()
    second.stop()

    found = read_redactions(of_agent)
    assert hits == []
    assert on_disk(data(agent), SECRET) == []
    assert found.keys == ()
    assert len(found.keyed) >= len(guesses())


def test_a_data_folder_that_lost_its_key_gets_a_new_one(agent: Agent) -> None:
    redacted(agent)
    (data(agent) / "hooks" / KEY).unlink()
    other = Agent(agent.agent, agent.home, "another-session")
    other.prompt()
    other.session.say(Turn("user", f"{PASTED} Again."))
    other.stop()

    redacted(other)

    assert on_disk(data(agent), SECRET) == []
    assert (data(agent) / "hooks" / KEY).exists()
