"""Each request reads the one before from the prompt cache of Anthropic, and of OpenAI from GPT-5.6 on: in the
daemon's own loop, and in a client with the provider's SDK."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import anthropic
import openai
import pytest

from compactd.client import Client
from tests.support.client import Daemon
from tests.support.loopback import Answer, Call, Loopback, Seen, Step
from tests.support.loopback.breakpoint_cache import BreakpointCache
from tests.support.loopback.prefix_cache import Billed, PrefixCache
from tests.support.own_loop import MODELS, TOOLS, Talk, environment
from tests.support.rules.openai_responses import problems
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


GPT = "openai-responses/gpt-5.6"
MARK = b'"prompt_cache_breakpoint"'


@dataclass
class Gpt:
    """Answers each prompt with two tool calls and then a text, and bills each request as OpenAI does."""

    now: float = 0.0
    bills: list[Billed] = field(default_factory=list)
    found: list[str] = field(default_factory=list)
    """What the API would refuse."""
    calls: int = 0

    def __post_init__(self) -> None:
        self.cache = BreakpointCache(lambda: self.now)

    def reply(self, seen: Seen) -> Step:
        body = seen.body
        billed = self.cache.bill(body)
        self.bills.append(billed)
        self.found += problems(body["input"], body.get("instructions"), body.get("tools"))
        self.now += 10
        answer = Answer(input_tokens=billed.input, cache_read=billed.read, cache_write=billed.written)
        if body["input"][-1].get("type") == "function_call_output":
            return replace(answer, text="It is done. " * 5)
        self.calls += 2
        ids = (f"call_{self.calls}", f"call_{self.calls + 1}")
        return replace(answer, calls=tuple(Call("read", id=one) for one in ids))

    @property
    def head(self) -> int:
        """The least tokens of the system prompt and the tools."""
        return len(SYSTEM) // 4


@pytest.fixture
def gpt() -> Gpt:
    return Gpt()


@pytest.fixture
def openai_server(gpt: Gpt) -> Iterator[Loopback]:
    with Loopback(reply=gpt.reply) as running:
        yield running


def test_the_own_loop_reads_system_prompt_and_tools_after_a_compaction_at_openai(
    spawn: Callable[..., Daemon], openai_server: Loopback, gpt: Gpt
) -> None:
    daemon = spawn(env=environment("openai_responses", openai_server.base_url))
    with ExitStack() as stack:
        started = daemon.call(
            "session/start",
            model=GPT,
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
        within = list(gpt.bills)
        daemon.call("session/compact", session_id=talk.id, keep_messages=4)
        talk.ask("Go on after the compaction.")
        after = gpt.bills[len(within) :]
        context = daemon.call("session/context", session_id=talk.id, format="openai_responses")
        daemon.call("session/undo", session_id=talk.id, force=True)
        talk.ask("Go on after the undo.")

    assert gpt.found == []
    assert min(shares(within)) >= MIN_SHARE
    assert min(shares(after)) >= MIN_SHARE
    # After a compaction, the tools and the system prompt are still read, and nothing else.
    assert gpt.head <= after[0].read < 2 * gpt.head
    # After an undo, what was sent before the compaction is read again.
    assert gpt.bills[len(within) + len(after)].read >= within[-1].size * MIN_SHARE
    # A client gets the system prompt as `system`, which takes no mark.
    assert context["cache"]["breakpoints"] == [{"at": "summary", "ttl": "30m"}]
    assert context["system"] == SYSTEM


@pytest.mark.parametrize("cache", ["auto", "off"])
def test_the_forecast_after_a_compaction_knows_whether_openai_still_has_the_head(
    spawn: Callable[..., Daemon], openai_server: Loopback, gpt: Gpt, cache: str
) -> None:
    daemon = spawn(env=environment("openai_responses", openai_server.base_url))
    started = daemon.call(
        "session/start",
        model=GPT,
        system_prompt=SYSTEM,
        tools=TOOLS,
        compaction={**CHARS4, "strategy": "extract", "cache": cache},
    )
    talk = Talk(daemon, started["session_id"], lambda name, arguments: {"content": "line of a file " * 150})
    for turn in range(6):
        talk.ask(f"Read file {turn}.")
    daemon.call("session/compact", session_id=talk.id, keep_messages=4)
    now = daemon.call("session/cost", session_id=talk.id)["next"]["now"]
    sent = len(gpt.bills)
    talk.ask("Go on after the compaction.")
    talk.stop()

    billed = gpt.bills[sent]
    assert (billed.read >= gpt.head) is (cache == "auto")
    # Prices of gpt-5.6 per million tokens: 4 dollars for input, 20 for output. An answer has 5 tokens.
    assert now == pytest.approx(billed.cost(4e-6) + 5 * 20e-6, rel=0.15)


def test_a_client_with_openais_sdk_reads_the_request_before_up_to_and_after_a_compaction(
    openai_server: Loopback, gpt: Gpt
) -> None:
    url = f"{openai_server.base_url}/v1"
    sdk = openai.OpenAI(api_key="key-of-the-test", base_url=url, max_retries=0)
    stable: list[tuple[int, int]] = []
    compacted = 0
    with Client() as client:
        session_id = client.session_start(
            model="openai/gpt-5.6", system_prompt=SYSTEM, tools=TOOLS, persist=False, compaction=CHARS4
        ).session_id
        for turn in range(10):
            if turn == 6:
                client.session_compact(session_id=session_id, keep_messages=4)
                compacted = len(gpt.bills)
            items: list[Any] = [{"role": "user", "content": f"Read file {turn}."}]
            while items:
                client.session_append(session_id=session_id, messages=items, format="openai_responses")
                client.turn_begin(session_id=session_id)
                request = client.session_context(session_id=session_id, format="openai_responses")
                assert request.cache
                stable.append((request.cache.stable_tokens, request.tokens))
                answer = sdk.responses.create(
                    model="gpt-5.6",
                    instructions=request.system or None,
                    input=request.plain_messages(),
                    tools=request.plain_tools(),
                )
                client.turn_end(
                    session_id=session_id,
                    # The loopback numbers the items of each answer from 0.
                    messages=[{**item.to_dict(), "id": None} for item in answer.output],
                    usage=answer.usage.to_dict() if answer.usage else {},
                    epoch=request.epoch,
                    format="openai_responses",
                )
                items = [
                    {
                        "type": "function_call_output",
                        "call_id": item.call_id,
                        "output": "line of a file " * 30,
                    }
                    for item in answer.output
                    if item.type == "function_call"
                ]

    assert gpt.found == []
    assert min(shares(gpt.bills[:compacted]) + shares(gpt.bills[compacted:])) >= MIN_SHARE
    # What the daemon calls stable is the whole request before.
    now, before = stable[1:], stable[:-1]
    pairs = [(one[0], other[1]) for one, other in zip(now, before, strict=True)]
    assert all(one == other for one, other in pairs[: compacted - 1] + pairs[compacted:])


@pytest.mark.parametrize(
    ("model", "settings"), [("openai-responses/gpt-5.5", {}), (GPT, {"cache": "off"}), ("openai/gpt-5.6", {})]
)
def test_other_models_other_apis_and_the_setting_off_get_no_breakpoints(
    spawn: Callable[..., Daemon], model: str, settings: dict[str, str]
) -> None:
    with Loopback(then=Answer(text="ok")) as server:
        daemon = spawn(env=environment("openai_responses", server.base_url))
        started = daemon.call("session/start", model=model, system_prompt="Be brief.", compaction=settings)
        talk = Talk(daemon, started["session_id"])
        talk.ask("One.")
        talk.stop()
        seen = server.requests[-1]
        context = daemon.call("session/context", session_id=talk.id, format="openai")

    # At another address than OpenAI's own, `openai` speaks Chat Completions.
    is_chat = model.startswith("openai/")
    assert seen.path == ("/v1/chat/completions" if is_chat else "/v1/responses")
    assert MARK not in seen.raw
    assert seen.body.get("instructions") == (None if is_chat else "Be brief.")
    assert context["cache"]["breakpoints"] == []
