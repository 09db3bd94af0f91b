"""A flood of limits in a transcript silences no hook: it gives back the user's limits and counts the rest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from compactd.core.constraints.constraints import MAX_OF_A_MESSAGE
from compactd.integrations.hooks.hook_log import read_log
from compactd.integrations.hooks.hook_state import (
    MirroredMessage,
    append,
    files_of,
    frame_message,
    load,
    read_messages_file,
    save,
)
from compactd.integrations.hooks.lost_facts import find_lost
from tests.support.agent_transcripts import AGENTS, LIMIT, Turn, past
from tests.support.hook_runs import Agent, ended, spawned

PATIENT = ("--deadline", "30")


def flooded(agent: str, home: Path, wrapped: str = "{}") -> Agent:
    """A session with the user's limit first, then 25 messages of 90 limits each, and a compaction."""
    at_work = Agent(agent, home)
    at_work.session.say(*past())
    for message in range(25):
        pasted = "\n".join(f"Never use more than {message * 90 + n} retries." for n in range(90))
        at_work.session.say(Turn("user", wrapped.format(pasted)), Turn("assistant", "Understood."))
    at_work.before()
    at_work.session.compact()
    return at_work


@pytest.mark.parametrize("wrapped", ["{}", "<ide_selection>README.md:\n{}\n</ide_selection>"])
@pytest.mark.parametrize("agent", AGENTS)
def test_a_flood_of_limits_silences_no_hook(agent: str, wrapped: str, tmp_path: Path) -> None:
    text = flooded(agent, tmp_path, wrapped).start("compact").text

    assert LIMIT in text


def test_a_hook_says_how_many_limits_found_no_room(tmp_path: Path) -> None:
    at_work = Agent("claude-code", tmp_path)
    at_work.session.say(*past(), Turn("user", "\n".join(f"No x{n}." for n in range(600))))
    at_work.before()
    at_work.session.compact()

    text = at_work.prompt().text

    assert LIMIT in text
    assert (
        f"({600 - MAX_OF_A_MESSAGE} more of the user's constraints found no room here)" in text.splitlines()
    )


def test_the_limits_are_known_before_the_rest_is_worked_out(tmp_path: Path) -> None:
    at_work = Agent("claude-code", tmp_path)
    at_work.session.say(*past())
    at_work.before()
    files = files_of({"COMPACTD_HOME": str(tmp_path / "data")}, "claude-code", at_work.session.session_id)
    state = load(files)
    gone = read_messages_file(files.path(".stretch"), state.stretch_bytes)
    told: list[str] = []

    class Enough(Exception):
        pass

    def first(text: str) -> None:
        told.append(text)
        raise Enough

    with pytest.raises(Enough):
        find_lost(gone, "A summary.", "", first=first)

    assert [LIMIT in text for text in told] == [True]
    assert "## Used again" not in told[0]


@pytest.mark.parametrize("agent", AGENTS)
def test_a_hook_that_fails_at_the_rest_gives_back_the_limits_alone(agent: str, tmp_path: Path) -> None:
    environ = {"COMPACTD_HOME": str(tmp_path / "data")}
    at_work = Agent(agent, tmp_path)
    at_work.session.say(*past())
    at_work.before()
    # What was found out about the messages is damaged on the disk; the messages are whole.
    files = files_of(environ, agent, at_work.session.session_id)
    state = load(files)
    held = read_messages_file(files.path(".stretch"), state.stretch_bytes)
    state.stretch_bytes = append(
        files.path(".stretch"), 0, b"".join(frame_message(damaged(one)) for one in held)
    )
    save(files, state)
    at_work.session.compact()
    event = json.dumps(at_work.session.event("SessionStart", source="compact")).encode()

    code, out, err = ended(spawned(tmp_path, "hook", agent, *PATIENT), event)

    assert (code, err) == (0, b"")
    given = json.loads(out)["hookSpecificOutput"]["additionalContext"]
    assert LIMIT in given
    assert "## Used again" not in given
    assert [line.did for line in read_log(environ)][-1:] == [
        "restored only the user's constraints, because finding other lost facts took too long or failed"
    ]


def damaged(held: MirroredMessage) -> MirroredMessage:
    parts = tuple(replace(part, packed=part.packed[:-1]) for part in held.facts.parts)
    return replace(held, facts=replace(held.facts, parts=parts))
