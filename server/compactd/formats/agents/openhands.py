"""Read OpenHands' events, of its SDK or of version 0: a list, one per line, or an object with `events` or
`items`.

The format is defined by OpenHands/software-agent-sdk, `openhands-sdk/openhands/sdk/event/` (`condenser.py`,
and in `llm_convertible/` `action.py`, `observation.py`, `message.py`, `system.py`), read 2026-11. Each event
has `kind`, the name of its class. Actions with the same `llm_response_id` came in one answer. A
`Condensation` names the events that it removes from the model's view, with or without a summary. Version 0 is
read by `openhands_v0`.

A `MessageEvent` of role user was written by a person if its `source` is `user` and it has no `sender`, which
messages of another agent have. Its `extended_content` contains skills, which may come from a repository.
"""

from __future__ import annotations

from compactd.formats.agents.openhands_v1 import OpenHandsReader
from compactd.formats.files.documents import open_document
from compactd.formats.files.json_lines import Warn, records
from compactd.formats.files.session_file import SessionBuilder, SessionFile
from compactd.formats.messages.json_parts import fields
from compactd.formats.messages.lenient_json import Given, is_object
from compactd.protocol.errors import InvalidParams


def read(data: bytes) -> SessionFile:
    """Return the session in `data`. An event that cannot be read is skipped with a warning. O(bytes).

    Raise `InvalidParams` if there are no events.
    """
    session = SessionBuilder("openhands")
    events = events_of(data, session.warn)
    reading: OpenHandsReader
    if any("kind" in event for event in events):
        reading = OpenHandsReader(session)
    else:
        from compactd.formats.agents.openhands_v0 import OpenHandsV0Reader

        reading = OpenHandsV0Reader(session)
    for number, event in enumerate(events, start=1):
        with session.skipping("event", number):
            reading.event(event)
    reading.finish()
    return session.finish()


def events_of(data: bytes, warn: Warn) -> list[Given]:
    """Return the events of a file, which is a list, an object that contains a list, or one event per line."""
    try:
        _, listed = open_document(data, warn, "events", "items", "history")
    except InvalidParams:
        return [record for _, record in records(data, warn)]
    return [fields(raw, "$", "an event") for raw in listed if is_object(raw)]
