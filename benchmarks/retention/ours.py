"""The text of the next request after `extract` compacted a cut to a target size.

`in_process` runs the daemon's plan and compaction without journal and pipes. `Daemon` starts a real daemon
and asks it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

from msgspec import Raw, Struct

from benchmarks.retention.records import SUMMARY, Call, Record, call_line
from compactd.client import Client, RpcError
from compactd.compaction.driver import drive
from compactd.core.budget.budget import RequestSize, Window, compute_budget
from compactd.core.budget.settings import merge
from compactd.core.extract.facts import FactCache
from compactd.core.history.entries import Item, View, with_stub
from compactd.core.planning.plan import CompactRequest, Fixed, Inputs, NotCompacted, plan
from compactd.core.summary.compaction import Draft, PruneOnly
from compactd.core.summary.input import SummaryInput
from compactd.core.tokens.counting import message_tokens
from compactd.formats.messages.base import read_messages
from compactd.formats.messages.neutral_out import encode_message
from compactd.models.tokenizers.counters import counter_for
from compactd.protocol.errors import CannotFit
from compactd.protocol.messages import CompactionResult, Message, Meta, Text, ToolCall, ToolResult

MODEL = "openai/gpt-4o"
WINDOW = 10_000_000
"""Nothing is due by itself: the budget alone decides."""

TIMEOUT_S = 120.0


class Made(Struct, frozen=True):
    """A compacted context."""

    context: str
    """The text of the whole next request; empty if no compaction was possible."""
    summary: str
    """The summary in it."""
    seconds: float
    """How long the compaction took."""


REFUSED = Made("", "", 0.0)
"""The newest request alone does not fit."""


def message_of(record: Record) -> Message:
    """A record as it is appended."""
    if record.role == "tool":
        result = ToolResult(
            call_id=record.call_id or "x",
            name=record.tool or None,
            content=record.text,
            is_error=record.is_error,
        )
        return Message(role="tool", content=(result,))
    texts = (Text(text=record.text),) if record.text else ()
    calls = tuple(
        ToolCall(call_id=call.call_id, name=call.name, arguments=Raw(json.dumps(call.arguments).encode()))
        for call in record.calls
    )
    meta = None
    if record.kind == SUMMARY:
        meta = Meta(type="compaction_summary")
    elif record.kind:
        meta = Meta(synthetic=True)
    role = "assistant" if record.role == "assistant" else "user"
    return Message(role=role, content=(*texts, *calls) or (Text(text="(empty)"),), meta=meta)


def items_of(records: Sequence[Record]) -> tuple[Item, ...]:
    """The messages of a past, counted; a system prompt is none."""
    counter = counter_for("auto", "o200k_base", MODEL)
    messages = [message_of(record) for record in records if record.role != "system"]
    return tuple(
        Item(entry_id=f"e{number}", body=message, tokens=message_tokens(message, counter))
        for number, message in enumerate(messages, 1)
    )


def text_of(messages: Sequence[Message]) -> str:
    """A request's messages as the metric renders a context."""
    shown: list[str] = []
    for message in messages:
        for block in message.content:
            match block:
                case Text(text=text):
                    shown.append(f"[{message.role}] {text}")
                case ToolCall(name=name, arguments=raw):
                    shown.append(call_line(Call("", name, json.loads(bytes(raw)))))
                case ToolResult(content=content):
                    blocks = content if isinstance(content, tuple) else ()
                    inner = content if isinstance(content, str) else _texts(blocks)
                    shown.append(f"[tool] {inner}")
    return "\n".join(shown)


def _texts(blocks: Sequence[object]) -> str:
    return " ".join(block.text for block in blocks if isinstance(block, Text))


def inputs_of(items: tuple[Item, ...], request: CompactRequest) -> Inputs:
    """Return the input of the plan for a compaction of a session of these messages."""
    tokens = sum(item.tokens for item in items)
    settings = merge([])
    return Inputs(
        view=View(items=items, tail_from=0, tokens=tokens, epoch=1),
        originals=items,
        fixed=Fixed(),
        settings=settings.settings,
        standing=compute_budget(
            settings,
            Window(window=WINDOW, confidence="fact", source="registry"),
            RequestSize(estimated=tokens),
        ),
        request=request,
        counter=counter_for("auto", "o200k_base", MODEL),
    )


def in_process(items: tuple[Item, ...], budget: int, cache: FactCache | None = None) -> Made:
    """Return the context of a session of these messages after `session/compact`, strategy `extract`.

    If the smallest request exceeds the budget, return `REFUSED`. Other errors of the engine are raised.
    """
    inputs = inputs_of(items, CompactRequest(target_tokens=budget, strategy="extract", force=True))
    began = time.perf_counter()
    try:
        made = plan(inputs)
    except CannotFit:
        return REFUSED
    if isinstance(made, NotCompacted):
        return Made(text_of([item.message for item in items]), "", time.perf_counter() - began)
    outcome = drive(SummaryInput(plan=made, facts=cache if cache is not None else FactCache()))
    seconds = time.perf_counter() - began
    if isinstance(outcome, Draft):
        return Made(text_of(view_after(items, outcome)), outcome.summary, seconds)
    if isinstance(outcome, PruneOnly):
        stubs = {stub.entry_id: stub for stub in outcome.stubs}
        shown = [with_stub(i, stubs[i.entry_id]) if i.entry_id in stubs else i for i in items]
        return Made(text_of([item.message for item in shown]), "", seconds)
    return Made(text_of([item.message for item in items]), "", seconds)


def view_after(items: Sequence[Item], draft: Draft) -> list[Message]:
    """The messages of the next request: the summary, what is pinned, the tail."""
    stubs = {stub.entry_id: stub for stub in draft.stubs}
    shown = {i.entry_id: with_stub(i, stubs[i.entry_id]) if i.entry_id in stubs else i for i in items}
    names = [item.entry_id for item in items]
    tail = names[names.index(draft.first_kept) :] if draft.first_kept is not None else []
    summary = Message(role="user", content=(Text(text=draft.summary),))
    return [summary, *(shown[name].message for name in (*draft.pinned, *tail))]


class _Started(Struct):
    session_id: str


class _Context(Struct):
    messages: list[Raw]


class Daemon:
    """The real daemon, spawned; one session for each past."""

    def __init__(self) -> None:
        self._client = Client()

    def compacted(self, records: Sequence[Record], budget: int) -> Made:
        """Return the same as `in_process`, from a real daemon. Raise `RpcError` for other refusals."""
        ask = self._client.ask
        session_id = ask(
            "session/start", {"model": MODEL, "compaction": _OFF, "persist": False}, _Started
        ).session_id
        messages = [message_of(record) for record in records if record.role != "system"]
        self._client.call(
            "session/append",
            {"session_id": session_id, "messages": [Raw(encode_message(message)) for message in messages]},
            timeout_s=TIMEOUT_S,
        )
        compact = {
            "session_id": session_id,
            "strategy": "extract",
            "target_tokens": budget,
            "force": True,
        }
        began = time.perf_counter()
        try:
            result = ask("session/compact", compact, CompactionResult, timeout_s=TIMEOUT_S)
        except RpcError as error:
            if error.code != CannotFit.code:
                raise
            return REFUSED
        finally:
            seconds = time.perf_counter() - began
        view = ask("session/context", {"session_id": session_id}, _Context, timeout_s=TIMEOUT_S)
        self._client.call("session/close", {"session_id": session_id})
        shown = [message for message, _ in read_messages(view.messages)]
        return Made(text_of(shown), result.summary or "", seconds)

    def close(self) -> None:
        """Ends the daemon."""
        self._client.close()


_OFF = {"enabled": False, "context_window": WINDOW}
