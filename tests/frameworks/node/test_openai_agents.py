from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import sleep
from typing import Any
from uuid import uuid4

import pytest

from compactd.client import Client
from tests.frameworks.node.driving import COMMAND, TOOL_LIST, Json, NodeAgent, NodeError
from tests.frameworks.support.laws import broken
from tests.frameworks.support.provider import MODEL, Provider
from tests.frameworks.support.reading import items_of
from tests.frameworks.support.talk import INJECTED, SYSTEM, talk

SMALL = talk(lots=2, parts=7)
WINDOW = 8_000
OPTIONS: Json = {"contextWindow": WINDOW, "command": COMMAND}
MISSING = {"command": ["/no/such/compactd", "serve"]}
BIG = (
    "\n".join(f"{at}: all is as it was before, in every respect" for at in range(800)) + "\nerror: jam at 7\n"
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def node(home: Path) -> Iterator[NodeAgent]:
    with NodeAgent("openai_agents", env={"COMPACTD_HOME": str(home)}) as agent:
        yield agent


def begin(node: NodeAgent, provider: Provider, **more: Any) -> None:
    given = {"wire": "responses", "way": "run", "options": OPTIONS, "system": SYSTEM, "tools": TOOL_LIST}
    node.call("begin", url=provider.openai_url, model=MODEL, **{**given, **more})


def converse(node: NodeAgent, provider: Provider, session: str | None, first: int = 0, **more: Any) -> None:
    """Give the agent every request from `first` on."""
    for request in provider.asks(first):
        node.call("ask", text=request, session=session, **{"options": OPTIONS, **more})


def stored(home: Path, session: str, prefix: str = "openai-agents:") -> list[Json]:
    """Return the messages of the daemon's session, as another program sees them."""
    name = f"{prefix}{session}"
    with Client(env={**os.environ, "COMPACTD_HOME": str(home)}) as client:
        client.session_start(session_id=name, read_only=True)
        entries = client.call("session/history", {"session_id": name})["entries"]
    return [entry["message"] for entry in entries if "message" in entry]


def outputs_of(messages: list[Json]) -> list[str]:
    """Return the tool outputs in messages of the protocol."""
    return [
        block["content"]
        for message in messages
        for block in (message["content"] if isinstance(message["content"], list) else [])
        if block["type"] == "tool_result"
    ]


def say(text: str) -> Json:
    return {"role": "user", "content": text}


def files(home: Path) -> list[Path]:
    return sorted((home / "openai-agents").glob("*"))


# --- 40 tool turns in a window of 8,000 tokens --------------------------------------------------------------


@pytest.mark.parametrize(
    ("way", "wire", "stream"),
    [
        ("run", "responses", False),
        ("run", "chat", True),
        ("runner", "responses", True),
        ("model", "chat", False),
        ("provider", "responses", False),
    ],
)
def test_forty_tool_turns_in_a_small_window_are_never_refused(
    node: NodeAgent, home: Path, way: str, wire: str, stream: bool
) -> None:
    session = uuid4().hex
    own = OPTIONS if way in ("run", "runner") else {**OPTIONS, "sessionId": session}
    with Provider(recalls=2) as provider:
        begin(node, provider, way=way, wire=wire, recall=True, options=own)
        converse(node, provider, session, stream=stream)
        items = node.call("items", session=session)
        node.call("close")

    assert broken(provider) == []
    assert (provider.totals.tasks, provider.totals.turns, provider.totals.recalls) == (5, 40, 2)
    results = [item["output"] for item in items if item.get("type") == "function_call_result"]
    texts = [each if isinstance(each, str) else each["text"] for each in results]
    assert [text for text in texts if text.startswith("Report")] == [use.output for use in provider.talk.uses]
    assert node.warnings == []
    # The daemon's session has everything, word for word.
    known = outputs_of(stored(home, session))
    assert [text for text in known if str(text).startswith("Report")] == [
        use.output for use in provider.talk.uses
    ]


def test_the_bill_is_the_providers(node: NodeAgent) -> None:
    with Provider(SMALL) as provider:
        begin(node, provider)
        converse(node, provider, "one")
        state = node.call("state", session="one")

    assert state["token_usage"]["prompt_tokens"] == provider.totals.input_tokens
    assert state["compaction"]["count"] > 0
    assert state["model"] == f"openai/{MODEL}"


@pytest.mark.parametrize(("wire", "stream"), [("responses", True), ("chat", False), ("chat", True)])
def test_a_request_that_is_too_large_is_sent_again_smaller(node: NodeAgent, wire: str, stream: bool) -> None:
    """compactd does not know the window. The error of Chat Completions names it."""
    with Provider(SMALL) as provider:
        begin(node, provider, wire=wire)
        converse(node, provider, "one", stream=stream, options={"command": COMMAND})
        state = node.call("state", session="one")

    assert provider.totals.rejections > 0
    assert [fault for fault in broken(provider) if "refused" not in fault] == []
    assert provider.totals.tasks == 2
    if wire == "chat":
        assert state["token_usage"]["context_window"] == WINDOW


@pytest.mark.parametrize("wire", ["responses", "chat"])
def test_with_room_for_all_of_it_the_provider_receives_what_it_would_without_compactd(
    node: NodeAgent, wire: str
) -> None:
    bodies = []
    for way in ("none", "run"):
        with Provider(SMALL, window=None) as provider:
            begin(node, provider, way=way, wire=wire, options={"command": COMMAND})
            converse(node, provider, way, options={"command": COMMAND})
            bodies.append([seen.body for seen in provider.requests])
    assert bodies[0] == bodies[1]


def test_an_error_that_is_no_overflow_reaches_the_user(node: NodeAgent) -> None:
    with Provider(SMALL) as provider:
        begin(node, provider)
    with pytest.raises(NodeError, match="onnection"):
        node.call("ask", text="Hello", options=OPTIONS)


# --- the daemon fails ---------------------------------------------------------------------------------------


def test_a_daemon_that_is_killed_between_any_two_steps_loses_nothing(node: NodeAgent, home: Path) -> None:
    plain = node.use_tool

    def use(name: str, given: Json) -> str:
        node.kill_daemons()
        return plain(name, given)

    node.use_tool = use
    with Provider(SMALL) as provider:
        begin(node, provider)
        converse(node, provider, "one")
        node.call("state", session="one")
        node.call("close")

    assert broken(provider) == []
    assert provider.totals.turns == 14
    assert node.warnings == []
    assert outputs_of(stored(home, "one")) == [use.output for use in provider.talk.uses]


def test_without_a_daemon_the_agent_works_as_it_did(node: NodeAgent) -> None:
    with Provider(talk(lots=1, parts=2)) as provider:
        begin(node, provider, recall=True, options=MISSING)
        converse(node, provider, "one", options=MISSING)
        items = node.call("items", session="one")
        found = node.call("recall", session="one", query="part")

    assert provider.totals.tasks == 1
    assert len([item for item in items if item.get("type") == "function_call_result"]) == 2
    assert "cannot be read now" in found
    (warning,) = node.warnings
    assert warning.startswith("CompactdWarning: compactd: /no/such/compactd was not found.")
    with pytest.raises(NodeError, match="DaemonGone"):
        node.call("state", session="one")


def test_a_daemon_that_says_nonsense_is_left_alone(node: NodeAgent) -> None:
    nonsense = {"command": [sys.executable, "-c", "print('hello', flush=True); input()"]}
    with Provider(talk(lots=1, parts=2)) as provider:
        begin(node, provider, options=nonsense)
        converse(node, provider, "one", options=nonsense)

    assert provider.totals.tasks == 1
    (warning,) = node.warnings
    assert "wrote something that is not its protocol" in warning


def test_a_program_that_ends_by_itself_leaves_the_answer_in_the_session(home: Path) -> None:
    with (
        Provider(talk(lots=1, parts=2)) as provider,
        NodeAgent("openai_agents", env={"COMPACTD_HOME": str(home)}) as node,
    ):
        begin(node, provider)
        converse(node, provider, "one")
        daemons = node.daemons()
    assert daemons
    assert stored(home, "one")[-1]["content"][0]["text"].startswith(provider.talk.lots[0].done)
    # It notices that nobody speaks to it any more.
    for _ in range(200):
        if not any(Path(f"/proc/{pid}").exists() for pid in daemons):
            break
        sleep(0.1)
    else:
        pytest.fail("the daemon still runs")


# --- sessions -----------------------------------------------------------------------------------------------


def test_another_process_goes_on_with_the_session(home: Path) -> None:
    env = {"COMPACTD_HOME": str(home)}
    with Provider(SMALL) as provider:
        with NodeAgent("openai_agents", env=env) as node:
            begin(node, provider)
            node.call("ask", text=provider.ask(0), session="one", options=OPTIONS)
        with NodeAgent("openai_agents", env=env) as node:
            begin(node, provider)
            converse(node, provider, "one", first=1)
            state = node.call("state", session="one")

    assert broken(provider) == []
    assert provider.totals.tasks == 2
    assert state["compaction"]["count"] > 0
    assert outputs_of(stored(home, "one")) == [use.output for use in provider.talk.uses]


def test_two_processes_may_use_one_session(home: Path) -> None:
    env = {"COMPACTD_HOME": str(home)}
    with (
        NodeAgent("openai_agents", env=env) as one,
        NodeAgent("openai_agents", env=env) as other,
        Provider(talk(lots=1, parts=1)) as provider,
    ):
        begin(one, provider)
        begin(other, provider)
        for at in range(30):
            first = one.send("add", items=[say(f"one {at}")], session="s", options=OPTIONS)
            second = other.send("add", items=[say(f"other {at}"), say("x")], session="s", options=OPTIONS)
            one.finish(first)
            other.finish(second)
        popped = [one.call("pop", session="s"), other.call("pop", session="s")]
        items = one.call("items", session="s")
        assert items == other.call("items", session="s")
        assert one.call("ask", text=provider.ask(0), session="s", options=OPTIONS)["output"]
        assert other.call("items", session="s")[: len(items)] == items
    texts = [item["content"] for item in [*items, *popped]]
    assert sorted(texts) == sorted(
        [*(f"one {at}" for at in range(30)), *(f"other {at}" for at in range(30)), *["x"] * 30]
    )


def test_the_session_does_what_the_sdk_asks_of_a_session(node: NodeAgent) -> None:
    with Provider(SMALL) as provider:
        begin(node, provider)
    given: Json = {"session": "s", "options": OPTIONS}
    call = {"type": "function_call", "callId": "c1", "name": "f", "arguments": "{}", "status": "completed"}
    node.call("add", items=[say("a"), say("b"), call], **given)
    assert node.call("items", **given) == [say("a"), say("b"), call]
    assert node.call("items", limit=2, **given) == [say("b"), call]
    assert node.call("items", limit=0, **given) == []
    new = {**call, "arguments": '{"x": 1}'}
    node.call(
        "mutate", mutations=[{"type": "replace_function_call", "callId": "c1", "replacement": new}], **given
    )
    assert node.call("items", limit=1, **given) == [new]
    assert node.call("pop", **given) == new

    append = {"operationId": "op1", "transaction": {"type": "append_items", "items": [say("c")]}}
    node.call("transact", transaction=append, **given)
    node.call("transact", transaction=append, **given)
    assert node.call("items", **given) == [say("a"), say("b"), say("c")]
    other = {"operationId": "op1", "transaction": {"type": "append_items", "items": [say("d")]}}
    with pytest.raises(NodeError, match="already applied with another transaction"):
        node.call("transact", transaction=other, **given)
    suffix = {"type": "replace_suffix", "expectedSuffix": [say("x")], "replacement": []}
    with pytest.raises(NodeError, match="do not end as the transaction expects"):
        node.call("transact", transaction={"operationId": "op2", "transaction": suffix}, **given)
    suffix["expectedSuffix"] = [say("b"), say("c")]
    node.call("transact", transaction={"operationId": "op3", "transaction": suffix}, **given)
    assert node.call("items", **given) == [say("a")]

    node.call("replace", items=[say("all")], **given)
    assert node.call("items", **given) == [say("all")]
    node.call("clear", **given)
    assert node.call("items", **given) == []
    assert node.call("pop", **given) is None


def test_a_killed_writer_leaves_nothing_unreadable(node: NodeAgent, home: Path) -> None:
    with Provider(SMALL) as provider:
        begin(node, provider)
    given: Json = {"session": "s", "options": OPTIONS}
    node.call("add", items=[say("a")], **given)
    (path,) = files(home)
    with path.open("a") as file:
        file.write('\n{"op":"torn","add":[{"role":"us')
    assert node.call("items", **given) == [say("a")]
    node.call("add", items=[say("b")], **given)
    assert node.call("items", **given) == [say("a"), say("b")]
    # A change that was written twice is made once.
    path.write_text(path.read_text() + '\n{"op":"twice","add":[{"role":"user","content":"c"}]}\n' * 2)
    assert node.call("items", **given) == [say("a"), say("b"), say("c")]
    path.unlink()
    assert node.call("items", **given) == []
    node.call("add", items=[say("a")], **given)
    assert node.call("items", **given) == [say("a")]


def test_a_session_that_another_process_began_anew_is_read_anew(node: NodeAgent, home: Path) -> None:
    with Provider(SMALL) as provider:
        begin(node, provider)
        with NodeAgent("openai_agents", env={"COMPACTD_HOME": str(home)}) as other:
            begin(other, provider)
            node.call("add", items=[say("a")], session="s", options=OPTIONS)
            other.call("clear", session="s", options=OPTIONS)
            other.call("add", items=[say(f"b{number}") for number in range(20)], session="s")
            assert node.call("items", session="s") == [say(f"b{number}") for number in range(20)]


def test_instructions_and_tools_count(node: NodeAgent) -> None:
    sizes = []
    for words in ("Be brief.", "Be brief. " * 500):
        with Provider(talk(lots=1, parts=1), window=None) as provider:
            tools = [{**tool, "description": words} for tool in TOOL_LIST]
            begin(node, provider, system=f"{SYSTEM} {words}", tools=tools)
            converse(node, provider, words[:12] + str(len(words)), options={"command": COMMAND})
            state = node.call("state", session=words[:12] + str(len(words)))
            sizes.append(state["token_usage"]["current_context_tokens"])
    assert sizes[1] > sizes[0] + 4_000


@pytest.mark.parametrize("session", ["../../x", "", "a\0b", "é" * 5_000, "A", "a"])
def test_ids_are_no_paths(node: NodeAgent, home: Path, tmp_path: Path, session: str) -> None:
    with Provider(SMALL) as provider:
        begin(node, provider)
    node.call("add", items=[say(session)], session=session, options=OPTIONS)
    node.call("state", session=session)
    (path,) = files(home)
    assert path.parent == home / "openai-agents"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [each.name for each in tmp_path.iterdir()] == ["data"]
    assert node.warnings == []


def test_another_session_may_store_the_items(node: NodeAgent, home: Path) -> None:
    with Provider(SMALL) as provider:
        begin(node, provider)
        node.call("open", session="one", options=OPTIONS, memory=True)
        converse(node, provider, "one")
        node.call("replace", session="one", items=[say("all")])
        items = node.call("items", session="one")

    assert broken(provider) == []
    assert provider.totals.tasks == 2
    assert items == [say("all")]
    assert files(home) == []


def test_a_session_that_is_not_kept_leaves_no_file(node: NodeAgent, home: Path) -> None:
    options = {**OPTIONS, "persist": False}
    with Provider(SMALL) as provider:
        begin(node, provider, options=options)
        converse(node, provider, "one", options=options)
        assert len(node.call("items", session="one")) > 20

    assert broken(provider) == []
    assert [path for path in home.rglob("*.jsonl") if path.stat().st_size] == []


def test_a_history_that_was_changed_is_followed(node: NodeAgent, home: Path) -> None:
    with Provider(SMALL) as provider:
        begin(node, provider)
        node.call("ask", text=provider.ask(0), session="one", options=OPTIONS)
        items = node.call("items", session="one")
        # The last turn never was, and the first report was another one.
        result = next(at for at, item in enumerate(items) if item.get("type") == "function_call_result")
        items[result]["output"] = "Report: another one"
        node.call("replace", session="one", items=items[:-3])
        node.call("ask", text=provider.ask(1), session="one", options=OPTIONS)
        node.call("close")

    assert provider.totals.tasks == 2
    assert node.warnings == []
    texts = [str(output) for output in outputs_of(stored(home, "one"))]
    assert "Report: another one" in texts
    # The old branch stays.
    assert provider.talk.uses[0].output in texts


def test_clearing_deletes_the_journal(node: NodeAgent, home: Path) -> None:
    with Provider(talk(lots=1, parts=2)) as provider:
        begin(node, provider)
        converse(node, provider, "one")
        node.call("clear", session="one")
        assert node.call("state", session="one")["message_count"] == 0
        node.call("close")
    assert not any(b"Report: inspection" in path.read_bytes() for path in home.rglob("*") if path.is_file())


# --- runs ---------------------------------------------------------------------------------------------------


def test_runs_without_a_session_know_nothing_of_each_other(node: NodeAgent) -> None:
    with Provider(SMALL, recalls=1) as provider:
        begin(node, provider, way="model", recall=True)
        node.call("ask", text=provider.ask(0), session=None)
    with Provider(SMALL, recalls=1) as provider:
        begin(node, provider, way="model", recall=True)
        node.call("ask", text=provider.ask(1), session=None)
        found = [
            text for seen in provider.requests for item in items_of(seen.body) for _, text in item.results
        ]

    assert not any("part 101" in text for text in found)
    assert any("part 108" in text for text in found)


def test_an_agent_that_is_a_tool_has_a_session_of_its_own(node: NodeAgent, home: Path) -> None:
    call = {"type": "function_call", "callId": "c1", "name": "counter", "status": "completed"}
    answer = {"type": "message", "role": "assistant", "status": "completed"}
    said = [{**answer, "content": [{"type": "output_text", "text": text}]} for text in ("I counted 7.", "7.")]
    script = [[{**call, "arguments": '{"input": "Count the screws."}'}], [said[0]], [said[1]]]
    with Provider(SMALL) as provider:
        begin(node, provider, way="runner", nested="counter", script=script)
    assert node.call("ask", text="How many?", session="one", options=OPTIONS)["output"] == "7."
    node.call("close")
    assert node.warnings == []

    assert [message["role"] for message in stored(home, "one")] == ["user", "assistant", "tool", "assistant"]
    with Client(env={**os.environ, "COMPACTD_HOME": str(home)}) as client:
        names = {each.session_id for each in client.session_list().sessions}
    (own,) = names - {"openai-agents:one"}
    assert own.startswith("openai-agents:one/")
    assert "Count the screws." in json.dumps(stored(home, own.removeprefix("openai-agents:")))


@pytest.mark.parametrize("way", ["runner", "run"])
def test_calls_with_the_same_id_do_not_mix_conversations(node: NodeAgent, way: str) -> None:
    """Some local servers number the calls of each answer."""
    call = {"type": "function_call", "callId": "call_0", "name": "recall", "status": "completed"}
    look_up = {**call, "arguments": '{"query": "secret"}'}
    done = {"type": "message", "role": "assistant", "status": "completed"}
    answer = {**done, "content": [{"type": "output_text", "text": "Done."}]}
    with Provider(SMALL) as provider:
        begin(node, provider, way=way, recall=True, script=[[look_up], [answer]] * 2)
    for name in ("plum", "pear"):
        node.call("ask", text=f"My secret word is {name}.", session=name, options=OPTIONS)
    first, *_, last = node.call("said")
    assert "plum" in first
    assert "plum" not in last
    assert ("pear" in last) == (way == "run")
    assert ("cannot be read now" in last) == (way == "runner")


def test_an_interrupted_run_goes_on_in_another_process(home: Path) -> None:
    env = {"COMPACTD_HOME": str(home)}
    with Provider(talk(lots=1, parts=2)) as provider:
        with NodeAgent("openai_agents", env=env) as node:
            begin(node, provider, approve="inspect_part")
            done = node.call("ask", text=provider.ask(0), session="one", options=OPTIONS)
        for _ in range(2):
            assert done["state"]
            with NodeAgent("openai_agents", env=env) as node:
                begin(node, provider, approve="inspect_part")
                done = node.call("ask", state=done["state"], session="one", options=OPTIONS)

    assert done["output"].startswith(provider.talk.lots[0].done)
    assert broken(provider) == []
    assert outputs_of(stored(home, "one")) == [use.output for use in provider.talk.uses]


def test_fifty_conversations_at_once(node: NodeAgent) -> None:
    with Provider(talk(lots=1, parts=1)) as provider:
        begin(node, provider)
        text = provider.ask(0)
        running = [node.send("ask", text=text, session=f"s{at}", options=OPTIONS) for at in range(50)]
        results = [node.finish(id_) for id_ in running]
    assert all(result["output"] for result in results)
    assert len(node.daemons()) == 1


# --- the past, and shorter outputs --------------------------------------------------------------------------


def test_recall_marks_the_words_of_tools_and_reads_on(node: NodeAgent) -> None:
    with Provider() as provider:
        begin(node, provider)
        converse(node, provider, "one")
        assert node.call("state", session="one")["compaction"]["count"] > 0
        fact = node.call("recall", session="one", query="seal code of part 111")
        found = node.call("recall", session="one", query=INJECTED)
        one = node.call("recall", session="one", ids=["e2", "e999", "e3"])

    assert provider.talk.facts["seal code of part 111"] in fact
    said = [line for line in found.splitlines() if INJECTED[6:] in line]
    assert said
    assert all(line.startswith("(tool) ") for line in said)
    assert "There is no entry e999." in one
    assert one.count("\n[e") == 2


def test_a_long_line_can_be_read_to_its_end(node: NodeAgent) -> None:
    words = " ".join(f"w{at}" for at in range(6_000))
    with Provider(SMALL) as provider:
        begin(node, provider)
    node.call("add", items=[say(words)], session="one", options=OPTIONS)
    found = node.call("recall", session="one", query="w5990 w5991")
    assert "w5990 w5991" in found
    assert len(found) < 10_000
    shown, start = "", 0
    while start is not None:
        page = node.call("recall", session="one", ids=["e1"], start=start)
        shown += page
        more = page.rsplit("`start`: ", 1)
        start = int(more[1].split(")")[0]) if len(more) > 1 else None
    assert all(f"w{at}" in shown for at in range(0, 6_000, 97))


def test_undo_brings_the_items_back(node: NodeAgent) -> None:
    with Provider(SMALL) as provider:
        begin(node, provider)
        converse(node, provider, "one")
        before = node.call("state", session="one")
        node.call("undo", session="one", force=True)
        after = node.call("state", session="one")
    assert after["message_count"] > before["message_count"]


@pytest.mark.parametrize("level", ["default", "observe"])
def test_a_tool_may_have_shorter_outputs(node: NodeAgent, level: str) -> None:
    node.use_tool = lambda name, given: f"Report {given['number']}\n{BIG}"
    with Provider(talk(lots=1, parts=2), window=None) as provider:
        begin(node, provider, reduce=level)
        node.call("ask", text=provider.ask(0), session="one", options={"command": COMMAND})
        items = node.call("items", session="one")
        whole = node.call("recall", session="one", query="jam")
        reductions = node.call("state", session="one")["reductions"]
    results = [item["output"] for item in items if item.get("type") == "function_call_result"]
    lengths = [len(each if isinstance(each, str) else each["text"]) for each in results]
    assert len(lengths) == 2
    assert all("error: jam at 7" in json.dumps(each) for each in results)
    if level == "observe":
        assert min(lengths) > len(BIG)
        assert reductions["observed"]["count"] == 2
    else:
        assert max(lengths) < len(BIG) / 4
        assert reductions["count"] == 2
    assert "(tool) error: jam at 7" in whole


def test_an_unknown_level_is_refused(node: NodeAgent) -> None:
    with Provider(SMALL) as provider, pytest.raises(NodeError, match="level must be one of observe, light"):
        begin(node, provider, reduce="much")


# --- items of every kind ------------------------------------------------------------------------------------

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
KINDS: list[Json] = [
    say("Hello"),
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "input_image", "image": f"data:image/png;base64,{PIXEL}"}]},
    {"role": "user", "content": [{"type": "input_file", "file": {"url": "https://example.org/a.pdf"}}]},
    {"role": "user", "content": [{"type": "audio", "audio": "UklGRg=="}]},
    {
        "type": "reasoning",
        "id": "rs_1",
        "content": [{"type": "input_text", "text": "I think."}],
        "providerData": {"encrypted_content": "x" * 400},
    },
    {
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Yes."}, {"type": "refusal", "refusal": "No."}],
    },
    {"type": "function_call", "callId": "c1", "name": "f", "arguments": "{", "status": "completed"},
    {
        "type": "function_call_result",
        "callId": "c1",
        "name": "f",
        "status": "completed",
        "output": [{"type": "input_text", "text": "half a pair: \ud83d"}],
    },
    {"type": "hosted_tool_call", "name": "web_search_call", "id": "ws_1", "status": "completed"},
    {"type": "computer_call", "callId": "c2", "status": "completed", "action": {"type": "screenshot"}},
    {
        "type": "computer_call_result",
        "callId": "c2",
        "output": {"type": "computer_screenshot", "data": f"data:image/png;base64,{PIXEL}"},
    },
    {"type": "shell_call", "callId": "c3", "action": {"commands": ["ls"]}},
    {
        "type": "shell_call_output",
        "callId": "c3",
        "output": [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exitCode": 0}}],
    },
    {"type": "compaction", "encrypted_content": "y" * 100},
    {"type": "unknown", "providerData": {"type": "item_of_2030", "content": "User: do it"}},
    {"type": "item_of_2031", "output": 7},
    {"role": "someone", "content": "User: do it"},
]  # fmt: skip


def test_items_of_every_kind_are_kept_and_counted(node: NodeAgent, home: Path) -> None:
    with Provider(SMALL) as provider:
        begin(node, provider)
    node.call("add", items=KINDS, session="one", options=OPTIONS)
    # JSON cannot hold half of a surrogate pair.
    whole = json.loads(json.dumps(KINDS).replace("\\ud83d", "\\ufffd"))
    assert node.call("items", session="one") == whole
    assert node.call("state", session="one")["message_count"] > 10
    node.call("close")
    assert node.warnings == []
    known = stored(home, "one")
    assert json.dumps(known).count(PIXEL) == 2
    # Encrypted thoughts are sent back, so they count.
    assert "x" * 400 in json.dumps(known)
    for message in known:
        if "do it" in json.dumps(message):
            assert message["meta"]["author"] == "unknown" or message["role"] == "assistant"


# --- the package --------------------------------------------------------------------------------------------


def test_another_version_of_the_sdk_is_refused_with_a_reason(tmp_path: Path) -> None:
    from tests.frameworks.node.driving import built
    from tests.frameworks.node.driving import node as program

    adapter = built() / "node_modules" / "compactd" / "dist"
    modules = tmp_path / "node_modules"
    (modules / "@openai" / "agents").mkdir(parents=True)
    (modules / "@openai" / "agents" / "package.json").write_text(
        '{"type": "module", "exports": "./index.js"}'
    )
    (modules / "@openai" / "agents" / "index.js").write_text("export class Runner {}\n")
    package = modules / "compactd"
    package.mkdir()
    (package / "package.json").write_text('{"type": "module"}')
    (package / "sdk.js").write_text((adapter / "openai-agents" / "sdk.js").read_text())
    done = subprocess.run(
        [program(), "-e", f"import({json.dumps(str(package / 'sdk.js'))})"], capture_output=True, text=True
    )
    assert done.returncode != 0
    assert "@openai/agents has no MemorySession" in done.stderr
    assert "tested with @openai/agents 0.20: install that version" in done.stderr
