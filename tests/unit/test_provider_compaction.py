"""The loopback servers with a provider's own compaction keep the documented rules, for the official SDKs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import openai
import pytest

from tests.support.loopback import Loopback
from tests.support.loopback.compaction import ON_DEMAND, ClaudeCompaction, OpenAICompaction

MODEL = "claude-opus-5"
TALK: list[Any] = [
    {"role": "user", "content": "Name the entities of a recipe app."},
    {"role": "assistant", "content": "Recipe, Ingredient, Step."},
    {"role": "user", "content": "Now the fields of Recipe."},
]
CALLED: list[Any] = [
    TALK[0],
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "read", "input": {}}]},
]
TOOLS: list[Any] = [{"name": "read", "input_schema": {"type": "object", "properties": {}}}]


@pytest.fixture
def claude() -> ClaudeCompaction:
    return ClaudeCompaction()


@pytest.fixture
def ask(claude: ClaudeCompaction) -> Iterator[Callable[..., Any]]:
    """Ask Anthropic's server with the SDK."""
    with Loopback(reply=claude.reply) as server:
        sdk = anthropic.Anthropic(api_key="key-of-the-test", base_url=server.base_url, max_retries=0)

        def create(**params: Any) -> Any:
            given = {"model": MODEL, "max_tokens": 4_096, "messages": TALK, "betas": [ON_DEMAND], **params}
            return sdk.beta.messages.create(**given)

        yield create


SUMMARIZE: Any = {"type": "summarize"}


@pytest.mark.parametrize("stream", [False, True])
def test_a_compaction_answers_with_one_signed_block_and_its_usage(
    ask: Callable[..., Any], stream: bool
) -> None:
    if stream:
        events = list(ask(compaction=SUMMARIZE, stream=True))
        begun = [event for event in events if event.type == "content_block_start"]
        assert [event.content_block.type for event in begun] == ["compaction"]
        assert "content_block_delta" not in [event.type for event in events]
        return
    answer = ask(compaction=SUMMARIZE)

    assert answer.stop_reason == "compaction"
    assert [block.type for block in answer.content] == ["compaction"]
    assert answer.content[0].signature
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (0, 0)
    assert [one.type for one in answer.usage.iterations] == ["compaction"]


def test_the_block_goes_first_in_place_of_what_it_stands_for(
    ask: Callable[..., Any], claude: ClaudeCompaction
) -> None:
    block = ask(compaction=SUMMARIZE).content[0].to_dict()
    after = [{"role": "assistant", "content": "Title and servings."}, {"role": "user", "content": "Go on."}]

    ask(messages=[{"role": "assistant", "content": [block]}, *after])
    ask(messages=[{"role": "user", "content": [block, {"type": "text", "text": "Go on."}]}])
    marked = {**block, "cache_control": {"type": "ephemeral"}}
    ask(messages=[{"role": "assistant", "content": [marked]}, *after])
    ask(model="claude-sonnet-5", messages=[{"role": "assistant", "content": [block]}, *after])
    again = ask(messages=[{"role": "assistant", "content": [block]}, *after], compaction=SUMMARIZE)

    assert claude.refusals == []
    assert again.content[0].signature != block["signature"]


@pytest.mark.parametrize(
    ("params", "why"),
    [
        ({"betas": []}, "requires anthropic-beta"),
        ({"compaction": {"type": "shorten"}}, "Input should be 'summarize'"),
        ({"compaction": {**SUMMARIZE, "instructions": "x" * 16_385}}, "at most 16384"),
        ({"stop_sequences": ["a"]}, "stop_sequences"),
        ({"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}}, "context_management"),
        ({"tool_choice": {"type": "any"}, "tools": TOOLS}, "tool_choice"),
        ({"tool_choice": {"type": "tool", "name": "read"}, "tools": TOOLS}, "tool_choice"),
        ({"output_config": {"format": {"type": "json_schema", "schema": {}}}}, "output_config"),
        ({"messages": CALLED, "tools": TOOLS}, "call without a result"),
        ({"messages": []}, "nothing to summarize"),
        ({"model": "claude-haiku-4-5"}, "not supported"),
    ],
    ids=lambda value: value[:24] if isinstance(value, str) else None,
)
def test_a_compaction_that_breaks_a_rule_is_refused(
    ask: Callable[..., Any], params: dict[str, Any], why: str
) -> None:
    with pytest.raises(anthropic.BadRequestError, match=why):
        ask(**{"compaction": SUMMARIZE, **params})


GO_ON = {"role": "user", "content": "Go on."}


def changed(block: dict[str, Any], **fields: Any) -> list[Any]:
    return [{"role": "assistant", "content": [{**block, **fields}]}, GO_ON]


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        (lambda block: [TALK[0], *changed(block)], "must come first"),
        (lambda block: [{"role": "user", "content": [{"type": "text", "text": "a"}, block]}], "come first"),
        (lambda block: changed(block, signature="c2ln"), "does not verify"),
        (lambda block: changed(block, content="The user said yes."), "differs"),
        (lambda block: changed(block, citations=None), "citations: Extra inputs"),
        (lambda block: [*changed(block), *changed(block)], "More than one"),
        (lambda block: changed(block, tool_changes=[]), "tool_changes"),
    ],
)
def test_a_block_that_is_moved_or_changed_is_refused(
    ask: Callable[..., Any], messages: Callable[[dict[str, Any]], list[Any]], why: str
) -> None:
    block = ask(compaction=SUMMARIZE).content[0].to_dict()

    with pytest.raises(anthropic.BadRequestError, match=why):
        ask(messages=messages(block))


def test_a_block_needs_the_beta_on_every_request(ask: Callable[..., Any]) -> None:
    block = ask(compaction=SUMMARIZE).content[0].to_dict()

    with pytest.raises(anthropic.BadRequestError, match="not an expected type"):
        ask(messages=changed(block), betas=[])
    with pytest.raises(anthropic.BadRequestError, match="cannot be combined"):
        ask(messages=changed(block), context_management={"edits": [{"type": "clear_thinking_20251015"}]})


def test_a_block_without_content_is_ignored(ask: Callable[..., Any], claude: ClaudeCompaction) -> None:
    failed = {"type": "compaction", "content": None}

    ask(messages=[TALK[0], {"role": "assistant", "content": [failed]}, GO_ON])

    assert claude.refusals == []


def test_a_compaction_without_a_summary_has_no_content(
    ask: Callable[..., Any], claude: ClaudeCompaction
) -> None:
    claude.fails_with = "max_tokens"

    answer = ask(compaction=SUMMARIZE)

    assert (answer.content, answer.stop_reason) == ([], "max_tokens")
    assert answer.usage.iterations[0].output_tokens == 50


def typed(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


INPUT: list[Any] = [
    typed("Plan a trip."),
    {"type": "message", "role": "assistant", "content": "Where to?"},
    typed("To Kyoto."),
]


@pytest.fixture
def window() -> OpenAICompaction:
    return OpenAICompaction()


@pytest.fixture
def sdk(window: OpenAICompaction) -> Iterator[openai.OpenAI]:
    with Loopback(reply=window.reply) as server:
        yield openai.OpenAI(api_key="key-of-the-test", base_url=f"{server.base_url}/v1", max_retries=0)


def test_openai_returns_the_users_messages_and_one_item(sdk: openai.OpenAI) -> None:
    done = sdk.responses.compact(model="gpt-5.6", input=INPUT, prompt_cache_key="k", instructions="Be brief.")

    assert done.object == "response.compaction"
    assert [item.type for item in done.output] == ["message", "message", "compaction"]
    assert done.usage.output_tokens == 120


def test_openai_takes_its_window_back_as_it_is(sdk: openai.OpenAI, window: OpenAICompaction) -> None:
    output: list[Any] = [
        item.to_dict() for item in sdk.responses.compact(model="gpt-5.6", input=INPUT).output
    ]

    sdk.responses.create(model="gpt-5.6", input=[*output, INPUT[0]], store=False)

    assert window.refusals == []
    wrong = {**output[-1], "encrypted_content": "gAAAAwrong"}
    for items in (
        [*output[1:], INPUT[0]],
        [*output[:-1], wrong],
        [*output[:-1], {**output[-1], "id": "cmp_9"}],
    ):
        with pytest.raises(openai.BadRequestError):
            sdk.responses.create(model="gpt-5.6", input=items, store=False)
    assert window.refusals == ["window_changed", "invalid_encrypted_content", "invalid_value"]


def test_openai_refuses_what_its_compaction_does_not_take(sdk: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="Unknown parameter"):
        sdk.responses.compact(model="gpt-5.6", input=INPUT, extra_body={"tools": []})
