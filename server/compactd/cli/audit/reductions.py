"""Estimate what reducing tool outputs would have saved in a recorded session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from compactd.cli.audit.losses import Conversation, conversation_of
from compactd.cli.usage.reductions import Reductions, Totals, totals_text
from compactd.core.reduce.marks import find_marks
from compactd.core.reduce.output import Level, ToolOutput
from compactd.core.reduce.reduce import MIN_CHARS, reduce_output
from compactd.core.reduce.shown import ShownLines
from compactd.core.tokens.counting import script_aware
from compactd.core.work.file_operations import arguments_of
from compactd.protocol.messages import Message, Text, ToolCall, ToolResult

LEVEL: Level = "default"
MIN_TOKENS = 200
"""Smaller outputs are not reduced: the default of the setting `reduce_min_tokens`."""
MAX_TOOLS = 5
"""How many tools are listed: those with the most tokens saved."""


class ReductionEstimate(Struct, frozen=True, kw_only=True):
    """What reducing the tool outputs of a session would have saved, in estimated tokens."""

    total: Totals
    """All outputs of the conversation with the user, reduced or not."""
    reduced: int
    """How many outputs would have been reduced."""
    by_tool: tuple[tuple[str, Totals], ...]
    """All outputs by tool, the one with the most tokens saved first."""


def estimate_reduction(
    data: bytes, agent: str, told: Callable[[str], None] = lambda text: None
) -> ReductionEstimate:
    """Return what the default level would have saved in a session file. Each output is compared with what
    the context showed then. `told` is called with the progress. O(length of the outputs). Raise
    `CompactdError` if the file cannot be read.
    """
    told("reading the tool outputs")
    return _estimate(conversation_of(data, agent))


def estimate_fields(found: ReductionEstimate) -> dict[str, object]:
    """Return the estimate for `--json`."""
    return {
        "level": LEVEL,
        "outputs": found.total.count,
        "reduced": found.reduced,
        "tokens_before": found.total.tokens_before,
        "tokens_after": found.total.tokens_after,
        "by_tool": [
            {
                "tool": name,
                "outputs": one.count,
                "tokens_before": one.tokens_before,
                "tokens_after": one.tokens_after,
            }
            for name, one in found.by_tool
        ],
    }


def estimate_lines(found: ReductionEstimate | None, stored: Reductions) -> list[str]:
    """Return what people read: a line for what was reduced, one for the estimate, one for each tool. Empty
    only if the messages could not be read and nothing was counted."""
    lines = []
    if stored.done.count:
        lines.append(f"reduced in this session: {totals_text(stored.done)}")
    if stored.observed.count:
        lines.append(f"observed in this session, not reduced: {totals_text(stored.observed)}")
    if found is None:
        return lines
    if not found.reduced:
        return lines or ["tool outputs: nothing to leave out"]
    lines.append(f"if its tool outputs had been reduced: {totals_text(found.total)} (estimate)")
    saving = [one for one in found.by_tool if one[1].tokens_after < one[1].tokens_before]
    lines += [f"- {name}: {totals_text(one)}" for name, one in saving[:MAX_TOOLS]]
    return lines


def _estimate(conversation: Conversation) -> ReductionEstimate:
    counter = script_aware(None)
    total, by_tool = Totals(), dict[str, Totals]()
    reduced = 0
    shown = ShownLines()
    texts: dict[int, list[ToolOutput]] = {}
    """By position of the message, what the context shows of its outputs."""
    compactions = list(conversation.compactions)
    calls: dict[str, ToolCall] = {}
    for position, message in enumerate(conversation.messages):
        while compactions and compactions[0].position <= position:
            shown = _shown_after(compactions.pop(0).stayed, texts)
        for output in _outputs(message, calls):
            before = after = counter.count(output.text)
            text = output.text
            if before >= MIN_TOKENS and len(text) >= MIN_CHARS and not find_marks(text):
                made = reduce_output(output, shown, f"e{position + 1}", LEVEL)
                if made.rules and len(made.text) < len(text):
                    text, after = made.text, min(before, counter.count(made.text))
                    reduced += 1
            left = ToolOutput(output.name, output.arguments, text, output.is_error)
            shown.add(f"e{position + 1}", left)
            texts.setdefault(position, []).append(left)
            for one in (total, by_tool.setdefault(output.name or "unknown", Totals())):
                one.add(before, after)
    tools = sorted(by_tool.items(), key=lambda one: one[1].tokens_after - one[1].tokens_before)
    return ReductionEstimate(total=total, reduced=reduced, by_tool=tuple(tools))


def _shown_after(stayed: Iterable[int], texts: dict[int, list[ToolOutput]]) -> ShownLines:
    """Return what the context shows after a compaction that left the messages at the positions `stayed`."""
    shown = ShownLines()
    for position in sorted(stayed):
        for output in texts.get(position, ()):
            shown.add(f"e{position + 1}", output)
    return shown


def _outputs(message: Message, calls: dict[str, ToolCall]) -> Iterator[ToolOutput]:
    """Yield the outputs in a message. `calls`: the calls that wait for theirs; it is kept up to date."""
    for block in message.content:
        if isinstance(block, ToolCall):
            calls[block.call_id] = block
        elif isinstance(block, ToolResult):
            call = calls.pop(block.call_id, None)
            name = block.name or (call.name if call is not None else "")
            arguments = {} if call is None else arguments_of(call)
            given = (block.content,) if isinstance(block.content, str) else block.content
            for part in given:
                text = part if isinstance(part, str) else part.text if isinstance(part, Text) else ""
                if text:
                    yield ToolOutput(name, arguments, text, block.is_error)
