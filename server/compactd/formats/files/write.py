"""Write a session in another program's format, and list what that format cannot represent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from compactd.core.history.entries import number_of
from compactd.formats.files.detect import reader_of
from compactd.formats.files.losses import Loss, losses
from compactd.formats.files.repair import split_prompt
from compactd.formats.files.session_file import SessionFile
from compactd.formats.files.session_formats import BY_NAME, WRITABLE
from compactd.formats.files.writer_parts import split_messages
from compactd.protocol.errors import FormatNotSupported

_NAMED = 12
"""How many ranges of messages one warning names. Of the other messages, it gives only the number."""


class Written(Struct, frozen=True, kw_only=True):
    """A session as the bytes of a file."""

    data: bytes
    warnings: tuple[str, ...]
    """Sentences that say what is lost when the file is read again, and in which messages."""


def write(file: SessionFile, format: str, names: Sequence[str] | None = None) -> Written:
    """Return `file` in the format `format`, one of `WRITABLE`. O(bytes).

    `names` are the names of the messages in warnings, by default their numbers. The written bytes are read
    again to find what is lost, so everything that no warning names is preserved. Raise `FormatNotSupported`
    for an unknown format.
    """
    reader = reader_of(format)
    if format not in WRITABLE or reader is None:
        raise FormatNotSupported(
            f"the format {format!r} cannot be written; use one of {', '.join(WRITABLE)}",
            format=format,
            supported=list(WRITABLE),
        )
    row = BY_NAME[format]
    module, _, function = row.writer.partition(":")
    writer: Callable[[SessionFile], bytes] = getattr(import_module(f"compactd.formats.{module}"), function)
    prompt, messages = split_prompt(file)
    lifted = len(file.messages) - len(messages)
    called = (names or [str(at + 1) for at in range(len(file.messages))])[lifted:]
    pieces, origins = split_messages(
        _without_first(file, lifted, prompt), by_author=row.marks != "parts", joined=row.marks == "joined"
    )
    data = writer(pieces)
    warnings = describe_losses(losses(pieces, reader(data)), origins, called)
    tools = ("not kept: the declarations of the tools",) if file.tools else ()
    return Written(data=data, warnings=(*tools, *warnings))


def _without_first(file: SessionFile, lifted: int, prompt: str | None) -> SessionFile:
    """Return the session without its first `lifted` messages, which became the system prompt `prompt`."""
    if not lifted:
        return file
    return replace(
        file,
        messages=file.messages[lifted:],
        system_prompt=prompt,
        first_kept=tuple((place - lifted, max(0, kept - lifted)) for place, kept in file.first_kept),
        pinned=tuple(
            (place - lifted, tuple(at - lifted for at in places if at >= lifted))
            for place, places in file.pinned
        ),
    )


def neutral_document(file: SessionFile) -> bytes:
    """Return the session in neutral form, as one document that `detect.read` accepts. O(bytes)."""
    about = {
        "format": "neutral",
        "session_id": file.session_id,
        "title": file.title,
        "model": file.model,
        "working_dir": file.working_dir,
        "system": file.system_prompt,
    }
    head = msgspec.json.encode({name: value for name, value in about.items() if value is not None})
    rows = b",\n".join(bytes(raw).strip() for _, raw in file.messages)
    return head[:-1] + b',"messages":[\n' + rows + b"\n]}\n"


_REQUEST_KEYS = {
    "anthropic": ("system", "messages"),
    "gemini": ("system", "contents"),
    "openai_responses": ("instructions", "input"),
}
"""By format, (JSON key of the system prompt, JSON key of the messages)."""


def request_document(
    format: str,
    about: Mapping[str, str | None],
    system: str | None,
    messages: Sequence[Raw],
    tools: Sequence[Raw],
) -> bytes:
    """Return messages in a provider's format, or neutral ones, as one JSON object that `detect.read` accepts.
    Each message has a line of its own. `about`: further fields; those that are None are left out. O(bytes).
    """
    system_name, messages_name = _REQUEST_KEYS.get(format, ("system", "messages"))
    named = {"format": format, **about, system_name: system}
    pieces = [
        b"%b:%b" % (msgspec.json.encode(name), msgspec.json.encode(value))
        for name, value in named.items()
        if value is not None
    ]
    if tools:
        pieces.append(b'"tools":' + msgspec.json.encode(list(tools)))
    rows = b",\n".join(bytes(message).strip() for message in messages)
    pieces.append(b'"%b":[\n%b\n]' % (messages_name.encode(), rows))
    return b"{" + b",\n".join(pieces) + b"}\n"


def describe_losses(lost: Iterable[Loss], origins: Sequence[int], names: Sequence[str]) -> tuple[str, ...]:
    """Return the losses as sentences, one per kind of loss, with the names of the messages that lose
    something.

    The message at position `i` of a loss has the name `names[origins[i]]`.
    """
    by_kind: dict[str, list[int]] = {}
    for place, what in lost:
        at = by_kind.setdefault(what, [])
        if place is not None and (not at or at[-1] != origins[place]):
            at.append(origins[place])
    return tuple(f"not kept: {what}{_at(places, names)}" for what, places in by_kind.items())


def _follows(names: Sequence[str], place: int, next: int) -> bool:
    """Return whether the message at `next` directly follows the one at `place`. If `names` are entry ids, no
    other entry may be between the two either.
    """
    here, there = number_of(f"e{names[place].lstrip('e')}"), number_of(f"e{names[next].lstrip('e')}")
    before, behind = place if here is None else here, next if there is None else there
    return next == place + 1 and behind == before + 1


def _at(places: Sequence[int], names: Sequence[str]) -> str:
    if not places:
        return ""
    runs: list[list[int]] = []
    for place in places:
        if runs and _follows(names, runs[-1][1], place):
            runs[-1][1] = place
        else:
            runs.append([place, place])
    shown = [names[a] if a == b else f"{names[a]}–{names[b]}" for a, b in runs[:_NAMED]]
    more = sum(b - a + 1 for a, b in runs[_NAMED:])
    return f" ({', '.join(shown)}{f' and {more:,} more' if more else ''})"
