"""Providers' own compaction: which models have it, whether its result may be used, and where that result may
be sent.

Anthropic (platform.claude.com, "Compaction on demand", "Compaction that keeps recent turns" and "Compaction
and preserved thinking", read 2026-11; types of the SDK anthropic 2.14.0):

- A request with `compaction: {"type": "summarize"}` and the beta `compact-2026-09-04` returns one block with
  `content`, which is readable, and `signature`. The block summarises every message of the request.
- Later requests contain that block first, unchanged, in place of these messages, and only this one block.
  They need the same beta. Another Claude model takes it too.
- The block of `context_management` (beta `compact-2026-01-12`) has no signature. It stands after the messages
  that it replaces, and the API drops these.
- Amazon Bedrock does not have it. Models: Claude 4.6 and later, not Haiku.

OpenAI (developers.openai.com, "Compaction", "Standalone compact endpoint", read 2026-11; types of the SDK
openai 3.57.0):

- `POST /responses/compact` returns the user's messages and one item `compaction` with `encrypted_content`.
  This list is the next context window, and goes into the next request as it is.
- Whether another model can read it is not documented, so it is sent to the same model only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Raw

from compactd.core.history.entries import Item, ProviderSummary
from compactd.core.history.projection import Projection, with_provider_summary
from compactd.core.tokens.counting import Counter, block_tokens, message_tokens
from compactd.core.tokens.usage import visible_output
from compactd.formats.messages import openai_responses
from compactd.formats.messages.anthropic_blocks import CompactionBlock, compaction_block
from compactd.formats.messages.json_parts import elements, fields, first_byte
from compactd.formats.messages.provenance import ANTHROPIC, RESPONSES, compacts_on_demand
from compactd.formats.messages.rendering import string_field
from compactd.protocol.errors import InvalidParams
from compactd.protocol.messages import Opaque, Unknown, Usage

MAX_INSTRUCTION_CHARS = 16_384
"""The most characters of `compaction.instructions`, which replace Anthropic's own prompt."""


def provider_prefix(model: str) -> str:
    """Return the provider's name in `provider/id`; empty if `model` is the id alone."""
    return model.rpartition("/")[0]


def offers_compaction(format: str, model: str) -> bool:
    """Return whether a provider with this message format can compact a conversation of `model` itself. A
    server that has the format but not the method answers with an error."""
    return compacts_on_demand(model) if format == ANTHROPIC else format == RESPONSES


def choose_summary(
    projection: Projection, items: Sequence[Item], format: str, model: str | None, base_url: str | None
) -> Projection:
    """Return `projection`, which is that of the view's `items`, with the provider's own summary in place of
    compactd's, if the request to `model` at `base_url` in this format may contain it. Otherwise return
    `projection` itself. O(blocks) if there is a provider's summary."""
    if not items or items[0].provider is None or not projection.messages:
        return projection
    own = items[0].provider
    if projection.messages[0].entry_id != items[0].entry_id or not _may_send(own, format, model, base_url):
        return projection
    if format == ANTHROPIC and any(_thresholds(projection)):
        # The client's own block replaces everything before it, and there may be only one.
        return projection
    return with_provider_summary(projection, items)


def _may_send(own: ProviderSummary, format: str, model: str | None, base_url: str | None) -> bool:
    if own.format != format or model is None or own.base_url != base_url:
        return False
    if own.model == model:
        return True
    is_same_api = provider_prefix(own.model) == provider_prefix(model)
    return format == ANTHROPIC and is_same_api and compacts_on_demand(model)


def _thresholds(projection: Projection) -> Iterator[CompactionBlock]:
    """Yield the blocks of Anthropic's compaction at a threshold that contain a summary."""
    for projected in projection.messages:
        for block in projected.message.content:
            found = compaction_block(block) if isinstance(block, Opaque | Unknown) else None
            if found is not None and found.content and not found.signature:
                yield found


def is_refused_summary(status: int | None, code: str | None, text: str) -> bool:
    """Return whether a provider refused a request because of its own summary in it. Anthropic names the
    reason in `error.details.error_code`, OpenAI in `error.code`. O(text)."""
    return status == 400 and any(name in (code or "") or name in text for name in _REFUSALS)


_REFUSALS = (
    "compaction_signature_invalid",
    "compaction_content_mismatch",
    "compaction_tool_changes_mismatch",
    "compaction_block_misplaced",
    "compaction_block_ambiguous",
    "invalid_encrypted_content",
)


def focus_prompt(instructions: str | None) -> str | None:
    """Return the prompt for Anthropic's compaction with the user's wishes; None for Anthropic's own prompt.
    Wishes that are too long are cut."""
    if instructions is None or not instructions.strip():
        return None
    prompt = (
        "Summarize the conversation so far, so that the work can go on from the summary alone. Keep the "
        "user's requests and rules in their own words, what was done, what is still open, decisions with "
        "their reasons, and the exact names of files, commands and values. Do not call tools; respond with "
        "the summary text only.\n\nPay special attention to this:\n"
    )
    return prompt + instructions[: MAX_INSTRUCTION_CHARS - len(prompt)]


def read_anthropic(content: Sequence[Opaque], counter: Counter) -> tuple[Raw, int] | str:
    """Return (the answer's block as a list, its tokens), or why the answer contains no summary."""
    found = [(block, one) for block in content if (one := compaction_block(block)) is not None]
    if len(content) != 1 or len(found) != 1:
        return "its answer contains no summary"
    block, one = found[0]
    if not one.content or not one.content.strip() or not one.signature:
        return "its compaction failed"
    return Raw(b"[" + bytes(block.raw) + b"]"), block_tokens(block, counter)


def read_openai(
    output: Sequence[Raw], sent: Sequence[Raw], usage: Usage | None, counter: Counter
) -> tuple[Raw, int] | str:
    """Return (the items of the next window as a list, their tokens), or why they cannot be used.

    `sent` are the items of the request. A message in the user's or a developer's name must be one of them.
    """
    said = set(_orders(sent))
    compactions, tokens = 0, 0
    for raw in output:
        given = fields(raw, "$", "an item") if first_byte(raw) == b"{" else {}
        try:
            message = openai_responses.read_message(raw, "$")
        except InvalidParams:
            return "it returned an item that compactd cannot read"
        if string_field(given, "type") != "compaction":
            tokens += message_tokens(message, counter)
            continue
        if not string_field(given, "encrypted_content"):
            return "its compaction failed"
        compactions += 1
        visible = 0 if usage is None else visible_output(usage)
        tokens += visible or message_tokens(message, counter)
    if compactions != 1:
        return "its answer contains no summary"
    if not said.issuperset(_orders(output)):
        return "it returned a message that was not sent to it"
    return Raw(b"[" + b",".join(map(bytes, output)) + b"]"), tokens


def _orders(items: Sequence[Raw]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield (role, texts) of the messages among `items` that a model obeys: all but the model's own."""
    for raw in items:
        given = fields(raw, "$", "an item") if first_byte(raw) == b"{" else {}
        role = string_field(given, "role")
        if not role or role == "assistant":
            continue
        content = given.get("content", Raw(b"null"))
        if first_byte(content) == b"[":
            parts = [fields(part, "$", "a part") for part in elements(content, "$")]
            yield role, tuple(string_field(part, "text") for part in parts)
        else:
            yield role, (string_field(given, "content"),)
