"""Rare forms of a conversation: interrupted, compacted by a plugin, with messages that compactd shortens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from msgspec import Raw

from compactd.formats.agents.claude_code import read
from compactd.formats.files.session_file import live_places as in_context
from compactd.integrations.frameworks.claude_agent_sdk import CompactdSessionStore
from compactd.integrations.frameworks.claude_agent_sdk.compacted_entries import Conversation
from compactd.integrations.frameworks.claude_agent_sdk.live_chain import live_places
from compactd.integrations.frameworks.history import ShownMessage
from tests.frameworks.claude_agent_sdk.test_compacted import KEY, LIMIT, calls_and_results, chain_of, check
from tests.frameworks.claude_agent_sdk.writing import Entry, Writer


def conversation(entries: list[Entry]) -> tuple[Conversation, int]:
    """Return what `compacted` makes of entries, and how many messages it has."""
    live = live_places(entries)
    file = read(b"".join(json.dumps(entries[at]).encode() + b"\n" for at in live))
    messages = [message for message, _ in file.messages]
    messages = [messages[at] for at in in_context(messages, dict(file.first_kept), dict(file.pinned))]
    return Conversation(entries, live, file, messages), len(messages)


def summary(text: str = "[Conversation summary]") -> ShownMessage:
    return ShownMessage("user", Raw(json.dumps(text).encode()), is_summary=True)


def test_parallel_calls_and_blocks_beside_the_chain_are_in_the_conversation() -> None:
    writer = Writer()
    writer.ask("Look at three gates.")
    writer.call("one", "two", "three")
    writer.say("All three are mended.")
    writer.add("attachment", attachment={"type": "date"})
    assert live_places(writer.entries) == list(range(len(writer.entries)))


def test_calls_that_end_in_another_order_are_in_the_conversation() -> None:
    writer = Writer()
    writer.ask("Look at two gates.")
    writer.call("one", "two")
    # The conversation goes on after the result of the first call, so the second call is not on the chain.
    writer.parent = writer.entries[-2]["uuid"]
    writer.say("Both are mended.")
    assert live_places(writer.entries) == list(range(len(writer.entries)))


def test_an_abandoned_branch_and_asides_are_not() -> None:
    writer = Writer()
    writer.ask("Begin.")
    fork = writer.parent
    writer.say("Abandoned.")
    writer.add("attachment", attachment={"type": "date"})
    writer.add("user", {"role": "user", "content": "aside"}, isSidechain=True)
    writer.note("mode", mode="normal")
    writer.parent = fork
    writer.say("Kept.")
    assert live_places(writer.entries) == [0, 5]


def test_a_circle_of_parents_ends() -> None:
    entries: list[Any] = [
        {"type": "user", "uuid": "a", "parentUuid": "b", "message": {"role": "user", "content": "a"}},
        {"type": "user", "uuid": "b", "parentUuid": "a", "message": {"role": "user", "content": "b"}},
    ]
    assert live_places(entries) == [0, 1]


async def test_an_interrupted_session_goes_on(tmp_path: Path) -> None:
    writer = Writer()
    for _ in range(12):
        writer.work(6)
    writer.ask("One more.")
    writer.answer({"type": "tool_use", "id": "toolu_open", "name": "Bash", "input": {"command": "sleep"}})
    store = CompactdSessionStore(tmp_path, compact_on_load=LIMIT)
    await store.append(KEY, writer.entries)
    shown: Any = await store.load(KEY)
    assert shown != writer.entries
    chain = chain_of(shown)
    assert chain[0]["subtype"] == "compact_boundary"
    assert chain[-1] == writer.entries[-1]
    calls, results = calls_and_results(shown)
    assert set(calls) - set(results) == {"toolu_open"}
    assert set(results) <= set(calls)


async def test_a_plugins_compaction_is_followed(tmp_path: Path) -> None:
    writer = Writer()
    for _ in range(3):
        writer.work(6)
    writer.ask("The old password is heron-17.")
    writer.say("Noted.")
    again = [dict(entry) for entry in writer.entries[-2:]]
    writer.parent = None
    writer.add("system", subtype="compact_boundary", compactMetadata={"trigger": "auto"})
    writer.add("user", {"role": "user", "content": "Gates were mended; the plugin says kestrel-99."})
    for entry in again:
        # What stays is written once more, with new ids and the old times.
        written = writer.add(entry["type"], entry["message"])
        written["timestamp"] = entry["timestamp"]
    for _ in range(9):
        writer.work(6)
    assert writer.entries[live_places(writer.entries)[0]]["subtype"] == "compact_boundary"
    store = CompactdSessionStore(tmp_path, compact_on_load=LIMIT)
    await store.append(KEY, writer.entries)
    shown: Any = await store.load(KEY)
    check(shown, writer.entries)
    assert "kestrel-99" in str(shown)


def test_a_message_that_compactd_shortens_keeps_its_place_and_ids() -> None:
    writer = Writer()
    writer.ask("Begin.")
    writer.say("First.")
    writer.ask("Read the log.")
    writer.call("long " * 900)
    writer.say("Read.")
    made, count = conversation(writer.entries)
    assert count == 6
    result = {"type": "tool_result", "call_id": "toolu_1000003_0", "content": "short"}
    short = ShownMessage("tool", Raw(json.dumps([result]).encode()), index=4)
    shown: Any = made.shown([summary(), 2, 3, short, 5])
    before = {entry["uuid"]: entry for entry in writer.entries}
    changed = [entry for entry in shown if entry["uuid"] in before and entry != before[entry["uuid"]]]
    reparented, shortened = changed
    assert reparented["parentUuid"] == shown[1]["uuid"]
    assert shortened["message"]["content"][0]["content"] == "short"
    assert "toolUseResult" not in shortened
    assert {name: shortened[name] for name in ("uuid", "parentUuid", "type")} == {
        name: before[shortened["uuid"]][name] for name in ("uuid", "parentUuid", "type")
    }
    assert chain_of(shown)[-1] == writer.entries[-1]


def test_an_older_message_that_stays_follows_the_summary() -> None:
    writer = Writer()
    writer.ask("Begin, and never touch the old gate.")
    writer.say("First.")
    writer.ask("Go on.")
    writer.say("Second.")
    made, _ = conversation(writer.entries)
    shown: Any = made.shown([summary(), 0, 2, 3])
    chain = chain_of(shown)
    assert [entry["message"]["content"] for entry in chain[2:4]] == [
        "Begin, and never touch the old gate.",
        "Go on.",
    ]
    assert chain[-1] == writer.entries[-1]


def test_a_view_without_the_newest_message_or_a_summary_is_not_used() -> None:
    writer = Writer()
    writer.ask("Begin.")
    writer.say("First.")
    made, _ = conversation(writer.entries)
    assert made.shown([summary(), 0]) is None
    assert made.shown([0, 1]) is None
    assert made.shown([]) is None
    assert made.shown([summary()]) is None


def test_an_older_message_that_stays_shortened_follows_the_summary() -> None:
    writer = Writer()
    writer.ask("Begin. " * 500)
    writer.say("First.")
    writer.ask("Go on.")
    writer.say("Second.")
    made, _ = conversation(writer.entries)
    short = ShownMessage("user", Raw(b'"Begin."'), index=0)
    shown: Any = made.shown([summary(), short, 2, 3])
    chain = chain_of(shown)
    assert chain[2] == {
        **writer.entries[0],
        "parentUuid": chain[1]["uuid"],
        "message": {"role": "user", "content": "Begin."},
    }


def test_messages_that_claude_codes_compaction_kept_stay_without_its_boundary() -> None:
    writer = Writer()
    writer.ask("Begin.")
    writer.say("Kept.")
    kept = writer.entries[-1]["uuid"]
    writer.parent = None
    metadata = {"preservedMessages": {"uuids": [kept]}}
    writer.add("system", subtype="compact_boundary", compactMetadata=metadata)
    writer.add("user", {"role": "user", "content": "An older summary."}, isCompactSummary=True)
    writer.ask("Go on.")
    writer.say("Second.")
    made, count = conversation(writer.entries)
    assert count == 4
    shown: Any = made.shown([summary(), 1, 2, 3])
    types = [entry["type"] for entry in chain_of(shown)]
    assert types == ["system", "user", "assistant", "user", "assistant"]
    assert "An older summary." not in str(shown)
