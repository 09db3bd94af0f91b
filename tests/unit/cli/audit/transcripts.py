"""Writes small transcripts with usage reports, for the tests of `compactd audit`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from compactd.cli.audit.bill import Bill, bill_of
from compactd.cli.audit.trail import Trail, read_trail
from compactd.cli.usage.prices import PriceList
from compactd.cli.usage.requests import FileUsage

Json = Mapping[str, object]
OPUS = "claude-opus-4-5"


def time_of(second: int) -> str:
    """Return the time of a second of one day."""
    return f"2026-01-02T{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}.000Z"


def answer(
    number: int,
    *,
    at: int | None = 0,
    read: int = 0,
    write: int = 0,
    hour: int = 0,
    new: int = 3,
    out: int = 20,
    parent: str | None = None,
    model: str = OPUS,
    **fields: object,
) -> Json:
    """Return Claude Code's record of an answer. `hour`: how many of the tokens `write` stay for an hour."""
    usage = {
        "input_tokens": new,
        "output_tokens": out,
        "cache_creation_input_tokens": write,
        "cache_creation": {"ephemeral_5m_input_tokens": write - hour, "ephemeral_1h_input_tokens": hour},
        "cache_read_input_tokens": read,
    }
    content = [{"type": "text", "text": "Done."}]
    message = {"id": f"m{number}", "role": "assistant", "model": model, "content": content, "usage": usage}
    times = {} if at is None else {"timestamp": time_of(at)}
    return {
        "type": "assistant",
        "uuid": f"a{number}",
        "parentUuid": parent,
        "sessionId": "s",
        "requestId": f"r{number}",
        **times,
        "message": message,
        **fields,
    }


def said(
    name: str, text: str = "Go on.", *, parent: str | None = None, at: int = 0, **fields: object
) -> Json:
    """Return Claude Code's record of what a user typed."""
    message = {"role": "user", "content": text}
    about = {"type": "user", "uuid": name, "parentUuid": parent, "timestamp": time_of(at)}
    return {**about, "message": message, **fields}


def compacted(name: str, summary: str, *, at: int = 0) -> list[Json]:
    """Return Claude Code's records of an automatic compaction."""
    about = {"trigger": "auto", "preTokens": 90_000}
    boundary = {
        "type": "system",
        "subtype": "compact_boundary",
        "uuid": f"{name}-boundary",
        "parentUuid": None,
        "timestamp": time_of(at),
        "compactMetadata": about,
    }
    return [boundary, said(name, summary, parent=f"{name}-boundary", at=at, isCompactSummary=True)]


def lines(records: Iterable[Json]) -> bytes:
    """Return records as the content of a file."""
    return "".join(f"{json.dumps(record)}\n" for record in records).encode()


def trail_of(*records: Json, agent: str = "claude-code") -> Trail:
    """Return the trail of a file with these records."""
    return read_trail(lines(records), FileUsage(agent=agent, session_id="s"))


def audited(*records: Json, agent: str = "claude-code") -> Bill:
    """Return the bill of a file with these records."""
    return bill_of(trail_of(*records, agent=agent), PriceList())


def causes(bill: Bill) -> list[tuple[str | None, str]]:
    """Return (the conversation, the cause) of each rebuild."""
    return [(one.chain, one.cause) for one in bill.rebuilds]
