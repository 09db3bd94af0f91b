"""OpenHands' events: a list, one a line, or an object with `events` or `items`; of its SDK, or of version 0.

As OpenHands/software-agent-sdk defines them, `openhands-sdk/openhands/sdk/event/` (`condenser.py`, and in
`llm_convertible/` `action.py`, `observation.py`, `message.py`, `system.py`), read 2026-11: each event has
`kind`, its class's name. Actions with one `llm_response_id` came in one answer. A `Condensation` names the
events that it takes out of the model's view, with a summary or without. Version 0 is read by `openhands_v0`.

A `MessageEvent` of role user is a person's if its `source` is `user` and it names no `sender`, which another
agent's does. Its `extended_content` holds skills, which a repository may bring.
"""

from __future__ import annotations

from compactd.formats.agents.openhands_v1 import Reading
from compactd.formats.files.documents import opened
from compactd.formats.files.lines import Warn, records
from compactd.formats.files.session_file import Collected, SessionFile
from compactd.formats.messages.lenient_json import Given, is_object
from compactd.formats.messages.parts import fields
from compactd.protocol.errors import CompactdError, InvalidParams

MAX_STEPS = 5_000_000
"""For all condensations of a file together: a second or two. 1,000 of them, in views of 2,000 messages, take
2,000,000."""

_SILENT = (
    "CondensationRequest",
    "ConversationStateUpdateEvent",
    "ConversationErrorEvent",
    "PauseEvent",
    "TokenEvent",
    "StreamingDeltaEvent",
    "InterruptEvent",
    "LLMCompletionLogEvent",
)


def read(data: bytes) -> SessionFile:
    """The session in `data`. An event that cannot be read is left out with a warning. Raises
    `InvalidParams` where there are no events. Cost: O(bytes)."""
    session = Collected("openhands")
    events = events_of(data, session.warn)
    reading: Reading
    if any("kind" in event for event in events):
        reading = Reading(session)
    else:
        from compactd.formats.agents.openhands_v0 import ReadingV0

        reading = ReadingV0(session)
    for number, event in enumerate(events, start=1):
        try:
            reading.event(event)
        except CompactdError as error:
            session.warn(f"event {number} was left out: {error.message}")
    reading.finish()
    return session.finished()


def events_of(data: bytes, warn: Warn) -> list[Given]:
    """The events of a file of whichever form."""
    try:
        _, listed = opened(data, warn, "events", "items", "history")
    except InvalidParams:
        return [record for _, record in records(data, warn)]
    return [fields(raw, "$", "an event") for raw in listed if is_object(raw)]
