"""The recordings of the reading test, each up to the point where somebody else takes over.

A recording is named by the SHA-256 of its name. The ten with the lowest hashes are for measuring only: nobody
reads them, or their questions, while changing how texts are written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Final

from msgspec import Struct

from benchmarks.retention.ours import message_of
from benchmarks.retention.records import SUMMARY, Record
from benchmarks.retention.sessions import Source, read, shared_data, sources
from compactd.models.tokenizers.counters import counter_for
from compactd.protocol.messages import Message, Text, ToolCall, ToolResult

MEASURING: Final = 10
"""How many recordings are only for measuring."""
MAX_PAST_TOKENS: Final = 200_000
"""A recording without a compaction is cut at the first request after so many tokens."""
SIZE_WITHOUT_SUMMARY: Final = 3_000
"""The size of a summary, in tokens, if the recording has none."""
CLIPPED_CHARS: Final = 2_200
"""The most characters of a tool's output, and of a call's arguments, that the writer of questions sees."""


class Recording(Struct, frozen=True):
    """A recorded session up to the point where somebody else takes over."""

    name: str
    hash: str
    """The first 12 hex digits of the SHA-256 of its name."""
    past: tuple[Record, ...]
    """The records before that point, without system prompts."""
    own: str
    """The summary that the agent itself made there; empty if it made none."""

    @property
    def size(self) -> int:
        """The size of a summary, in tokens: that of the recorded one, or `SIZE_WITHOUT_SUMMARY`."""
        return count_tokens(self.own) if self.own else SIZE_WITHOUT_SUMMARY

    @property
    def messages(self) -> list[Message]:
        """The messages, as a client appends them."""
        return [message_of(record) for record in self.past]


def hash_of(name: str) -> str:
    """Return the name of a recording in the questions: the first 12 hex digits of its SHA-256."""
    return sha256(name.encode()).hexdigest()[:12]


def ordered_sources() -> list[Source]:
    """Return all recordings by their hash. The first `MEASURING` are for measuring only."""
    return sorted(sources(shared_data()), key=lambda source: hash_of(source.name))


def load(source: Source) -> Recording:
    """Read a recording up to its first compaction. O(bytes)."""
    records = [record for record in read(source).records if record.role != "system"]
    at = next((n for n, record in enumerate(records) if record.kind == SUMMARY), None)
    own = "" if at is None else records[at].text
    return Recording(source.name, hash_of(source.name), tuple(records[: _end(records, at)]), own)


def _end(records: Sequence[Record], compacted_at: int | None) -> int:
    if compacted_at is not None:
        return compacted_at
    tokens = 0
    for at, record in enumerate(records):
        if tokens > MAX_PAST_TOKENS and record.role == "user" and not record.kind:
            return at
        tokens += count_tokens(record.text) + sum(count_tokens(json.dumps(c.arguments)) for c in record.calls)
    return len(records)


def count_tokens(text: str) -> int:
    """Return the tokens of a text by o200k_base."""
    return counter_for("auto", "o200k_base", "openai/gpt-4o").count(text)


def text_of(messages: Sequence[Message], clip: int | None = None) -> str:
    """Return messages as a reader sees them. With `clip`, long output and arguments are shortened."""
    return "\n".join(line for message in messages for line in _lines(message, clip))


def _lines(message: Message, clip: int | None) -> Iterator[str]:
    for block in message.content:
        match block:
            case Text(text=text):
                yield f"[{message.role}] {text}"
            case ToolCall(name=name, arguments=raw):
                arguments = json.dumps(json.loads(bytes(raw)), ensure_ascii=False)
                yield f"[call {name}] {_clipped(arguments, clip)}"
            case ToolResult(content=content):
                inner = content if isinstance(content, str) else None
                if inner is None:
                    inner = " ".join(part.text for part in content or () if isinstance(part, Text))
                yield f"[result] {_clipped(inner, clip)}"
            case _:
                pass


def _clipped(text: str, most: int | None) -> str:
    if most is None or len(text) <= most:
        return text
    head, tail = text[: most * 4 // 5], text[-(most // 5) :]
    return f"{head}\n … {len(text) - most} characters left out …\n{tail}"
