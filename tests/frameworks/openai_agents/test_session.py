from __future__ import annotations

import asyncio
import copy
import json
import os
import pickle
import stat
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from agents import SQLiteSession
from agents.memory import Session, SessionSettings

from compactd.client import RpcError
from compactd.core.text.summary_format import LEAD
from compactd.integrations.frameworks.engine import CompactdWarning, engine_of
from compactd.integrations.frameworks.openai_agents import CompactdSession
from tests.frameworks.openai_agents.talking import kill_daemon
from tests.frameworks.openai_agents.test_items import KNOWN

ANY_JSON = [
    *KNOWN,
    {"type": "of_tomorrow", "nested": {"a": [1, 2.5, None, True, "\ud800 ✓"]}, "big": 2**70},
    {"role": "user", "content": ""},
    KNOWN[0],
]
BROKEN = (sys.executable, "-c", "raise SystemExit(3)")


def fresh(**options: Any) -> CompactdSession:
    return CompactdSession(uuid4().hex, **options)


def turn(number: int, words: int = 500) -> list[dict[str, Any]]:
    """Return the items of one turn, about as many tokens as `words`."""
    call = {"type": "function_call", "call_id": f"c{number}", "name": "read", "arguments": "{}"}
    return [
        {"role": "user", "content": f"Request {number}"},
        call,
        {"type": "function_call_output", "call_id": f"c{number}", "output": f"word{number} " * (words // 2)},
        {"role": "assistant", "content": f"Answer {number}"},
    ]


def run(work: Any) -> Any:
    return asyncio.run(work)


async def filled(session: CompactdSession, turns: int = 40) -> list[dict[str, Any]]:
    added = [item for number in range(turns) for item in turn(number)]
    for number in range(turns):
        await session.add_items(turn(number))
    return added


# --- the SDK's protocol -----------------------------------------------------------------------------------


def test_it_is_a_session_for_the_sdk() -> None:
    assert isinstance(fresh(), Session)


def test_items_come_back_equal_and_in_order() -> None:
    async def script() -> None:
        session = fresh(context_window=1_000_000)
        await session.add_items(ANY_JSON[:5])
        await session.add_items(ANY_JSON[5:])

        assert await session.original_items() == ANY_JSON
        assert await session.get_items() == ANY_JSON

    run(script())


def test_a_conversation_that_fits_is_its_own_view() -> None:
    async def script() -> None:
        session = fresh(context_window=1_000_000)
        added = [*turn(1), {"role": "user", "content": ""}, *KNOWN[2:6], *KNOWN[2:4], KNOWN[0]]
        await session.add_items(added)

        assert await session.get_items() == added

    run(script())


def test_another_process_reads_what_was_stored() -> None:
    session = fresh(context_window=8_000)
    added = run(filled(session))
    code = (
        "import asyncio, json, sys\n"
        "from compactd.integrations.frameworks.openai_agents import CompactdSession\n"
        "async def main():\n"
        "    session = CompactdSession(sys.argv[1], context_window=8_000)\n"
        "    print(json.dumps([await session.original_items(), await session.get_items()]))\n"
        "asyncio.run(main())"
    )
    view = run(session.get_items())
    engine_of().close()

    done = subprocess.run(
        [sys.executable, "-c", code, session.session_id], capture_output=True, check=True, timeout=60
    )

    items, view_there = json.loads(done.stdout)
    assert items == added
    assert view_there == view


def test_the_view_fits_the_window_and_begins_with_a_summary() -> None:
    async def script() -> None:
        session = fresh(context_window=8_000)
        added = await filled(session)

        view = await session.get_items()

        assert view[0]["role"] == "user"
        assert view[0]["content"].startswith(LEAD)
        kept = view[1:]
        assert kept == added[-len(kept) :]
        assert 4 <= len(kept) < 40
        assert await session.original_items() == added
        assert await session.get_items() == view

    run(script())


def test_a_limit_means_the_newest_items_unchanged() -> None:
    async def script() -> None:
        session = fresh(context_window=8_000)
        added = await filled(session)

        assert await session.get_items(limit=6) == added[-6:]
        assert await session.get_items(limit=0) == []
        assert await session.get_items(limit=10_000) == added
        session.session_settings = SessionSettings(limit=3)
        assert await session.get_items() == added[-3:]
        assert await session.get_items(limit=5) == added[-5:]

    run(script())


def test_the_newest_item_can_be_removed_and_the_conversation_goes_on() -> None:
    async def script() -> None:
        session = fresh(context_window=1_000_000)
        await session.add_items([*turn(1), *turn(2)])
        assert await session.get_items() == [*turn(1), *turn(2)]

        assert await session.pop_item() == turn(2)[-1]
        assert await session.get_items() == [*turn(1), *turn(2)[:-1]]
        await session.add_items([{"role": "assistant", "content": "Another answer"}])

        assert (await session.get_items())[-1]["content"] == "Another answer"
        assert "Another answer" in await session.recall("Another answer")
        assert await fresh().pop_item() is None

    run(script())


def test_clearing_a_session_removes_its_items_and_its_journal() -> None:
    async def script() -> None:
        session = fresh(context_window=8_000)
        await filled(session)
        await session.get_items()

        await session.clear_session()

        assert await session.get_items() == [] == await session.original_items()
        known = engine_of().demand(lambda client: client.session_list().sessions)
        assert session.mirror.name not in {each.session_id for each in known}
        await session.add_items([{"role": "user", "content": "Hello again"}])
        assert await session.get_items() == [{"role": "user", "content": "Hello again"}]

    run(script())


def test_a_call_that_waits_for_its_result_gets_none_from_us() -> None:
    async def script() -> None:
        session = fresh(context_window=8_000)
        await filled(session)
        waiting = {"type": "function_call", "call_id": "later", "name": "approve", "arguments": "{}"}
        await session.add_items([{"role": "user", "content": "Approve it"}, waiting])

        view = await session.get_items()

        assert view[-1] == waiting
        assert not [item for item in view if item.get("call_id") == "later" and item is not view[-1]]

    run(script())


def test_an_item_that_is_no_json_is_refused_and_nothing_is_stored() -> None:
    session = fresh()

    with pytest.raises(TypeError, match="type object, which JSON cannot hold"):
        run(session.add_items([{"role": "user", "content": "x"}, {"role": "user", "content": object()}]))

    assert run(session.original_items()) == []


@pytest.mark.parametrize("name", ["../../x", "a\0b", "A" * 10_000, "ä/\\:*?", " "])
def test_any_text_is_a_session_id(name: str) -> None:
    async def script() -> None:
        session = CompactdSession(f"{name}{uuid4().hex}", context_window=8_000)
        added = await filled(session, 20)
        assert await session.original_items() == added
        assert (await session.get_items())[0]["content"].startswith(LEAD)

    run(script())


def test_a_session_needs_an_id() -> None:
    for wrong in ("", None, 5, "\ud800"):
        with pytest.raises(ValueError, match="session_id must be a text"):
            CompactdSession(wrong)  # type: ignore[arg-type]


# --- more than the protocol -------------------------------------------------------------------------------


def test_a_compaction_can_be_undone() -> None:
    async def script() -> None:
        session = fresh(context_window=8_000)
        added = await filled(session, 15)
        view = await session.get_items()
        assert len(view) < len(added)
        assert (await session.state()).compaction.count > 0

        with pytest.raises(RpcError, match="window"):
            await session.undo()

        assert await session.get_items() == view

    run(script())


def test_recall_finds_what_the_view_has_no_more() -> None:
    async def script() -> None:
        session = fresh(context_window=8_000)
        await session.add_items([{"role": "user", "content": "The code is ZX-81."}])
        await filled(session)
        await session.get_items()

        assert "ZX-81" in await session.recall("code is")

    run(script())


def test_a_session_made_again_has_its_new_window() -> None:
    async def script() -> list[int | None]:
        seen = []
        for window in (9_000, 90_000):
            session = CompactdSession("made-again", context_window=window)
            await session.add_items(turn(window))
            await session.get_items()
            seen.append((await session.state()).token_usage.context_window)
        return seen

    assert run(script()) == [9_000, 90_000]


def test_the_last_items_of_a_process_are_in_the_session() -> None:
    session = fresh()
    code = (
        "import asyncio, sys\n"
        "from compactd.integrations.frameworks.openai_agents import CompactdSession\n"
        "said = [{'role': 'user', 'content': 'The code is ZX-81.'}]\n"
        "asyncio.run(CompactdSession(sys.argv[1]).add_items(said))"
    )
    subprocess.run([sys.executable, "-c", code, session.session_id], check=True, timeout=60)

    assert "ZX-81" in run(session.recall("code is"))


def test_another_session_of_the_sdk_can_store_the_items(tmp_path: Path) -> None:
    async def script() -> None:
        inner = SQLiteSession("inner", tmp_path / "inner.db")
        session = fresh(context_window=8_000, underlying_session=inner)
        added = await filled(session)

        view = await session.get_items()

        assert view[0]["content"].startswith(LEAD)
        assert await inner.get_items() == added == await session.original_items()
        assert await session.pop_item() == added[-1]
        assert len(await inner.get_items()) == len(added) - 1
        inner.close()

    run(script())


def test_items_of_another_session_can_be_moved_in(tmp_path: Path) -> None:
    async def script() -> None:
        old = SQLiteSession("old", tmp_path / "old.db")
        await old.add_items(turn(1))
        session = fresh()

        assert await session.import_items(old) == 4
        assert await session.import_items(turn(2)) == 4

        assert await session.get_items() == [*turn(1), *turn(2)]
        old.close()

    run(script())


def test_sessions_with_one_name_in_two_databases_are_two(tmp_path: Path) -> None:
    async def script() -> None:
        one = CompactdSession("same", db_path=str(tmp_path / "one.db"))
        two = CompactdSession("same", db_path=str(tmp_path / "two.db"))
        await one.add_items(turn(1))
        await two.add_items(turn(2))

        assert await one.get_items() == turn(1)
        assert await two.get_items() == turn(2)
        for path in tmp_path.glob("one.db*"):
            path.unlink()
        await one.add_items(turn(3))
        assert await one.get_items() == turn(3)

    run(script())


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
def test_the_database_is_the_users_own(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "items.db"

    run(CompactdSession("private", db_path=str(path)).add_items(turn(1)))

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


# --- processes, threads, loops, failures --------------------------------------------------------------------


def test_it_can_be_copied_and_pickled_and_used_in_two_event_loops() -> None:
    session = fresh(context_window=8_000)
    run(session.add_items(turn(1)))

    for other in (copy.copy(session), copy.deepcopy(session), pickle.loads(pickle.dumps(session))):
        assert run(other.get_items()) == run(session.get_items())
        config = other.run_config()
        for filter_ in (config.call_model_input_filter, copy.deepcopy(config).call_model_input_filter):
            pickle.dumps(filter_)
    run(copy.deepcopy(session).add_items(turn(2)))

    assert run(session.get_items()) == [*turn(1), *turn(2)]


def test_fifty_threads_add_to_one_session_and_lose_nothing() -> None:
    session = fresh(context_window=1_000_000)

    def add(number: int) -> None:
        run(session.add_items(turn(number, 20)))
        run(session.get_items())

    with ThreadPoolExecutor(50) as pool:
        list(pool.map(add, range(50)))

    items = run(session.get_items())
    assert len(items) == 200
    assert sorted(item["content"] for item in items if item.get("role") == "user") == sorted(
        f"Request {number}" for number in range(50)
    )


def test_two_processes_add_to_one_session() -> None:
    session = fresh()
    run(session.add_items(turn(0)))
    code = (
        "import asyncio, sys\n"
        "from compactd.integrations.frameworks.openai_agents import CompactdSession\n"
        "async def main():\n"
        "    session = CompactdSession(sys.argv[1])\n"
        "    for n in range(20):\n"
        "        await session.add_items([{'role': 'user', 'content': f'{sys.argv[2]} {n}'}])\n"
        "    print(len(await session.get_items()))\n"
        "asyncio.run(main())"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", code, session.session_id, name], stdout=subprocess.PIPE)
        for name in ("one", "two")
    ]
    for each in started:
        each.communicate(timeout=120)

    items = run(session.get_items())
    assert len(items) == 44
    for name in ("one", "two"):
        own = [item["content"] for item in items if item.get("content", "").startswith(name)]
        assert own == [f"{name} {n}" for n in range(20)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_and_its_parent_use_one_session() -> None:
    session = fresh(context_window=8_000)
    run(session.add_items(turn(1)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the process has threads
        child = os.fork()
    if child == 0:
        status = 1
        try:
            run(session.add_items(turn(2)))
            status = 0 if run(session.get_items()) == [*turn(1), *turn(2)] else 2
        finally:
            os._exit(status)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    run(session.add_items(turn(3)))
    assert run(session.get_items()) == [*turn(1), *turn(2), *turn(3)]


def test_without_a_daemon_every_item_is_stored_and_one_warning_is_given() -> None:
    session = fresh(context_window=8_000, command=BROKEN)

    async def script() -> tuple[list[Any], list[Any]]:
        return await filled(session), await session.get_items()

    with pytest.warns(CompactdWarning) as caught:
        added, stored = run(script())

    assert len(caught) == 1
    assert stored == added
    assert run(session.pop_item()) == added[-1]
    run(session.clear_session())
    assert run(session.get_items()) == []


@pytest.mark.parametrize("step", range(5))
def test_a_daemon_that_is_killed_between_two_steps_costs_nothing(step: int) -> None:
    session = fresh(context_window=8_000)
    expected = fresh(context_window=8_000)

    async def script(one: CompactdSession, kill_at: int | None) -> list[Any]:
        steps: list[Any] = [
            lambda: filled(one, 20),
            one.get_items,
            lambda: one.add_items(turn(90)),
            one.pop_item,
            lambda: one.add_items([{"role": "assistant", "content": "Another"}]),
        ]
        for at, each in enumerate(steps):
            if at == kill_at:
                kill_daemon()
            await each()
        return [await one.original_items(), await one.get_items()]

    items, view = run(script(session, step))
    engine_of().close()  # the client starts a daemon again only a few times in a minute

    assert [items, view] == run(script(expected, None))
    assert view[0]["content"].startswith(LEAD)
