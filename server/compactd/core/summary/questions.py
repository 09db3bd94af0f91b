"""Ask a model for a summary: one thread of questions about the history and, if a turn is split, one about
that turn's beginning. Both are asked at the same time.

A *thread* is a generator of questions (no thread of the operating system). It asks for a summary of the first
part of the transcript. If the transcript has more parts, because it does not fit the summariser's window, it
then asks to merge the summary so far with each next part. There is no I/O: the caller that drives the
generators has the model. (Rules: docs/dev/behaviour.md, "Summarise".)
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
    ModelReply,
    SummaryAnswer,
    clean_answer,
    is_cut_off,
    join_continued,
    summary_in,
    without_rules,
)
from compactd.core.summary.newer_state import reconcile
from compactd.core.summary.prompts import (
    LENGTH,
    PROMPTS,
    RULES,
    Prompts,
    continuation_prompt,
    length_rule,
    write,
)
from compactd.core.summary.transcript import chunks, conversation, paragraphs
from compactd.core.summary.turn_prefix import HEADING
from compactd.core.text.summary_format import NATURE, OLD_NATURES
from compactd.protocol.messages import Usage

MIN_OUTPUT_TOKENS = 256
"""A summariser may always write this many tokens, even if the budget is smaller. With less, every answer
would be cut off."""

MIN_PART_TOKENS = 256
"""If a question has room for fewer tokens of transcript than this, the summariser's window is too small."""

LABEL_TOKENS = 16
"""The most tokens that a paragraph of the transcript has in addition to its message: a label, and a note of
what was cut."""

OUTPUT_DIVISOR = 4
"""A summariser may write at most a quarter of its window; the rest is for what it reads. This is the
divisor."""

MAX_HALVINGS = 1
"""How many times a thread may split a part of the transcript in half because the answer to it was cut off."""

PREFIX_SHARE = (3, 8)
"""The share of the output tokens, as (numerator, denominator), for the summary of a split turn's beginning.
The rest is for the summary of the history. (The agent pi gives 0.5 of its tokens to the beginning and 0.8 to
the history.)"""


class Ask(Struct, frozen=True, kw_only=True):
    """One question to a summariser. It is sent without tools."""

    purpose: Literal["history", "merge", "prefix"]
    system: str
    prompt: str
    max_tokens: int


class WrittenSummary(Struct, frozen=True, kw_only=True):
    """The summary that a strategy wrote, before the check, or why there is none."""

    text: str = ""
    """With `summarize`, the text that the model wrote, without lead, file lists and end line. With `extract`,
    the whole text of the summary message. With `truncate`, the text to add to the numbers of removed
    messages. Empty if there is no summary."""
    why: str = ""
    """Why there is no summary, in words for a person; empty if there is one."""
    usage: Usage | None = None
    """The sum of the usage of all the model's answers, including answers that could not be used; None if none
    reported it."""


SummarySteps = Generator[tuple[Ask, ...], tuple[SummaryAnswer, ...], WrittenSummary]
"""A generator that yields questions to ask at the same time, and returns the summary."""
Thread = Generator[Ask, SummaryAnswer, tuple[str, str]]
"""A generator that yields one question at a time, and returns (summary, the reason why there is none)."""


def summarise(
    inputs: Inputs,
    history: Sequence[Item],
    prefix: Sequence[Item],
    previous: str | None,
    *,
    budget_tokens: int,
    window: int | None,
) -> SummarySteps:
    """Ask for the summary of `history`, merged with `previous`, and for the summary of `prefix`, both at the
    same time.

    `previous` is an earlier summary, `prefix` the beginning of a split turn. If `history` is empty,
    `previous` is used unchanged. `window` is the summariser's window, in tokens of `inputs.counter`. If one
    of the two summaries fails, the result is a failure.
    """
    output = budget_tokens if window is None else min(budget_tokens, window // OUTPUT_DIVISOR)
    output = max(MIN_OUTPUT_TOKENS, output)
    share, of = PREFIX_SHARE
    prefix_output = max(MIN_OUTPUT_TOKENS, output * share // of)
    history_output = max(MIN_OUTPUT_TOKENS, output - prefix_output) if prefix else output
    threads: list[Thread] = []
    if history:
        threads.append(_thread(inputs, history, previous, history_output, window))
    elif previous is not None:
        threads.append(_as_it_is(previous))
    if prefix:
        threads.append(_thread(inputs, prefix, None, prefix_output, window, is_prefix=True))
    if not threads:
        return WrittenSummary(why="there is nothing to summarise")
    ends, usage = yield from _run_together(threads)
    why = next((why for _, why in ends if why), "")
    texts = [text for text, _ in ends]
    if prefix and not why:
        if len(texts) > 1:
            texts = list(reconcile(*texts))
        texts[-1] = f"{HEADING}\n{_demote_headings(texts[-1])}" if texts[-1] else ""
    return WrittenSummary(text="" if why else "\n\n".join(filter(None, texts)), why=why, usage=usage)


def previous_summary(message_text: str, lead: str, end: str) -> str:
    """Return the sections of an earlier summary message, without its lead, its file lists and its end line.
    O(text)."""
    text = message_text.strip()
    for line in (lead, NATURE, *OLD_NATURES):
        text = text.removeprefix(line).lstrip()
    marker = end.split("{n}", 1)[0]
    if marker and marker in text:
        text = text[: text.rindex(marker)]
    return clean_answer(text)


def _thread(
    inputs: Inputs,
    items: Sequence[Item],
    previous: str | None,
    output: int,
    window: int | None,
    *,
    is_prefix: bool = False,
) -> Thread:
    """Ask for the summary of `items` (the history or, with `is_prefix`, the beginning of a split turn), part
    by part. Yield the questions; return (summary, the reason why there is none)."""
    settings, request = inputs.settings, inputs.request
    prompts = PROMPTS[settings.rules.prompt]
    own = None if is_prefix else request.prompt or settings.compact_prompt
    has_form = not is_prefix and own is None
    headings = prompts.headings if has_form else ()
    placeholders = prompts.placeholders if has_form else ()
    parts = _parts(inputs, items, prompts, output, window, previous)
    if not parts:
        return "", f"the summariser's window is too small for this {'turn' if is_prefix else 'conversation'}"
    waiting, halved = deque(parts), 0
    while waiting:
        part = waiting.popleft()
        task = prompts.prefix if is_prefix else prompts.summary if previous is None else prompts.update
        task = f"{task}\n\n{length_rule(output)}"
        ask = Ask(
            purpose="prefix" if is_prefix else "history" if previous is None else "merge",
            system=prompts.system,
            prompt=write(
                task,
                conversation(part),
                previous=previous,
                instructions=request.instructions,
                context=() if is_prefix else request.context,
                compact_prompt=own,
            ),
            max_tokens=output,
        )
        answer = yield from _ask_until_whole(ask)
        if is_cut_off(answer) and halved < MAX_HALVINGS and len(part) > 1:
            halved += 1
            waiting.extendleft((part[len(part) // 2 :], part[: len(part) // 2]))
            continue
        summary, why = summary_in(answer, headings, placeholders)
        if why:
            return "", why
        previous = without_rules(summary, RULES, "\n".join((*part, previous or "")))
    return previous or "", ""


def _ask_until_whole(ask: Ask) -> Generator[Ask, SummaryAnswer, SummaryAnswer]:
    """Ask a question and return the answer. If the answer was cut off at its output limit, ask once for the
    rest."""
    answer = yield ask
    if not is_cut_off(answer) or not isinstance(answer, ModelReply) or not answer.text.strip():
        return answer
    more = yield replace(ask, prompt=continuation_prompt(ask.prompt, answer.text))
    if not isinstance(more, ModelReply):
        return answer
    return replace(more, text=join_continued(answer.text, more.text))


def _as_it_is(previous: str) -> Thread:
    """Return the earlier summary without asking anything."""
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
    """Return the transcript of `items` in parts that fit the summariser's window, each as a tuple of
    paragraphs. Return an empty tuple if the window is too small."""
    said = paragraphs(items, inputs.settings.tool_output_chars)
    if window is None:
        return (said,)
    count = inputs.counter.count
    request = inputs.request
    task = request.prompt or inputs.settings.compact_prompt or prompts.update
    around = (prompts.system, task, LENGTH, request.instructions or "", *request.context)
    room = window - headroom(window) - output - sum(count(text) for text in around)
    # From the second part on, the prompt also contains the summary so far, which is at most the output.
    room -= max(output, count(previous or ""))
    if sum(item.tokens for item in items) + LABEL_TOKENS * len(said) <= room:
        # Use the token counts that are already known: counting the transcript again would take longer than
        # sending it.
        return (said,)
    return chunks(said, room, inputs.counter) if room >= MIN_PART_TOKENS else ()


def _run_together(
    threads: Sequence[Thread],
) -> Generator[tuple[Ask, ...], tuple[SummaryAnswer, ...], tuple[list[tuple[str, str]], Usage | None]]:
    """Run the threads at the same time: yield the current questions of all threads together, and pass each
    thread its answer. Return what each thread returned, and the sum of the usage."""
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
            if isinstance(answer, ModelReply) and answer.usage is not None:
                usage = add_usage(usage, answer.usage)
            try:
                waiting[at] = threads[at].send(answer)
            except StopIteration as end:
                ends[at] = end.value
                del waiting[at]
    return [ends[at] for at in range(len(threads))], usage


def add_usage(usage: Usage | None, more: Usage) -> Usage:
    """Return the sum of two usage reports."""
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


def _demote_headings(text: str) -> str:
    """Return `text` with its `##` headings one level lower, so that they belong to the heading above the
    text."""
    return "\n".join(f"#{line}" if line.startswith("## ") else line for line in text.splitlines())
