"""Each request reads the one before from Anthropic's prompt cache: in the daemon's own loop, and in a client
with Anthropic's SDK."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from typing import Any

import anthropic
import pytest

from compactd.client import Client
from tests.support.client import Daemon
from tests.support.loopback import Answer, Call, Loopback, Seen, Step
from tests.support.loopback.prefix_cache import Billed, PrefixCache
from tests.support.own_loop import MODELS, TOOLS, Talk, environment
from tests.support.talk import CHARS4

SYSTEM = "You read files. " * 300
MIN_SHARE = 0.95
"""The least share of the request before that a request must read from the cache."""


class CachingProvider:
    """Answers each prompt with two tool calls and then a text, and bills each request."""

    def __init__(self) -> None:
        self.now = 0.0
        self.cache = PrefixCache(lambda: self.now)
        self.bills: list[Billed] = []
        self.calls = 0

    def reply(self, seen: Seen) -> Step:
        billed = self.cache.bill(seen.body)
        self.bills.append(billed)
        self.now += 10
        answer = Answer(
            input_tokens=billed.input,
            cache_read=billed.read,
            cache_write=billed.written_5m + billed.written_1h,
        )
        last = seen.body["messages"][-1]["content"]
        if any(block.get("type") == "tool_result" for block in last):
            return replace(answer, text="It is done. " * 5)
        self.calls += 2
        ids = (f"call_{self.calls}", f"call_{self.calls + 1}")
        return replace(answer, calls=tuple(Call("read", id=one) for one in ids))


@pytest.fixture
def provider() -> CachingProvider:
    return CachingProvider()


@pytest.fixture
def server(provider: CachingProvider) -> Iterator[Loopback]:
    with Loopback(reply=provider.reply) as running:
        yield running


def shares(bills: list[Billed]) -> list[float]:
    """For each request but the first, the share of the request before that was read from the cache."""
    return [now.read / before.size for before, now in pairwise(bills)]


def test_the_own_loop_reads_each_request_before_from_the_cache(
    spawn: Callable[..., Daemon], server: Loopback, provider: CachingProvider
) -> None:
    daemon = spawn(env=environment("anthropic", server.base_url))
    with ExitStack() as stack:
        started = daemon.call(
            "session/start",
            model=MODELS["anthropic"],
            system_prompt=SYSTEM,
            tools=TOOLS,
            compaction={**CHARS4, "strategy": "extract"},
        )
        talk = Talk(
            daemon, started["session_id"], lambda name, arguments: {"content": "line of a file " * 30}
        )
        stack.callback(talk.stop)
        for turn in range(12):
            assert talk.ask(f"Read file {turn}.")["type"] == "agent_end"
        daemon.call("session/configure", session_id=talk.id, compaction={"keep_messages": 4})
        talk.ask("Go on after a change of the settings.")
        within = list(provider.bills)
        daemon.call("session/compact", session_id=talk.id, keep_messages=4)
        talk.ask("Go on after the compaction.")
        after = provider.bills[len(within) :]
        daemon.call("session/undo", session_id=talk.id, force=True)
        talk.ask("Go on after the undo.")

    assert min(shares(within)) >= MIN_SHARE
    assert min(shares(after)) >= MIN_SHARE
    # After a compaction, the tools and the system prompt are still read.
    assert after[0].read >= len(SYSTEM) // 4
    # After an undo, what was sent before the compaction is read again.
    undone = provider.bills[len(within) + len(after)]
    assert undone.read >= within[-1].size * MIN_SHARE


def test_the_setting_off_marks_nothing(
    spawn: Callable[..., Daemon], server: Loopback, provider: CachingProvider
) -> None:
    daemon = spawn(env=environment("anthropic", server.base_url))
    started = daemon.call(
        "session/start",
        model=MODELS["anthropic"],
        system_prompt=SYSTEM,
        tools=TOOLS,
        compaction={"cache": "off"},
    )
    talk = Talk(daemon, started["session_id"])
    talk.ask("Read it.")
    talk.stop()
    context = daemon.call("session/context", session_id=talk.id, format="anthropic")

    assert b"cache_control" not in b"".join(seen.raw for seen in server.requests)
    assert "cache_control" not in str(context["messages"])
    assert context["cache"]["breakpoints"] == []


def test_a_client_with_the_sdk_reads_each_request_before_from_the_cache(
    server: Loopback, provider: CachingProvider
) -> None:
    sdk = anthropic.Anthropic(api_key="key-of-the-test", base_url=server.base_url, max_retries=0)
    stable: list[tuple[int, int]] = []
    with Client() as client:
        started = client.session_start(
            model="anthropic/claude-sonnet-5-5", system_prompt=SYSTEM, tools=TOOLS, persist=False
        )
        session_id = started.session_id

        def append(message: dict[str, Any]) -> None:
            client.session_append(session_id=session_id, messages=[message], format="anthropic")

        for turn in range(10):
            append({"role": "user", "content": f"Read file {turn}."})
            while True:
                client.turn_begin(session_id=session_id)
                request = client.session_context(session_id=session_id, format="anthropic")
                assert request.cache
                stable.append((request.cache.stable_tokens, request.tokens))
                answer = sdk.messages.create(
                    model="claude-sonnet-5-5",
                    max_tokens=1_000,
                    system=str(request.system),
                    messages=request.plain_messages(),
                    tools=request.plain_tools(),
                )
                client.turn_end(
                    session_id=session_id,
                    messages=[
                        {"role": "assistant", "content": [block.to_dict() for block in answer.content]}
                    ],
                    usage=answer.usage.to_dict(),
                    epoch=request.epoch,
                    format="anthropic",
                )
                calls = [block.id for block in answer.content if block.type == "tool_use"]
                if not calls:
                    break
                results = [
                    {"type": "tool_result", "tool_use_id": one, "content": "line of a file " * 30}
                    for one in calls
                ]
                append({"role": "user", "content": results})

    assert len(provider.bills) == 20
    assert min(shares(provider.bills)) >= MIN_SHARE
    # What the daemon calls stable is the whole request before.
    assert [now[0] for now in stable[1:]] == [before[1] for before in stable[:-1]]


@pytest.mark.parametrize("wire", ["openai_responses", "openai"])
def test_openai_gets_a_key_per_session_and_chat_completions_get_none(
    spawn: Callable[..., Daemon], wire: str
) -> None:
    with Loopback(then=Answer(text="ok")) as server:
        daemon = spawn(env=environment(wire, server.base_url))
        keys = []
        for _ in range(2):
            talk = Talk(daemon, daemon.call("session/start", model=MODELS[wire])["session_id"])
            talk.ask("One.")
            talk.ask("Two.")
            talk.stop()
            keys.append({seen.body.get("prompt_cache_key") for seen in server.requests[-2:]})

    if wire == "openai":
        assert keys == [{None}, {None}]
    else:
        assert [len(one) for one in keys] == [1, 1]
        assert len(keys[0] | keys[1] | {None}) == 3
