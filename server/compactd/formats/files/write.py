"""Sessions as files of other programs: the formats that are written, and what each does not hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from compactd.core.history.entries import number_of
from compactd.formats.files.detect import reader_of
from compactd.formats.files.losses import Loss, losses
from compactd.formats.files.outgoing import in_pieces
from compactd.formats.files.repair import split_prompt
from compactd.formats.files.session_file import SessionFile
from compactd.protocol.errors import FormatNotSupported

_WRITERS = {
    "claude-code": ("claude_code_out", "write"),
    "pi": ("pi_out", "write"),
    "codex": ("codex_out", "write"),
    "gemini-cli": ("gemini_cli_out", "write"),
    "cline": ("cline_out", "write"),
    "opencode": ("opencode_out", "write"),
    "swe-agent": ("swe_agent_out", "write"),
    "mini-swe-agent": ("swe_agent_out", "write_mini"),
    "openhands": ("openhands_out", "write"),
    "aider": ("aider_out", "write"),
    "klaude": ("klaude_out", "write"),
    "opal": ("opal_out", "write"),
}

WRITABLE = tuple(_WRITERS)
"""Names of the session files of other programs that are written."""

_MARK_MESSAGES = (
    "claude-code",
    "pi",
    "klaude",
    "opal",
    "cline",
    "openhands",
    "swe-agent",
    "mini-swe-agent",
    "aider",
)
"""Formats that can say of a whole user message that no person wrote it, and of no part."""
_JOIN_TEXTS = ("opal", "aider")
"""Of those, the ones that hold a message's texts as one."""

_NAMED = 12
"""Runs of entries that one warning names."""


class Written(Struct, frozen=True, kw_only=True):
    """A session as bytes."""

    data: bytes
    warnings: tuple[str, ...]
    """What reading it again does not give back, by entry."""


def write(file: SessionFile, format: str, names: Sequence[str] | None = None) -> Written:
    """`file` as a file of the format `format`, one of `WRITABLE`.

    `names`: what to call each message in warnings, by default its number. What is lost is found by reading
    the file again: what no warning names comes back as it was. Raises `FormatNotSupported`. Cost: O(bytes).
    """
    writer, reader = _writer(format), reader_of(format)
    if writer is None or reader is None:
        raise FormatNotSupported(
            f"the format {format!r} is not written here; those that are: {', '.join(WRITABLE)}",
            format=format,
            supported=list(WRITABLE),
        )
    prompt, messages = split_prompt(file)
    lifted = len(file.messages) - len(messages)
    called = (names or [str(at + 1) for at in range(len(file.messages))])[lifted:]
    pieces, origins = in_pieces(
        _without(file, lifted, prompt), by_author=format in _MARK_MESSAGES, joined=format in _JOIN_TEXTS
    )
    data = writer(pieces)
    warnings = told(losses(pieces, reader(data)), origins, called)
    tools = ("not kept: the tools that the model was offered",) if file.tools else ()
    return Written(data=data, warnings=(*tools, *warnings))


def _without(file: SessionFile, lifted: int, prompt: str | None) -> SessionFile:
    """The session without its first messages, which are its system prompt."""
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
    """The session in our own shape, as one document that `detect.read` takes. O(bytes)."""
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


def _writer(format: str) -> Callable[[SessionFile], bytes] | None:
    if format not in _WRITERS:
        return None
    module, name = _WRITERS[format]
    writer: Callable[[SessionFile], bytes] = getattr(import_module(f"compactd.formats.agents.{module}"), name)
    return writer


def told(lost: Iterable[Loss], origins: Sequence[int], names: Sequence[str]) -> tuple[str, ...]:
    """The losses in sentences, those of one kind together with the entries that they fall on.

    `origins`: of each place, which of `names` it belongs to.
    """
    by_kind: dict[str, list[int]] = {}
    for place, what in lost:
        at = by_kind.setdefault(what, [])
        if place is not None and (not at or at[-1] != origins[place]):
            at.append(origins[place])
    return tuple(f"not kept: {what}{_at(places, names)}" for what, places in by_kind.items())


def _follows(names: Sequence[str], place: int, next: int) -> bool:
    """True where no entry stands between the two, also none that is no message."""
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
