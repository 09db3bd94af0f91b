"""Read a compactd journal: messages, current context, tools and window."""

from __future__ import annotations

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from compactd.cli.framework.conversation import LoadedConversation
from compactd.core.budget.recorded_window import Recorded
from compactd.core.history.entries import Entry, EntryId, UsageReported
from compactd.core.history.state import SessionState
from compactd.formats.files.session_file import MessageLine
from compactd.formats.messages.neutral import decode_message
from compactd.formats.messages.neutral_out import encode_message
from compactd.protocol.messages import Message
from compactd.storage.journal_records import scan


def with_journal(conversation: LoadedConversation, data: bytes) -> LoadedConversation:
    """Return `conversation` with the messages, the context and the window that its journal `data` records. It
    stays unchanged if the journal is damaged or has another version. O(bytes).

    `messages` become those of the current branch, each with the usage report of its request. `live` becomes
    the view. There, a message has its usage report only if that report describes this context.
    """
    found = scan(data)
    if found.damage is not None or not found.records:
        return conversation
    decode = msgspec.json.Decoder(Entry).decode
    state, reports = SessionState(decode_message), dict[EntryId, UsageReported]()
    try:
        for record in found.records:
            entry: Entry = decode(record)
            state.apply(entry)
            if isinstance(entry, UsageReported) and entry.entry_id is not None:
                reports[entry.entry_id] = entry
    except (msgspec.MsgspecError, LookupError, ValueError):
        return conversation
    originals = state.path_items()
    numbers = {item.entry_id: number for number, item in enumerate(originals, start=1)}
    items = state.view().items
    now = {entry_id for entry_id, report in reports.items() if report.epoch == state.epoch}
    return replace(
        conversation,
        messages=tuple(_line(item.message, item.source, reports.get(item.entry_id)) for item in originals),
        entry_ids=tuple(item.entry_id for item in originals),
        live=tuple(
            _line(item.message, item.source, reports[item.entry_id] if item.entry_id in now else None)
            for item in items
        ),
        live_numbers=tuple(numbers.get(item.entry_id, 0) for item in items),
        compacted_after=_compacted_after(state),
        system_prompt=state.system_prompt,
        tools=state.tools,
        context_window=state.model.context_window,
        evidence=(),
        accepted=(),
        recorded=Recorded(window=state.model.recorded_window, source=state.model.recorded_source),
    )


def _compacted_after(state: SessionState) -> tuple[int, ...]:
    compactions = {step.id for step in state.compactions()}
    count = 0
    found: list[int] = []
    for entry_id in state.path:
        count += entry_id in state.originals
        if entry_id in compactions:
            found.append(count)
    return tuple(found)


def _line(message: Message, source: Raw | None, report: UsageReported | None) -> MessageLine:
    """Return the message with the usage of `report`. Without a report that describes a whole request
    (`is_base`), return it without usage.
    """
    if report is not None and report.is_base:
        whole = replace(message, usage=Raw(msgspec.json.encode(report.usage)))
    elif message.usage is not None:
        whole = replace(message, usage=None)
    elif source is not None:
        return message, source
    else:
        whole = message
    return whole, Raw(encode_message(whole))
