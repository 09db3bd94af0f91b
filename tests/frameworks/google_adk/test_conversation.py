"""40 tool turns in a window of 8,000 tokens: what the provider of Gemini's format receives."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.apps.app import EventsCompactionConfig
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import InMemoryRunner

from compactd.integrations.frameworks.engine import engine_of
from compactd.integrations.frameworks.google_adk import CompactdPlugin, CompactdSummarizer
from tests.frameworks.google_adk.agents import ask, calls, gemini, have, new_session, results, stored
from tests.frameworks.support.laws import broken
from tests.frameworks.support.provider import WINDOW, Provider
from tests.frameworks.support.talk import SYSTEM, TOOLS, talk

CALLS = 48
"""The calls of the whole conversation."""


@pytest.mark.parametrize("streams", [False, True])
def test_no_request_is_refused_and_the_session_stays_whole(streams: bool) -> None:
    plugin = CompactdPlugin(context_window=WINDOW)
    with Provider(recalls=4) as provider:
        session = have(provider, plugin, streams=streams)

        assert broken(provider) == []
        totals = provider.totals
    assert (totals.tasks, totals.turns, totals.rejections, totals.summaries) == (5, 40, 0, 0)
    assert totals.recalls == 4
    contents = [event.content for event in session.events]
    assert len(calls(contents)) == len(results(contents)) == CALLS + 4
    state = plugin.session(session).state()
    assert state.compaction.count >= 5
    # What the provider billed is in the session, that of the last answer too.
    assert state.token_usage.prompt_tokens == totals.input_tokens


@pytest.mark.parametrize("streams", [False, True])
def test_a_rejected_request_is_sent_again_with_less_in_it(streams: bool) -> None:
    engine_of().demand(lambda client: client.models_forget(all=True))
    plugin = CompactdPlugin()
    with Provider() as provider:
        session = have(provider, plugin, streams=streams)

        totals = provider.totals
        faults = broken(provider)
    assert (totals.tasks, totals.turns, totals.rejections) == (5, 40, 1)
    assert len(faults) == 1
    assert len(results([event.content for event in session.events])) == CALLS
    assert plugin.session(session).state().token_usage.prompt_tokens == totals.input_tokens


def test_an_instruction_that_adk_puts_into_contents_is_no_part_of_the_conversation() -> None:
    """With a static instruction, ADK sends the other one as a user's content, each time in another place."""
    plugin = CompactdPlugin(context_window=WINDOW)
    with Provider() as provider:
        session = have(
            provider, plugin, static_instruction=SYSTEM, instruction="Lot {lot?} is being inspected."
        )

        assert broken(provider) == []
        assert (provider.totals.turns, provider.totals.rejections) == (40, 0)
        placed = [
            [at for at, content in enumerate(seen.body["contents"]) if "Lot  is being" in str(content)]
            for seen in provider.requests
        ]
        sizes = [len(seen.body["contents"]) for seen in provider.requests]
    # It is in each request once, at the end or before the user's newest words.
    assert all(len(one) == 1 and one[0] >= size - 2 for one, size in zip(placed, sizes, strict=True))
    history = engine_of().demand(
        lambda client: client.session_history(session_id=plugin.session(session).name)
    )
    assert SYSTEM[:20] not in (everything := msgspec.json.encode(history).decode())
    assert "is being inspected" not in everything
    assert "Lot 2: inspect parts" in everything
    # No branch: each message is in the session once.
    assert plugin.session(session).state().compaction.count >= 5
    assert sum(entry.kind == "branch" for entry in history.entries) == 0


def test_the_summarizer_of_adks_own_compaction_asks_no_model() -> None:
    async def conversation(provider: Provider) -> Any:
        config = EventsCompactionConfig(
            summarizer=CompactdSummarizer(), token_threshold=5_000, event_retention_size=4
        )
        async with gemini(provider) as model:
            agent = LlmAgent(name="inspector", model=model, instruction=SYSTEM, tools=list(TOOLS))
            app = App(name="an_app", root_agent=agent, events_compaction_config=config)
            runner = InMemoryRunner(app=app)
            session = await new_session(runner)
            for words in provider.asks():
                await ask(runner, session, words)
            return await stored(runner.session_service, session)

    with Provider() as provider:
        session = asyncio.run(conversation(provider))
    totals = provider.totals
    assert (totals.tasks, totals.summaries, totals.rejections) == (5, 0, 0)
    summaries = [each.actions.compaction for each in session.events if each.actions.compaction]
    assert summaries
    assert summaries[0].compacted_content.role == "model"
    assert "Lot 1: inspect parts" in summaries[0].compacted_content.parts[0].text


def test_a_run_without_the_plugin_is_refused() -> None:
    """What the tests above would show if the plugin did nothing."""

    class Nothing(BasePlugin):
        pass

    with Provider() as provider, pytest.raises(Exception, match="exceeds the maximum number of tokens"):
        have(provider, Nothing("nothing"))
    assert provider.totals.rejections == 1


def test_an_undone_compaction_gives_the_contents_back() -> None:
    plugin = CompactdPlugin(context_window=5_000)
    with Provider(talk(lots=1), window=None) as provider:
        session = have(provider, plugin)
    mirror = plugin.session(session)
    before = mirror.state()
    mirror.undo(force=True)
    after = mirror.state()
    assert before.compaction.count >= 1
    assert (after.token_usage.current_context_tokens or 0) > (before.token_usage.current_context_tokens or 0)
