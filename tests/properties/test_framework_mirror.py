"""Whatever a framework does with its history, and however often the daemon dies: each request has the newest
messages, in order, once, and the session has everything that was ever said.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactd.integrations.frameworks.engine import Engine, SessionOptions
from compactd.integrations.frameworks.history import Setup, ShownMessage, View
from compactd.integrations.frameworks.mirror import Mirror
from tests.support.examples import examples
from tests.support.histories import Said, call, history, result, user, words

OPTIONS = SessionOptions("test")
SETUP = Setup(context_window=4_000, system_prompt="Be careful.")
_numbers = count(1)

TURN = st.tuples(st.just("turn"), st.integers(10, 500))
OTHER = st.one_of(
    st.tuples(st.just("ask"), st.integers(5, 200)),
    st.tuples(st.just("edit"), st.integers(0, 1_000)),
    st.tuples(st.just("cut"), st.integers(0, 1_000)),
    st.tuples(st.just("drop first"), st.integers(1, 3)),
    st.tuples(st.just("go back"), st.integers(0, 1_000)),
    st.tuples(st.just("kill"), st.just(0)),
    st.tuples(st.just("restart"), st.just(0)),
)
STEPS = st.lists(st.one_of(TURN, TURN, TURN, OTHER), min_size=1, max_size=25)


@pytest.fixture(scope="module", autouse=True)
def _home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    home = tmp_path_factory.mktemp("mirror")
    with pytest.MonkeyPatch.context() as changed:
        changed.setenv("COMPACTD_HOME", str(home / "data"))
        changed.setenv("XDG_CONFIG_HOME", str(home / "config"))
        yield


@settings(max_examples=examples(12), deadline=None)
@given(STEPS)
def test_the_view_is_right_whatever_happens_to_the_history(steps: list[tuple[str, int]]) -> None:
    engine = Engine(None)
    name = f"test:{next(_numbers)}"
    told: set[str] = set()
    messages: list[Said] = [user("Read the files, and keep the tests green.")]
    earlier = [messages]
    try:
        for number, (step, size) in enumerate(steps):
            if step == "restart":
                engine.close()
                engine = Engine(None)
            if step == "kill":
                # At most three restarts a minute are made.
                engine.close()
                os.kill(engine.demand(lambda client: client.pid), signal.SIGKILL)
            messages = changed(messages, earlier, number, step, size)
            earlier.append(messages)
            view = engine.mirror(name, OPTIONS).prepare(history(messages), SETUP)
            check(view, messages)
            told |= {repr(each["content"]) for each in messages}
        assert told <= stored(engine, name)
    finally:
        engine.close()


def changed(messages: list[Said], earlier: list[list[Said]], number: int, step: str, size: int) -> list[Said]:
    """Return the history after a step."""
    new = list(messages)
    match step:
        case "turn":
            new += [call(f"c{number}"), result(f"c{number}", words(size, f"f{number}"))]
        case "ask":
            new += [{"role": "assistant", "content": f"Done {number}."}, user(words(size, f"ask{number}"))]
        case "edit":
            at = size % len(new)
            if new[at]["role"] == "tool":
                new[at] = result(new[at]["content"][0]["call_id"], f"edited {number}")
            elif new[at]["role"] == "user":
                new[at] = user(f"Edited request {number}.")
        case "cut":
            new = new[: 1 + size % len(new)]
        case "drop first":
            new = [*new[size:]] if len(new) > size and new[size]["role"] == "user" else new
        case "go back":
            new = list(earlier[size % len(earlier)])
    return new


def check(view: View | None, messages: list[Said]) -> None:
    """Check what the provider would get."""
    assert view is not None
    indices = [item.index if isinstance(item, ShownMessage) else item for item in view.items]
    known = [index for index in indices if index is not None]
    assert known == sorted(set(known))
    assert known[-1:] == [len(messages) - 1]
    asked = max(index for index, each in enumerate(messages) if each["role"] == "user")
    assert asked in known
    shown = [messages[item] for item in view.items if isinstance(item, int)]
    results = {block["call_id"] for each in shown if each["role"] == "tool" for block in each["content"]}
    calls = {
        block["call_id"]
        for each in shown
        if each["role"] == "assistant" and isinstance(each["content"], list)
        for block in each["content"]
        if block["type"] == "tool_call"
    }
    changed_results = {
        block["call_id"]
        for item in view.items
        if isinstance(item, ShownMessage)
        for block in item.blocks()
        if block["type"] == "tool_result"
    }
    assert results | changed_results == calls
    if view.is_whole:
        assert list(view.items) == list(range(len(messages)))


def stored(engine: Engine, name: str) -> set[str]:
    """Return what all sessions of a conversation say, branches that were left included."""
    sessions = engine.demand(lambda client: client.session_list()).sessions
    ids = [each.session_id for each in sessions if each.session_id.startswith(name)]
    said = set()
    for session_id in ids:
        engine.demand(lambda client, session_id=session_id: client.session_start(session_id=session_id))
        got = engine.demand(
            lambda client, session_id=session_id: client.call("session/history", {"session_id": session_id})
        )
        said |= {repr(each["message"]["content"]) for each in got["entries"] if each["kind"] == "message"}
    return said


def test_the_mirror_starts_nothing_until_it_is_used() -> None:
    engine = Engine((os.fspath(Path("/nonexistent")),))
    assert isinstance(engine.mirror("test:0", OPTIONS), Mirror)
    engine.close()
