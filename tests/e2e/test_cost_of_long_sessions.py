"""Long sessions against a provider with a prompt cache: what is read from it, the bill, and the forecast.

The daemon's own loop and clients with the providers' SDKs, with tools, changed settings, a compaction and an
undo. The provider bills each request by its documented rules (`tests/support/loopback`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median
from typing import Any

import anthropic
import openai
import pytest

from compactd.client import Client
from tests.support.client import Daemon
from tests.support.loopback import Answer, Call, Loopback, Seen, Step
from tests.support.loopback.automatic_cache import AutomaticCache
from tests.support.loopback.prefix_cache import Billed, PrefixCache
from tests.support.own_loop import MODELS, TOOLS, Talk, environment
from tests.support.talk import CHARS4

SYSTEM = "You read files and say what is in them. " * 120
MIN_SHARE = 0.95
"""The least share of the request before that is read from the cache, within an epoch."""
MAX_ERRORS = {30: 0.15, 200: 0.05}
"""By the number of turns, the largest relative error of the forecast, at the median. The size of the next
answer is not known. In a short session it is a larger part of the cost."""
MIN_TOKENS = 2_560
"""The size from which that is demanded: OpenAI reads in steps of 128 tokens, which is 5 % of it. Both
providers' minimum is 1,024 tokens."""

PRICES = {"anthropic": (3.0, 15.0), "openai_responses": (2.5, 10.0)}
"""(input, output) in dollars per million tokens, of the models in `MODELS`."""
READ = {"anthropic": 0.1, "openai_responses": 0.5}
"""The price of a read, in units of the input price. Writes: 1.25 at Anthropic; nothing extra at OpenAI."""


@dataclass
class Provider:
    """Answers each prompt with two tool calls and then a text, and bills each request."""

    wire: str
    now: float = 0.0
    bills: list[Billed] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)
    """What each request costs, in dollars."""
    calls: int = 0

    def __post_init__(self) -> None:
        kind = PrefixCache if self.wire == "anthropic" else AutomaticCache
        self.cache = kind(lambda: self.now)

    def reply(self, seen: Seen) -> Step:
        billed = self.cache.bill(seen.body)
        self.bills.append(billed)
        self.now += 10
        is_last, more = self._has_results(seen.body), len(self.bills) % 5
        text = "It has words. " * (16 + more) if is_last else "I read it. " * (12 + more)
        output = len(text) // 4 + (0 if is_last else 50)
        price, output_price = PRICES[self.wire]
        tokens = billed.input + billed.read * READ[self.wire] + billed.written_5m * 1.25
        self.costs.append((tokens * price + output * output_price) / 1e6)
        answer = Answer(
            input_tokens=billed.input,
            cache_read=billed.read,
            cache_write=billed.written_5m,
            output_tokens=output,
        )
        if is_last:
            return replace(answer, text=text)
        self.calls += 2
        ids = (f"call_{self.calls}", f"call_{self.calls + 1}")
        return replace(answer, text=text, calls=tuple(Call("read", id=one) for one in ids))

    def _has_results(self, body: dict[str, Any]) -> bool:
        """Return whether the last thing that the model is given is the result of a tool."""
        last = (body.get("input") or body["messages"])[-1]
        content = last.get("content")
        kinds = {block.get("type") for block in content} if isinstance(content, list) else {last.get("type")}
        return not kinds.isdisjoint(("tool_result", "function_call_output"))

    def shares(self, first: int, last: int) -> list[float]:
        """For each request from `first` on, the share of the request before that it read from the cache."""
        pairs = zip(self.bills[first - 1 : last - 1], self.bills[first:last], strict=True)
        return [now.read / before.size for before, now in pairs if before.size >= MIN_TOKENS]


@pytest.fixture(params=["anthropic", "openai_responses"])
def provider(request: pytest.FixtureRequest) -> Provider:
    return Provider(request.param)


@pytest.fixture
def server(provider: Provider) -> Iterator[Loopback]:
    with Loopback(reply=provider.reply) as running:
        yield running


def errors(predicted: list[float | None], billed: list[float]) -> list[float]:
    pairs = zip(predicted, billed, strict=True)
    return [abs(one - other) / other for one, other in pairs if one is not None]


FILE_LINES = "line of a file with words in it " * 12


@pytest.mark.timeout(900)
@pytest.mark.parametrize("turns", [30, 200])
def test_the_daemons_own_loop(
    spawn: Callable[..., Daemon], server: Loopback, provider: Provider, turns: int
) -> None:
    daemon = spawn(env=environment(provider.wire, server.base_url))
    epochs: list[int] = [0]
    with ExitStack() as stack:
        started = daemon.call(
            "session/start",
            model=MODELS[provider.wire],
            system_prompt=SYSTEM,
            tools=TOOLS,
            context_window=2_000_000,
            compaction={**CHARS4, "strategy": "extract", "prune": False},
        )
        talk = Talk(daemon, started["session_id"], lambda name, arguments: {"content": FILE_LINES})
        stack.callback(talk.stop)

        def ask(first: int, last: int) -> None:
            for turn in range(first, last):
                assert talk.ask(f"Read file {turn}.")["type"] == "agent_end"
                if turn % 10 == 3:
                    daemon.call(
                        "session/configure", session_id=talk.id, compaction={"keep_messages": 4 + turn % 3}
                    )
            epochs.append(len(provider.bills))

        third = turns // 3
        ask(0, third)
        daemon.call("session/compact", session_id=talk.id, keep_messages=4)
        ask(third, 2 * third)
        daemon.call("session/undo", session_id=talk.id, force=True)
        ask(2 * third, turns)

    for first, last in pairwise(epochs):
        assert min(provider.shares(first + 1, last)) >= MIN_SHARE
    bill = daemon.call("session/cost", session_id=talk.id)
    assert bill["billed"] == pytest.approx(sum(provider.costs), abs=1e-5)
    assert bill["requests"] == len(provider.costs) == 2 * turns
    causes = [one["cause"] for one in bill["rebuilds"]]
    assert set(causes) <= {"compaction", "messages"}
    text = daemon.call("session/export", session_id=talk.id, format="compactd")["content"]
    records = [json.loads(line) for line in text.splitlines()]
    predicted = [record.get("predicted") for record in records if record["type"] == "usage"]
    assert None not in predicted
    assert bill["predicted"] == pytest.approx(sum(predicted))
    assert median(errors(predicted, provider.costs)) <= MAX_ERRORS[turns]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("turns", [30, 200])
def test_a_client_with_the_providers_sdk(server: Loopback, provider: Provider, turns: int) -> None:
    ask = _anthropic(server) if provider.wire == "anthropic" else _openai(server)
    format = provider.wire
    predicted: list[float | None] = []
    epochs: list[int] = [0]
    with Client() as client:
        session_id = client.session_start(
            model=MODELS[provider.wire],
            system_prompt=SYSTEM,
            tools=TOOLS,
            context_window=2_000_000,
            persist=False,
            compaction={**CHARS4, "prune": False},
        ).session_id
        for turn in range(turns):
            if turn == turns // 3:
                client.session_compact(session_id=session_id, keep_messages=4)
                epochs.append(len(provider.bills))
            if turn == 2 * turns // 3:
                client.session_undo(session_id=session_id, force=True)
                epochs.append(len(provider.bills))
            if turn % 10 == 3:
                client.session_configure(session_id=session_id, compaction={"keep_messages": 4 + turn % 3})
            user = {"role": "user", "content": [{"type": "text", "text": f"Read file {turn}."}]}
            client.session_append(session_id=session_id, messages=[user], format="neutral")
            calls = ["first"]
            while calls:
                client.turn_begin(session_id=session_id)
                context = client.session_context(session_id=session_id, format=format)
                predicted.append(client.session_cost(session_id=session_id).next.now)
                messages, usage, calls = ask(context)
                client.turn_end(
                    session_id=session_id,
                    messages=messages,
                    usage=usage,
                    epoch=context.epoch,
                    format=format,
                )
                results = [
                    {
                        "role": "tool",
                        "content": [{"type": "tool_result", "call_id": one, "content": FILE_LINES}],
                    }
                    for one in calls
                ]
                if results:
                    client.session_append(session_id=session_id, messages=results, format="neutral")
        bill = client.session_cost(session_id=session_id)
    epochs.append(len(provider.bills))

    for first, last in pairwise(epochs):
        assert min(provider.shares(first + 1, last)) >= MIN_SHARE
    assert bill.billed == pytest.approx(sum(provider.costs), abs=1e-5)
    assert len(provider.costs) == 2 * turns
    assert median(errors(predicted, provider.costs)) <= MAX_ERRORS[turns]


Ask = Callable[[Any], tuple[list[Any], dict[str, Any], list[str]]]
"""Sends a context to the provider. Returns (messages, usage, ids of calls)."""


def _anthropic(server: Loopback) -> Ask:
    sdk = anthropic.Anthropic(api_key="key-of-the-test", base_url=server.base_url, max_retries=0)

    def ask(context: Any) -> tuple[list[Any], dict[str, Any], list[str]]:
        answer = sdk.messages.create(
            model="claude-sonnet-5-5",  # the SDK warns of older ones; the loopback has one price
            max_tokens=1_000,
            system=str(context.system),
            messages=context.plain_messages(),
            tools=context.plain_tools(),
        )
        message = {"role": "assistant", "content": [block.to_dict() for block in answer.content]}
        calls = [block.id for block in answer.content if block.type == "tool_use"]
        return [message], answer.usage.to_dict(), calls

    return ask


def _openai(server: Loopback) -> Ask:
    sdk = openai.OpenAI(api_key="key-of-the-test", base_url=f"{server.base_url}/v1", max_retries=0)

    def ask(context: Any) -> tuple[list[Any], dict[str, Any], list[str]]:
        answer = sdk.responses.create(
            model="gpt-4o",
            instructions=str(context.system),
            input=context.plain_messages(),
            tools=context.plain_tools(),
        )
        # The loopback numbers the items of each answer from 0.
        items = [{**item.to_dict(), "id": None} for item in answer.output]
        calls = [item.call_id for item in answer.output if item.type == "function_call"]
        return items, answer.usage.to_dict() if answer.usage else {}, calls

    return ask
