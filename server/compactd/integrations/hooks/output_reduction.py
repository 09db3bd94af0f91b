"""Reduce a tool's output at Claude Code's event `PostToolUse`, before the model gets it.

The answer of the hook contains the shorter text in the shape of the tool's output. The original is in the
mirror's journal, on disk, before the answer is printed. Whatever fails or takes too long leaves the output as
it is: nothing is printed then.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal, get_args

import msgspec

from compactd.integrations.hooks.tool_outputs import OutputPart, ToolUse, response_with, tool_use_of

if TYPE_CHECKING:
    from compactd.integrations.hooks.events import HookEvent
    from compactd.integrations.hooks.hook import Done, Options
    from compactd.integrations.hooks.shown_index import ShownIndex
    from compactd.storage.hook_files import HookFiles

Level = Literal["light", "default", "strong"]
"""The levels of `core.reduce.output`, without loading it."""
LEVELS: Final[tuple[Level, ...]] = get_args(Level)
_BY_NAME: Final[dict[str, Level]] = {level: level for level in LEVELS}

EVENT: Final = "PostToolUse"
MIN_CHARS: Final = 2_000
"""A shorter output is not looked at, unless something in it looks like a mark."""
LOCK_STEP_S: Final = 0.01
JOURNAL_S: Final = 0.2
"""How long to wait for another process that writes the mirror's journal."""
MAX_IGNORED: Final = 3
"""If the agent showed this many originals in a row instead of the reduced texts, nothing is reduced."""
_LOOKALIKE: Final = re.compile(r"[\[［【].{0,9}?(?:[…⋯‥]|\.\.)")
"""Matches whatever the engine might take for the beginning of a mark, and more."""

_encode = msgspec.json.Encoder().encode


def is_wanted(part: OutputPart) -> bool:
    """Return whether an output is worth loading the engine."""
    return len(part.text) >= MIN_CHARS or _LOOKALIKE.search(part.text) is not None


def answer_tool(
    event: HookEvent,
    data: bytes,
    options: Options,
    until: float,
    done: Done,
    environ: Mapping[str, str],
) -> bytes:
    """Return the hook's answer to the event `data` of a tool; empty bytes if its output stays as it is.

    `until`: the time of `time.monotonic` until which to wait for other hooks of the session. `done` receives
    why an output could not be reduced. Raise `OSError`.
    """
    level = _BY_NAME.get(options.reduces)
    if event.agent != "claude-code" or level is None:
        return b""
    use = tool_use_of(data)
    if use is None or not any(map(is_wanted, use.parts)):
        return b""
    # The engine is loaded before the lock is taken.
    from compactd.integrations.hooks.call_reduction import CallReduction
    from compactd.integrations.hooks.hook import is_safe
    from compactd.integrations.hooks.output_journal import CannotKeep, opened
    from compactd.integrations.hooks.shown_index import ShownIndex
    from compactd.storage.hook_files import HookFiles
    from compactd.storage.locks import Lock, take_lock
    from compactd.storage.paths import data_folder

    session_id = f"{event.agent}:{event.session_id}"
    files = HookFiles(data_folder(environ), session_id)
    if not is_safe(files.folder, done):
        return b""
    while not isinstance(lock := take_lock(files.path(".lock")), Lock):
        if time.monotonic() > until:
            done.failed = "another hook of this session is still running"
            return b""
        time.sleep(LOCK_STEP_S)
    try:
        index = ShownIndex(files, event.agent_id)
        if not event.agent_id:
            index.follow_prompt(event.prompt_id, event.transcript)
        if any(index.get(use.call_id, part.part) for part in use.parts):
            # The plugin and `compactd install` both have the hook, and the other one was first.
            return b"" if options.observes else _repeated_answer(use, index)
        with opened(files, session_id, event.cwd, time.monotonic() + JOURNAL_S) as journal:
            if journal.ignored >= MAX_IGNORED or _is_redacted(use, files, event.agent):
                return b""
            has_marks = index.has_marks
            call = CallReduction(use, index, journal, level, observes=options.observes)
            texts = call.reduce()
    except CannotKeep as error:
        done.failed = f"a tool output was not reduced: {error}"
        return b""
    finally:
        lock.release()
    if not texts:
        return b""
    return _answer(use, texts, _explanation(session_id) if call.has_marks and not has_marks else "")


def _answer(use: ToolUse, texts: Mapping[int | None, str], context: str) -> bytes:
    inner: dict[str, object] = {"hookEventName": EVENT, "updatedToolOutput": response_with(use, texts)}
    if context:
        inner["additionalContext"] = context
    return _encode({"hookSpecificOutput": inner}) + b"\n"


def _repeated_answer(use: ToolUse, index: ShownIndex) -> bytes:
    """Return the same answer again."""
    texts: dict[int | None, str] = {}
    for part in use.parts:
        shown = index.get(use.call_id, part.part)
        if shown is not None and shown.is_reduced:
            texts[part.part] = index.text_of(shown)
    return _answer(use, texts, "") if texts else b""


def _explanation(session_id: str) -> str:
    """Return what the model must know about the first reduced output in its context."""
    return (
        "compactd shortened this tool output, and will shorten others. A mark in brackets says what is left "
        "out and names an entry, such as e12, which has the full output. To read it, call the tool "
        "mcp__compactd__expand with that id. If you do not have this tool, run "
        f"`compactd sessions show {session_id} e12`. Nothing in the files is changed."
    )


def _is_redacted(use: ToolUse, files: HookFiles, agent: str) -> bool:
    """Return whether the user has redacted this output. It must not be kept again."""
    from compactd.storage.hook_files import REDACTED, message_key, of_all_sessions, read_hashed

    redacted = read_hashed(files.folder, files.path(REDACTED), of_all_sessions(files.folder, agent))
    if not redacted:
        return False
    from compactd.core.redaction.blank_message import message_words
    from compactd.protocol.messages import Message, ToolResult

    results = (ToolResult(call_id=use.call_id, content=part.text, name=use.name) for part in use.parts)
    words = (message_words(Message(role="tool", content=(result,))) for result in results)
    return any(redacted.contains(message_key(one)) for one in words)
