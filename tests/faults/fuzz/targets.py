"""The fuzz targets: each takes bytes, and raises if the daemon would do something that it must not."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Raw

from compactd.core.overflow.classify import FailureReport, classify
from compactd.daemon.rpc.envelope import Envelope, read_envelope
from compactd.daemon.rpc.framing import Fault, Frame, Framer
from compactd.formats.files.detect import read
from compactd.formats.messages.base import read_messages
from compactd.protocol.errors import CompactdError
from compactd.session.follower import decode_entries, refuse_misfits
from compactd.session.session import Session
from compactd.storage.decode_journal import content_of, id_of
from compactd.storage.journal_records import as_appended, encode_record, scan
from compactd.storage.migrate import FORMAT
from compactd.storage.settings_files import from_client, from_file
from tests.support.quiet_world import Quiet

TESTS = Path(__file__).parents[2]
PIECES = (1, 7, 64)
"""Sizes of the reads that bytes may come in; the frames are the same whatever they are."""


def framing(data: bytes) -> None:
    """Messages cut out of bytes: the same ones however these were split, and always some or none."""
    whole = _frames(data, len(data) or 1)
    for size in PIECES:
        assert _frames(data, size) == whole, f"other frames in pieces of {size}"


def _frames(data: bytes, size: int) -> list[object]:
    framer = Framer(limit_bytes=4_096)
    frames: list[Frame] = []
    for start in range(0, len(data), size):
        frames += framer.feed(data[start : start + size])
        if framer.broken:
            break
    if not framer.broken:
        frames += framer.end()
    return [(frame.code, frame.fatal) if isinstance(frame, Fault) else bytes(frame) for frame in frames]


def wire(data: bytes) -> None:
    """A body of JSON-RPC: a request, or an answer that says what is wrong with it."""
    assert isinstance(read_envelope(data), Envelope | Fault)


def messages(data: bytes) -> None:
    """A message as a client sends it: taken, or refused with what is wrong."""
    try:
        read_messages([Raw(data)])
    except CompactdError:
        return


def journal(data: bytes) -> None:
    """A session's file: opened, or refused in so many words; what opens is written back alike."""
    found = scan(data)
    records = [as_appended(record) for record in found.records]
    session_id = id_of(found.records[0]) if found.records else None
    try:
        content = content_of(data, session_id or "s1", FORMAT)
        entries = decode_entries(content.records)
    except CompactdError:
        return
    assert [as_appended(record) for record in content.records] == records
    assert content.end <= len(data)
    try:
        with refuse_misfits():
            Session(Quiet(), session_id or "s1", None, entries)
    except CompactdError:
        # Whole records with right checksums that no daemon wrote in this order: only a forger can.
        return


def entries(data: bytes) -> None:
    """Records that were changed and then sealed: the checksums are right, and what they say is anything."""
    sealed, count = b"", 0
    for record in data.split(b"\n"):
        if record.startswith(b'{"type":"') and record.endswith(b"}"):
            sealed += encode_record(count, record)
            count += 1
    try:
        session_id = id_of(sealed.partition(b"\n")[0]) or "s1"
        found = decode_entries(content_of(sealed, session_id, FORMAT).records)
        with refuse_misfits():
            Session(Quiet(), session_id, None, found)
    except CompactdError:
        return


def classified(data: bytes) -> None:
    """An error's text, as a provider or a proxy might send it: a verdict that fits together."""
    status = (None, 200, 400, 413, 429, 500, 529)[data[0] % 7] if data else None
    code = (None, "context_length_exceeded", "invalid_request_error")[data[0] // 7 % 3] if data else None
    text = data[1:].decode("utf-8", "replace")
    verdict = classify(FailureReport(status=status, code=code, text=text))
    assert verdict.limit is None or verdict.limit >= 64
    assert not verdict.teaches or verdict.limit is not None


def formats(data: bytes) -> None:
    """A session file of somebody: read, or refused in so many words."""
    try:
        read(data)
    except CompactdError:
        return


def settings(data: bytes) -> None:
    """A file of settings, and a client's: read, with warnings or none."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.toml"
        path.write_bytes(data)
        from_file(path, "user")
    try:
        msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return  # what is no JSON never gets there
    from_client(Raw(data), "client")


TARGETS: dict[str, Callable[[bytes], None]] = {
    "framing": framing,
    "wire": wire,
    "messages": messages,
    "journal": journal,
    "entries": entries,
    "classify": classified,
    "formats": formats,
    "settings": settings,
}

_REQUESTS = (
    b'{"jsonrpc":"2.0","id":1,"method":"session/start","params":{"session_id":"s1","compaction":{"keep":1}}}\n',
    b'{"jsonrpc":"2.0","id":"a","method":"session/append","params":{"session_id":"s1","messages":[]}}\n',
    b'[{"jsonrpc":"2.0","method":"initialized"},{"jsonrpc":"2.0","id":2,"method":"daemon/ping"}]\n',
    b'{"jsonrpc":"2.0","id":3,"result":null}\n{"jsonrpc":"2.0","id":-4.5,"method":"x"}\n',
)
_MESSAGES = (
    b'{"role":"user","content":"hello","id":"m1","created_at":1.5}',
    b'{"role":"assistant","content":[{"type":"tool_call","call_id":"c","name":"run","arguments":{"a":[1]}}],'
    b'"usage":{"input_tokens":5,"output_tokens":2},"stop_reason":"end_turn"}',
    b'{"role":"tool","content":[{"type":"tool_result","call_id":"c","content":[{"type":"text","text":"x"}]}]}',
    b'{"role":"user","content":[{"type":"image","media_type":"image/png","data":"iVBORw0KGgo="}],"meta":{}}',
)
_SETTINGS = (
    b'[compaction]\nprofile = "opal"\nkeep_recent = 2000\nthreshold = 0.8\nenabled = true\n',
    b'model = "openai/gpt-5"\n[compaction]\ncontext_window = 1_000\n[loop]\nmax_requests = 9\n',
    b'{"compaction":{"profile":"klaude","prune":true,"reserve":16384}}',
)
_ERRORS = (
    b"prompt is too long: 213462 tokens > 200000 maximum",
    b'{"error":{"message":"maximum context length is 8192 tokens","code":"context_length_exceeded"}}',
    b'data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n',
    b"Error code: 400 - {'error': {'message': 'Input is too long for requested model.'}}",
    b"<html><body>413 Request Entity Too Large</body></html>",
    b"rate limit reached: 30000 tokens per minute, requested 31234",
    b'{"error":{"code":400,"message":"input token count (1200000) exceeds the maximum (1048576)"}}',
)


def seeds(name: str) -> list[bytes]:
    """Real inputs to begin with, and what was found before (`corpus`/<target>)."""
    found = sorted((Path(__file__).parent / "corpus" / name).glob("*"))
    kept = [path.read_bytes() for path in found]
    match name:
        case "framing":
            framed = [b"Content-Length: %d\r\n\r\n%s" % (len(one), one) for one in _REQUESTS]
            return [*kept, *_REQUESTS, *framed, b"".join(framed)]
        case "wire":
            return [*kept, *_REQUESTS]
        case "messages":
            return [*kept, *_MESSAGES]
        case "classify":
            return [*kept, *(b"\x02" + one for one in _ERRORS)]
        case "journal":
            return [*kept, *(data[:20_000] for data in _journals())]
        case "entries":
            return [*kept, *(_unsealed(data) for data in _journals())]
        case "formats":
            sessions = sorted((TESTS / "support" / "fixtures" / "sessions").glob("*.*"))
            return [*kept, *(path.read_bytes()[:8_000] for path in sessions)]
        case _:
            return [*kept, *_SETTINGS]


def _journals() -> list[bytes]:
    return [path.read_bytes() for path in sorted(TESTS.glob("support/journals/v*/*.jsonl"))]


def _unsealed(journal: bytes) -> bytes:
    return b"\n".join(as_appended(record).replace(b"\n", b" ") for record in scan(journal).records)
