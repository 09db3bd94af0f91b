"""`compactd statusline AGENT`: prints one line about the context, for Claude Code's status line.

Claude Code runs the command after each answer, with a JSON object on stdin. If the command is still running
when the next run is due, Claude Code cancels it. Therefore this module imports little and reads only the end
of a transcript.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

T = TypeVar("T")

WINDOW: Final = 200_000
"""The window of Claude's models, for older versions of the agent that do not report it."""
NEAR: Final = 0.9
"""The share of the threshold from which on the line is yellow."""
TAIL_BYTES: Final = 131_072
MAX_STDIN_BYTES: Final = 1 << 20
MIN_DOLLARS: Final = 0.01
"""The least cost that is shown."""


class _Usage(Struct, frozen=True):
    input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None

    @property
    def used(self) -> int:
        parts = (self.input_tokens, self.cache_creation_input_tokens, self.cache_read_input_tokens)
        return sum(part or 0 for part in parts)


class _Window(Struct, frozen=True):
    context_window_size: int | None = None
    used_percentage: float | None = None
    current_usage: _Usage | None = None


class _Cost(Struct, frozen=True):
    total_cost_usd: float | None = None


class _Workspace(Struct, frozen=True):
    project_dir: str = ""


class _StatusInput(Struct, frozen=True):
    session_id: str = ""
    transcript_path: str = ""
    cwd: str = ""
    workspace: _Workspace | None = None
    context_window: _Window | None = None
    cost: _Cost | None = None
    """Claude Code's own estimate at list prices (gist.github.com/joncardasis, dev.to/nixonperinchery, "Claude
    Code Status Line", read 2026-11)."""


class _Message(Struct, frozen=True):
    usage: _Usage | None = None


class _Record(Struct, frozen=True):
    type: str = ""
    isSidechain: bool = False  # noqa: N815 - as Claude Code writes it
    message: _Message | None = None


class _RetentionShares(Struct, frozen=True, array_like=True):
    summary: float
    together: float


class _State(Struct, frozen=True):
    """The parts of `hook_state.HookState` that the status line needs."""

    compactions: int = 0
    turns: int = 0
    kept: _RetentionShares | None = None
    is_pending: bool = False


class Base(Struct, frozen=True):
    """The state from which the tokens per turn are counted. It is taken at the first status line after a
    compaction that knows the tokens in the context (`used`).
    """

    compactions: int
    turns: int
    used: int
    due_used: int = 0
    """The tokens in the context when a compaction was first due; 0 if none was."""
    goes_on: bool = False
    """Whether a request followed although a compaction was due: for this model, Claude Code waits until the
    API refuses a request.
    """


class Fill(Struct, frozen=True, kw_only=True):
    """What the status line shows. Sizes are in tokens."""

    used: int | None
    window: int
    threshold: int | None = None
    """The size at which Claude Code compacts; None if it does not do so by itself."""
    is_guess: bool = False
    turns_left: int | None = None
    kept: tuple[float, float] | None = None
    dollars: float | None = None
    """What the session cost so far, in US dollars."""

    @property
    def is_due(self) -> bool:
        """Whether Claude Code compacts before the next request, by its own rule. compactd does not decide
        this."""
        return self.used is not None and self.threshold is not None and self.used >= self.threshold


def main(agent: str) -> int:
    """Print the line for the JSON on stdin. Always return 0."""
    try:
        data = sys.stdin.buffer.read(MAX_STDIN_BYTES)
        text = line(agent, data, os.environ)
    except Exception:  # An error would show its traceback in the agent.
        text = ""
    sys.stdout.buffer.write(text.encode("utf-8", "replace") + b"\n")
    return 0


def line(agent: str, data: bytes, environ: Mapping[str, str]) -> str:
    """Return the status line for `data`, Claude Code's JSON; empty if that cannot be read."""
    told = _decode_input(data)
    if told is None:
        return ""
    path = _state_file(agent, told.session_id, environ)
    state = _read(path, _State) if path is not None else None
    fill = _fill(told, environ)
    if path is not None and state is not None and fill.used is not None and fill.threshold is not None:
        fill = _with_pace(fill, state, path.with_suffix(".line"))
    if state is not None and state.kept is not None and state.compactions:
        fill = msgspec.structs.replace(fill, kept=(state.kept.summary, state.kept.together))
    return status_line(fill, colour="NO_COLOR" not in environ)


def status_line(fill: Fill, *, colour: bool) -> str:
    """Return the status line, such as `ctx 41 % · 82k/200k · compacts in ~34 turns · kept 38 %, 61 % with
    what was put back`.
    """
    mark = "~" if fill.is_guess else ""
    if fill.used is None:
        parts = [f"ctx – · {_short(fill.window)}"]
    else:
        parts = [
            f"ctx {mark}{100 * fill.used / fill.window:.0f} %",
            f"{_short(fill.used)}/{_short(fill.window)}{'?' if fill.is_guess else ''}",
        ]
        left = fill.turns_left
        if fill.is_due:
            parts.append("compacts next")
        elif left is not None:
            parts.append(f"compacts in ~{left} turn{'' if left == 1 else 's'}")
    if fill.kept is not None:
        summary, together = (f"{100 * share:.0f} %" for share in fill.kept)
        parts.append(
            f"kept {summary}" + (f", {together} with what was put back" if together != summary else "")
        )
    if fill.dollars is not None and fill.dollars >= MIN_DOLLARS:
        parts.append(f"${fill.dollars:,.2f}")
    text = " · ".join(parts)
    limit = fill.window if fill.threshold is None else fill.threshold
    if colour and fill.used is not None and fill.used >= NEAR * limit:
        return f"\x1b[{'31' if fill.is_due else '33'}m{text}\x1b[0m"
    return text


def _decode_input(data: bytes) -> _StatusInput | None:
    given = _decode(data, dict[str, msgspec.Raw])
    if given is None:
        return None
    # A field of an unexpected type is ignored.
    return _StatusInput(
        session_id=_decode(given.get("session_id", b""), str) or "",
        transcript_path=_decode(given.get("transcript_path", b""), str) or "",
        cwd=_decode(given.get("cwd", b""), str) or "",
        workspace=_decode(given.get("workspace", b""), _Workspace),
        context_window=_decode(given.get("context_window", b""), _Window),
        cost=_decode(given.get("cost", b""), _Cost),
    )


def _decode(data: bytes | msgspec.Raw, type_: type[T]) -> T | None:
    """Decode JSON; None if it cannot be read as this type."""
    try:
        return msgspec.json.decode(data, type=type_)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _fill(told: _StatusInput, environ: Mapping[str, str]) -> Fill:
    from compactd.integrations.hooks.compact_threshold import compact_threshold

    window = told.context_window
    size = window.context_window_size if window is not None else None
    usage = window.current_usage if window is not None else None
    # Right after a compaction, Claude Code reports zeros until the next answer (2.1.330, run 2026-11).
    used = (usage.used if usage is not None else None) or None
    if used is None and window is not None and window.used_percentage and size:
        used = round(size * window.used_percentage / 100)
    if used is None and window is None:
        used = _last_used_tokens(told.transcript_path)
    whole = size or _window(told.transcript_path)
    project = told.workspace.project_dir if told.workspace is not None else ""
    return Fill(
        used=used,
        window=whole,
        threshold=compact_threshold(whole, environ, project or told.cwd),
        is_guess=not size,
        dollars=told.cost.total_cost_usd if told.cost is not None else None,
    )


def _window(path: str) -> int:
    """Return the context window that the end of the transcript `path` shows; `WINDOW` if it shows none."""
    data = _end_of(path)
    if b'"compactMetadata"' not in data:
        return WINDOW
    # These imports take long and are rarely needed.
    from compactd.core.budget.recorded_window import accepted_sizes, window_by_file
    from compactd.formats.agents.claude_code import ClaudeCodeReader

    reading = ClaudeCodeReader()
    reading.feed(data[data.find(b"\n") + 1 :])
    session = reading.session
    accepted = accepted_sizes(message for message, _ in session.messages[session.model_from :])
    return window_by_file(session.evidence, accepted, None, WINDOW).window or WINDOW


def _last_used_tokens(path: str) -> int | None:
    """Return the context tokens of the newest answer in the end of the transcript `path`; None if there is no
    answer.
    """
    for text in reversed(_end_of(path).split(b"\n")):
        if b'"usage"' in text:
            record = _decode(text, _Record) or _Record()
            if record.type == "assistant" and not record.isSidechain and record.message is not None:
                usage = record.message.usage
                if usage is not None and usage.used:
                    return usage.used
    return None


def _end_of(path: str) -> bytes:
    """Return the end of a transcript; empty if it cannot be read."""
    try:
        file = Path(path).expanduser()
        if not path or not file.is_file():
            return b""
        with file.open("rb") as lines:
            lines.seek(max(0, file.stat().st_size - TAIL_BYTES))
            return lines.read(TAIL_BYTES)
    except (OSError, RuntimeError, ValueError):
        return b""


def _with_pace(fill: Fill, state: _State, path: Path) -> Fill:
    """Return `fill` with the turns that are left until the threshold, if each adds as many tokens as the
    turns since the last compaction did on average. `path`: the file that stores the `Base`.

    If Claude Code has gone on although a compaction was due, the model has no threshold.
    """
    used, threshold = fill.used or 0, fill.threshold or 0
    base = _read(path, Base)
    is_same = base is not None and base.compactions == state.compactions
    if base is None or not is_same or base.turns > state.turns or base.used > used:
        goes_on = is_same and base is not None and base.goes_on
        base = Base(state.compactions, state.turns, used, goes_on=goes_on)
        _write(path, base)
    if fill.is_due and not base.goes_on and not 0 < used <= base.due_used:
        base = msgspec.structs.replace(base, due_used=used, goes_on=base.due_used > 0)
        _write(path, base)
    if base.goes_on:
        return msgspec.structs.replace(fill, threshold=None)
    turns, tokens = state.turns - base.turns, used - base.used
    left = int(max(0, threshold - used) * turns / tokens) if turns and tokens > 0 else None
    return msgspec.structs.replace(fill, turns_left=left)


def _state_file(agent: str, session_id: str, environ: Mapping[str, str]) -> Path | None:
    if not session_id:
        return None
    from compactd.storage.paths import data_folder, file_stem

    # The same path as `hook_state.files_of` gives, without its imports, which take too long.
    return data_folder(environ) / "hooks" / f"{file_stem(f'{agent}:{session_id}')}.json"


def _read(path: Path, type_: type[T]) -> T | None:
    try:
        return _decode(path.read_bytes(), type_)
    except OSError:
        return None


def _write(path: Path, base: Base) -> None:
    from compactd.storage.files import replace_file

    try:
        replace_file(path, (msgspec.json.encode(base),), durable=False)
    except OSError:
        return


def _short(tokens: int) -> str:
    """Return a short number: `950`, `82k`, `1.05M`."""
    if tokens < 1000:
        return str(tokens)
    if tokens < 1_000_000:
        return f"{tokens / 1000:.0f}k"
    return f"{tokens / 1_000_000:.2f}".rstrip("0").rstrip(".") + "M"
