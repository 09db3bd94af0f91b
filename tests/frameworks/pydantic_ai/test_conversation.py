"""40 tool turns in a window of 8,000 tokens: what the provider receives, for each of its formats."""

from __future__ import annotations

import pytest
from pydantic_ai import messages as pai
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.run import AgentRunResult

from compactd.integrations.frameworks.engine import engine_of
from compactd.integrations.frameworks.history import Setup
from compactd.integrations.frameworks.pydantic_ai import CompactdCapability, compactd_history_processor
from compactd.integrations.frameworks.pydantic_ai.messages import units_of
from compactd.integrations.frameworks.pydantic_ai.shown import shown_history
from tests.frameworks.pydantic_ai.agents import (
    WIRES,
    agent_of,
    calls,
    have,
    is_summary,
    results,
    summaries,
)
from tests.frameworks.support.laws import broken
from tests.frameworks.support.provider import WINDOW, Provider
from tests.frameworks.support.talk import talk

CALLS = 48
"""The calls of the whole conversation."""


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("wire", WIRES)
def test_no_request_is_refused_and_the_history_stays_whole(wire: str, streams: bool) -> None:
    with Provider(recalls=4) as provider:
        capability = CompactdCapability(context_window=WINDOW)
        result = have(agent_of(wire, provider, capability), provider, streams=streams)

        assert broken(provider, is_summary) == []
        totals = provider.totals
    assert (totals.tasks, totals.turns, totals.rejections, totals.summaries) == (5, 40, 0, 0)
    messages = result.all_messages()
    assert len(calls(messages)) == len(results(messages)) == CALLS + totals.recalls
    assert summaries(messages) == []


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("wire", WIRES)
def test_a_rejected_request_is_sent_again_with_less_in_it(wire: str, streams: bool) -> None:
    engine_of().demand(lambda client: client.models_forget(all=True))
    with Provider() as provider:
        result = have(agent_of(wire, provider, CompactdCapability()), provider, streams=streams)

        totals = provider.totals
        faults = broken(provider, is_summary)
    assert (totals.tasks, totals.turns) == (5, 40)
    assert len(faults) == totals.rejections
    # The error of the Responses API does not say how large the window is.
    assert totals.rejections == 1 or (wire == "responses" and totals.rejections > 1)
    assert len(results(result.all_messages())) == CALLS


def test_a_persistent_view_replaces_the_history() -> None:
    with Provider(recalls=4) as provider:
        capability = CompactdCapability(context_window=WINDOW, persistent=True)
        result = have(agent_of("chat", provider, capability), provider)

        assert broken(provider, is_summary) == []
        assert (provider.totals.turns, provider.totals.recalls) == (40, 4)
    messages = result.all_messages()
    assert len(summaries(messages)) == 1
    assert len(results(messages)) < CALLS
    name, value = next(iter(provider.talk.facts.items()))
    assert f"{name}: {value}" in capability.session(result).recall(value, ())


def test_the_history_processor_keeps_requests_in_the_window() -> None:
    with Provider() as provider:
        processor = ProcessHistory(compactd_history_processor(context_window=WINDOW))
        result = have(agent_of("chat", provider, processor), provider)

        assert broken(provider, is_summary) == []
        assert provider.totals.turns == 40
    assert len(summaries(result.all_messages())) == 1


def test_the_bill_and_the_compactions_are_in_the_session() -> None:
    with Provider() as provider:
        capability = CompactdCapability(context_window=WINDOW)
        result = have(agent_of("chat", provider, capability), provider)

        usage = capability.session(result).state().token_usage
        assert usage.prompt_tokens == provider.totals.input_tokens
    assert usage.epoch > 1


def test_an_undone_compaction_gives_the_messages_back() -> None:
    with Provider(talk(lots=1), window=None) as provider:
        small = CompactdCapability(context_window=5_000, session_id="undone", persist=False)
        result = have(agent_of("chat", provider, small), provider)
        compacted = results(view_of(small, result))
        small.session("undone").undo(force=True)
        undone = results(view_of(small, result))

    assert len(compacted) < len(undone) <= len(results(result.all_messages()))


def view_of(capability: CompactdCapability[None], result: AgentRunResult[str]) -> list[pai.ModelMessage]:
    """Return what the session shows of a finished run."""
    units = units_of(result.all_messages())
    view = capability.session(result).prepare(units.history(), Setup(context_window=1_000_000))
    assert view is not None
    return shown_history(units, view.items)
