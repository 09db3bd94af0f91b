"""Bring an imported session up to date with its file, which its agent has continued (protocol.md,
"session/import").

The file is imported again, in memory. If nothing but the import ever wrote to the stored session, the new
import replaces it under the same id. Otherwise, and while other clients have the session open, the messages
that are new in the file are appended, so that nothing is lost that was added in compactd.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TypeGuard

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from compactd.core.history.append import AppendRequest, plan_append
from compactd.core.history.entries import (
    Appended,
    Compacted,
    Entry,
    EntryId,
    ModelSet,
    Opened,
    SettingsSet,
    UsageReported,
)
from compactd.core.history.state import SessionState
from compactd.core.redaction.blank_message import message_words
from compactd.core.tokens.counting import messages_tokens
from compactd.protocol.errors import InvalidParams
from compactd.protocol.messages import Message, MessageAppended
from compactd.protocol.wire import ImportResult
from compactd.session.host import acting
from compactd.session.import_file import (
    TellProgress,
    find_redacted,
    import_session,
    keep_time,
    make_session,
    plain_format,
    read_file,
)
from compactd.session.manager import Sessions, Start
from compactd.session.session import Session
from compactd.storage.hook_files import message_key, read_redacted

IMPORTED = "imported-"
"""The beginning of the compaction ids that an import gives to the summaries in the file."""


async def update_session(
    sessions: Sessions,
    source: str | bytes,
    format: str | None,
    tell: TellProgress,
    home: Path,
    session_id: str,
    *,
    may_replace: Callable[[], bool] = lambda: True,
) -> ImportResult:
    """Add to an imported session what is new in `source`, or create the session. It is open, and the changes
    are on disk, when this returns.

    The other params are those of `import_session`. `may_replace`: whether a session to which only an import
    wrote may be replaced; if not, what is new is appended. Raises `SessionLocked`, `SessionBusy`,
    `InvalidParams` if the session was not imported, and what `import_session` raises. O(bytes of the file and
    of the session), in a worker.
    """
    world = sessions.world
    is_stored = session_id in sessions.open or await world.in_worker(
        lambda: sessions.store.exists(session_id)
    )
    if not is_stored:
        return await import_session(sessions, source, format, tell, home, session_id)
    session = (await sessions.start(Start(session_id=session_id))).session
    session.require_journal()
    session.require_idle()
    if not session.is_imported:
        raise InvalidParams("this session was not imported from a file", "$.session_id")

    def made() -> tuple[Session, ImportResult]:
        data = read_file(source) if isinstance(source, str) else source
        return make_session(world, session_id, data, plain_format(format), tell)

    fresh, result = await world.in_worker(made)
    tell(0.9, "writing")
    session.require_idle()
    if await world.in_worker(lambda: loses_nothing(session, fresh)):
        warnings = await world.in_worker(lambda: tuple(find_redacted(fresh, home)))
        if may_replace():
            await sessions.delete(session_id)
            await sessions.adopt(fresh)
            await world.in_worker(lambda: keep_time(sessions, fresh, source))
            return replace(result, warnings=(*result.warnings, *warnings))
    lines = await world.in_worker(lambda: _new_lines(session, fresh, home))
    session.require_idle()
    sides = _new_sides(session, fresh)
    if lines or sides:
        await _append(session, lines, sides)
    return replace(result, message_count=len(session.state.items))


def loses_nothing(stored: Session, fresh: Session) -> bool:
    """Return whether `fresh`, a new import of the file, contains all that is stored: only an import wrote to
    the session, and every stored message is still in the file. O(messages).
    """
    kinds = Counter(type(entry) for entry in stored.entries)
    if kinds[ModelSet] > 1 or kinds[SettingsSet] > 1 or kinds[Opened] > 1:
        return False
    clients = set(fresh.state.clients)
    words = _words(fresh.state)
    for entry in stored.entries:
        match entry:
            case Opened() | ModelSet() | SettingsSet() | UsageReported():
                continue
            case Compacted(compaction_id=number) if number.startswith(IMPORTED):
                continue
            case Appended(client_id=str() as client) if client in clients:
                continue
            case Appended(id=entry_id) if words[key := _key(stored.state, entry_id)] > 0:
                words[key] -= 1
            case _:
                return False
    return True


Line = tuple[Appended, Message, UsageReported | None]
"""(an entry of the new import, its message, its usage report)."""


def _new_lines(stored: Session, fresh: Session, home: Path) -> list[Line]:
    """Return the messages of `fresh` that the stored session does not have, oldest first. Redacted messages
    do not come back. O(messages).
    """
    known, redacted = _words(stored.state), read_redacted(home)
    reports = {
        entry.entry_id: _with_model(entry, stored, fresh)
        for entry in fresh.entries
        if isinstance(entry, UsageReported)
    }
    lines: list[Line] = []
    for entry in fresh.entries:
        if not isinstance(entry, Appended):
            continue
        key = _key(fresh.state, entry.id)
        if known[key] > 0:
            known[key] -= 1
            continue
        held = stored.state.clients.get(entry.client_id or "")
        if held in stored.state.redacted or redacted.contains(key):
            continue
        message = fresh.state.originals[entry.id].message
        if held is not None:
            # The agent has rewritten the message since. A journal's entry never changes, so the new version
            # follows as a message without that id.
            message, entry = _without_id(message, entry)
        lines.append((entry, message, reports.get(entry.id)))
    return lines


def _without_id(message: Message, entry: Appended) -> tuple[Message, Appended]:
    from compactd.formats.messages.neutral_out import encode_message

    message = replace(message, id=None)
    return message, replace(entry, client_id=None, message=Raw(encode_message(message)))


def _new_sides(stored: Session, fresh: Session) -> list[UsageReported]:
    """Return the reports in `fresh` that belong to no message and that `stored` does not have: those of
    sub-agents, and of aborted and failed answers. A file only grows."""
    sides = [[one for one in session.entries if _is_side(one)] for session in (stored, fresh)]
    failed = Counter(_report_key(one) for one in stored.entries if _is_failed(one))
    new: list[UsageReported] = []
    for one in fresh.entries:
        if _is_failed(one):
            failed[_report_key(one)] -= 1
            new += [one] if failed[_report_key(one)] < 0 else []
    new += sides[1][len(sides[0]) :]
    return [_with_model(one, stored, fresh) for one in new]


def _with_model(report: UsageReported, stored: Session, fresh: Session) -> UsageReported:
    """Return a report of `fresh` as an entry of `stored`, whose model may be another one."""
    model = report.model or fresh.state.model.model
    return replace(report, model=None if model == stored.state.model.model else model)


def _is_side(entry: Entry) -> TypeGuard[UsageReported]:
    return isinstance(entry, UsageReported) and entry.is_side


def _is_failed(entry: Entry) -> TypeGuard[UsageReported]:
    """Return whether the entry is the report of an answer that is no message."""
    return isinstance(entry, UsageReported) and not entry.is_side and entry.entry_id is None


def _report_key(report: UsageReported) -> bytes:
    return msgspec.json.encode((report.at, report.usage))


async def _append(session: Session, lines: list[Line], sides: list[UsageReported]) -> None:
    """Append messages with their own times, and reports of sub-agents, and wait until they are on disk."""
    counted = await session.host.in_worker(
        lambda: messages_tokens([message for _, message, _ in lines], session.counter)
    )
    session.require_idle()
    intake = plan_append(
        session.state,
        AppendRequest(
            read=[(message, entry.message) for entry, message, _ in lines],
            tokens=counted,
            own_reports=[
                None if report is None else (report.usage, report.reported_output) for _, _, report in lines
            ],
        ),
        at=session.host.now(),
        estimator=session.counter.name,
        handed_epoch=session.state.epoch,
    )
    known = dict(zip(intake.entry_ids, lines, strict=True))
    entries: list[Entry] = []
    for entry in intake.entries:
        if isinstance(entry, Appended):
            entry = replace(entry, at=known[entry.id][0].at)
        elif isinstance(entry, UsageReported) and (was := known[entry.entry_id or ""][2]) is not None:
            entry = replace(entry, at=was.at, model=was.model, reported_cost=was.reported_cost)
        entries.append(entry)
    entries += [replace(side, epoch=session.state.epoch) for side in sides]
    number = session.write(*entries, messages=intake.messages)
    for message in intake.messages:
        session.pending.add(message)
    session.refresh()
    await session.wait_durable(number)
    client = acting.get()
    name = None if client is None else client.name_in(session.id)
    for entry_id, message in zip(intake.entry_ids, intake.messages, strict=True):
        session.emit(MessageAppended(entry_id=entry_id, role=message.role, client=name))
    session.emit_usage()


def _words(state: SessionState) -> Counter[int]:
    return Counter(_key(state, entry_id) for entry_id in state.originals)


def _key(state: SessionState, entry_id: EntryId) -> int:
    """Return a hash of what a message says, without its id and time."""
    return message_key(message_words(state.originals[entry_id].message))
