"""The SDK's own suite for session stores, and what it does not ask."""

from __future__ import annotations

import copy
import itertools
import pickle
import types
from pathlib import Path
from typing import Any

import claude_agent_sdk
import pytest
from claude_agent_sdk import InMemorySessionStore, list_sessions_from_store
from claude_agent_sdk.testing import run_session_store_conformance
from hypothesis import given, settings
from hypothesis import strategies as st

from compactd.integrations.frameworks.claude_agent_sdk import CompactdSessionStore
from compactd.integrations.frameworks.claude_agent_sdk.versions import lacks

KEY: Any = {"project_key": "project", "session_id": "5f0e0f0c-0000-4000-8000-000000000000"}

texts = st.text(st.characters(exclude_categories=()), max_size=8)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
entries = st.fixed_dictionaries(
    {"type": st.sampled_from(["user", "assistant", "tag", "x"])},
    optional={
        "uuid": st.sampled_from("abcdef"),
        "timestamp": st.just("2026-11-28T07:00:00.000Z"),
        "customTitle": texts,
        "tag": texts,
        "message": st.fixed_dictionaries({"role": st.just("user"), "content": texts}),
        "more": json_values,
    },
)
batches = st.lists(st.lists(entries, max_size=4), max_size=4)


async def test_the_suite_of_the_sdk_passes(tmp_path: Path) -> None:
    numbers = itertools.count()
    await run_session_store_conformance(lambda: CompactdSessionStore(tmp_path / str(next(numbers))))


async def test_the_suite_passes_with_a_copy_from_a_pickle(tmp_path: Path) -> None:
    numbers = itertools.count()

    def made() -> CompactdSessionStore:
        store = CompactdSessionStore(tmp_path / str(next(numbers)), compact_on_load="auto")
        return copy.deepcopy(pickle.loads(pickle.dumps(store)))

    await run_session_store_conformance(made)


@given(batches)
@settings(max_examples=150, deadline=None)
async def test_entries_come_back_equal_and_once(tmp_path_factory: pytest.TempPathFactory, given: Any) -> None:
    store = CompactdSessionStore(tmp_path_factory.mktemp("store"))
    expected: list[Any] = []
    for batch in given:
        await store.append(KEY, batch)
        for entry in batch:
            if "uuid" not in entry or entry["uuid"] not in {one.get("uuid") for one in expected}:
                expected.append(entry)
    assert await store.load(KEY) == (expected or None)


@given(batches)
@settings(max_examples=100, deadline=None)
async def test_descriptions_are_those_of_the_sdk(
    tmp_path_factory: pytest.TempPathFactory, given: list[list[Any]]
) -> None:
    folder = tmp_path_factory.mktemp("store")
    memory = InMemorySessionStore()
    for batch in given:
        new = [entry for entry in batch if "uuid" not in entry]
        if new:
            await CompactdSessionStore(folder).append(KEY, new)
            await memory.append(KEY, new)
        ours = await CompactdSessionStore(folder).list_session_summaries("project")
        theirs = await memory.list_session_summaries("project")
        assert [one["data"] for one in ours] == [one["data"] for one in theirs]


async def test_a_lost_or_broken_description_is_made_again(tmp_path: Path) -> None:
    store = CompactdSessionStore(tmp_path)
    await store.append(KEY, [{"type": "x", "customTitle": "First"}])
    before = await store.list_session_summaries("project")
    (file,) = tmp_path.rglob("*.summary")
    for damage in (b"", b"{", b'{"header": "x", "size": 5, "data": {"custom_title": "forged"}}'):
        file.write_bytes(damage)
        assert await store.list_session_summaries("project") == before
    file.unlink()
    assert await store.list_session_summaries("project") == before


async def test_the_sdk_lists_sessions_of_the_store(tmp_path: Path) -> None:
    store = CompactdSessionStore(tmp_path / "store")
    key: Any = {**KEY, "project_key": claude_agent_sdk.project_key_for_directory(tmp_path)}
    said = {"role": "user", "content": "Mend the gate"}
    await store.append(key, [{"type": "user", "uuid": "u", "message": said, "cwd": str(tmp_path)}])
    (found,) = await list_sessions_from_store(store, directory=str(tmp_path))
    assert (found.session_id, found.first_prompt) == (key["session_id"], "Mend the gate")


def test_the_installed_sdk_has_all_that_is_used() -> None:
    assert list(lacks(claude_agent_sdk)) == []


def test_a_renamed_parameter_is_named() -> None:
    class Renamed:
        async def append(self, session: object, entries: object) -> None: ...

    sdk = types.SimpleNamespace(SessionStore=Renamed, fold_session_summary=None)
    missing = list(lacks(sdk))
    assert "parameter `key` of `SessionStore.append`" in missing
    assert "parameter `key` of `SessionStore.load`" in missing
    assert "parameter `prev` of `fold_session_summary`" in missing


@pytest.mark.parametrize("option", ["always", "", 0, -1, True, None, 1.5])
def test_an_option_without_meaning_is_refused(option: Any) -> None:
    with pytest.raises(ValueError, match="compact_on_load"):
        CompactdSessionStore(compact_on_load=option)


@pytest.mark.parametrize(
    "key",
    [
        None,
        "key",
        {},
        {"project_key": "p"},
        {"project_key": 1, "session_id": "s"},
        {"project_key": "p", "session_id": None},
        {"project_key": "p", "session_id": "s", "subpath": 5},
        {"project_key": "p", "session_id": "s", "subpath": ""},
    ],
)
async def test_a_bad_key_is_refused_and_nothing_is_stored(tmp_path: Path, key: Any) -> None:
    store = CompactdSessionStore(tmp_path)
    for call in (store.append(key, [{"type": "x"}]), store.load(key), store.delete(key)):
        with pytest.raises((TypeError, ValueError)):
            await call
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("bad", [{"type": "x", "v": b"bytes"}, {"type": "x", "v": {1, 2}}, object()])
async def test_an_entry_that_is_no_json_is_refused_with_its_batch(tmp_path: Path, bad: Any) -> None:
    store = CompactdSessionStore(tmp_path)
    await store.append(KEY, [{"type": "x", "n": 1}])
    with pytest.raises(TypeError):
        await store.append(KEY, [{"type": "x", "n": 2}, bad])
    assert await store.load(KEY) == [{"type": "x", "n": 1}]
