"""Repair what a daemon would reject in the messages of a recorded session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Raw
from msgspec.structs import replace

from compactd.core.authors.authors import is_typed
from compactd.core.history.pins import is_pinned
from compactd.core.tokens.usage import normalise
from compactd.formats.files.session_file import MessageLine, SessionFile
from compactd.formats.messages.neutral_out import encode_message
from compactd.protocol.errors import CompactdError
from compactd.protocol.messages import Message, Text, Usage


def split_prompt(file: SessionFile) -> tuple[str | None, Sequence[MessageLine]]:
    """Return (system prompt, the messages after it). System messages at the beginning are the prompt."""
    count = 0
    texts: list[str] = []
    for message, _ in file.messages:
        if message.role != "system" or not all(isinstance(block, Text) for block in message.content):
            break
        texts.extend(block.text for block in message.content if isinstance(block, Text))
        count += 1
    if count == len(file.messages):
        return file.system_prompt, file.messages
    known = [file.system_prompt] if file.system_prompt else []
    return "\n\n".join((*known, *texts)) or None, file.messages[count:]


Reported = tuple[Message, Raw, tuple[Usage, bool] | None]
"""(message, the same in neutral form, its usage report as `core.tokens.usage.normalise` returns it)."""


def with_reports(lines: Sequence[MessageLine], warnings: list[str]) -> Iterator[Reported]:
    """Yield each message with its usage report. Repeated ids, broken usage reports, and pins on text that no
    person typed are removed from the messages. Append a sentence to `warnings` for each broken report, and
    one for all removed pins.
    """
    seen: set[str] = set()
    unpinned = 0
    for number, (message, raw) in enumerate(lines, start=1):
        whole: Message = message
        report = None
        if message.usage is not None:
            try:
                report = normalise(message.usage)
            except CompactdError as error:
                warnings.append(f"message {number}: its usage report was left out: {error.message}")
                whole = replace(whole, usage=None)
        if is_pinned(whole) and not is_typed(whole) and whole.meta is not None:
            whole = replace(whole, meta=replace(whole.meta, pinned=False))
            unpinned += 1
        if whole.id is not None and whole.id in seen:
            whole = replace(whole, id=None)
        if whole.id is not None:
            seen.add(whole.id)
        yield whole, raw if whole is message else Raw(encode_message(whole)), report
    if unpinned:
        warnings.append(pins_left_out(unpinned))


def pins_left_out(count: int) -> str:
    """Return the warning that some messages of a file are no longer pinned."""
    what = "message was" if count == 1 else "messages were"
    return f"{count} pinned {what} not typed by a person and so not pinned any more; session/pin pins again"
