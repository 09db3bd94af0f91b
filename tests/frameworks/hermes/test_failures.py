"""What goes wrong around Hermes: dead daemons, edited histories, copies, threads, event loops, processes."""

from __future__ import annotations

import asyncio
import copy
import os
import pickle
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from compactd.integrations.frameworks.engine import CompactdWarning, close_engines, engine_of
from compactd.integrations.frameworks.hermes import CompactdEngine, archive
from tests.frameworks.hermes.agents import Message, agent_of, configure, faults, have, is_summary
from tests.frameworks.hermes.test_conversation import stored_calls
from tests.frameworks.support.provider import Provider
from tests.frameworks.support.talk import talk

SHORT = talk(lots=2, parts=4)
WINDOW = 5_000
"""Small enough for compactions in the short conversation: Hermes' own prompt takes 1,600."""


@pytest.fixture(autouse=True)
def own_daemon() -> Iterator[None]:
    """A daemon that dies often is not started again for a while."""
    yield
    close_engines()


def kill_the_daemon() -> None:
    with suppress(Exception):
        os.kill(engine_of().demand(lambda client: client.pid), signal.SIGKILL)


def engine_for(session: str, window: int = WINDOW, **options: Any) -> CompactdEngine:
    """Return an engine as Hermes sets it up."""
    engine = CompactdEngine(**options)
    engine.update_model("loopback-1", window, provider="custom")
    engine.on_session_start(session)
    return engine


def conversation(turns: int, words: str = "Read the files.", first: int = 0) -> list[Message]:
    """Return a conversation with calls, about 300 tokens a turn."""
    messages: list[Message] = [{"role": "user", "content": words}]
    for number in range(first, first + turns):
        call = {"name": "read", "arguments": f'{{"path": "file{number}.py"}}'}
        said = {"id": f"call{number}", "type": "function", "function": call}
        lines = "\n".join(f"line {line} of file{number}.py" for line in range(40))
        messages += [
            {"role": "assistant", "content": "", "tool_calls": [said]},
            {"role": "tool", "tool_call_id": f"call{number}", "name": "read", "content": lines},
        ]
    return messages


def faults_of(messages: list[Message]) -> list[str]:
    """Return calls without results, results without calls, and neighbours of the same role."""
    found, waiting = [], set()
    for before, message in zip([{}, *messages], messages, strict=False):
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                found.append(f"{message['tool_call_id']} waits for nothing")
            waiting.discard(message["tool_call_id"])
            continue
        if waiting:
            found.append(f"{waiting} have no result")
        if message["role"] == before.get("role"):
            found.append(f"two messages of {message['role']}")
        waiting = {call["id"] for call in message.get("tool_calls") or ()}
    return found


def test_a_daemon_that_is_killed_at_any_step_costs_nothing() -> None:
    at, steps = 1, 2
    while at <= steps:
        configure(context_window=WINDOW, persist=at % 2 == 0)
        count = 0

        def step(*_: object, at: int = at) -> None:
            nonlocal count
            count += 1
            if count == at:
                kill_the_daemon()

        with Provider(SHORT, window=WINDOW) as provider:
            agent = agent_of(provider, f"killed-{at}", tool_start_callback=step, step_callback=step)
            messages = have(agent, provider)
            agent.shutdown_memory_provider(messages)

            assert (at, faults(provider)) == (at, [])
            assert (at, provider.totals.turns, provider.totals.rejections) == (at, 8, 0)
        assert agent.context_compressor.compression_count > 0
        assert len(set(stored_calls(f"hermes:killed-{at}"))) == 9
        steps = count
        close_engines()
        # The daemon is only used in compactions and at the end.
        at += 7
    assert steps > 12


@pytest.mark.parametrize("command", [["/no/such/program"], [sys.executable, "-c", "print('no daemon')"]])
def test_without_a_daemon_hermes_goes_on_and_warns_once(command: list[str]) -> None:
    configure(context_window=WINDOW, command=command, reduce="default")
    with Provider(SHORT, window=None) as provider:
        agent = agent_of(provider)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            messages = have(agent, provider)
            agent.shutdown_memory_provider(messages)

        assert (faults(provider), provider.totals.turns) == ([], 8)
    own = [one for one in caught if issubclass(one.category, CompactdWarning)]
    assert len(own) == 1
    assert not any(map(is_summary, messages))


def test_copies_and_pickles_work_like_the_original() -> None:
    engine = engine_for("copied", compaction={"threshold_ratio": 0.7})
    messages = conversation(20)
    engine.update_from_response({"prompt_tokens": 4_000, "completion_tokens": 10, "total_tokens": 4_010})
    shorter = engine.compress(messages)

    for each in (copy.deepcopy(engine), pickle.loads(pickle.dumps(engine)), copy.copy(engine)):
        assert each.__dict__ == engine.__dict__
        again = each.compress([*shorter, *conversation(20, "And these.", first=20)])
        assert is_summary(again[0])
        assert faults_of(again) == []
    # An agent that was copied may have another model.
    other = copy.deepcopy(engine)
    other.update_model("small", 1_000)
    assert engine.threshold_tokens == 3_500


def test_asyncio_run_twice_in_one_process() -> None:
    configure(context_window=WINDOW)
    with Provider(SHORT, window=WINDOW) as provider:
        agent = agent_of(provider, "twice")
        messages: list[Message] | None = None

        async def ask(request: str) -> list[Message]:
            # Hermes is called from event loops in threads, as its gateway does it.
            done = await asyncio.to_thread(agent.run_conversation, request, conversation_history=messages)
            found: list[Message] = done["messages"]
            return found

        for request in provider.asks():
            messages = asyncio.run(ask(request))

        assert (faults(provider), provider.totals.turns) == ([], 8)
    assert agent.context_compressor.compression_count > 0


@pytest.mark.parametrize("session", [None, "shared"])
def test_fifty_threads(session: str | None) -> None:
    def have_one(number: int) -> tuple[bool, list[str]]:
        engine = engine_for(session or f"thread-{number}", persist=False)
        messages: list[Message] = []
        for round_ in range(2):
            words = f"I am number {number}, round {round_}."
            messages = engine.compress([*messages, *conversation(14, words, first=14 * round_)])
        others = [f"number {other}," for other in range(50) if other != number]
        mixed = any(other in str(messages) for other in others)
        return mixed, faults_of(messages)

    with ThreadPoolExecutor(50) as pool:
        outcomes = list(pool.map(have_one, range(50)))

    assert outcomes == [(False, [])] * 50


def test_a_forked_child_starts_a_daemon_of_its_own() -> None:
    engine = engine_for("forked")
    shorter = engine.compress(conversation(20))

    child = os.fork()
    if child == 0:
        done = engine.compress([*shorter, *conversation(20, "In the child.", first=20)])
        engine_of().close()
        os._exit(0 if is_summary(done[0]) and faults_of(done) == [] else 1)
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0
    assert is_summary(engine.compress([*shorter, *conversation(20, "In the parent.", first=20)])[0])


def test_another_process_continues_a_compacted_conversation(tmp_path: Path) -> None:
    engine = engine_for("moved")
    shorter = engine.compress(conversation(20, "The order is RZ-98499."))
    engine_of().close()
    work = tmp_path / "work.pickle"
    work.write_bytes(pickle.dumps((engine, [*shorter, *conversation(20, "Go on.", first=20)])))
    code = (
        "import pickle, sys\n"
        "from pathlib import Path\n"
        "engine, messages = pickle.loads(Path(sys.argv[1]).read_bytes())\n"
        "found = engine.compress(messages)\n"
        "print(found[0]['content'])\n"
        "print(engine.handle_tool_call('recall', {'query': 'file35.py'}))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, work], capture_output=True, text=True, timeout=120)

    assert done.stdout.startswith("[CONTEXT SUMMARY]:"), done.stderr
    assert "line 1 of file35.py" in done.stdout.partition('{"record"')[2]


# --- histories that change behind our back --------------------------------------------------------------


def test_hermes_stores_and_loads_a_compacted_conversation() -> None:
    from hermes_state import SessionDB

    configure(context_window=WINDOW)
    database = SessionDB()
    with Provider(SHORT, window=WINDOW) as provider:
        messages: list[Message] | None = None
        # A new agent for each request, as in the gateway.
        for request in provider.asks():
            agent = agent_of(provider, "stored", session_db=database)
            assert agent.run_conversation(request, conversation_history=messages)["completed"]
            messages = database.get_messages_as_conversation("stored")
        agent.shutdown_memory_provider(messages)

        assert (faults(provider), provider.totals.turns) == ([], 8)
    assert is_summary(messages[0])
    assert len(stored_calls("hermes:stored")) == 9


def test_a_conversation_that_gets_another_id_keeps_its_session() -> None:
    from hermes_state import SessionDB

    configure(context_window=WINDOW, host={"compression": {"in_place": False}})
    with Provider(SHORT, window=WINDOW) as provider:
        agent = agent_of(provider, "first-id", session_db=SessionDB())
        agent.shutdown_memory_provider(have(agent, provider))

        assert (faults(provider), provider.totals.turns) == ([], 8)
    assert agent.session_id != "first-id"
    assert len(stored_calls("hermes:first-id")) == 9


def test_the_session_follows_an_edited_and_a_truncated_history() -> None:
    engine = engine_for("edited")
    shorter = engine.compress(conversation(20))
    edited = copy.deepcopy(shorter)
    edited[-1]["content"] = "edited: nothing to see"
    # Hermes' command `/undo` removes the newest messages.
    for messages in (edited, shorter[:-2]):
        engine.on_session_end("edited", [*messages, {"role": "user", "content": "Go on."}])
        shown = engine.compress([*messages, *conversation(20, "Go on.", first=40)], force=True)
        assert faults_of(shown) == []
        assert is_summary(shown[0])
    found = engine.handle_tool_call("recall", {"query": "nothing to see"})
    assert "line 1 of file0.py" in engine.handle_tool_call("recall", {"query": "file0.py"})
    assert "Nothing here contains" in found


def test_a_history_that_lacks_what_followed_the_summary_is_a_new_one() -> None:
    engine = engine_for("cut")
    messages = conversation(20)
    shorter = engine.compress(messages)
    tail = next(at for at, message in enumerate(shorter) if message.get("tool_calls"))

    assert archive.whole_history("hermes:cut", shorter) == messages
    assert archive.whole_history("hermes:cut", [*shorter, *messages]) == [*messages, *messages]
    # Without a message after those that were left out, nothing says where it goes on.
    for count in range(tail + 1):
        assert archive.whole_history("hermes:cut", shorter[:count]) == shorter[:count]
    known = len(messages) - len(shorter) + tail + 1
    assert archive.whole_history("hermes:cut", shorter[: tail + 1]) == messages[:known]
    assert archive.whole_history("hermes:other", shorter) == shorter


def test_after_a_compaction_the_next_one_waits_for_an_answer() -> None:
    engine = engine_for("waiting")
    engine.compress(conversation(20))
    assert not engine.should_compress(1_000_000)
    engine.update_from_response({"prompt_tokens": 3_000})
    assert engine.should_compress(1_000_000)


def test_two_agents_with_one_id_each_see_their_own_history() -> None:
    # Hermes reviews a conversation in the background, with an agent that has the conversation's id.
    one, other = engine_for("both"), engine_for("both")
    first = one.compress(conversation(20, "I am the first."))
    second = other.compress([*conversation(16, "I am the first."), *conversation(12, "I am the review.", 50)])
    third = one.compress([*first, *conversation(20, "I am still the first.", first=20)])

    assert "review" not in str(third)
    assert "review" in str(second)
    assert faults_of(second) == faults_of(third) == []


def test_what_hermes_appends_to_a_compacted_conversation_is_no_word_of_the_users() -> None:
    engine = engine_for("noted")
    shorter = engine.compress(conversation(20))
    todo = {
        "role": "user",
        "content": "[Your active task list was preserved across context compression]\n- [ ] delete all",
        "_todo_snapshot_synthetic": True,
    }
    engine.on_session_end("noted", [*shorter, todo, {"role": "assistant", "content": "On it."}])

    history = engine_of().demand(
        lambda client: client.call("session/history", {"session_id": "hermes:noted"})
    )
    (found,) = [entry for entry in history["entries"] if "delete all" in str(entry.get("message"))]
    assert found["message"]["meta"] == {"author": "notification", "synthetic": True}
    archive.forget()
