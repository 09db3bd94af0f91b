"""A session that follows the history of a framework: new messages, and changes behind our back."""

from __future__ import annotations

import os
import re
import signal
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from compactd.client import RpcError
from compactd.integrations.frameworks.engine import CompactdWarning, Engine, SessionOptions
from compactd.integrations.frameworks.history import History, Setup, View
from compactd.integrations.frameworks.mirror import Mirror
from compactd.integrations.frameworks.summary import summary_of
from compactd.protocol.wire import RequestError
from tests.support.histories import Said, call, history, result, turns, user, words

WINDOW = 8_000
SETUP = Setup(
    model="openai/gpt-4o",
    context_window=WINDOW,
    system_prompt="Be careful.",
    tools_key=1,
    tools=lambda: [{"name": "read", "description": "Reads a file.", "input_schema": {"type": "object"}}],
)
OPTIONS = SessionOptions("test")


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


def stored(engine: Engine, session_id: str) -> list[object]:
    """What the session's messages say, compacted or not, branches that were left included."""
    entries = engine.demand(lambda client: client.call("session/history", {"session_id": session_id}))[
        "entries"
    ]
    return [entry["message"]["content"] for entry in entries if entry["kind"] == "message"]  # type: ignore[index]


def test_a_short_history_is_sent_as_it_is(engine: Engine) -> None:
    mirror = engine.mirror("test:1", OPTIONS)
    messages = [user("Read the files."), *turns(range(3))]
    view = prepared(mirror, messages)
    assert view.is_whole
    assert list(view.items) == list(range(7))
    assert len(stored(engine, "test:1")) == 7
    assert mirror.state().token_usage.context_window == WINDOW


def test_a_long_history_is_compacted_and_keeps_the_newest_messages_and_the_request(engine: Engine) -> None:
    mirror = engine.mirror("test:1", OPTIONS)
    messages = [user("Read the files.")]
    for number in range(40):
        view = prepared(mirror, messages)
        messages += turns([number])
    assert not view.is_whole
    indices = [item for item in view.items if isinstance(item, int)]
    assert indices[0] == 0
    assert indices[-1] == len(messages) - 3
    assert indices == sorted(set(indices))
    summaries = [item for item in view.items if not isinstance(item, int)]
    assert [item.is_summary for item in summaries] == [True]
    assert mirror.state().compaction.count >= 1
    # Nothing is lost.
    assert len(stored(engine, "test:1")) == len(messages) - 2


def test_the_view_is_asked_for_only_if_it_changed(engine: Engine) -> None:
    """Otherwise the cost of a request would be the history's."""
    mirror = engine.mirror("test:1", OPTIONS)
    messages = [user("Read the files."), *turns(range(40))]
    first = prepared(mirror, messages)
    encoded: list[int] = []

    def encode(index: int) -> Said:
        encoded.append(index)
        return dict(messages[index])

    messages += turns([41])
    second = mirror.prepare(History([repr(each) for each in messages], encode), SETUP)
    assert second is not None
    assert list(second.items) == [*first.items, len(messages) - 2, len(messages) - 1]
    assert encoded == [len(messages) - 2, len(messages) - 1]


def test_an_edited_message_begins_a_branch_and_the_old_one_stays(engine: Engine) -> None:
    mirror = engine.mirror("test:1", OPTIONS)
    messages = [user("Read the files."), *turns(range(3))]
    prepared(mirror, messages)
    edited = [*messages[:4], result("c1", "edited"), *messages[5:]]
    assert prepared(mirror, edited).is_whole
    said = stored(engine, "test:1")
    assert len(said) == 7 + 3
    assert messages[4]["content"] in said
    assert edited[4]["content"] in said


def test_going_back_and_forth_between_branches_stores_nothing_twice(engine: Engine) -> None:
    mirror = engine.mirror("test:1", OPTIONS)
    one = [user("Read the files."), *turns(range(3))]
    other = [*one[:3], *turns(range(10, 12))]
    for messages in (one, other, one, other, one[:3], one):
        assert prepared(mirror, messages).is_whole
    assert len(stored(engine, "test:1")) == len(one) + 4


def test_a_history_with_another_beginning_has_its_own_session(engine: Engine) -> None:
    mirror = engine.mirror("test:1", OPTIONS)
    one = [user("Read the files."), *turns(range(2))]
    other = [user("Something else."), *turns(range(2))]
    assert prepared(mirror, one).is_whole
    assert prepared(mirror, other).is_whole
    assert prepared(mirror, one).is_whole
    ids = {each.session_id for each in engine.demand(lambda client: client.session_list()).sessions}
    assert len(ids) == 2
    assert "test:1" in ids
    assert len(stored(engine, "test:1")) == len(one)


def test_a_cleared_history_leaves_the_session_alone(engine: Engine) -> None:
    mirror = engine.mirror("test:1", OPTIONS)
    messages = [user("Read the files."), *turns(range(2))]
    prepared(mirror, messages)
    assert list(prepared(mirror, []).items) == []
    assert prepared(mirror, messages).is_whole
    assert len(stored(engine, "test:1")) == len(messages)


def test_another_process_finds_the_session_as_it_was(engine: Engine) -> None:
    messages = [user("Read the files."), *turns(range(40))]
    view = prepared(engine.mirror("test:1", OPTIONS), messages)
    engine.close()
    later = Engine(None)
    try:
        more = [*messages, *turns([50])]
        again = prepared(later.mirror("test:1", OPTIONS), more)
        assert list(again.items) == [*view.items, len(messages), len(messages) + 1]
        assert len(stored(later, "test:1")) == len(more)
    finally:
        later.close()


def test_a_session_of_another_process_is_copied_in_memory(engine: Engine) -> None:
    messages = [user("Read the files."), *turns(range(3))]
    prepared(engine.mirror("test:1", OPTIONS), messages)
    other = Engine(None)
    try:
        more = [*messages, *turns([9])]
        assert prepared(other.mirror("test:1", OPTIONS), more).is_whole
        assert len(stored(engine, "test:1")) == len(messages)
    finally:
        other.close()


def test_a_killed_daemon_is_started_again_between_any_two_steps(engine: Engine) -> None:
    mirror = engine.mirror("test:1", OPTIONS)
    messages = [user("Read the files.")]
    # The client starts a daemon again three times a minute; the engine then begins with a new client.
    for number in range(6):
        prepared(mirror, messages)
        os.kill(engine.demand(lambda client: client.pid), signal.SIGKILL)
        messages += turns([number])
    assert prepared(mirror, messages).is_whole
    assert len(stored(engine, "test:1")) == len(messages)


def test_a_session_in_memory_is_filled_again_after_the_daemon_was_killed(engine: Engine) -> None:
    mirror = engine.mirror("test:1", SessionOptions("test", persist=False))
    messages = [user("Read the files."), *turns(range(3))]
    prepared(mirror, messages)
    os.kill(engine.demand(lambda client: client.pid), signal.SIGKILL)
    changed = Setup(model=SETUP.model, context_window=WINDOW, system_prompt="Be quick.")
    assert prepared(mirror, messages, changed).is_whole
    assert len(stored(engine, "test:1")) == len(messages)
    listed = engine.demand(lambda client: client.session_list())
    assert [session.bytes for session in listed.sessions] == [0]


def test_an_overflow_makes_the_next_request_smaller(engine: Engine) -> None:
    mirror = engine.mirror("test:1", OPTIONS)
    messages = [user("Read the files."), *turns(range(12))]
    assert prepared(mirror, messages).is_whole
    told = mirror.failed(
        RequestError(
            status=400,
            code="context_length_exceeded",
            message="This model's maximum context length is 4096 tokens, however you requested 6000 tokens.",
        )
    )
    assert told is not None
    assert told.overflow
    assert told.retry
    view = prepared(mirror, messages)
    assert len(view.items) < len(messages)
    assert view.items[-1] == len(messages) - 1


def test_another_failure_changes_nothing(engine: Engine) -> None:
    mirror = engine.mirror("test:1", OPTIONS)
    messages = [user("Read the files."), *turns(range(3))]
    prepared(mirror, messages)
    told = mirror.failed(RequestError(status=429, message="Rate limit reached"))
    assert told is not None
    assert (told.overflow, told.retry) == (False, False)
    assert prepared(mirror, messages).is_whole


def test_undo_brings_the_messages_back(engine: Engine) -> None:
    mirror = engine.mirror("test:1", OPTIONS)
    messages = [user("Read the files."), *turns(range(22))]
    assert not prepared(mirror, messages).is_whole
    large = Setup(model="openai/gpt-4o", context_window=128_000)
    prepared(mirror, messages, large)
    mirror.undo()
    assert prepared(mirror, messages, large).is_whole
    with pytest.raises(RpcError, match="no compaction"):
        mirror.undo()


def test_every_answer_of_a_history_that_comes_at_once_is_billed(engine: Engine) -> None:
    mirror = engine.mirror("test:1", OPTIONS)
    messages = [user("Read the files.")]
    for number in range(3):
        messages += turns([number])
        messages[-2]["usage"] = {"input_tokens": 1_000 + number, "output_tokens": 10}
    for _ in range(2):
        assert mirror.record(history(messages), SETUP)
    usage = mirror.state().token_usage
    assert (usage.prompt_tokens, usage.completion_tokens) == (3_003, 30)
    assert len(stored(engine, "test:1")) == 7


def test_a_compaction_that_is_asked_for_is_made_although_it_is_not_due(engine: Engine) -> None:
    mirror = engine.mirror("test:1", OPTIONS)
    messages = [user("Read the files."), *turns(range(6))]
    assert prepared(mirror, messages).is_whole
    done = mirror.compact(history(messages), SETUP, "the file names")
    assert done is not None
    assert done.compacted
    view = prepared(mirror, messages)
    assert len(view.items) < len(messages)
    assert any(not isinstance(item, int) and item.is_summary for item in view.items)


def test_the_usage_of_an_answer_is_billed_once(engine: Engine) -> None:
    mirror = engine.mirror("test:1", OPTIONS)
    messages = [user("Read the files.")]
    for number in range(3):
        prepared(mirror, messages)
        messages += turns([number])
        messages[-2]["usage"] = {"input_tokens": 100, "output_tokens": 10}
    for _ in range(2):
        prepared(mirror, messages)
    usage = mirror.state().token_usage
    assert (usage.prompt_tokens, usage.completion_tokens) == (300, 30)


def test_a_call_without_a_result_gets_one_in_the_view(engine: Engine) -> None:
    mirror = engine.mirror("test:1", OPTIONS)
    messages = [user("Read the files."), call("c1")]
    view = prepared(mirror, messages)
    assert list(view.items[:2]) == [0, 1]
    assert [item.role for item in view.items[2:] if not isinstance(item, int)] == ["tool"]
    messages.append(result("c1", "late"))
    assert prepared(mirror, messages).is_whole


def test_recall_finds_what_a_compaction_removed(engine: Engine) -> None:
    mirror = engine.mirror("test:1", OPTIONS)
    messages = [user("Read the files."), *turns(range(30))]
    messages[4]["content"][0]["content"] += "\nThe password of the lighthouse is 7731."
    prepared(mirror, messages)
    found = mirror.recall("password lighthouse", ())
    assert "(tool) The password of the lighthouse is 7731." in found
    entry = found.split("\n[", 1)[1].split(" ", 1)[0]
    assert "7731" in mirror.recall("", [entry])
    assert "Try fewer" in mirror.recall("nowhere-to-be-found", ())
    assert "Give" in mirror.recall("", ())


def test_a_reduced_output_is_found_whole(engine: Engine) -> None:
    mirror = engine.mirror("test:1", OPTIONS)
    prepared(mirror, [user("Run the tests.")])
    text = "\n".join(f"tests/test_{number}.py::test_it PASSED" for number in range(400))
    told = mirror.reduce("bash", {"command": "pytest -v"}, text, call_id="c1")
    assert told is not None
    assert told.reduced
    assert len(told.content) < len(text) / 2
    assert told.entry_id is not None
    assert "test_399" in mirror.recall("test_399", [told.entry_id])


def test_a_summary_of_messages_without_a_session_says_what_they_said(engine: Engine) -> None:
    messages = [
        user("Rename the module `lighthouse` to `beacon`, and never touch `legacy/`."),
        *turns(range(4)),
    ]
    text = engine.demand(lambda client: summary_of(client, history(messages), "test"))
    assert "Rename the module `lighthouse` to `beacon`" in text
    assert engine.demand(lambda client: client.session_list()).sessions == ()


def test_a_long_word_for_word_conversation_comes_in_several_requests(engine: Engine) -> None:
    mirror = engine.mirror("test:1", OPTIONS)
    large = Setup(context_window=4_000_000)
    messages = [user("Read the files.")]
    messages += [
        said
        for number in range(10, 14)
        for said in (call(f"c{number}"), result(f"c{number}", words(400_000, "x")))
    ]
    assert prepared(mirror, messages, large).is_whole
    assert len(stored(engine, "test:1")) == len(messages)


def test_without_a_daemon_there_is_one_warning_and_no_view(tmp_path: Path) -> None:
    engine = Engine((str(tmp_path / "nothing-here"),))
    mirror = engine.mirror("test:1", OPTIONS)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            assert mirror.prepare(history([user("Hi.")]), SETUP) is None
            assert mirror.record(history([user("Hi.")])) is None
            assert mirror.failed(RequestError(status=400)) is None
        assert "cannot be read" in mirror.recall("x", ())
    assert [str(each.message).partition(":")[0] for each in caught] == ["compactd"]
    assert "could not be started" in str(caught[0].message)


def test_an_adapter_that_cannot_read_a_message_does_not_stop_the_agent(engine: Engine) -> None:
    def encode(_index: int) -> Said:
        raise AttributeError("'HumanMessage' object has no attribute 'content'")

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert engine.mirror("test:1", OPTIONS).prepare(History(["a"], encode), SETUP) is None
    assert "no attribute 'content'" in str(caught[0].message)
    # The next conversation is served.
    assert prepared(engine.mirror("test:2", OPTIONS), [user("Hi.")]).is_whole


def test_recall_finds_the_one_that_is_meant_and_not_what_it_said_before(engine: Engine) -> None:
    mirror = engine.mirror("test:1", OPTIONS)
    messages = [user("Weigh the parts.")]
    for number in range(1, 41):
        text = f"part {number} is here\nthe seal code of part {number} is S-{number * 7919}"
        messages += [call(f"c{number}"), result(f"c{number}", text)]
    prepared(mirror, messages, Setup(context_window=100_000))
    found = mirror.recall("seal code of part 3", ())
    assert found.split("\n[")[1].endswith(f"S-{3 * 7919}\n")
    messages += [
        {"role": "assistant", "content": [{**call("r1")["content"][0], "name": "recall"}]},
        {"role": "tool", "content": [{**result("r1", found)["content"][0], "name": "recall"}]},
    ]
    prepared(mirror, messages, Setup(context_window=100_000))
    assert "(tool) (tool)" not in mirror.recall("seal code of part 3", ())


@pytest.mark.parametrize("name", ["x" * 10_000, "line\nbreak\0", "", "half \udc80 of a pair"])
def test_any_id_of_a_framework_names_a_session(engine: Engine, name: str) -> None:
    mirror = engine.mirror(f"test:{name}", OPTIONS)
    assert prepared(mirror, [user("Hi.")]).is_whole
    assert engine.mirror(f"test:{name}", OPTIONS) is mirror
    assert engine.mirror(f"test:{name}x", OPTIONS) is not mirror


def test_half_of_a_surrogate_pair_does_not_stop_an_agent(engine: Engine) -> None:
    mirror = engine.mirror("test:1", OPTIONS)
    view = mirror.prepare(History(["a"], lambda _: user("half \udc80 of a pair")), SETUP)
    assert view is not None
    assert stored(engine, "test:1") == ["half ? of a pair"]


def test_recall_names_ids_that_do_not_exist_and_reads_the_others(engine: Engine) -> None:
    mirror = engine.mirror("test:1", OPTIONS)
    prepared(mirror, [user("The code is ZX-81."), *turns(range(3))])
    entry = mirror.recall("ZX-81").split("\n[", 1)[1].split(" ", 1)[0]

    found = mirror.recall("", ["e999", entry, "not an id"])

    assert "There is no entry e999, not an id." in found
    assert "The code is ZX-81." in found
    assert "ZX-81" in mirror.recall("ZX-81", ["e999"]), "with words, they are looked up"


def test_recall_reads_a_long_text_to_its_end(engine: Engine) -> None:
    mirror = engine.mirror("test:1", OPTIONS)
    text = "\n".join(f"line {number} of the long text" for number in range(1_000))
    prepared(mirror, [user("Read."), call("c1"), result("c1", text)], Setup(context_window=100_000))
    entry = mirror.recall("line 999").split("\n[", 1)[1].split(" ", 1)[0]

    read, start = "", 0
    for _ in range(20):
        read += mirror.recall("", [entry], start)
        more = re.search(r"`start`: (\d+)\)$", read)
        if more is None:
            break
        assert int(more[1]) > start
        start = int(more[1])

    assert all(f"line {number} of the long text" in read.replace("…", "") for number in (0, 1, 500, 998, 999))
    assert "The text ends at character" in mirror.recall("", [entry], len(text) + 1)


def test_an_agent_made_again_has_its_new_window_and_settings(engine: Engine) -> None:
    messages = [user("Read the files."), *turns(range(30))]
    small = SessionOptions("test", context_window=WINDOW)
    assert not prepared(engine.mirror("test:1", small), messages, Setup()).is_whole

    large = SessionOptions("test", context_window=200_000, compaction={"threshold_ratio": 0.5})
    mirror = engine.mirror("test:1", large)
    prepared(mirror, [*messages, *turns([30])], Setup())

    assert mirror.state().token_usage.context_window == 200_000
    assert bytes(mirror.state().compaction.settings["threshold_ratio"].value) == b"0.5"


def test_each_kind_of_failure_is_told_once(engine: Engine) -> None:
    def fail(error: Exception) -> None:
        def work(_client: object) -> None:
            raise error

        engine.attempt(work)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for error in (KeyError("a"), KeyError("b"), AttributeError("c")):
            fail(error)
    assert [str(each.message).split(":")[1].strip() for each in caught] == ["KeyError", "AttributeError"]


def reported(messages: Sequence[Said], tokens: int) -> list[Said]:
    """Return the messages with a report on each answer, of requests with so many tokens."""
    usage = {"input_tokens": tokens, "output_tokens": 10}
    return [{**said, "usage": usage} if said["role"] == "assistant" else said for said in messages]


@pytest.mark.parametrize("how", ["the daemon dies", "the first message is edited"])
def test_reports_on_compacted_requests_do_not_count_for_the_whole_history(engine: Engine, how: str) -> None:
    mirror = engine.mirror("test:1", SessionOptions("test", persist=False))
    messages = [user("Read the files.")]
    for number in range(40):
        prepared(mirror, messages)
        messages += reported(turns([number]), 3_000)
    if how == "the daemon dies":
        engine.demand(lambda client: os.kill(client.pid, signal.SIGKILL))
    else:
        messages[0] = user("Read all files.")
    view = prepared(mirror, messages)
    assert not view.is_whole
    assert len(view.items) < 30
    tokens = mirror.state().token_usage.current_context_tokens
    assert tokens is not None
    assert tokens < WINDOW


def test_reports_on_requests_of_the_whole_history_count(engine: Engine) -> None:
    mirror = engine.mirror("test:1", OPTIONS)
    first = [user("Read the files."), *turns([1])]
    prepared(mirror, reported(first, 60))
    assert mirror.state().token_usage.prompt_tokens == 60


def test_what_was_billed_on_another_branch_is_not_billed_again(engine: Engine) -> None:
    mirror = engine.mirror("test:1", OPTIONS)
    messages = [user("Read the files.")]
    for number in range(4):
        prepared(mirror, messages)
        messages += reported(turns([number]), 1_000 * (number + 1))
    prepared(mirror, messages)
    assert mirror.state().token_usage.prompt_tokens == 10_000
    messages[-3] = result("c2", "another output")
    prepared(mirror, messages)
    assert mirror.state().token_usage.prompt_tokens == 10_000
