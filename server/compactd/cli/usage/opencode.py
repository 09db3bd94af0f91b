"""Read the usage reports in OpenCode's sessions: what `opencode export` wrote, or its folder `storage`.

Fields (anomalyco/opencode, packages/opencode/src/session/message-v2.ts, `Assistant`, and `getUsage` in
session/index.ts, read 2026-11): an assistant message's `info` has `providerID`, `modelID`, `time.created` in
milliseconds, `cost` in US dollars, and `tokens`: `input`, which excludes the cache; `output`; `reasoning`,
which `output` does not include; `cache.read` and `cache.write`. A cost of 0 for a request with tokens means a
subscription or an unknown price.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct, field

from compactd.cli.usage.requests import FileUsage, Request, count, dollars, key_of, seconds

_Number = int | float | None


class _Cache(Struct):
    read: _Number = None
    write: _Number = None


class _Tokens(Struct):
    input: _Number = None
    output: _Number = None
    reasoning: _Number = None
    cache: _Cache | None = None


class _Time(Struct):
    created: _Number = None


class _Info(Struct):
    id: str | None = None
    role: str = ""
    provider: str | None = field(default=None, name="providerID")
    model: str | None = field(default=None, name="modelID")
    time: _Time | None = None
    cost: _Number = None
    tokens: _Tokens | None = None


class _Message(Struct):
    info: _Info


class _About(Struct):
    id: str | None = None
    directory: str | None = None


class _Session(Struct):
    messages: list[_Message]
    info: _About = field(default_factory=_About)


_session = msgspec.json.Decoder(_Session).decode
_about = msgspec.json.Decoder(_About).decode
_info = msgspec.json.Decoder(_Info).decode


def read(data: bytes, usage: FileUsage) -> None:
    """Add the requests of an exported session to `usage`. Raise `msgspec.MsgspecError` if it is damaged."""
    session = _session(data)
    usage.session_id = session.info.id or usage.session_id
    usage.project = session.info.directory or usage.project
    places: dict[str, int] = {}
    for message in session.messages:
        _add(message.info, usage, places)


def read_folder(path: Path, usage: FileUsage) -> None:
    """Add the requests of a stored session to `usage`. `path` is `storage/session/<project>/<session>.json`;
    its messages are in `storage/message/<session>/`. Raise `OSError` or `msgspec.MsgspecError` if the
    session's own file cannot be read.
    """
    about = _about(path.read_bytes())
    usage.session_id = about.id or usage.session_id
    usage.project = about.directory or usage.project
    places: dict[str, int] = {}
    for file in sorted((path.parents[2] / "message" / usage.session_id).glob("*.json")):
        try:
            _add(_info(file.read_bytes()), usage, places)
        except (OSError, msgspec.MsgspecError):
            usage.unreadable += 1


def _add(info: _Info, usage: FileUsage, places: dict[str, int]) -> None:
    """Add the request of a message. `places` has the place of each message id in `usage.requests`."""
    tokens = info.tokens
    if info.role != "assistant" or tokens is None:
        return
    cache = tokens.cache or _Cache()
    request = Request(
        key=key_of(info.id) if info.id else 0,
        at=seconds(info.time.created) if info.time else 0,
        model=usage.model_index(info.provider or "", info.model or ""),
        input=count(tokens.input),
        output=count(tokens.output) + count(tokens.reasoning),
        cache_write=count(cache.write),
        cache_write_1h=0,
        cache_read=count(cache.read),
        cost=dollars(info.cost) or None,
    )
    if not (request.input or request.output or request.cache_write or request.cache_read):
        return
    place = places.get(info.id or "")
    if place is not None:
        usage.requests[place] = request
        return
    if info.id:
        places[info.id] = len(usage.requests)
    usage.requests.append(request)
