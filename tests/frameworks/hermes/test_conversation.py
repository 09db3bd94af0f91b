"""40 tool turns in a window of 8,000 tokens: what the provider receives from Hermes."""

from __future__ import annotations

from typing import Any

import pytest

from compactd.integrations.frameworks.engine import engine_of
from tests.frameworks.hermes.agents import LEAST_WINDOW, agent_of, configure, faults, have, is_summary
from tests.frameworks.support.provider import WINDOW, Provider
from tests.frameworks.support.talk import talk

CALLS = 48
"""The calls of the whole conversation."""
TWO = talk(lots=2, parts=10)


def stored_calls(session: str) -> list[str]:
    """Return the ids of all calls that a session has, compacted or not."""
    history = engine_of().demand(lambda client: client.call("session/history", {"session_id": session}))
    blocks: list[Any] = [
        block
        for entry in history["entries"]
        if entry["kind"] == "message" and isinstance(entry["message"]["content"], list)
        for block in entry["message"]["content"]
    ]
    return [block["call_id"] for block in blocks if block["type"] == "tool_call"]


def test_no_request_is_refused_and_the_session_has_everything() -> None:
    configure(context_window=WINDOW)
    with Provider(recalls=4) as provider:
        agent = agent_of(provider, "forty")
        messages = have(agent, provider)
        agent.shutdown_memory_provider(messages)

        assert faults(provider) == []
        totals = provider.totals
    assert (totals.tasks, totals.turns, totals.rejections, totals.summaries) == (5, 40, 0, 0)
    assert totals.recalls == 4
    engine = agent.context_compressor
    assert (engine.name, engine.compression_count > 1) == ("compactd", True)
    assert [at for at, message in enumerate(messages) if is_summary(message)] == [0]
    # Without a doubt: none is missing, and none is there twice, although Hermes holds only the newest.
    ids = stored_calls("hermes:forty")
    assert len(ids) == len(set(ids)) == CALLS + totals.recalls


def test_the_bill_has_every_request() -> None:
    configure(context_window=WINDOW)
    with Provider() as provider:
        agent = agent_of(provider, "billed")
        agent.shutdown_memory_provider(have(agent, provider))
        state = agent.context_compressor.session().state()

        assert state.token_usage.prompt_tokens == provider.totals.input_tokens
    assert state.compaction.count == agent.context_compressor.compression_count


@pytest.mark.parametrize("api_mode", ["chat_completions", "codex_responses"])
def test_a_refused_request_is_sent_again_with_less_in_it(api_mode: str) -> None:
    engine_of().demand(lambda client: client.models_forget(all=True))
    configure()
    with Provider(TWO) as provider:
        agent = agent_of(provider, f"refused {api_mode}", api_mode=api_mode)
        assert agent.context_compressor.threshold_tokens == int(0.8 * LEAST_WINDOW)
        have(agent, provider)

        totals = provider.totals
        found = faults(provider)
    assert (totals.tasks, totals.turns, totals.rejections) == (2, 20, 1)
    assert len(found) == 1
    learned = agent.context_compressor.threshold_tokens
    # The error of the Responses API does not say how large the window is.
    assert learned == 6_400 or (api_mode == "codex_responses" and 4_800 < learned < 8_000)


def test_hermes_own_compressor_on_the_same_script() -> None:
    """Hermes is not made for such a window. benchmarks/frameworks/with_hermes.py has 64,000 tokens, too."""
    configure("compressor")
    with Provider(TWO) as provider:
        agent = agent_of(provider)
        for request in provider.asks():
            agent.run_conversation(request)

        totals = provider.totals
    assert agent.context_compressor.name == "compressor"
    assert (totals.rejections > 0, totals.summaries > 0) == (True, True)


def test_a_person_may_ask_for_a_compaction() -> None:
    configure()
    with Provider(TWO, window=LEAST_WINDOW) as provider:
        agent = agent_of(provider, "asked")
        messages = have(agent, provider)
        # What Hermes' command `/compress` does.
        shorter, _ = agent._compress_context(messages, None, focus_topic="order numbers", force=True)
        again = agent.run_conversation("Go on.", conversation_history=shorter)

    assert len(shorter) < len(messages)
    assert is_summary(shorter[0])
    assert again["completed"]
    assert len(set(stored_calls("hermes:asked"))) >= 20
