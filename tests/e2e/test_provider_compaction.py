"""Strategy `provider`: the provider's own compaction goes round, and nothing else ever sees its result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.client import Daemon
from tests.support.loopback import Loopback, Seen, Step
from tests.support.loopback.compaction import ClaudeCompaction, OpenAICompaction
from tests.support.own_loop import TOOLS, Talk, environment
from tests.support.talk import CHARS4, turns, user

Spawn = Callable[..., Daemon]
Provider = ClaudeCompaction | OpenAICompaction

MODELS = {"anthropic": "anthropic/claude-opus-5", "openai_responses": "openai-responses/gpt-5.6"}
OTHERS = {"anthropic": "openai-responses/gpt-5.6", "openai_responses": "anthropic/claude-opus-5"}
SECRET = "hunter2-8f1c"
WIRES = tuple(MODELS)


class World:
    """Both providers behind one address, and a daemon that knows them."""

    def __init__(self, stack: ExitStack, spawn: Spawn, wire: str) -> None:
        self.claude, self.openai = ClaudeCompaction(), OpenAICompaction()
        self.server = stack.enter_context(Loopback(reply=self._reply))
        self.own: Provider = self.claude if wire == "anthropic" else self.openai
        self.other: Provider = self.openai if wire == "anthropic" else self.claude
        self.wire, self.model = wire, MODELS[wire]
        self._spawn, self._stack = spawn, stack
        self.daemon = self.start()

    def start(self) -> Daemon:
        env = {
            **environment("anthropic", self.server.base_url),
            **environment("openai_responses", self.server.base_url),
        }
        self.daemon = self._spawn(env=env)
        return self.daemon

    def talk(self, **settings: Any) -> Talk:
        """A session of the daemon's own loop with a long past."""
        compaction = {**CHARS4, "strategy": "provider", **settings}
        started = self.daemon.call(
            "session/start",
            model=self.model,
            system_prompt="You work on a parser.",
            tools=TOOLS,
            compaction=compaction,
            context_window=100_000,
        )
        talk = self.open(str(started["session_id"]))
        past = [user(20), {"role": "assistant", "content": f"The password is {SECRET}."}, *turns(15, 400)]
        self.daemon.call("session/append", session_id=talk.id, messages=past)
        assert talk.ask("Go on.")["type"] == "agent_end"
        return talk

    def open(self, session_id: str) -> Talk:
        talk = Talk(self.daemon, session_id)
        self._stack.callback(talk.stop)
        return talk

    def compact(self, talk: Talk, **params: Any) -> dict[str, Any]:
        return self.daemon.call("session/compact", session_id=talk.id, **{"keep_recent": 1_000, **params})

    def next(self, talk: Talk) -> dict[str, Any]:
        """The body of the session's next request."""
        assert talk.ask("And now?")["type"] == "agent_end"
        assert (self.claude.refusals, self.openai.refusals) == ([], [])
        return self.server.requests[-1].body

    def context(self, talk: Talk, format: str | None = None) -> dict[str, Any]:
        return self.daemon.call("session/context", session_id=talk.id, format=format or self.wire)

    def _reply(self, seen: Seen) -> Step:
        return (self.claude if seen.wire == "anthropic" else self.openai).reply(seen)


@pytest.fixture(params=WIRES)
def world(request: pytest.FixtureRequest, spawn: Spawn) -> Iterator[World]:
    with ExitStack() as stack:
        yield World(stack, spawn, request.param)


def blocks(body: dict[str, Any]) -> list[Any]:
    """The provider's own summaries in a request, each without the mark for the cache."""
    items = [*body.get("input", []), *(block for one in body.get("messages", []) for block in parts(one))]
    found = [one for one in items if one.get("type") == "compaction"]
    return [{name: value for name, value in one.items() if name != "cache_control"} for one in found]


def parts(message: dict[str, Any]) -> list[Any]:
    content = message["content"]
    return content if isinstance(content, list) else []


def issued(world: World, at: int = -1) -> list[Any]:
    """What the provider returned."""
    if isinstance(world.own, ClaudeCompaction):
        return [list(world.own.blocks.values())[at]]
    return list(world.own.windows.values())[at]


def test_the_providers_summary_takes_the_place_of_what_it_stands_for(world: World) -> None:
    talk = world.talk()
    before = len(world.server.requests)

    done = world.compact(talk)

    assert (done["compacted"], done["strategy"], done["reason"]) == (True, "provider", "")
    assert done["model"] == world.model
    assert len(world.server.requests) == before + 1
    assert done["usage"]["input_tokens"] == world.server.requests[-1].tokens
    assert done["usage"]["output_tokens"] > 0
    # The portable summary is always there.
    assert "## " in done["summary"]
    body = world.next(talk)
    assert blocks(body) == issued(world)[-1:]
    start = body.get("input") or body["messages"]
    if world.wire == "anthropic":
        assert start[0]["role"] == "assistant"
        assert blocks({"messages": start[:1]}) == issued(world)
        assert world.server.requests[-1].headers["anthropic-beta"] == "compact-2026-09-04"
    else:
        assert start[: len(issued(world))] == issued(world)
    assert done["summary"].splitlines()[0] not in str(body)


def test_the_size_counts_the_summary_and_not_what_it_cost(world: World) -> None:
    talk = world.talk()

    done = world.compact(talk)

    usage = world.daemon.call("agent/state", session_id=talk.id)["token_usage"]
    assert usage["total_tokens"] < done["tokens_before"] + 200  # the loop's own answers alone
    assert world.context(talk)["tokens"] == done["tokens_after"]
    assert done["tokens_after"] < done["tokens_before"]


def test_the_next_compaction_sends_the_block_and_only_the_newest_stays(world: World) -> None:
    talk = world.talk()
    world.compact(talk)
    world.daemon.call("session/append", session_id=talk.id, messages=[*turns(8, 400), user(10)])

    done = world.compact(talk)

    assert done["strategy"] == "provider"
    assert blocks(world.own.compactions[-1]) == issued(world, 0)[-1:]
    assert blocks(world.next(talk)) == issued(world)[-1:]


def test_undo_brings_the_messages_back_and_redo_the_block(world: World) -> None:
    talk = world.talk()
    before = world.context(talk)["messages"]
    world.compact(talk)
    compacted = world.context(talk)["messages"]

    world.daemon.call("session/undo", session_id=talk.id, force=True)
    assert world.context(talk)["messages"] == before
    assert blocks(world.next(talk)) == []
    world.daemon.call("session/redo", session_id=talk.id)

    assert world.context(talk)["messages"][: len(compacted) - 1] == compacted[:-1]
    assert blocks(world.next(talk)) == issued(world)[-1:]


def test_another_provider_gets_the_portable_summary_until_the_switch_back(world: World) -> None:
    talk = world.talk()
    done = world.compact(talk)

    world.daemon.call("model/set", session_id=talk.id, model=OTHERS[world.wire])
    elsewhere = world.next(talk)
    world.daemon.call("model/set", session_id=talk.id, model=world.model)

    assert blocks(elsewhere) == []
    first = (elsewhere.get("input") or elsewhere["messages"])[0]
    assert parts(first)[0]["text"] == done["summary"]
    assert blocks(world.next(talk)) == issued(world)[-1:]


@pytest.mark.parametrize(
    ("model", "takes_it"),
    [
        ("anthropic/claude-sonnet-5", True),
        ("anthropic/claude-haiku-4-5", False),
        ("openai-responses/gpt-5.5", False),
    ],
)
def test_another_model_of_the_provider_gets_the_block_only_if_the_documents_say_so(
    spawn: Spawn, model: str, takes_it: bool
) -> None:
    with ExitStack() as stack:
        world = World(stack, spawn, "anthropic" if model.startswith("anthropic") else "openai_responses")
        talk = world.talk()
        world.compact(talk)

        world.daemon.call("model/set", session_id=talk.id, model=model)

        assert bool(blocks(world.next(talk))) == takes_it


def test_a_redaction_drops_the_block_for_good(world: World, home: Path) -> None:
    talk = world.talk()
    world.own.summary = f"The password is {SECRET}." if isinstance(world.own, ClaudeCompaction) else ""
    world.compact(talk)
    secret = world.daemon.call("session/search", session_id=talk.id, query=SECRET)["hits"][0]["entry_id"]

    cleaned = world.daemon.call("session/redact", session_id=talk.id, entry_ids=[secret])

    assert "provider summary" in [one["where"] for one in cleaned["cleaned"]]
    body = world.next(talk)
    assert blocks(body) == []
    assert SECRET not in str(body)
    journals = [one.read_text() for one in home.rglob("*.jsonl")]
    assert journals
    assert not any(SECRET in text or '"signature"' in text or "gAAAA" in text for text in journals)


def test_a_redaction_of_a_kept_message_leaves_the_block(world: World) -> None:
    talk = world.talk()
    world.compact(talk)
    newest = world.daemon.call("session/history", session_id=talk.id, in_context=True)["entries"][-1]

    world.daemon.call("session/redact", session_id=talk.id, entry_ids=[newest["entry_id"]])

    assert blocks(world.next(talk)) == issued(world)[-1:]


def test_a_restart_of_the_daemon_keeps_the_block(world: World) -> None:
    talk = world.talk()
    done = world.compact(talk)
    before = world.context(talk)
    world.daemon.stop()

    daemon = world.start()
    daemon.call("session/start", session_id=talk.id)
    talk = world.open(talk.id)

    assert world.context(talk)["messages"] == before["messages"]
    assert world.context(talk)["tokens"] == before["tokens"] == done["tokens_after"]
    assert daemon.call("agent/state", session_id=talk.id)["compaction"]["last"]["strategy"] == "provider"
    world.next(talk)
    assert blocks(world.server.requests[-1].body) == issued(world)[-1:]


def test_an_import_takes_the_portable_summary_and_says_so(world: World, tmp_path: Path) -> None:
    talk = world.talk()
    done = world.compact(talk)
    path = tmp_path / "exported.jsonl"
    world.daemon.call("session/export", session_id=talk.id, format="compactd", path=str(path))

    copy = world.daemon.call("session/import", path=str(path))

    assert any("only a provider can read" in warning for warning in copy["warnings"])
    other = world.open(str(copy["session_id"]))
    messages = world.context(other)["messages"]
    assert blocks({"messages": messages} if world.wire == "anthropic" else {"input": messages}) == []
    assert parts(messages[0])[0]["text"] == done["summary"]
