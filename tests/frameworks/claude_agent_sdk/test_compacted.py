"""What `load` returns with `compact_on_load`, and that the stored session stays whole."""

from __future__ import annotations

import asyncio
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compactd.client import Client
from compactd.integrations.frameworks.claude_agent_sdk import CompactdSessionStore
from compactd.integrations.frameworks.claude_agent_sdk.keys import Key
from compactd.integrations.frameworks.claude_agent_sdk.live_chain import blocks_of, live_places
from compactd.integrations.frameworks.claude_agent_sdk.transcript import transcript_of
from compactd.integrations.frameworks.engine import CompactdWarning
from tests.frameworks.claude_agent_sdk.writing import SESSION, Entry, Writer, long_session

KEY: Any = {"project_key": "project", "session_id": SESSION}
LIMIT = 8_000
BROKEN = (sys.executable, "-c", "import sys; sys.exit(3)")


def chain_of(entries: list[Entry]) -> list[Entry]:
    """Return the conversation as Claude Code reads it: from the newest message back by the parents."""
    by_id = {entry["uuid"]: entry for entry in entries if "uuid" in entry}
    said = [one for one in entries if one["type"] in ("user", "assistant") and not one["isSidechain"]]
    at: Entry | None = said[-1]
    chain: list[Entry] = []
    while at is not None:
        chain.append(at)
        parent = at["parentUuid"]
        assert parent is None or parent in by_id, f"the parent of {at} is missing"
        at = None if parent is None else by_id[parent]
    return chain[::-1]


def calls_and_results(entries: list[Entry]) -> tuple[list[str], list[str]]:
    blocks = [block for entry in entries for block in blocks_of(entry)]
    return (
        [block["id"] for block in blocks if block["type"] == "tool_use"],
        [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"],
    )


def check(shown: list[Entry], original: list[Entry]) -> None:
    """Check that `shown` is a compaction of `original` from which Claude Code can go on."""
    chain = chain_of(shown)
    assert chain[0]["subtype"] == "compact_boundary"
    assert chain[1]["isCompactSummary"] is True
    assert chain[1]["message"]["content"].startswith("[Conversation summary")
    assert [entry.get("subtype") for entry in shown].count("compact_boundary") == 1
    ids = [entry["uuid"] for entry in shown if "uuid" in entry]
    assert len(ids) == len(set(ids))
    stored = {entry["uuid"]: entry for entry in original if "uuid" in entry}
    for entry in shown:
        if entry.get("uuid") in stored:
            assert {**entry, "parentUuid": 0} == {**stored[entry["uuid"]], "parentUuid": 0}
    # What Claude Code writes next hangs on an entry that is stored.
    assert chain[-1]["uuid"] == chain_of(original)[-1]["uuid"]
    calls, results = calls_and_results(shown)
    assert len(calls) == len(set(calls))
    assert sorted(calls) == sorted(results)
    order = [entry["uuid"] for entry in original if entry.get("uuid") in ids]
    assert [one for one in ids if one in stored] == order


async def test_a_large_session_begins_with_a_summary(tmp_path: Path) -> None:
    original = long_session()
    store = CompactdSessionStore(tmp_path, compact_on_load=LIMIT)
    await store.append(KEY, original)
    shown: Any = await store.load(KEY)
    check(shown, original)
    assert len(str(shown)) < len(str(original)) / 2
    assert shown[-1] == original[-1]
    newest = [entry for entry in original if entry.get("promptSource") == "sdk"][-1]
    assert newest["message"]["content"] in str(shown)
    assert await store.load_original(KEY) == original
    assert await CompactdSessionStore(tmp_path).load(KEY) == original


async def test_entries_about_the_session_stay(tmp_path: Path) -> None:
    original = long_session()
    original.insert(3, {"type": "custom-title", "customTitle": "Gates", "sessionId": SESSION})
    store = CompactdSessionStore(tmp_path, compact_on_load=LIMIT)
    await store.append(KEY, original)
    shown: Any = await store.load(KEY)
    assert [entry for entry in shown if "uuid" not in entry] == [
        entry for entry in original if "uuid" not in entry
    ]


async def test_the_next_load_begins_with_the_same_summary(tmp_path: Path) -> None:
    writer = Writer()
    for _ in range(12):
        writer.work(6)
    store = CompactdSessionStore(tmp_path, compact_on_load=LIMIT)
    await store.append(KEY, writer.entries)
    first: Any = await store.load(KEY)
    again: Any = await CompactdSessionStore(tmp_path, compact_on_load=LIMIT).load(KEY)
    assert again == first
    # Claude Code goes on from there. What it appends hangs on the newest entry.
    stored = len(writer.entries)
    writer.work(1)
    await store.append(KEY, writer.entries[stored:])
    later: Any = await store.load(KEY)
    assert later == [*first, *writer.entries[stored:]]
    check(later, writer.entries)
    assert chain_of(writer.entries)[0] == writer.entries[0]
    assert await store.load_original(KEY) == writer.entries


async def test_it_is_compacted_again_from_the_originals(tmp_path: Path) -> None:
    writer = Writer()
    store = CompactdSessionStore(tmp_path, compact_on_load=LIMIT)
    summaries = set()
    stored = 0
    for _ in range(4):
        for _ in range(5):
            writer.work(6)
        await store.append(KEY, writer.entries[stored:])
        stored = len(writer.entries)
        shown: Any = await store.load(KEY)
        check(shown, writer.entries)
        summaries.add(chain_of(shown)[1]["message"]["content"])
    assert len(summaries) == 4
    assert await store.load_original(KEY) == writer.entries


async def test_a_small_session_and_sub_agents_are_untouched(tmp_path: Path) -> None:
    original = long_session()
    store = CompactdSessionStore(tmp_path, compact_on_load=200_000)
    sub: Any = {**KEY, "subpath": "subagents/agent-1"}
    await store.append(KEY, original)
    assert await store.load(KEY) == original
    tight = CompactdSessionStore(tmp_path, compact_on_load=LIMIT)
    await tight.append(sub, original)
    assert await tight.load(sub) == original


@pytest.mark.parametrize(("window", "is_compacted"), [(20_000, True), (1_000_000, False)])
async def test_auto_compares_with_a_share_of_the_window(
    tmp_path: Path, window: int, is_compacted: bool
) -> None:
    original = long_session()
    store = CompactdSessionStore(tmp_path, compact_on_load="auto", context_window=window)
    await store.append(KEY, original)
    shown: Any = await store.load(KEY)
    assert (shown != original) is is_compacted
    if is_compacted:
        check(shown, original)


async def test_an_abandoned_branch_is_not_summarised(tmp_path: Path) -> None:
    writer = Writer()
    for _ in range(5):
        writer.work(6)
    fork = writer.parent
    writer.ask("Paint the fence in mauve-4711.")
    writer.say("The fence is mauve-4711 now.")
    writer.parent = fork
    for _ in range(7):
        writer.work(6)
    store = CompactdSessionStore(tmp_path, compact_on_load=LIMIT)
    await store.append(KEY, writer.entries)
    shown: Any = await store.load(KEY)
    check(shown, writer.entries)
    assert "mauve-4711" not in str(shown)


async def test_claude_codes_own_compaction_is_followed(tmp_path: Path) -> None:
    writer = Writer()
    for _ in range(3):
        writer.work(6)
    writer.say("The password of the old gate is heron-17.")
    kept = writer.entries[-1]["uuid"]
    ends = {"headUuid": kept, "tailUuid": kept}
    writer.parent = None
    writer.add(
        "system",
        subtype="compact_boundary",
        compactMetadata={"trigger": "auto", "preservedSegment": ends, "preservedMessages": {"uuids": [kept]}},
    )
    text = "This session is being continued from a previous conversation: gates were mended."
    writer.add("user", {"role": "user", "content": text}, isCompactSummary=True)
    for _ in range(9):
        writer.work(6)
    store = CompactdSessionStore(tmp_path, compact_on_load=LIMIT)
    await store.append(KEY, writer.entries)
    shown: Any = await store.load(KEY)
    check(shown, writer.entries)
    assert "heron-17" in str(shown)
    assert await store.load_original(KEY) == writer.entries


async def test_a_gap_that_the_sdk_could_not_store_is_bridged(tmp_path: Path) -> None:
    writer = Writer()
    for _ in range(12):
        writer.work(6)
    lost = [entry for entry in writer.entries if entry["type"] == "user"][40]
    stored = [entry for entry in writer.entries if entry is not lost]
    assert live_places(stored)[0] == 0
    assert len(live_places(stored)) >= len(stored) - 2
    store = CompactdSessionStore(tmp_path, compact_on_load=LIMIT)
    await store.append(KEY, stored)
    shown: Any = await store.load(KEY)
    assert shown != stored
    assert chain_of(shown)[0]["subtype"] == "compact_boundary"


# --- no daemon -------------------------------------------------------------------------------------------


async def test_without_a_daemon_everything_is_stored_and_loaded_with_one_warning(tmp_path: Path) -> None:
    original = long_session()
    store = CompactdSessionStore(tmp_path, compact_on_load=LIMIT, command=BROKEN)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        await store.append(KEY, original[:-1])
        assert await store.load(KEY) == original[:-1]
        await store.append(KEY, original[-1:])
        assert await store.load(KEY) == original
        assert await store.load(KEY) == original
    assert [warning.category for warning in caught].count(CompactdWarning) == 1


async def test_a_daemon_that_does_not_answer_holds_no_load_up(tmp_path: Path) -> None:
    original = long_session()
    hanging = (sys.executable, "-c", "import time; time.sleep(5)")
    store = CompactdSessionStore(tmp_path, compact_on_load=LIMIT, command=hanging, load_deadline_s=0.2)
    await store.append(KEY, original)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert await store.load(KEY) == original
        assert any("within 0.2 seconds" in str(warning.message) for warning in caught)
        # The thread that was given up ends, too.
        (path,) = tmp_path.rglob("*.jsonl")
        compacting = transcript_of(path, Key.of(KEY)).compacting
        assert await asyncio.to_thread(compacting.acquire, timeout=60)
        compacting.release()


@pytest.mark.parametrize(
    "damage",
    [
        [{"type": "user", "uuid": "a", "message": 5}],
        [{"type": "user", "uuid": "a", "parentUuid": 7, "message": {"role": "user", "content": {"x": 1}}}],
        [{"type": "assistant", "uuid": "a", "message": {"id": [], "content": [5, None, {"type": 9}]}}],
        [{"type": "system", "subtype": "compact_boundary", "uuid": "a", "compactMetadata": [1]}],
        [{"type": "user", "uuid": "a", "parentUuid": "b"}, {"type": "user", "uuid": "b", "parentUuid": "a"}],
        ["text", 5, None, [1]],
        [{"type": "user", "uuid": "a", "message": {"role": "user", "content": "\ud800 " * 9_000}}],
        [{"type": "user", "uuid": "a", "message": {"role": "user", "content": float("inf")}}],
    ],
)
@pytest.mark.parametrize("place", ["alone", "first", "last"])
async def test_entries_of_another_shape_never_fail_a_load(tmp_path: Path, damage: Any, place: str) -> None:
    long = long_session()
    given = {"alone": damage, "first": [*damage, *long], "last": [*long, *damage]}[place]
    store = CompactdSessionStore(tmp_path, compact_on_load=LIMIT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CompactdWarning)
        await store.append(KEY, given)
        shown = await store.load(KEY)
    assert shown is not None
    assert await store.load_original(KEY) == given


# --- compactd's copy -------------------------------------------------------------------------------------


async def test_the_copy_is_searchable_and_deleted_with_the_session(tmp_path: Path) -> None:
    writer = Writer()
    writer.ask("The password of the gate is ibis-23.")
    for _ in range(12):
        writer.work(6)
    store = CompactdSessionStore(tmp_path, compact_on_load=LIMIT)
    other: Any = {**KEY, "project_key": "other"}
    for key in (KEY, other):
        await store.append(key, writer.entries)
        check(await store.load(key), writer.entries)  # type: ignore[arg-type]

    def copies() -> list[str]:
        with Client() as client:
            found = client.session_list().sessions
        return [one.session_id for one in found if one.session_id.startswith(f"claude-agent-sdk:{SESSION}")]

    before = copies()
    await store.delete(KEY)
    assert len(copies()) == len(before) - 1
    await store.delete(other)
    assert len(copies()) == len(before) - 2
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


async def test_a_copy_that_cannot_be_deleted_is_named(tmp_path: Path) -> None:
    store = CompactdSessionStore(tmp_path, compact_on_load=LIMIT)
    await store.append(KEY, long_session())
    await store.load(KEY)
    with pytest.warns(CompactdWarning, match="compactd sessions delete claude-agent-sdk:"):
        await CompactdSessionStore(tmp_path, command=BROKEN).delete(KEY)
    assert await store.load(KEY) is None
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


# --- any session -----------------------------------------------------------------------------------------

steps = st.lists(
    st.sampled_from(["ask", "say", "call", "calls", "note", "attach", "sidechain", "big"]),
    min_size=1,
    max_size=40,
)


@given(steps, st.sampled_from([500, 2_000, 6_000]))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
async def test_any_session_stays_whole_and_can_go_on(
    tmp_path_factory: pytest.TempPathFactory, given: list[str], limit: int
) -> None:
    writer = Writer()
    writer.ask("Begin.")
    for at, step in enumerate(given):
        match step:
            case "ask":
                writer.ask(f"Request {at}. " * 20)
            case "say":
                writer.say(f"Answer {at}. " * 60)
            case "call":
                writer.call(f"output {at} " * 100)
            case "calls":
                writer.call(*(f"output {at} {one} " * 50 for one in range(3)))
            case "note":
                writer.note("last-prompt", lastPrompt=str(at))
            case "attach":
                writer.add("attachment", attachment={"type": "date", "text": str(at)})
            case "sidechain":
                writer.add("user", {"role": "user", "content": f"aside {at}"}, isSidechain=True)
            case _:
                writer.call(f"large output {at} " * 900)
    store = CompactdSessionStore(tmp_path_factory.mktemp("any"), compact_on_load=limit)
    await store.append(KEY, writer.entries)
    shown: Any = await store.load(KEY)
    if shown != writer.entries:
        check(shown, writer.entries)
        chain_ids = {entry["uuid"] for entry in chain_of(shown)}
        beside = [e for e in shown if e.get("type") in ("user", "assistant") and e["uuid"] not in chain_ids]
        parents = {entry["uuid"] for entry in shown if "uuid" in entry}
        assert all(entry["parentUuid"] in parents for entry in beside)
        assert len(str(shown)) < len(str(writer.entries))
    assert await store.load(KEY) == shown
    assert await store.load_original(KEY) == writer.entries
