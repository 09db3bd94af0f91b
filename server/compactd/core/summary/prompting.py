"""The questions to a summariser: one thread for the history, one for the turn's beginning, side by side.

Each thread asks for its first part, and then, as long as the transcript has more parts than the summariser's
window holds at once, for the summary so far merged with the next part. No I/O: whoever drives the generators
has the model. (Rules: docs/dev/behaviour.md, "Summarise".)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from compactd.core.budget.budget import headroom
from compactd.core.history.entries import Item
from compactd.core.planning.request import Inputs
from compactd.core.summary.answers import (
    Answer,
    Reply,
    cleaned,
    continued,
    is_cut_off,
    summary_in,
    without_rules,
)
from compactd.core.summary.prompts import PROMPTS, RULES, Prompts, go_on, write
from compactd.core.summary.transcript import chunks, conversation, paragraphs
from compactd.core.summary.turn_prefix import HEADING
from compactd.core.text.summary_format import NATURE, OLD_NATURES
from compactd.protocol.messages import Text, Usage

LEAST_OUTPUT = 256
"""Tokens that a summariser may write, however small the budget: below it every answer is cut off."""

LEAST_PART = 256
"""Tokens of transcript in one question, below which folding it in parts makes no sense."""

LABEL_TOKENS = 16
"""Most that a paragraph of the transcript takes beside its message: who speaks, what was cut."""

OUTPUT_DIVISOR = 4
"""Of the summariser's window, most that it may write: the rest is for what it reads."""

SMALLER = 1
"""How often the transcript of a question is halved because its answer was cut off."""

PREFIX_SHARE = (3, 8)
"""Of the output, for a split turn's prefix (pi gives 0.5 to it and 0.8 to the history)."""


class Ask(Struct, frozen=True, kw_only=True):
    """One question to a summariser. No tools are offered with it."""

    purpose: Literal["history", "merge", "prefix"]
    system: str
    prompt: str
    max_tokens: int


class Summarised(Struct, frozen=True, kw_only=True):
    """What came of asking."""

    text: str
    """The summary's sections; empty where there is none."""
    why: str
    """Why there is none, for a person."""
    usage: Usage | None
    """All answers together, those that were no summaries too."""


Asking = Generator[tuple[Ask, ...], tuple[Answer, ...], Summarised]
Thread = Generator[Ask, Answer, tuple[str, str]]
"""Ends with (summary, why there is none)."""


def summarise(
    inputs: Inputs,
    history: Sequence[Item],
    prefix: Sequence[Item],
    previous: str | None,
    *,
    budget_tokens: int,
    window: int | None,
) -> Asking:
    """Asks for the summary of `history`, merged with `previous`, and of `prefix`; both at once.

    An earlier summary with nothing to add to it is taken as it is. `window`: the summariser's, in tokens of
    `inputs.counter`. One thread that fails is a failure of both.
    """
    output = budget_tokens if window is None else min(budget_tokens, window // OUTPUT_DIVISOR)
    output = max(LEAST_OUTPUT, output)
    share, of = PREFIX_SHARE
    prefix_output = max(LEAST_OUTPUT, output * share // of)
    history_output = max(LEAST_OUTPUT, output - prefix_output) if prefix else output
    threads: list[Thread] = []
    if history:
        threads.append(_history(inputs, history, previous, history_output, window))
    elif previous is not None:
        threads.append(_as_it_is(previous))
    if prefix:
        threads.append(_prefix(inputs, prefix, prefix_output, window))
    if not threads:
        return Summarised(text="", why="there is nothing to summarise", usage=None)
    ends, usage = yield from _together(threads)
    why = next((why for _, why in ends if why), "")
    texts = [text for text, _ in ends]
    if prefix:
        texts[-1] = f"{HEADING}\n{_demoted(texts[-1])}"
    return Summarised(text="" if why else "\n\n".join(texts), why=why, usage=usage)


def previous_summary(message_text: str, lead: str, end: str) -> str:
    """The sections of an earlier summary message, without what code wrote around them. O(text)."""
    text = message_text.strip()
    for line in (lead, NATURE, *OLD_NATURES):
        text = text.removeprefix(line).lstrip()
    marker = end.split("{n}", 1)[0]
    if marker and marker in text:
        text = text[: text.rindex(marker)]
    return cleaned(text)


def text_of(item: Item) -> str:
    """What a message says."""
    return "\n".join(block.text for block in item.message.content if isinstance(block, Text))


def _history(
    inputs: Inputs, items: Sequence[Item], previous: str | None, output: int, window: int | None
) -> Thread:
    settings, request = inputs.settings, inputs.request
    prompts = PROMPTS[settings.rules.prompt]
    own = request.prompt or settings.compact_prompt
    headings = prompts.headings if own is None else ()
    placeholders = prompts.placeholders if own is None else ()
    parts = _parts(inputs, items, prompts, output, window, previous)
    if not parts:
        return "", "the summariser's window is too small for this conversation"
    waiting, halved = deque(parts), 0
    while waiting:
        part = waiting.popleft()
        ask = Ask(
            purpose="history" if previous is None else "merge",
            system=prompts.system,
            prompt=write(
                prompts.summary if previous is None else prompts.update,
                conversation(part),
                previous=previous,
                instructions=request.instructions,
                context=request.context,
                compact_prompt=own,
            ),
            max_tokens=output,
        )
        answer = yield from _whole(ask)
        if is_cut_off(answer) and halved < SMALLER and len(part) > 1:
            halved += 1
            waiting.extendleft((part[len(part) // 2 :], part[: len(part) // 2]))
            continue
        summary, why = summary_in(answer, headings, placeholders)
        if why:
            return "", why
        previous = without_rules(summary, RULES, "\n".join((*part, previous or "")))
    return previous or "", ""


def _prefix(inputs: Inputs, items: Sequence[Item], output: int, window: int | None) -> Thread:
    prompts = PROMPTS[inputs.settings.rules.prompt]
    previous: str | None = None
    parts = _parts(inputs, items, prompts, output, window, None)
    if not parts:
        return "", "the summariser's window is too small for this turn"
    waiting, halved = deque(parts), 0
    while waiting:
        part = waiting.popleft()
        ask = Ask(
            purpose="prefix",
            system=prompts.system,
            prompt=write(
                prompts.prefix,
                conversation(part),
                previous=previous,
                instructions=inputs.request.instructions,
            ),
            max_tokens=output,
        )
        answer = yield from _whole(ask)
        if is_cut_off(answer) and halved < SMALLER and len(part) > 1:
            halved += 1
            waiting.extendleft((part[len(part) // 2 :], part[: len(part) // 2]))
            continue
        summary, why = summary_in(answer)
        if why:
            return "", why
        previous = without_rules(summary, RULES, "\n".join((*part, previous or "")))
    return previous or "", ""


def _whole(ask: Ask) -> Generator[Ask, Answer, Answer]:
    """The answer to a question. One that was cut off at its output limit is gone on with, once."""
    answer = yield ask
    if not is_cut_off(answer) or not isinstance(answer, Reply) or not answer.text.strip():
        return answer
    more = yield replace(ask, prompt=go_on(ask.prompt, answer.text))
    if not isinstance(more, Reply):
        return answer
    return replace(more, text=continued(answer.text, more.text))


def _as_it_is(previous: str) -> Thread:
    yield from ()
    return previous, ""


def _parts(
    inputs: Inputs,
    items: Sequence[Item],
    prompts: Prompts,
    output: int,
    window: int | None,
    previous: str | None,
) -> tuple[tuple[str, ...], ...]:
    """The transcript in parts that fit the summariser's window; none where its window is too small."""
    said = paragraphs(items, inputs.settings.tool_output_chars)
    if window is None:
        return (said,)
    count = inputs.counter.count
    request = inputs.request
    task = request.prompt or inputs.settings.compact_prompt or prompts.update
    around = (prompts.system, task, request.instructions or "", *request.context)
    room = window - headroom(window) - output - sum(count(text) for text in around)
    # From the second part on, the summary so far goes with the transcript: it is at most the output.
    room -= max(output, count(previous or ""))
    if sum(item.tokens for item in items) + LABEL_TOKENS * len(said) <= room:
        # What a message took is known already: counting the transcript anew takes longer than sending it.
        return (said,)
    return chunks(said, room, inputs.counter) if room >= LEAST_PART else ()


def _together(
    threads: Sequence[Thread],
) -> Generator[tuple[Ask, ...], tuple[Answer, ...], tuple[list[tuple[str, str]], Usage | None]]:
    """Drives the threads side by side: asks what all of them want to know, at once."""
    ends: dict[int, tuple[str, str]] = {}
    waiting: dict[int, Ask] = {}
    usage: Usage | None = None
    for at, thread in enumerate(threads):
        try:
            waiting[at] = next(thread)
        except StopIteration as end:
            ends[at] = end.value
    while waiting:
        answers = yield tuple(waiting.values())
        for at, answer in zip(tuple(waiting), answers, strict=True):
            if isinstance(answer, Reply) and answer.usage is not None:
                usage = _sum(usage, answer.usage)
            try:
                waiting[at] = threads[at].send(answer)
            except StopIteration as end:
                ends[at] = end.value
                del waiting[at]
    return [ends[at] for at in range(len(threads))], usage


def _sum(usage: Usage | None, more: Usage) -> Usage:
    if usage is None:
        return more
    return Usage(
        input_tokens=usage.input_tokens + more.input_tokens,
        output_tokens=usage.output_tokens + more.output_tokens,
        cache_read_tokens=usage.cache_read_tokens + more.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens + more.cache_write_tokens,
        reasoning_tokens=usage.reasoning_tokens + more.reasoning_tokens,
        context_window=more.context_window or usage.context_window,
    )


def _demoted(text: str) -> str:
    """Headings one level down, so that they stand under the one above them."""
    return "\n".join(f"#{line}" if line.startswith("## ") else line for line in text.splitlines())
