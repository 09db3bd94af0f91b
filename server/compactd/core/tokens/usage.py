"""Convert the usage reports of all providers to `Usage`.

The formats of the reports are told apart by their keys. The main difference is whether the reported input
includes the tokens that came from the cache. In reports of OpenAI, Gemini and the AI SDK, it does; in those
of Anthropic, Bedrock, pi and compactd, it does not.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import UNSET, Raw, UnsetType
from msgspec.structs import replace

from compactd.protocol.errors import InvalidParams
from compactd.protocol.messages import SummaryUsage, Usage

MAX_TOKENS = 2**53
"""The largest number of tokens that is accepted. Larger JSON numbers are not exact in every parser."""

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


class Billing:
    """Sums over all usage reports of a session, in tokens. They are only for display; no decision uses
    them."""

    def __init__(self) -> None:
        self.prompt = 0
        self.completion = 0
        self.cache_read = 0
        self.cache_write = 0
        self.reasoning = 0

    def add(self, usage: Usage) -> None:
        """Add the tokens of one report to the sums."""
        self.prompt += billed_input(usage)
        self.completion += usage.output_tokens
        self.cache_read += usage.cache_read_tokens
        self.cache_write += usage.cache_write_tokens
        self.reasoning += usage.reasoning_tokens


def billed_input(usage: Usage) -> int:
    """Return the tokens of the input, cache read and cache write included. The provider's own compaction is
    not included."""
    return usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens


def context_size(usage: Usage) -> int:
    """Return the tokens that the request took in the window: input, cache read and cache write, if the
    provider asked the model once. 0 means that the report does not say."""
    if isinstance(usage.context_tokens, UnsetType):
        return billed_input(usage)
    return usage.context_tokens


def sent_size(usage: Usage) -> int:
    """Return the tokens of the request as the client sent it: `context_size`, and what the provider cleared
    from it."""
    return context_size(usage) + (0 if isinstance(usage.cleared_tokens, UnsetType) else usage.cleared_tokens)


def visible_output(usage: Usage) -> int:
    """Return the tokens of the answer that stay in the conversation: output without reasoning."""
    return max(0, usage.output_tokens - usage.reasoning_tokens)


def normalise(raw: bytes | Raw, path: str = "$.usage") -> tuple[Usage, bool]:
    """Convert a provider's usage object. Return (usage, whether the object named the output). An output of 0
    counts as named, null does not.

    In the result, the input excludes the cache and the output includes reasoning. A missing or null field
    counts as 0. So an object that names nothing gives `Usage()`, and a report whose `context_size` is 0 says
    nothing about the request's size.

    A report that contradicts itself is not refused. A part that is larger than its whole is taken to be as
    large as the whole.

    Raises `InvalidParams`, with the path of the field below `path`, if the value is not an object, or if a
    number is negative, fractional, above `MAX_TOKENS` or not a number.
    """
    try:
        value: Json = msgspec.json.decode(raw)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise InvalidParams("the usage report is not JSON", path) from error
    if not isinstance(value, dict):
        raise InvalidParams("a usage report must be an object", path)
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
    """Return whether a usage object is a provider's report, even if all its numbers are null or 0: it is
    empty or has a field of a known format. Use it for an object that `normalise` converted to an empty
    `Usage`."""
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
"""The fields of all known formats."""


class _Fields:
    """The fields of one JSON object, read by name."""

    def __init__(self, value: Mapping[str, Json], path: str) -> None:
        self.value = value
        self.path = path

    def has(self, *names: str) -> bool:
        """Return whether any of `names` is present and not null."""
        value = self.value
        for name in names:  # noqa: SIM110 - this runs for each message, and `any` takes three times as long
            if value.get(name) is not None:
                return True
        return False

    def number(self, *names: str) -> int | None:
        """Return the value of the first of `names` that is present and not null; None if there is none.
        Raises `InvalidParams` if it is not a whole number from 0 to `MAX_TOKENS`."""
        for name in names:
            value = self.value.get(name)
            if value is None:
                continue
            if isinstance(value, float) and value.is_integer():
                value = int(value)
            if isinstance(value, bool) or not isinstance(value, int):
                raise InvalidParams("a number of tokens must be an integer", f"{self.path}.{name}")
            if not 0 <= value <= MAX_TOKENS:
                raise InvalidParams("a number of tokens must be between 0 and 2^53", f"{self.path}.{name}")
            return value
        return None

    def inside(self, *names: str) -> _Fields:
        """Return the fields of the object in the first of `names` that is present and not null; no fields
        if there is none. Raises `InvalidParams` if the value is not an object."""
        for name in names:
            value = self.value.get(name)
            if value is None:
                continue
            if not isinstance(value, dict):
                raise InvalidParams("this field of a usage report must be an object", f"{self.path}.{name}")
            return _Fields(value, f"{self.path}.{name}")
        return _Fields({}, self.path)

    def each(self, name: str) -> list[_Fields]:
        """Return the fields of each object in the list `name`; empty if it is missing or null. Raises
        `InvalidParams` if the value is not a list of objects."""
        value = self.value.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise InvalidParams("this field of a usage report must be a list", f"{self.path}.{name}")
        found: list[_Fields] = []
        for index, one in enumerate(value):
            path = f"{self.path}.{name}[{index}]"
            if not isinstance(one, dict):
                raise InvalidParams("this entry of a usage report must be an object", path)
            found.append(_Fields(one, path))
        return found


def _result(
    fields: _Fields,
    input_tokens: int | None,
    output_tokens: int | None,
    *,
    cache_read: int | None = None,
    cache_write: int | None = None,
    cache_write_1h: int | None = None,
    reasoning: int | None = None,
    cache_in_input: bool = False,
) -> tuple[Usage, bool]:
    """Return (the `Usage`, whether the report named the output tokens). `cache_in_input` says that the
    reported input includes the cache; then the cache is subtracted."""
    fresh = input_tokens or 0
    read = cache_read or 0
    written = cache_write or 0
    thought = reasoning or 0
    if cache_in_input:
        read = min(read, fresh)
        written = min(written, fresh - read)
        fresh -= read + written
    if output_tokens is not None:
        thought = min(thought, output_tokens)
    return (
        Usage(
            input_tokens=fresh,
            output_tokens=output_tokens or 0,
            cache_read_tokens=read,
            cache_write_tokens=written,
            cache_write_1h_tokens=min(written, cache_write_1h or 0),
            reasoning_tokens=thought,
            context_window=fields.number("context_window", "contextWindow") or None,
        ),
        output_tokens is not None,
    )


def _openai_chat(fields: _Fields) -> tuple[Usage, bool]:
    """Read a usage report in the format of OpenAI's Chat Completions, which other APIs imitate. Its
    `prompt_tokens` include the cached tokens.

    DeepSeek's field for cached tokens is `prompt_cache_hit_tokens`, Moonshot's `cached_tokens`. The field for
    cache writes is `prompt_tokens_details.cache_write_tokens` at OpenRouter, and at OpenAI from GPT-5.6 on.
    LiteLLM also sends fields with Anthropic's names; unlike Anthropic's, its input tokens include the cached
    ones.
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
        cache_write_1h=_lasting(fields, prompt),
        reasoning=_first(completion.number("reasoning_tokens"), fields.number("reasoning_tokens")),
        cache_in_input=True,
    )


def _input_tokens(fields: _Fields) -> tuple[Usage, bool]:
    """Read a report with `input_tokens`: OpenAI's Responses, Anthropic's Messages, or compactd's own.

    A report of OpenAI's has `input_tokens_details`, or `cached_input_tokens` in Codex; its input includes the
    cached tokens. The input of the other two excludes them.

    In Anthropic's, `iterations` has a report for each time that the model was asked for the answer. Those of
    type `compaction` are not in the other fields. `context_management.applied_edits` is a field of the answer
    next to its usage; a client may add it to the report (SDK anthropic 2.12.0, 2026-11).
    """
    inner = fields.inside("input_tokens_details")
    outer = fields.inside("output_tokens_details")
    included = _first(inner.number("cached_tokens"), fields.number("cached_input_tokens", "cached_tokens"))
    usage, names_output = _result(
        fields,
        fields.number("input_tokens"),
        fields.number("output_tokens"),
        cache_read=_first(included, fields.number("cache_read_input_tokens", "cache_read_tokens")),
        cache_write=_first(inner.number("cache_write_tokens", "cache_creation_tokens"), _written(fields)),
        cache_write_1h=_lasting(fields, inner),
        reasoning=_first(
            outer.number("reasoning_tokens", "thinking_tokens"),
            fields.number("reasoning_tokens", "reasoning_output_tokens"),
        ),
        cache_in_input=included is not None,
    )
    if not fields.has("iterations", "context_management", "context_tokens", "cleared_tokens", "summary"):
        return usage, names_output
    return _with_iterations(usage, fields), names_output


def _with_iterations(usage: Usage, fields: _Fields) -> Usage:
    """Return `usage` with what `iterations` and `context_management` say, or the fields in which compactd
    itself reports the same."""
    size, parts = fields.number("context_tokens"), [fields.inside("summary")] if fields.has("summary") else []
    for iteration in fields.each("iterations"):
        kind = iteration.value.get("type")
        if kind == "message":
            size = billed_input(_input_tokens(iteration)[0])
        elif kind == "compaction":
            parts.append(iteration)
    edits = fields.inside("context_management").each("applied_edits")
    cleared = _sum(*(edit.number("cleared_input_tokens") for edit in edits), fields.number("cleared_tokens"))
    known = billed_input(usage)
    return replace(
        usage,
        context_tokens=UNSET if size is None or size >= known else size,
        cleared_tokens=cleared or UNSET,
        summary=_summary([_input_tokens(part)[0] for part in parts]),
    )


def _summary(parts: list[Usage]) -> SummaryUsage | UnsetType:
    """Return the sum of the reports on the provider's own compactions."""
    if not any(billed_input(part) + part.output_tokens for part in parts):
        return UNSET
    return SummaryUsage(
        input_tokens=sum(part.input_tokens for part in parts),
        output_tokens=sum(part.output_tokens for part in parts),
        cache_read_tokens=sum(part.cache_read_tokens for part in parts),
        cache_write_tokens=sum(part.cache_write_tokens for part in parts),
        cache_write_1h_tokens=sum(part.cache_write_1h_tokens for part in parts),
    )


def _written(fields: _Fields) -> int | None:
    """Return the tokens that were written to Anthropic's cache. If only the parts by lifetime are named,
    return their sum."""
    written = fields.number("cache_creation_input_tokens", "cache_write_tokens")
    if written is not None:
        return written
    parts = fields.inside("cache_creation")
    return _sum(parts.number("ephemeral_5m_input_tokens"), parts.number("ephemeral_1h_input_tokens"))


def _lasting(fields: _Fields, details: _Fields) -> int | None:
    """Return the tokens that were written to the cache for an hour or longer: in Anthropic's `cache_creation`
    (LiteLLM passes it on in `details`), or in OpenAI's `cache_write_tokens_details` (SDK openai 3.54.0,
    2026-11)."""
    name = "ephemeral_1h_input_tokens"
    return _first(
        fields.inside("cache_creation").number(name),
        details.inside("cache_creation_token_details").number(name),
        details.inside("cache_write_tokens_details").number("ttl_12h_tokens"),
        fields.number("cache_write_1h_tokens"),
    )


def _gemini(fields: _Fields) -> tuple[Usage, bool]:
    """Read Gemini's `usageMetadata` and return what `_result` returns. The prompt includes the cache;
    thoughts and tool-use prompts are counted separately."""
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
    """Read a report with `inputTokens`: Bedrock's (`cacheReadInputTokens`; the input excludes the cache) or
    the AI SDK's (`cachedInputTokens`; the input includes the cache). Bedrock's `cacheDetails` has the tokens
    that were written for each lifetime (AWS's API, `CacheDetail`; not seen in a recording, 2026-11)."""
    included = fields.number("cachedInputTokens")
    lasting = [
        one.number("inputTokens") for one in fields.each("cacheDetails") if one.value.get("ttl") == "1h"
    ]
    return _result(
        fields,
        fields.number("inputTokens"),
        fields.number("outputTokens"),
        cache_read=_first(included, fields.number("cacheReadInputTokens")),
        cache_write=fields.number("cacheWriteInputTokens"),
        cache_write_1h=_sum(*lasting),
        reasoning=fields.number("reasoningTokens"),
        cache_in_input=included is not None,
    )


def _pi_or_opencode(fields: _Fields) -> tuple[Usage, bool]:
    """Read pi's report (`cacheRead`, `cacheWrite`) or OpenCode's (`cache{read, write}`): the input
    excludes the cache."""
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
    """Return the first number that is not None."""
    return next((number for number in numbers if number is not None), None)


def _sum(*numbers: int | None) -> int | None:
    """Return the sum of the numbers that are not None; None if there are none."""
    present = [number for number in numbers if number is not None]
    return sum(present) if present else None
