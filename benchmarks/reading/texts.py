"""The hand-over texts that the reading test compares: each stands in place of a whole record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from benchmarks.agents.comparing import held_of
from benchmarks.reading.recordings import Recording, count_tokens, text_of
from benchmarks.retention.baselines import CLEARED, first_tokens, newest
from benchmarks.retention.ours import in_process, items_of
from benchmarks.retention.records import Record, working_dir
from compactd.integrations.hooks.hook import MAX_PAYLOAD_CHARS
from compactd.integrations.hooks.lost_facts import find_lost

LARGE: Final = 8_000
"""The size, in tokens, of the larger texts."""
HEAD_DIVISOR: Final = 4
"""The first request may take the size divided by this."""


def own(recording: Recording) -> str:
    """Return the summary that the agent itself made; empty if it made none."""
    return recording.own


def extract(recording: Recording, tokens: int) -> str:
    """Return the context after a compaction with the strategy `extract`."""
    made = in_process(items_of(recording.past), tokens)
    return made.context or text_of(recording.messages)


def own_and_hook(recording: Recording) -> str:
    """Return the agent's summary with what `compactd hook` adds to it; empty if there is no summary."""
    if not recording.own:
        return ""
    return f"{recording.own}\n\n{lost_facts(recording)}"


def lost_facts(recording: Recording) -> str:
    """Return what `compactd hook` adds to the agent's own summary."""
    folder = working_dir(recording.past)
    held = held_of(recording.past, folder)
    return find_lost(held, recording.own, "", folder=folder, most=MAX_PAYLOAD_CHARS).text


def first_and_last(recording: Recording, tokens: int) -> str:
    """Return the first request and the last messages: what simple trimming keeps."""
    past = recording.past
    first = next((record for record in past if record.role == "user"), past[0])
    head = first_tokens(first.rendered, tokens // HEAD_DIVISOR)
    return f"{head}\n{newest(past, tokens - count_tokens(head) - 1)}"


def pruned(recording: Recording, tokens: int) -> str:
    """Return the last messages with old tool output cleared, as OpenCode prunes."""
    past = list(recording.past)
    outputs = [at for at, record in enumerate(past) if record.role == "tool"]
    shown = [_cleared(record) if record.role == "tool" else record for record in past]
    used = sum(count_tokens(record.rendered) + 1 for record in shown)
    for at in reversed(outputs):
        used += count_tokens(past[at].text)
        if used > tokens:
            break
        shown[at] = past[at]
    return newest(shown, tokens)


def _cleared(record: Record) -> Record:
    return replace(record, text=CLEARED)


METHODS: Final[dict[str, Callable[[Recording], str]]] = {
    "own": own,
    "extract": lambda recording: extract(recording, recording.size),
    "extract-8k": lambda recording: extract(recording, LARGE),
    "own-hook": own_and_hook,
    "first-last": lambda recording: first_and_last(recording, LARGE),
    "pruned": lambda recording: pruned(recording, LARGE),
}
"""The methods by name. A method returns an empty text for a recording that it does not apply to."""
