"""What providers report of a request, in every shape they use, as one `Usage`.

The shapes are told apart by their keys. What matters most is whether the reported input includes what
came from the cache: OpenAI's, Gemini's and the AI SDK's does, Anthropic's, Bedrock's, pi's and ours does not.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Raw

from compactd.protocol.errors import InvalidParams
from compactd.protocol.messages import Usage

MAX_TOKENS = 2**53
"""Largest number of tokens that is believed: beyond it JSON numbers are no longer exact everywhere."""

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


class Billing:
    """Sums over all usage reports of a session. Tokens; they decide nothing."""

    def __init__(self) -> None:
        self.prompt = 0
        self.completion = 0
        self.cache_read = 0
        self.cache_write = 0
        self.reasoning = 0

    def add(self, usage: Usage) -> None:
        """Takes one report in."""
        self.prompt += context_size(usage)
        self.completion += usage.output_tokens
        self.cache_read += usage.cache_read_tokens
        self.cache_write += usage.cache_write_tokens
        self.reasoning += usage.reasoning_tokens


def context_size(usage: Usage) -> int:
    """Tokens that the request took in the window: input, cache read, cache write. 0 is no measurement."""
    return usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens


def visible_output(usage: Usage) -> int:
    """Tokens of the answer that stay in the conversation: output without reasoning."""
    return max(0, usage.output_tokens - usage.reasoning_tokens)


def normalise(raw: bytes | Raw, path: str = "$.usage") -> tuple[Usage, bool]:
    """A provider's usage object as ours, and whether it named the output (0 is named, null is not).

    Input comes back without cache, output with reasoning. A field that is missing or null counts 0, so an
    object that names nothing gives `Usage()`: a report whose `context_size` is 0 says nothing of the size.
    Raises `InvalidParams` with the path of the field, below `path`, for what is no object, and for a
    number that is negative, broken, above `MAX_TOKENS`, or no number.
    """
    try:
        value: Json = msgspec.json.decode(raw)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise InvalidParams("the usage report is no JSON", path) from error
    if not isinstance(value, dict):
        raise InvalidParams("a usage report is an object", path)
    fields = _Fields(value, path)
    if fields.has("promptTokenCount", "candidatesTokenCount", "prompt_token_count", "candidates_token_count"):
        return _gemini(fields)
    if fields.has("prompt_eval_count", "eval_count"):
        return _result(fields, fields.number("prompt_eval_count"), fields.number("eval_count"))
    if fields.has("prompt_tokens", "completion_tokens"):
        return _openai_chat(fields)
    if fields.has("inputTokens", "outputTokens"):
        return _camel(fields)
    if fields.has("input", "output"):
        return _pi_or_opencode(fields)
    return _input_tokens(fields)


def is_report(raw: bytes | Raw) -> bool:
    """Whether a usage object that normalises to nothing has a field of one of the shapes, if only as null."""
    names = msgspec.json.decode(raw, type=dict[str, Raw]).keys()
    return not names or not names.isdisjoint(_NAMES)


_NAMES = frozenset(
    (
        *("input_tokens", "output_tokens", "prompt_tokens", "completion_tokens", "total_tokens"),
        *("inputTokens", "outputTokens", "totalTokens", "input", "output", "cache", "reasoning"),
        *("promptTokenCount", "candidatesTokenCount", "prompt_token_count", "candidates_token_count"),
        *("totalTokenCount", "total_token_count", "prompt_eval_count", "eval_count"),
        *("cache_read_tokens", "cache_write_tokens", "cache_read_input_tokens", "reasoning_tokens"),
        *("cache_creation_input_tokens", "context_window", "contextWindow", "cacheRead", "cacheWrite"),
    )
)


class _Fields:
    """The numbers of one object, by name."""

    def __init__(self, value: Mapping[str, Json], path: str) -> None:
        self.value = value
        self.path = path

    def has(self, *names: str) -> bool:
        """True if any of `names` is there and not null."""
        return any(self.value.get(name) is not None for name in names)

    def number(self, *names: str) -> int | None:
        """The first of `names` that is there and not null; none where none is."""
        for name in names:
            value = self.value.get(name)
            if value is None:
                continue
            if isinstance(value, float) and value.is_integer():
                value = int(value)
            if isinstance(value, bool) or not isinstance(value, int):
                raise InvalidParams("a number of tokens is a whole number", f"{self.path}.{name}")
            if not 0 <= value <= MAX_TOKENS:
                raise InvalidParams("a number of tokens is between 0 and 2^53", f"{self.path}.{name}")
            return value
        return None

    def inside(self, *names: str) -> _Fields:
        """The fields of the first object of `names` that is there; no fields where none is."""
        for name in names:
            value = self.value.get(name)
            if value is None:
                continue
            if not isinstance(value, dict):
                raise InvalidParams("details of a usage report are an object", f"{self.path}.{name}")
            return _Fields(value, f"{self.path}.{name}")
        return _Fields({}, self.path)


def _result(
    fields: _Fields,
    input_tokens: int | None,
    output_tokens: int | None,
    *,
    cache_read: int | None = None,
    cache_write: int | None = None,
    reasoning: int | None = None,
    cache_in_input: bool = False,
) -> tuple[Usage, bool]:
    """The parts as a `Usage`; with `cache_in_input` the cache is taken out of the input, which holds it."""
    fresh = input_tokens or 0
    read = cache_read or 0
    written = cache_write or 0
    if cache_in_input:
        read = min(read, fresh)
        written = min(written, fresh - read)
        fresh -= read + written
    return (
        Usage(
            input_tokens=fresh,
            output_tokens=output_tokens or 0,
            cache_read_tokens=read,
            cache_write_tokens=written,
            reasoning_tokens=reasoning or 0,
            context_window=fields.number("context_window", "contextWindow") or None,
        ),
        output_tokens is not None,
    )


def _openai_chat(fields: _Fields) -> tuple[Usage, bool]:
    """Chat Completions and what imitates it: `prompt_tokens` includes the cache.

    DeepSeek names the cache `prompt_cache_hit_tokens`, Moonshot `cached_tokens`, OpenRouter what was
    written `prompt_tokens_details.cache_write_tokens`; LiteLLM adds Anthropic's names, cache included.
    """
    prompt = fields.inside("prompt_tokens_details")
    completion = fields.inside("completion_tokens_details")
    return _result(
        fields,
        fields.number("prompt_tokens"),
        fields.number("completion_tokens"),
        cache_read=_first(
            prompt.number("cached_tokens"),
            fields.number(
                "prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens", "cache_read_tokens"
            ),
        ),
        cache_write=_first(
            prompt.number("cache_write_tokens", "cache_creation_tokens"),
            fields.number("cache_creation_input_tokens", "cache_write_tokens"),
        ),
        reasoning=_first(completion.number("reasoning_tokens"), fields.number("reasoning_tokens")),
        cache_in_input=True,
    )


def _input_tokens(fields: _Fields) -> tuple[Usage, bool]:
    """The three that say `input_tokens`: OpenAI's Responses, Anthropic's Messages, ours.

    OpenAI's has `input_tokens_details`, or, in Codex, `cached_input_tokens`: its input includes the cache.
    """
    inner = fields.inside("input_tokens_details")
    outer = fields.inside("output_tokens_details")
    included = _first(inner.number("cached_tokens"), fields.number("cached_input_tokens", "cached_tokens"))
    return _result(
        fields,
        fields.number("input_tokens"),
        fields.number("output_tokens"),
        cache_read=_first(included, fields.number("cache_read_input_tokens", "cache_read_tokens")),
        cache_write=_first(
            inner.number("cache_write_tokens", "cache_creation_tokens"),
            fields.number("cache_creation_input_tokens", "cache_write_tokens"),
        ),
        reasoning=_first(
            outer.number("reasoning_tokens"), fields.number("reasoning_tokens", "reasoning_output_tokens")
        ),
        cache_in_input=included is not None,
    )


def _gemini(fields: _Fields) -> tuple[Usage, bool]:
    """`usageMetadata`: the prompt includes the cache; thoughts and tool-use prompts stand apart."""
    prompt = fields.number("promptTokenCount", "prompt_token_count")
    tool_prompt = fields.number("toolUsePromptTokenCount", "tool_use_prompt_token_count")
    answer = fields.number("candidatesTokenCount", "candidates_token_count")
    thoughts = fields.number("thoughtsTokenCount", "thoughts_token_count")
    return _result(
        fields,
        _sum(prompt, tool_prompt),
        _sum(answer, thoughts),
        cache_read=fields.number("cachedContentTokenCount", "cached_content_token_count"),
        reasoning=thoughts,
        cache_in_input=True,
    )


def _camel(fields: _Fields) -> tuple[Usage, bool]:
    """Bedrock (`cacheReadInputTokens`, not in the input) and the AI SDK (`cachedInputTokens`, in it)."""
    included = fields.number("cachedInputTokens")
    return _result(
        fields,
        fields.number("inputTokens"),
        fields.number("outputTokens"),
        cache_read=_first(included, fields.number("cacheReadInputTokens")),
        cache_write=fields.number("cacheWriteInputTokens"),
        reasoning=fields.number("reasoningTokens"),
        cache_in_input=included is not None,
    )


def _pi_or_opencode(fields: _Fields) -> tuple[Usage, bool]:
    """pi (`cacheRead`, `cacheWrite`) and OpenCode (`cache{read, write}`): input without cache."""
    cache = fields.inside("cache")
    return _result(
        fields,
        fields.number("input"),
        fields.number("output"),
        cache_read=_first(cache.number("read"), fields.number("cacheRead", "cache_read")),
        cache_write=_first(cache.number("write"), fields.number("cacheWrite", "cache_write")),
        reasoning=fields.number("reasoning"),
    )


def _first(*numbers: int | None) -> int | None:
    """The first that is there."""
    return next((number for number in numbers if number is not None), None)


def _sum(*numbers: int | None) -> int | None:
    """Of those that are there; none where none is."""
    present = [number for number in numbers if number is not None]
    return sum(present) if present else None
