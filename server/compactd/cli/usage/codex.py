"""Read the usage reports in Codex CLI's session files.

Fields (openai/codex, codex-rs/protocol/src/protocol.rs, `TokenCountEvent`, `TokenUsageInfo`, `TokenUsage`,
`SessionMeta`, `TurnContextItem`, read 2026-11): an `event_msg` of type `token_count` has
`info.total_token_usage`, the sum over the session so far, and `info.last_token_usage`, the last request.
`input_tokens` includes `cached_input_tokens`; `output_tokens` includes `reasoning_output_tokens`. The model
is in the `turn_context` before it, provider and folder in `session_meta`. Cache writes are not reported.

- Codex repeats an event, for example with new rate limits. An event whose total has not changed is no
  request.
- The last request counts, not the growth of the total: a resumed session can begin with the total of the
  earlier one. Only an event without `last_token_usage` counts as the growth.
- A forked session begins with a copy of the other's events, with new times; `session_meta.forked_from_id`
  names the other. The copies have the same key, which is compared only among the forks of one session.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from compactd.cli.usage.requests import FileUsage, Request, count, key_of, seconds

MARKS = (b'"token_count"', b'"turn_context"', b'"session_meta"')
NOT_REPORTED = ("cache_write",)

_Number = int | float | None


class _Line(Struct):
    type: str = ""
    timestamp: str | None = None
    payload: Raw = Raw()


class _Tokens(Struct):
    input_tokens: _Number = None
    cached_input_tokens: _Number = None
    output_tokens: _Number = None

    def counts(self) -> tuple[int, int, int]:
        """Return (input, of that cached, output)."""
        whole = count(self.input_tokens)
        return whole, min(whole, count(self.cached_input_tokens)), count(self.output_tokens)


class _Info(Struct):
    total_token_usage: _Tokens | None = None
    last_token_usage: _Tokens | None = None


class _Event(Struct):
    type: str = ""
    info: _Info | None = None


class _Meta(Struct):
    id: str | None = None
    cwd: str | None = None
    model_provider: str | None = None
    forked_from_id: str | None = None


class _Turn(Struct):
    model: str | None = None
    cwd: str | None = None


_line = msgspec.json.Decoder(_Line).decode
_event = msgspec.json.Decoder(_Event).decode
_meta = msgspec.json.Decoder(_Meta).decode
_turn = msgspec.json.Decoder(_Turn).decode


class Reader:
    """Adds the requests of a Codex file to `usage`, line by line. `usage.state` is the place of the current
    model, then the last total (input, cached, output), then 1 if the header was read.
    """

    def __init__(self, usage: FileUsage) -> None:
        self._usage = usage
        if not usage.state:
            usage.state = [-1, 0, 0, 0, 0]
        usage.not_reported = NOT_REPORTED

    def line(self, line: bytes) -> None:
        """Read one line. Raise `msgspec.MsgspecError` if it is damaged."""
        record = _line(line)
        usage, state = self._usage, self._usage.state
        match record.type:
            case "session_meta" if not state[4]:
                # A fork contains the header of the other session too, after its own.
                meta = _meta(record.payload)
                usage.session_id = meta.id or usage.session_id
                usage.project = meta.cwd or usage.project
                usage.parent_id = meta.forked_from_id or ""
                state[0] = usage.model_index(meta.model_provider or "", "")
                state[4] = 1
            case "turn_context":
                turn = _turn(record.payload)
                if turn.model:
                    provider = usage.models[state[0]][0] if state[0] >= 0 else ""
                    state[0] = usage.model_index(provider, turn.model)
                usage.project = usage.project or turn.cwd or ""
            case "event_msg":
                event = _event(record.payload)
                if event.type == "token_count" and event.info is not None:
                    self._add(event.info, seconds(record.timestamp))
            case _:
                pass

    def _add(self, info: _Info, at: int) -> None:
        usage, state = self._usage, self._usage.state
        last = info.last_token_usage.counts() if info.last_token_usage else None
        if info.total_token_usage is None:
            total, spent = (0, 0, 0), last
        else:
            total = info.total_token_usage.counts()
            before = (state[1], state[2], state[3])
            if total == before:
                return
            state[1:4] = total
            spent = last or _growth(before, total)
        if spent is None or not any(spent):
            return
        if state[0] < 0:
            state[0] = usage.model_index("", "")
        whole, cached, output = spent
        cached = min(cached, whole)
        usage.requests.append(
            Request(
                key=key_of(f"{total}{spent}") if any(total) else 0,
                at=at,
                model=state[0],
                input=whole - cached,
                output=output,
                cache_write=0,
                cache_write_1h=0,
                cache_read=cached,
            )
        )


def _growth(before: tuple[int, int, int], total: tuple[int, int, int]) -> tuple[int, int, int]:
    """Return by how much a total has grown; the total itself if it has begun again."""
    grown = (total[0] - before[0], total[1] - before[1], total[2] - before[2])
    return grown if min(grown) >= 0 else total
