"""The provider of the frameworks' tests plays its conversation and refuses what is too large; the laws find
faults."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable

import httpx
import pytest

from tests.frameworks.support import plain_agent, truncation
from tests.frameworks.support.laws import broken
from tests.frameworks.support.provider import MODEL, Provider
from tests.frameworks.support.reading import tokens_in, tokens_of
from tests.frameworks.support.talk import INJECTED, talk
from tests.support.loopback.writing import Json

WIRES = ("openai", "openai_responses", "anthropic", "gemini")
SMALL = talk(lots=2, parts=5)


def test_the_conversation_has_the_sizes_that_it_says() -> None:
    whole = talk()

    assert (len(whole.lots), sum(len(lot.turns) for lot in whole.lots), len(whole.uses)) == (5, 40, 48)
    assert all(550 <= tokens_of(use.output) <= 650 for use in whole.uses)
    assert all(use.output.count(whole.facts[use.fact]) == 1 for use in whole.uses)
    assert len(set(whole.facts.values())) == len(whole.facts) == 53
    assert sum(INJECTED in use.output for use in whole.uses) == 1


def test_a_request_counts_its_texts_its_messages_and_its_tools() -> None:
    messages = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hello world"}]

    assert tokens_in({"messages": messages}) == 4 + 1 + 4 + 2
    assert tokens_in({"input": messages, "instructions": "Hello"}) == 4 + 1 + 4 + 2 + 1
    assert tokens_in({"messages": messages, "tools": [1]}) == 11 + tokens_of("[1]")


@pytest.mark.parametrize("wire", WIRES)
def test_without_a_window_the_whole_conversation_keeps_the_laws_and_every_fact(wire: str) -> None:
    with Provider(window=None) as provider:
        plain_agent.run(provider, wire)

    assert broken(provider) == []
    totals = provider.totals
    assert (totals.tasks, totals.turns, totals.facts, totals.rejections) == (5, 40, 53, 0)
    assert totals.requests == 45
    assert totals.largest > 24_000


@pytest.mark.parametrize("wire", WIRES)
def test_a_request_above_the_window_is_refused_in_the_providers_words(wire: str) -> None:
    with Provider() as provider, pytest.raises(plain_agent.Refused) as refused:
        plain_agent.run(provider, wire)

    body = json.loads(str(refused.value))
    words = {
        "openai": "context_length_exceeded",
        "openai_responses": "context_length_exceeded",
        "anthropic": "prompt is too long",
        "gemini": "exceeds the maximum number of tokens allowed",
    }
    assert words[wire] in json.dumps(body["error"])
    assert provider.totals.rejections == 1
    assert provider.totals.tasks == 1
    (fault,) = broken(provider)
    assert fault.startswith("request 12: refused: 8,")


@pytest.mark.parametrize("wire", WIRES)
def test_a_model_that_does_not_see_what_it_did_does_it_again_and_forgets(wire: str) -> None:
    def only_the_request(messages: list[Json]) -> list[Json]:
        newest = max(at for at, message in enumerate(messages) if message.get("content") in SMALL.requests)
        return [messages[newest]]

    with Provider(SMALL, window=None) as provider:
        plain_agent.run(provider, wire, only_the_request)

    assert provider.totals.facts == 1
    assert provider.totals.requests == 12 + 2 * 10
    assert broken(provider) == []


def dropped_result(messages: list[Json]) -> None:
    at = first(messages, is_result)
    if messages[at].get("role") == "user":
        messages[at] = {"role": "user", "content": "ok"}
    else:
        del messages[at]


def dropped_call(messages: list[Json]) -> None:
    del messages[first(messages, is_result) - 1]


def doubled_pair(messages: list[Json]) -> None:
    at = first(messages, is_result)
    messages[at + 1 : at + 1] = copy.deepcopy(messages[at - 1 : at + 1])


def swapped_pairs(messages: list[Json]) -> None:
    messages[1:5] = [*messages[3:5], *messages[1:3]]


def dropped_request(messages: list[Json]) -> None:
    del messages[newest_request(messages)]


def changed_request(messages: list[Json]) -> None:
    at = newest_request(messages)
    messages[at] = {**messages[at], "content": messages[at]["content"].replace("inspect", "check")}


def late_request(messages: list[Json]) -> None:
    messages.append(messages.pop(newest_request(messages)))


def late_work(messages: list[Json]) -> None:
    """What was done for the first request comes after the second."""
    at = newest_request(messages)
    work = messages[1 : at - 1]
    messages[1 : at + 1] = [*messages[at - 1 : at + 1], *work]


def quoted_output(messages: list[Json]) -> None:
    messages.insert(0, {"role": "user", "content": f"So far: {SMALL.facts['seal code of part 101']}"})


def result_as_user(messages: list[Json]) -> None:
    messages.insert(0, {"role": "user", "content": SMALL.uses[0].output})


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (dropped_result, "no result"),
        (dropped_call, "waits for its result"),
        (doubled_pair, "comes more than once"),
        (swapped_pairs, "out of order"),
        (dropped_request, "the newest, is missing or changed"),
        (changed_request, "the newest, is missing or changed"),
        (late_request, "comes after work on request"),
        (late_work, "of request 1 comes after request 2"),
        (quoted_output, "words of a tool"),
        (result_as_user, "words of a tool"),
    ],
)
def test_the_laws_find_what_is_damaged(wire: str, damage: Callable[[list[Json]], None], words: str) -> None:
    faults = damaged(wire, damage)

    assert any(words in fault for fault in faults), faults


def test_the_laws_find_a_missing_system_prompt_and_missing_tools() -> None:
    with Provider(SMALL) as provider:
        provider.ask(0)
        tools = [{"type": "function", "function": {"name": "weigh_part", "parameters": {"type": "object"}}}]
        messages = [{"role": "user", "content": SMALL.requests[0]}]
        httpx.post(
            f"{provider.openai_url}/chat/completions",
            json={"model": MODEL, "messages": messages, "tools": tools},
        )

    assert broken(provider) == [
        "request 0: the system prompt is missing or changed",
        "request 0: tools are missing: ['inspect_part']",
    ]


def test_a_marked_summary_may_quote_a_tool_but_not_speak_for_the_user() -> None:
    fact = SMALL.facts["seal code of part 101"]

    def summarised(text: str) -> Callable[[list[Json]], None]:
        words = f"[Conversation summary — older messages were compacted]\n{text}"
        return lambda messages: messages.insert(0, {"role": "user", "content": words})

    assert damaged("openai", summarised(f"- [e2] (tool) {fact}")) == []
    (fault,) = damaged("openai", summarised(f"- [e2] (tool) {fact}\n{INJECTED}"))
    assert "without a mark" in fault


@pytest.mark.parametrize("wire", WIRES)
def test_a_model_looks_up_what_it_does_not_see_as_often_as_it_may(wire: str) -> None:
    def recall(query: str) -> str:
        """Look up what was said earlier."""
        return f"{query}: {SMALL.facts[query]}"

    def without_first_lot(messages: list[Json]) -> list[Json]:
        return messages[newest_request(messages) :]

    with Provider(SMALL, window=None, recalls=3) as provider:
        plain_agent.run(provider, wire, without_first_lot, {**plain_agent.BY_NAME, "recall": recall})

    first = [use.fact for use in SMALL.lots[0].turns[0]]
    assert provider.recalled == [*first, "seal code of part 102", "seal code of part 103"]
    assert provider.totals.facts == 7 + 3
    assert broken(provider) == []


def test_a_model_whose_summaries_keep_nothing_names_no_fact() -> None:
    with Provider(SMALL, keeps=False) as provider:
        messages = [{"role": "user", "content": SMALL.uses[0].output}]
        sent = httpx.post(
            f"{provider.openai_url}/chat/completions", json={"model": MODEL, "messages": messages}
        )

    assert SMALL.known(sent.text) == {}
    assert provider.totals.summaries == 1


def test_a_request_for_a_summary_is_answered_with_all_facts_in_it() -> None:
    with Provider(SMALL) as provider:
        text = "\n".join(use.output for use in SMALL.uses[:3])
        sent = httpx.post(
            f"{provider.openai_url}/chat/completions",
            json={"model": MODEL, "messages": [{"role": "user", "content": f"Summarize:\n{text}"}]},
        ).json()

    said = sent["choices"][0]["message"]["content"]
    assert SMALL.known(said) == {use.fact: SMALL.facts[use.fact] for use in SMALL.uses[:3]}
    assert sent["usage"]["prompt_tokens"] == provider.requests[0].tokens
    assert (provider.totals.summaries, provider.totals.turns) == (1, 0)
    assert broken(provider) == []


def test_a_compacted_window_of_responses_takes_its_place_with_its_facts() -> None:
    with Provider(SMALL) as provider:
        output = {"type": "function_call_output", "call_id": "a", "output": SMALL.uses[0].output}
        call = {"type": "function_call", "call_id": "a", "name": "inspect_part", "arguments": "{}"}
        body = {
            "model": MODEL,
            "input": [{"role": "user", "content": "Go"}, call, output],
            "instructions": "x",
        }
        compacted = httpx.post(f"{provider.openai_url}/responses/compact", json=body).json()
        after = {"model": MODEL, "input": [*compacted["output"], {"role": "user", "content": "Sum up."}]}
        said = httpx.post(f"{provider.openai_url}/responses", json=after).json()

    assert [item["type"] for item in compacted["output"]] == ["message", "compaction"]
    assert SMALL.facts[SMALL.uses[0].fact] in json.dumps(said["output"])
    assert provider.totals.summaries == 2


def test_truncation_auto_drops_the_oldest_items_in_pairs() -> None:
    with Provider() as provider:
        loop = plain_agent.Responses(provider)
        body = loop.body([])
        items: list[Json] = [{"role": "user", "content": provider.ask(0)}]
        for at, use in enumerate(provider.talk.uses[:20]):
            items.append({"type": "function_call", "call_id": f"c{at}", "name": use.name, "arguments": "{}"})
            items.append({"type": "function_call_output", "call_id": f"c{at}", "output": use.output})
        refused = httpx.post(loop.url, json={**body, "input": items})
        sent = httpx.post(loop.url, json={**body, "input": items, "truncation": "auto"})

    assert (refused.status_code, sent.status_code) == (400, 200)
    assert 7_000 < sent.json()["usage"]["input_tokens"] <= 8_000
    # One token too many without the request: the oldest call goes, and its output with it.
    window = tokens_in({**body, "input": items[1:]}) - 1
    assert truncation.apply({**body, "input": items, "truncation": "auto"}, window)["input"] == items[3:]


def damaged(wire: str, damage: Callable[[list[Json]], None]) -> list[str]:
    """Return the faults of a conversation whose last request was damaged."""
    sent = 0

    def edit(messages: list[Json]) -> list[Json]:
        nonlocal sent
        sent += 1
        if sent == 10:
            damage(messages)
        return messages

    with Provider(SMALL, window=None) as provider:
        plain_agent.run(provider, wire, edit)
    faults = broken(provider)
    assert all(fault.startswith("request 9:") for fault in faults), faults
    return faults


def is_result(message: Json) -> bool:
    if any("functionResponse" in part for part in message.get("parts", ())):
        return True
    kind = message.get("type") or message.get("role")
    content = message.get("content")
    inner = content[0] if isinstance(content, list) and content else {}
    return kind in ("tool", "function_call_output") or inner.get("type") == "tool_result"


def first(messages: list[Json], wanted: Callable[[Json], bool]) -> int:
    return next(at for at, message in enumerate(messages) if wanted(message))


def newest_request(messages: list[Json]) -> int:
    return max(at for at, message in enumerate(messages) if message.get("content") in SMALL.requests)
