"""The real Claude Code, driven by the SDK, with sessions that only the store has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import (
    delete_session_via_store,
    fork_session_via_store,
    get_session_messages_from_store,
    import_session_to_store,
    list_sessions_from_store,
    project_key_for_directory,
)

from compactd.integrations.frameworks.claude_agent_sdk import CompactdSessionStore
from compactd.integrations.frameworks.engine import CompactdWarning
from tests.agents.claude_code.driven import VERSIONS, program
from tests.frameworks.claude_agent_sdk.driving import Person, ask_in_new_process, bundled, claude_talk
from tests.frameworks.claude_agent_sdk.test_compacted import BROKEN, chain_of, check
from tests.frameworks.support.laws import SUMMARY, broken
from tests.frameworks.support.provider import Provider
from tests.frameworks.support.reading import items_of

LIMIT = 4_000
LOTS = 3


@pytest.fixture
def provider() -> Iterator[Provider]:
    bundled()
    with Provider(claude_talk(LOTS, 6), window=None) as provider:
        yield provider


@pytest.fixture
def person(provider: Provider, tmp_path: Path) -> Person:
    return Person(tmp_path / "person", provider.anthropic_url)


def key_of(person: Person) -> Any:
    return {"project_key": project_key_for_directory(person.work), "session_id": person.session}


def summaries(provider: Provider, number: int = -1) -> list[str]:
    """Return compactd's summaries in a request that the provider received."""
    texts = [text for item in items_of(provider.requests[number].body) for text in item.texts]
    return [text for text in texts if text.startswith(SUMMARY)]


async def test_a_session_goes_on_in_another_process_from_the_store_alone(
    provider: Provider, person: Person
) -> None:
    store = CompactdSessionStore()
    assert "Lot 1 is done" in await person.ask(provider.ask(0), store)
    local = [json.loads(line) for path in person.transcripts for line in path.read_text("utf-8").splitlines()]
    stored: Any = await store.load(key_of(person))
    assert [one for one in stored if "uuid" in one] == [one for one in local if "uuid" in one]
    for at in range(1, LOTS):
        person.delete_transcripts()
        assert f"Lot {at + 1} is done" in ask_in_new_process(person, provider.ask(at))
        assert person.transcripts == []
    assert broken(provider) == []
    assert provider.totals.facts == len(provider.talk.facts)
    later: Any = await store.load(key_of(person))
    assert later[: len(stored)] == stored
    assert chain_of(later)[0] == chain_of(stored)[0]


async def test_a_session_goes_on_from_a_compacted_load(provider: Provider, person: Person) -> None:
    store = CompactdSessionStore(compact_on_load=LIMIT)
    sizes = []
    for at in range(LOTS):
        before = len(provider.requests)
        said = await person.ask(provider.ask(at), store)
        assert f"Lot {at + 1} is done" in said
        sizes.append(provider.requests[before].tokens)
        assert len(summaries(provider, before)) == (at > 0)
        person.delete_transcripts()
    assert broken(provider) == []
    assert provider.rejected == []
    assert sizes[2] < LIMIT + sizes[0]
    # The stored original is whole: one chain, all messages, none of compactd's.
    original: Any = await store.load_original(key_of(person))
    said_first = provider.talk.requests[0]
    assert said_first in str(chain_of(original)[:3])
    assert SUMMARY not in str(original)
    assert not [one for one in original if one.get("subtype") == "compact_boundary"]
    results = {block for one in original for block in _results(one)}
    assert results == set(provider.issued)
    check(await store.load(key_of(person)), original)  # type: ignore[arg-type]


async def test_without_the_option_everything_is_back(provider: Provider, person: Person) -> None:
    await person.ask(provider.ask(0), CompactdSessionStore(compact_on_load=LIMIT))
    await person.ask(provider.ask(1), CompactdSessionStore(compact_on_load=LIMIT))
    assert summaries(provider)
    person.delete_transcripts()
    await person.ask(provider.ask(2), CompactdSessionStore())
    assert summaries(provider) == []
    assert broken(provider) == []
    assert provider.totals.facts == len(provider.talk.facts)


async def test_the_newest_session_is_continued(provider: Provider, person: Person) -> None:
    store = CompactdSessionStore()
    await person.ask(provider.ask(0), store)
    first = person.session
    person.delete_transcripts()
    await person.ask(provider.ask(1), store, resume=None, continue_conversation=True)
    assert person.session == first
    assert broken(provider) == []


async def test_without_a_daemon_the_session_goes_on_whole(provider: Provider, person: Person) -> None:
    store = CompactdSessionStore(compact_on_load=LIMIT, command=(*BROKEN, "claude"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for at in range(LOTS):
            await person.ask(provider.ask(at), store)
            person.delete_transcripts()
    assert [warning.category for warning in caught].count(CompactdWarning) == 1
    assert broken(provider) == []
    assert provider.totals.facts == len(provider.talk.facts)


async def test_what_the_sdk_does_with_a_store(provider: Provider, person: Person) -> None:
    store = CompactdSessionStore()
    await person.ask(provider.ask(0), store)
    folder = str(person.work)
    session = str(person.session)
    stored = await store.load(key_of(person))
    (listed,) = await list_sessions_from_store(store, directory=folder)
    assert listed.session_id == session
    assert listed.first_prompt is not None
    assert provider.talk.requests[0].startswith(listed.first_prompt[:40])
    messages = await get_session_messages_from_store(store, session, directory=folder)
    assert len(messages) > 8
    forked = await fork_session_via_store(store, session, directory=folder)
    assert len(await list_sessions_from_store(store, directory=folder)) == 2
    # An import of the local transcript adds nothing but the entries without an id.
    os.environ["CLAUDE_CONFIG_DIR"] = str(person.home / ".claude")
    try:
        await import_session_to_store(session, store, directory=folder)
    finally:
        del os.environ["CLAUDE_CONFIG_DIR"]
    again: Any = await store.load(key_of(person))
    assert [one for one in again if "uuid" in one] == [one for one in stored or [] if "uuid" in one]
    await delete_session_via_store(store, session, directory=folder)
    await delete_session_via_store(store, forked.session_id, directory=folder)
    assert await list_sessions_from_store(store, directory=folder) == []


async def test_the_commands_of_compactd_see_the_session(
    provider: Provider, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMPACTD_HOME", str(person.home / "compactd"))
    await person.ask(provider.ask(0), CompactdSessionStore())
    person.delete_transcripts()
    env = {**os.environ, "HOME": str(person.home), "CLAUDE_CONFIG_DIR": str(person.home / ".claude")}

    def compactd(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "compactd", *arguments],
            cwd=person.work, env=env, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert str(person.session)[:8] in compactd("inspect")
    assert f"{len(provider.turns)} requests in 1 session" in compactd("usage")
    assert "claude --resume" in compactd("resume", "claude-code", "--target", "3k")
    (written,) = person.transcripts
    assert SUMMARY in written.read_text("utf-8")
    compactd("import", "claude-code")
    assert "part 101" in compactd("search", "seal code of part 101")


@pytest.mark.parametrize("version", VERSIONS)
async def test_other_versions_go_on_from_a_compacted_load(
    provider: Provider, person: Person, version: str
) -> None:
    store = CompactdSessionStore(compact_on_load=LIMIT)
    for at in range(LOTS):
        await person.ask(provider.ask(at), store, cli_path=program(version))
        person.delete_transcripts()
    # They first ask whether the provider is there.
    assert [fault for fault in broken(provider) if "no such path: /" not in fault] == []
    assert summaries(provider)
    original: Any = await store.load_original(key_of(person))
    assert {block for one in original for block in _results(one)} == set(provider.issued)
    check(await store.load(key_of(person)), original)  # type: ignore[arg-type]


def _results(entry: Any) -> list[str]:
    content = entry.get("message", {}).get("content", [])
    return [block["tool_use_id"] for block in content if isinstance(block, dict) and "tool_use_id" in block]
