"""A turn that is sent to the daemon before the next request asks for it: the same session, view and bill."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic, sleep

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compactd.integrations.frameworks.engine import CompactdWarning, Engine, SessionOptions
from compactd.integrations.frameworks.history import History, Setup, ShownMessage, View
from compactd.integrations.frameworks.mirror import Mirror
from compactd.integrations.frameworks.sending import MAX_EARLY, early_bytes
from compactd.protocol.messages import TokenUsage
from compactd.protocol.wire import RequestError
from tests.support.histories import Said, call, history, result, turns, user, words

SMALL, LARGE = 8_000, 128_000
SETUP = Setup(model="openai/gpt-4o", context_window=LARGE, system_prompt="Be careful.")
OPTIONS = SessionOptions("test")
START = [user("Read the files."), *turns(range(3))]
MESSAGES = [*START, *turns([3])]


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    monkeypatch.setenv("COMPACTD_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    made = Engine(None)
    # A warning says that the daemon failed.
    with warnings.catch_warnings():
        warnings.simplefilter("error", CompactdWarning)
        yield made
    made.close()


def prepared(mirror: Mirror, messages: Sequence[Said], setup: Setup = SETUP) -> View:
    view = mirror.prepare(history(messages), setup)
    assert view is not None
    return view


def opened(engine: Engine, options: SessionOptions = OPTIONS, name: str = "test:1") -> Mirror:
    mirror = engine.mirror(name, options)
    prepared(mirror, START)
    return mirror


def stored(engine: Engine, name: str = "test:1") -> list[object]:
    """What the session's messages say, branches that were left included."""
    entries = engine.demand(lambda client: client.call("session/history", {"session_id": name}))["entries"]
    return [entry["message"]["content"] for entry in entries if entry["kind"] == "message"]  # type: ignore[index]


def contents(messages: Sequence[Said]) -> list[object]:
    return [each["content"] for each in messages]


def requests_sent(engine: Engine) -> int:
    return engine.demand(lambda client: client._running()._last_id)


def daemon(engine: Engine, number: int) -> None:
    # A client that has noticed the end of its daemon has also waited for the process.
    with contextlib.suppress(ProcessLookupError):
        os.kill(engine.demand(lambda client: client.pid), number)


# --- what is sent, and when -----------------------------------------------------------------------------


def test_the_next_request_only_reads_the_answers(engine: Engine) -> None:
    mirror = opened(engine)
    messages = [*START, *turns([3])]
    before = requests_sent(engine)
    assert mirror.send_early(history(messages), SETUP)
    assert requests_sent(engine) == before + 2

    encoded: list[int] = []

    def encode(index: int) -> Said:
        encoded.append(index)
        return dict(messages[index])

    view = mirror.prepare(History([repr(each) for each in messages], encode), SETUP)

    assert view is not None
    assert list(view.items) == list(range(len(messages)))
    assert (encoded, requests_sent(engine)) == ([], before + 2)
    assert stored(engine) == contents(messages)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not say what a pipe holds")
def test_an_event_loop_sends_nothing_to_a_daemon_that_does_not_read(engine: Engine) -> None:
    mirror = opened(engine)
    daemon(engine, signal.SIGSTOP)
    try:
        engine.demand(lambda client: client.notify("daemon/ping"))
        assert not mirror.send_early(history(MESSAGES), SETUP, may_wait=False)
    finally:
        daemon(engine, signal.SIGCONT)
    engine.demand(lambda client: client.daemon_ping())
    assert mirror.send_early(history(MESSAGES), SETUP, may_wait=False)
    assert prepared(mirror, MESSAGES).is_whole
    assert stored(engine) == contents(MESSAGES)


def test_results_of_several_tools_are_sent_at_once(engine: Engine) -> None:
    mirror = opened(engine)
    both = [*call("a")["content"], *call("b")["content"]]
    messages = [*START, {"role": "assistant", "content": both}, result("a", "one"), result("b", "two")]
    assert mirror.send_early(history(messages), SETUP)
    assert prepared(mirror, messages).is_whole
    assert stored(engine) == contents(messages)


@pytest.mark.parametrize(
    "new",
    [
        [],
        [{"role": "assistant", "content": "That is all."}],
        [user("Go on.")],
        [*turns([3]), user("Go on.")],
        [user("Go on."), *turns([3])],
        turns([3, 4]),
        [call("c3"), result("c3", "x" * MAX_EARLY)],
        [result("c2", "again")],
    ],
    ids=["nothing", "last words", "request", "turn, request", "request, turn", "two turns", "much", "result"],
)
def test_what_is_no_single_turn_waits_for_the_request(engine: Engine, new: list[Said]) -> None:
    mirror = opened(engine)
    before = requests_sent(engine)
    assert not mirror.send_early(history([*START, *new]), SETUP)
    assert requests_sent(engine) == before
    prepared(mirror, [*START, *new])
    assert stored(engine) == contents([*START, *new])


def test_nothing_is_sent_before_the_first_request(engine: Engine) -> None:
    mirror = engine.mirror("test:1", OPTIONS)
    messages = [*START, *turns([3])]
    assert not mirror.send_early(history(messages), SETUP)
    # Nor after a request of nothing, nor if a recorded answer ended the turn.
    prepared(mirror, [])
    assert not mirror.send_early(history(turns([3])), SETUP)
    prepared(mirror, START)
    assert mirror.record(history(messages), SETUP)
    assert not mirror.send_early(history([*messages, *turns([4])]), SETUP)


@pytest.mark.parametrize(
    "other",
    [
        Setup(model="openai/gpt-4o", context_window=LARGE, system_prompt="Be quick."),
        Setup(model="openai/gpt-4o", context_window=200_000, system_prompt="Be careful."),
    ],
)
def test_another_agents_turn_waits_for_its_request(engine: Engine, other: Setup) -> None:
    mirror = opened(engine)
    messages = [*START, *turns([3])]
    assert not mirror.send_early(history(messages), other)
    assert prepared(mirror, messages, other).is_whole
    assert mirror.state().token_usage.context_window == other.context_window


def test_new_options_wait_for_the_request(engine: Engine) -> None:
    mirror = opened(engine)
    engine.mirror("test:1", SessionOptions("test", compaction={"threshold_ratio": 0.5}))
    messages = [*START, *turns([3])]
    assert not mirror.send_early(history(messages), SETUP)
    prepared(mirror, messages)
    assert bytes(mirror.state().compaction.settings["threshold_ratio"].value) == b"0.5"


def test_an_edited_history_waits_for_the_request(engine: Engine) -> None:
    mirror = opened(engine)
    edited = [*START[:2], result("c0", "edited"), *START[3:], *turns([3])]
    assert not mirror.send_early(history(edited), SETUP)
    assert not mirror.send_early(history(START[:3]), SETUP)
    assert prepared(mirror, edited).is_whole


def test_a_turn_of_a_branch_that_was_left_is_not_stored_again(engine: Engine) -> None:
    mirror = opened(engine)
    messages = [*START, *turns([3])]
    prepared(mirror, messages)
    prepared(mirror, START)
    assert not mirror.send_early(history(messages), SETUP)
    assert prepared(mirror, messages).is_whole
    assert stored(engine) == contents(messages)


def test_an_agent_whose_requests_are_not_what_it_stores_is_not_served_early(engine: Engine) -> None:
    mirror = opened(engine)
    messages, seen = list(START), list(START)
    for number in range(3, 6):
        sent = mirror.send_early(history([*seen, *turns([number])]), SETUP)
        seen += [call(f"c{number}"), result(f"c{number}", "changed on the way")]
        assert prepared(mirror, seen).is_whole
        messages += turns([number])
        assert sent == (number == 3)
    assert len(stored(engine)) == len(seen) + 2


def test_a_mirror_that_is_in_use_is_not_waited_for(engine: Engine) -> None:
    mirror = opened(engine)
    messages = [*START, *turns([3])]
    encoding, done = threading.Event(), threading.Event()

    def encode(index: int) -> Said:
        encoding.set()
        assert done.wait(30)
        return dict(messages[index])

    with ThreadPoolExecutor() as pool:
        view = pool.submit(mirror.prepare, History([repr(each) for each in messages], encode), SETUP)
        assert encoding.wait(30)
        try:
            assert not mirror.send_early(history(messages), SETUP)
        finally:
            done.set()
        assert view.result() is not None


def test_a_turn_is_sent_once(engine: Engine) -> None:
    mirror = opened(engine)
    messages = [*START, *turns([3])]
    assert mirror.send_early(history(messages), SETUP)
    assert not mirror.send_early(history(messages), SETUP)
    assert not mirror.send_early(history([*messages, *turns([4])]), SETUP)
    assert prepared(mirror, [*messages, *turns([4])]).is_whole
    assert stored(engine) == contents([*messages, *turns([4])])


def test_no_daemon_is_started_for_it(tmp_path: Path) -> None:
    engine = Engine((str(tmp_path / "nothing-here"),))
    assert not engine.mirror("test:1", OPTIONS).send_early(history(START), SETUP)


# --- views without waiting ------------------------------------------------------------------------------


def answered(mirror: Mirror) -> None:
    """Wait until the daemon has answered what was sent early."""
    end = monotonic() + 30
    while not mirror.has_early_answers:
        assert monotonic() < end
        sleep(0.001)


def test_a_view_is_there_at_once_if_the_turn_was_sent_early(engine: Engine) -> None:
    mirror = opened(engine)
    messages = list(START)
    for number in range(3, 6):
        assert mirror.prepare_at_once(history(messages), SETUP) is None
        messages += turns([number])
        assert not mirror.has_early_answers
        assert mirror.send_early(history(messages), SETUP)
        answered(mirror)
        before = requests_sent(engine)
        view = mirror.prepare_at_once(history(messages), SETUP)
        assert view is not None
        assert (list(view.items), view.is_whole) == (list(range(len(messages))), True)
        assert requests_sent(engine) == before
        assert not mirror.has_early_answers
    assert prepared(mirror, messages).is_whole
    assert stored(engine) == contents(messages)


def test_a_daemon_that_has_not_answered_is_not_waited_for(engine: Engine) -> None:
    mirror = opened(engine)
    daemon(engine, signal.SIGSTOP)
    try:
        assert mirror.send_early(history(MESSAGES), SETUP)
        assert not mirror.has_early_answers
        assert mirror.prepare_at_once(history(MESSAGES), SETUP) is None
    finally:
        daemon(engine, signal.SIGCONT)
    assert prepared(mirror, MESSAGES).is_whole
    assert stored(engine) == contents(MESSAGES)


@pytest.mark.parametrize("answers", [False, True])
def test_a_daemon_that_died_is_not_started_again_at_once(engine: Engine, answers: bool) -> None:
    mirror = opened(engine)
    if not answers:
        daemon(engine, signal.SIGSTOP)
    assert mirror.send_early(history(MESSAGES), SETUP)
    if answers:
        answered(mirror)
    client = engine.demand(lambda client: client)
    pid, link = client.pid, client._running()
    daemon(engine, signal.SIGKILL)
    end = monotonic() + 30
    while not link.is_ended:
        assert monotonic() < end
        sleep(0.001)
    assert not mirror.has_early_answers
    assert mirror.prepare_at_once(history(MESSAGES), SETUP) is None
    assert client.pid == pid
    assert prepared(mirror, MESSAGES).is_whole
    # Answers that have come are used.
    assert (client.pid == pid) == answers
    assert stored(engine) == contents(MESSAGES)


@pytest.mark.parametrize(
    ("messages", "setup"),
    [
        ([*START, *turns([3, 4])], SETUP),
        ([*START, *turns([4])], SETUP),
        (START, SETUP),
        ([*START, *turns([3])], Setup(model="openai/gpt-4o", context_window=200_000)),
    ],
    ids=["longer", "another", "shorter", "setup"],
)
def test_another_request_is_not_served_at_once(engine: Engine, messages: list[Said], setup: Setup) -> None:
    mirror = opened(engine)
    assert mirror.send_early(history(MESSAGES), SETUP)
    answered(mirror)
    assert mirror.prepare_at_once(history(messages), setup) is None
    assert [*prepared(mirror, messages, setup).items] == [*range(len(messages))]
    assert mirror.state().token_usage.context_window == setup.context_window


def test_with_other_options_nothing_is_served_at_once(engine: Engine) -> None:
    mirror = opened(engine)
    assert mirror.send_early(history(MESSAGES), SETUP)
    answered(mirror)
    engine.mirror("test:1", SessionOptions("test", compaction={"threshold_ratio": 0.5}))
    assert mirror.prepare_at_once(history(MESSAGES), SETUP) is None
    prepared(mirror, MESSAGES)
    assert bytes(mirror.state().compaction.settings["threshold_ratio"].value) == b"0.5"


def test_an_event_loop_does_not_wait_for_another_user_of_the_mirror(engine: Engine) -> None:
    mirror = opened(engine)
    assert mirror.send_early(history(MESSAGES), SETUP)
    answered(mirror)
    with ThreadPoolExecutor() as pool, mirror._lock:
        waited = pool.submit(mirror.prepare_at_once, history(MESSAGES), SETUP)
        assert waited.result(30) is None
    assert prepared(mirror, MESSAGES).is_whole


def test_a_view_that_must_be_read_is_not_there_at_once(engine: Engine) -> None:
    mirror = opened(engine)
    mirror.compact(history(START), SETUP)
    mirror._is_begun = True
    mirror._early_bytes = MAX_EARLY
    assert mirror.send_early(history(MESSAGES), SETUP)
    answered(mirror)
    before = requests_sent(engine)
    assert mirror.prepare_at_once(history(MESSAGES), SETUP) is None
    assert prepared(mirror, MESSAGES).is_compacted
    # The answers were not thrown away: only the view was asked for.
    assert requests_sent(engine) == before + 1
    messages = [*MESSAGES, *turns([4])]
    assert mirror.send_early(history(messages), SETUP)
    answered(mirror)
    view = mirror.prepare_at_once(history(messages), SETUP)
    assert view is not None
    assert view.is_compacted
    assert [*view.items][-2:] == [len(messages) - 2, len(messages) - 1]
    assert view == prepared(mirror, messages)


def test_after_a_call_that_is_not_answered_the_view_is_read(engine: Engine) -> None:
    mirror = opened(engine)
    both = {"role": "assistant", "content": [*call("a")["content"], *call("b")["content"]]}
    messages = [*START, both, result("a", "one")]
    assert mirror.send_early(history(messages), SETUP)
    answered(mirror)
    assert mirror.prepare_at_once(history(messages), SETUP) is None
    view = prepared(mirror, messages)
    assert not view.is_whole
    assert any(isinstance(item, ShownMessage) for item in view.items)


@pytest.mark.parametrize("lost", [False, True])
def test_an_error_of_the_daemon_is_left_to_the_request(engine: Engine, lost: bool) -> None:
    mirror = opened(engine)
    small = SETUP if lost else Setup(model="openai/gpt-4o", context_window=SMALL)
    prepared(mirror, START, small)
    messages = [*START, *turns([3])]
    if lost:
        engine.demand(lambda client: client.session_close(session_id="test:1"))
    else:
        messages[-1] = result("c3", words(20_000, "x"))
        mirror._early_bytes = 10**9
    assert mirror.send_early(history(messages), small)
    answered(mirror)
    assert mirror.prepare_at_once(history(messages), small) is None
    view = mirror.prepare(history(messages), small)
    assert view is not None
    assert stored(engine) == contents(messages)


# --- compactions ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("usage", "most"),
    [
        (TokenUsage(current_context_tokens=10, threshold_tokens=None), MAX_EARLY),
        (TokenUsage(current_context_tokens=1_000, threshold_tokens=100_000), MAX_EARLY),
        (TokenUsage(current_context_tokens=1_000, threshold_tokens=5_000), 4_000),
        (TokenUsage(current_context_tokens=1_000, compared_tokens=3_000, threshold_tokens=5_000), 2_000),
        (TokenUsage(current_context_tokens=6_000, threshold_tokens=5_000), 0),
        (TokenUsage(current_context_tokens=1_000, threshold_tokens=100_000, decision="due"), 0),
    ],
)
def test_a_turn_that_may_cause_a_compaction_is_not_sent_early(usage: TokenUsage, most: int) -> None:
    assert early_bytes(usage) == most


def test_compactions_come_when_they_would_without_it(engine: Engine) -> None:
    small = Setup(model="openai/gpt-4o", context_window=SMALL, system_prompt="Be careful.")
    # One that is prepared while nothing comes would keep more messages.
    exact = SessionOptions("test", compaction={"prepare": "off"})
    early, late = engine.mirror("test:early", exact), engine.mirror("test:late", exact)
    messages, sent = [user("Read the files.")], 0
    for number in range(40):
        messages += turns([number])
        sent += early.send_early(history(messages), small)
        assert [*prepared(early, messages, small).items] == [*prepared(late, messages, small).items]
    assert sent > 10
    assert early.state().compaction.count == late.state().compaction.count > 1


@pytest.mark.parametrize("next_message", [user("Thank you."), *turns([4])[:1]])
def test_a_turn_that_no_request_follows_does_no_harm(engine: Engine, next_message: Said) -> None:
    used, plain = opened(engine, name="test:used"), opened(engine, name="test:plain")
    messages = [*START, *turns([3])]
    messages[-2]["usage"] = {"input_tokens": 1_000, "output_tokens": 10}
    assert used.send_early(history(messages), SETUP)
    for mirror in (used, plain):
        assert mirror.record(history(messages), SETUP)
        assert prepared(mirror, [*messages, next_message]).items
    assert stored(engine, "test:used") == stored(engine, "test:plain")
    one, other = used.state(), plain.state()
    assert (one.token_usage, one.compaction.count) == (other.token_usage, 0)
    assert one.token_usage.prompt_tokens == 1_000


def test_an_answer_is_billed_once(engine: Engine) -> None:
    mirror = opened(engine)
    messages = [*START]
    for number in range(3, 6):
        messages += turns([number])
        messages[-2]["usage"] = {"input_tokens": 100 * number, "output_tokens": 10}
        assert mirror.send_early(history(messages), SETUP)
        prepared(mirror, messages)
    usage = mirror.state().token_usage
    assert (usage.prompt_tokens, usage.completion_tokens) == (1_200, 30)


# --- everything else that is asked of the session -------------------------------------------------------


@pytest.mark.parametrize(
    "ask",
    [
        lambda mirror: mirror.record(history(MESSAGES), SETUP),
        lambda mirror: mirror.record(history([*MESSAGES, user("Go on.")]), SETUP),
        lambda mirror: mirror.record(history(START), SETUP),
        lambda mirror: mirror.state(),
        lambda mirror: mirror.recall("value"),
        lambda mirror: mirror.reduce("read", {}, words(2_000, "x"), call_id="c9"),
        lambda mirror: mirror.failed(RequestError(status=429, message="Rate limit reached")),
        lambda mirror: prepared(mirror, START),
        lambda mirror: prepared(mirror, MESSAGES, Setup(context_window=200_000)),
        lambda mirror: mirror.close(),
    ],
)
def test_whatever_comes_next_finds_the_turn_in_the_session(
    engine: Engine, ask: Callable[[Mirror], object]
) -> None:
    mirror = opened(engine)
    assert mirror.send_early(history(MESSAGES), SETUP)
    ask(mirror)
    assert prepared(mirror, MESSAGES).is_whole
    assert [each for each in stored(engine) if each != "Go on."] == contents(MESSAGES)


def test_a_compaction_that_is_asked_for_is_in_the_next_view(engine: Engine) -> None:
    mirror = opened(engine)
    assert mirror.send_early(history(MESSAGES), SETUP)
    done = mirror.compact(history(MESSAGES), SETUP)
    assert done is not None
    assert done.compacted
    assert prepared(mirror, MESSAGES).is_compacted


def test_an_agent_with_a_smaller_window_does_not_get_the_others_answer(engine: Engine) -> None:
    mirror = engine.mirror("test:1", OPTIONS)
    messages = [user("Read the files."), *turns(range(30))]
    prepared(mirror, messages)
    messages += turns([30])
    assert mirror.send_early(history(messages), SETUP)
    assert not prepared(mirror, messages, Setup(model="openai/gpt-4o", context_window=SMALL)).is_whole


def test_an_undone_compaction_is_in_no_view(engine: Engine) -> None:
    mirror = opened(engine)
    mirror.compact(history(START), SETUP)
    assert prepared(mirror, START).is_compacted
    assert mirror.send_early(history(MESSAGES), SETUP)
    mirror.undo()
    assert prepared(mirror, MESSAGES).is_whole


def test_after_an_undo_the_size_is_not_known(engine: Engine) -> None:
    mirror = opened(engine)
    mirror.compact(history(START), SETUP)
    prepared(mirror, START)
    mirror.undo()
    assert not mirror.send_early(history(MESSAGES), SETUP)
    assert prepared(mirror, MESSAGES).is_whole


def test_a_deleted_session_begins_anew(engine: Engine) -> None:
    mirror = opened(engine)
    assert mirror.send_early(history(MESSAGES), SETUP)
    mirror.delete()
    assert engine.demand(lambda client: client.session_list()).sessions == ()
    assert prepared(mirror, START).is_whole
    assert stored(engine) == contents(START)


def test_the_end_of_the_process_waits_for_it(engine: Engine) -> None:
    mirror = opened(engine)
    assert mirror.send_early(history(MESSAGES), SETUP)
    engine.close()
    assert stored_again(engine) == contents(MESSAGES)


def stored_again(engine: Engine) -> list[object]:
    prepared(engine.mirror("test:1", OPTIONS), START[:1])
    return stored(engine)


# --- failures -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("persist", [True, False])
@pytest.mark.parametrize("moment", ["before", "while it is sent", "after", "after its work"])
@pytest.mark.parametrize("then", ["prepare", "record", "close", "state"])
def test_a_daemon_that_is_killed_loses_nothing(engine: Engine, persist: bool, moment: str, then: str) -> None:
    mirror = opened(engine, SessionOptions("test", persist=persist))
    if moment == "before":
        daemon(engine, signal.SIGKILL)
    elif moment == "while it is sent":
        daemon(engine, signal.SIGSTOP)
    mirror.send_early(history(MESSAGES), SETUP)
    if moment == "after its work":
        assert stored(engine) == contents(MESSAGES)
    daemon(engine, signal.SIGKILL)
    if then == "record":
        assert mirror.record(history(MESSAGES), SETUP)
    elif then == "close":
        mirror.close()
    elif then == "state":
        mirror.state()
    messages = list(MESSAGES)
    for number in range(4, 7):
        assert prepared(mirror, messages).is_whole
        messages += turns([number])
        sent = mirror.send_early(history(messages), SETUP)
    assert sent
    assert prepared(mirror, messages).is_whole
    assert stored(engine) == contents(messages)


def test_a_daemon_that_does_not_answer_is_given_up(engine: Engine) -> None:
    mirror = opened(engine, SessionOptions("test", compact_s=0.2))
    assert mirror.send_early(history(MESSAGES), SETUP)
    prepared(mirror, MESSAGES)
    daemon(engine, signal.SIGSTOP)
    more = [*MESSAGES, *turns([4])]
    assert mirror.send_early(history(more), SETUP)
    try:
        with pytest.warns(CompactdWarning, match="no answer within"):
            assert mirror.prepare(history(more), SETUP) is None
        # Nobody waits a second time.
        assert not mirror.send_early(history([*more, *turns([5])]), SETUP)
    finally:
        daemon(engine, signal.SIGCONT)


def test_a_session_that_the_daemon_lost_is_opened_again(engine: Engine) -> None:
    mirror = opened(engine)
    engine.demand(lambda client: client.session_close(session_id="test:1"))
    assert mirror.send_early(history(MESSAGES), SETUP)
    assert prepared(mirror, MESSAGES).is_whole
    assert stored(engine) == contents(MESSAGES)


# --- several users of one session -----------------------------------------------------------------------


def test_fifty_threads_use_one_mirror(engine: Engine) -> None:
    mirror = opened(engine)
    history_of = {number: [*START, *turns(range(3, 3 + number))] for number in range(1, 6)}

    def work(at: int) -> bool:
        messages = history_of[at % 5 + 1]
        mirror.send_early(history(messages), SETUP)
        if at % 3 == 0:
            mirror.state()
        return prepared(mirror, messages).is_whole

    with ThreadPoolExecutor(50) as pool:
        assert all(pool.map(work, range(100)))
    assert prepared(mirror, history_of[5]).is_whole
    assert stored(engine) == contents(history_of[5])


STEPS = st.lists(
    st.sampled_from(["turn", "turn", "request", "answer", "edit", "cut", "undo", "state", "record", "kill"]),
    max_size=25,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_any_conversation_is_what_it_is_without_it(engine: Engine, steps: list[str]) -> None:
    name = os.urandom(6).hex()
    early = opened(engine, name=f"early:{name}")
    late = opened(engine, name=f"late:{name}")
    messages, number, kills = list(START), 10, 0
    for step in steps:
        number += 1
        match step:
            case "turn":
                messages += turns([number])
                early.send_early(history(messages), SETUP)
            case "request":
                messages.append(user(f"Go on with {number}."))
            case "answer":
                messages.append({"role": "assistant", "content": f"Done: {number}."})
            case "edit" if len(messages) > 3:
                messages[-3] = {**messages[-3], "content": messages[-3]["content"]}
                if messages[-3]["role"] == "user":
                    messages[-3] = user(f"Edited {number}.")
            case "cut" if len(messages) > 4:
                del messages[-2:]
            case "state":
                early.state()
            case "record":
                for mirror in (early, late):
                    assert mirror.record(history(messages), SETUP)
            case "kill" if kills < 1:
                kills += 1
                daemon(engine, signal.SIGKILL)
            case _:
                continue
        if step in ("turn", "request") and number % 3:
            assert list(prepared(early, messages).items) == list(prepared(late, messages).items)
    assert list(prepared(early, messages).items) == list(prepared(late, messages).items)
    for content in contents(messages):
        assert content in stored(engine, early.name)
