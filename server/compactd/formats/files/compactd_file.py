"""Read messages from a compactd journal, for `session/import` and the command line.

Unlike `storage`, which opens a journal to work with it, this module only reads the messages. It also reads
damaged journals.
"""

from __future__ import annotations

from zlib import crc32

from compactd.formats.files.json_lines import records
from compactd.formats.files.session_file import (
    MessageLine,
    SessionBuilder,
    SessionFile,
    branch_to,
    text_field,
)
from compactd.formats.messages.neutral import decode_message
from compactd.protocol.messages import NULL

_MARK = b',"crc":"'
_TAIL_BYTES = len(b',"crc":"00000000"}')


def read(data: bytes) -> SessionFile:
    """Return the session in `data`: the messages from the first to the current one, compacted or not.

    Other branches are left out. Summaries are left out too, because the messages that they replace are all in
    the journal. A record with a wrong checksum is skipped with a warning. O(bytes).
    """
    session = SessionBuilder("compactd")
    whole = _check_lines(data, session)
    messages: dict[str, MessageLine] = {}
    parents: dict[str, str | None] = {}
    leaf: str | None = None
    for number, record in records(whole, session.warn):
        kind, entry_id = text_field(record, "type"), text_field(record, "id")
        if kind == "session":
            session.session_id = entry_id
            session.working_dir = text_field(record, "working_dir")
        elif kind == "leaf":
            leaf = text_field(record, "entry_id")
        elif kind == "model":
            session.model = text_field(record, "model")
        elif kind == "settings":
            session.title = text_field(record, "title") or session.title
            session.system_prompt = text_field(record, "system_prompt") or session.system_prompt
        elif entry_id is not None and kind == "reduced":
            # It is no message, but a hook may have named it as the entry before a message.
            parents[entry_id] = text_field(record, "parent")
        elif entry_id is not None and kind in ("message", "compaction", "prune"):
            parents[entry_id] = text_field(record, "parent")
            leaf = entry_id
            if kind == "compaction":
                session.compactions += 1
            if kind == "message":
                with session.skipping("line", number):
                    raw = record.get("message", NULL)
                    messages[entry_id] = (decode_message(raw), raw)
    session.messages.extend(messages[id] for id in branch_to(leaf, parents) if id in messages)
    return session.finish()


def _check_lines(data: bytes, session: SessionBuilder) -> bytes:
    """Return the lines whose checksum is right, and add a warning for each other line."""
    good: list[bytes] = []
    lines = data.rstrip(b"\n").split(b"\n")
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text:
            continue
        if text[-_TAIL_BYTES:] == b'%s%08x"}' % (_MARK, crc32(text[:-_TAIL_BYTES])):
            good.append(text)
        elif number == len(lines):
            session.warn(f"line {number}, the last one, is cut off and was left out")
        else:
            session.warn(f"line {number} is damaged and was left out")
    return b"\n".join(good)
