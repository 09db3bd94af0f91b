"""Answer the plugin's module for Claude Code (`integrations/claude-code/hooks/register.ts`).

Claude Code (2.1.287 or newer) asks the module what to do at a compaction (event `session.compact`), and the
module asks this command. There are four questions (`Step`):

- `replace`: write the summary. The module then answers Claude Code with it, and no model is asked.
- `prepare`: write that summary ahead, so that a later `replace` is answered at once.
- `begin`: the module is about to let Claude Code compact. Until it has asked `complete`, no hook adds lost
  facts.
- `complete`: Claude Code's summary and the messages that it kept are these; return the facts that it lost.

What a message contains and who wrote it is read from the transcript, never taken from the module: the
module's messages do not say whether a person typed them. An empty answer means that Claude Code's own
compaction stands and the hooks add what it lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final, Literal

import msgspec
from msgspec import Struct

from compactd.core.text.message_text import join_text_blocks
from compactd.integrations.hooks.hook import KEPT_TOKENS
from compactd.integrations.hooks.hook_state import MirroredMessage, RetentionShares, read_messages_file
from compactd.integrations.hooks.module_file import (
    ModuleAction,
    PreparedSummary,
    add_past,
    message_keys,
    read_action,
    read_past,
    read_prepared,
    redactions_mark,
    text_keys,
    write_action,
    write_copies,
    write_prepared,
)
from compactd.protocol.messages import Message, ToolCall, ToolResult

if TYPE_CHECKING:
    from compactd.integrations.hooks.hook import Done, Options
    from compactd.integrations.hooks.hook_state import HookState, HookStateFiles
    from compactd.integrations.hooks.mirror import Mirror

Step = Literal["replace", "prepare", "begin", "complete"]

SUMMARY_TOKENS: Final = 12_500
"""The most tokens of the summary: what compactd gives a summary in a context window of 200,000 tokens."""
MIN_SUMMARY_TOKENS: Final = 1_000
SUMMARY_DIVISOR: Final = 3
"""The summary of a short conversation has the tokens of the removed messages divided by this."""
MAX_KEPT_SHARE: Final = 0.4
"""The largest share of the conversation that stays word for word. A short conversation gets smaller, too."""
MAX_PREPARED_KEPT: Final = 1.5
"""A prepared summary is used if at most this many times `Options.kept_tokens` of messages are newer."""
CHARS_PER_TOKEN: Final = 4
CHECKED: Final = 40
"""How many of the newest messages that would be removed must be in the mirror. If one is not, the transcript
is behind the conversation."""
BEFORE_KEPT: Final = 20


class ModuleMessage(Struct, frozen=True, kw_only=True):
    """A message of the conversation, as the module describes it. It need not be true: it only names a message
    of the mirror."""

    role: Literal["user", "assistant"] = "user"
    text: str = ""
    """The text, or its beginning."""
    calls: tuple[str, ...] = ()
    """The ids of the tool calls in the message."""
    results: tuple[str, ...] = ()
    """The ids of the tool calls whose results are in the message."""
    chars: int = 0
    """The size of the message."""
    rigid: bool = False
    """Whether the module cannot repeat the message: a tool result without text. It must not stay."""


class ModuleRequest(Struct, frozen=True, kw_only=True):
    """A question of the module."""

    step: Step
    messages: tuple[ModuleMessage, ...] = ()
    """The conversation. For `complete`: the conversation as Claude Code's own compaction leaves it."""


class ModuleAnswer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to the module."""

    summary: str = ""
    keep_from: int = 0
    """With a summary: the index of the first message that stays."""
    text: str = ""
    """The facts that Claude Code's summary lost."""
    ready: bool = False


def request_of(data: bytes) -> ModuleRequest | None:
    """Return the question in the event `data`; None if it contains none. O(bytes)."""
    try:
        return msgspec.json.decode(data, type=ModuleRequest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    from compactd.formats.files.json_lines import repair_surrogates

    try:
        return msgspec.json.decode(repair_surrogates(data), type=ModuleRequest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def answer_module(
    mirror: Mirror, files: HookStateFiles, data: bytes, transcript: str, options: Options, done: Done
) -> bytes | Callable[[], bytes]:
    """Answer a question of the module about the session that `mirror` mirrors. Return the JSON to print
    (empty bytes if compactd has no answer), or a function that returns it and must be called without the
    lock.

    `transcript` is the path of the transcript, which the mirror must have read to its end."""
    request = request_of(data)
    if request is None:
        done.failed = "the module's question could not be read"
        return b""
    done.event = request.step
    if not mirror.state.is_caught_up:
        done.failed = "the transcript could not be read in time"
        return b""
    mirror.flush()
    match request.step:
        case "begin":
            write_action(files, ModuleAction(step="complete", at=time.time()))
            return msgspec.json.encode(ModuleAnswer(ready=True))
        case "complete":
            write_action(files, None)
            return _complete(mirror, files, request, options, done)
        case "prepare":
            return _prepare(mirror, files, transcript, options, done)
        case "replace":
            return _replace(mirror, files, request, transcript, options, done)


# --- which messages are which ---------------------------------------------------------------------


def _keys_of(message: ModuleMessage) -> tuple[str, ...]:
    ids = (*(f"call:{id}" for id in message.calls), *(f"result:{id}" for id in message.results))
    return ids or text_keys(message.role, message.text)


def _keys_in(messages: Iterable[ModuleMessage]) -> frozenset[str]:
    return frozenset(key for message in messages for key in _keys_of(message))


class Conversation:
    """The messages of the mirror that are in Claude Code's context, with their keys."""

    def __init__(self, held: Sequence[MirroredMessage]) -> None:
        """Decode the messages. O(bytes)."""
        from compactd.formats.messages.neutral import decode_message

        self.held = held
        self.messages = [decode_message(one.message) for one in held]
        self.keys = [message_keys(message) for message in self.messages]

    def find_kept(self, kept: Collection[str], count: int) -> list[int]:
        """Return the indices of the messages that stay: of the newest ones, those that have a key in `kept`,
        which are the keys of `count` messages. O(messages)."""
        begin = max(0, len(self.held) - 2 * count - BEFORE_KEPT)
        return [at for at in range(begin, len(self.held)) if any(key in kept for key in self.keys[at])]


# --- replace --------------------------------------------------------------------------------------


def cut_of(messages: Sequence[ModuleMessage], kept_tokens: int = KEPT_TOKENS) -> int | None:
    """Return the index of the first message that stays: the newest messages stay, about `kept_tokens` tokens
    of them. None if nothing can be removed. O(messages).

    A tool call stays with its results. The blocks of one answer are separate messages here, and stay
    together.
    """
    total = sum(message.chars for message in messages)
    room = min(kept_tokens * CHARS_PER_TOKEN, int(total * MAX_KEPT_SHARE))
    cut: int | None = None
    used = 0
    open_results: set[str] = set()
    for at in range(len(messages) - 1, -1, -1):
        message = messages[at]
        used += message.chars
        if message.rigid or (used > room and cut is not None):
            break
        open_results.update(message.results)
        open_results.difference_update(message.calls)
        before = messages[at - 1] if at else None
        is_begin = message.role == "user" or before is None or before.role == "user"
        if is_begin and not message.results and not open_results:
            cut = at
            if used > room:
                break
    return cut if cut else None


def _replace(
    mirror: Mirror,
    files: HookStateFiles,
    request: ModuleRequest,
    transcript: str,
    options: Options,
    done: Done,
) -> bytes:
    messages, state = request.messages, mirror.state
    prepared = read_prepared(files, state.compactions)
    cut = None if prepared is None else prepared_cut(messages, prepared.first_kept, options.kept_tokens)
    if prepared is None or cut is None:
        cut = cut_of(messages, options.kept_tokens)
        if cut is None:
            done.did = (
                "left the compaction to Claude Code, because no message before the newest can be removed"
            )
            return b""
        known = Conversation(read_messages_file(files.path(".stretch"), state.stretch_bytes))
        if _is_behind(known, messages[:cut]):
            done.failed = "the compaction was left to Claude Code: its transcript is behind the conversation"
            return b""
        stay = known.find_kept(_keys_in(messages[cut:]), len(messages) - cut)
        summary, shares = _write_summary(known, stay, read_past(files), state, transcript)
    else:
        summary, shares = prepared.summary, prepared.shares
    kept = [key for message in messages[cut:] for key in _keys_of(message)]
    action = ModuleAction(step="replace", at=time.time(), summary=summary, kept=tuple(kept), shares=shares)
    write_action(files, action)
    done.did = f"replaced the conversation by {len(summary):,} characters and {len(messages) - cut} messages"
    return msgspec.json.encode(ModuleAnswer(summary=summary, keep_from=cut))


def _prepare(
    mirror: Mirror, files: HookStateFiles, transcript: str, options: Options, done: Done
) -> bytes | Callable[[], bytes]:
    """Return a function that writes the summary ahead and stores it. Call it without the lock: the summary of
    a long conversation takes half a second, and no hook should wait for that."""
    state = mirror.state
    held = read_messages_file(files.path(".stretch"), state.stretch_bytes)
    past = read_past(files)
    before = redactions_mark(files, mirror.agent)

    def write() -> bytes:
        from compactd.storage.locks import Lock, take_lock

        known = Conversation(held)
        described = [_describe(one, message) for one, message in zip(held, known.messages, strict=True)]
        cut = cut_of(described, options.kept_tokens)
        if cut is None:
            return b""
        summary, shares = _write_summary(known, range(cut, len(held)), past, state, transcript)
        lock = take_lock(files.path(".lock"))
        if not isinstance(lock, Lock):
            done.failed = "another hook of this session is running"
            return b""
        try:
            if redactions_mark(files, mirror.agent) == before:
                keys, count = known.keys[cut], state.compactions
                write_prepared(
                    files,
                    PreparedSummary(summary=summary, first_kept=keys, compactions=count, shares=shares),
                )
        finally:
            lock.release()
        return msgspec.json.encode(ModuleAnswer(ready=True))

    return write


def _describe(held: MirroredMessage, message: Message) -> ModuleMessage:
    """Describe a mirrored message as the module would."""
    calls = tuple(block.call_id for block in message.content if isinstance(block, ToolCall))
    results = tuple(block.call_id for block in message.content if isinstance(block, ToolResult))
    return ModuleMessage(
        role="assistant" if message.role == "assistant" else "user",
        calls=calls,
        results=results,
        chars=held.tokens * CHARS_PER_TOKEN,
        rigid=held.is_summary,
    )


def prepared_cut(
    messages: Sequence[ModuleMessage], first_kept: Collection[str], kept_tokens: int = KEPT_TOKENS
) -> int | None:
    """Return the index of the first message after those of a prepared summary: the newest one with a key in
    `first_kept`. None if it is not there, or if too much is newer. O(messages)."""
    used = 0
    for at in range(len(messages) - 1, 0, -1):
        used += messages[at].chars
        if messages[at].rigid or used > kept_tokens * CHARS_PER_TOKEN * MAX_PREPARED_KEPT:
            return None
        if not any(key in first_kept for key in _keys_of(messages[at])):
            continue
        begin = at
        while messages[at].role == "assistant" and begin and messages[begin - 1].role == "assistant":
            begin -= 1
        return begin or None
    return None


def _is_behind(known: Conversation, removed: Sequence[ModuleMessage]) -> bool:
    """Return whether the mirror lacks one of the newest tool calls or results that would be removed."""
    there = {key for keys in known.keys for key in keys}
    newest = _keys_in(removed[-CHECKED:])
    return any(key not in there for key in newest if key.startswith(("call:", "result:")))


def _write_summary(
    known: Conversation,
    kept: Sequence[int],
    past: Sequence[MirroredMessage],
    state: HookState,
    transcript: str,
) -> tuple[str, RetentionShares | None]:
    """Return (compactd's summary of what is removed, the shares of it that stay). `kept` are the indices of
    the messages that stay; `past` are messages that earlier compactions removed."""
    import os

    # Starting OpenBLAS's thread pool (numpy 2) takes 40 ms and does not pay off here.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from compactd.core.constraints.constraints import constraints_of
    from compactd.core.extract.earlier import earlier_summaries
    from compactd.core.extract.extract import ExtractSource
    from compactd.core.extract.facts import FactCache
    from compactd.core.history.entries import Item
    from compactd.core.history.message_kinds import newest_request
    from compactd.core.text.summary_format import LEAD
    from compactd.core.tokens.counting import Chars4
    from compactd.core.work.state import WorkReader
    from compactd.formats.messages.neutral import decode_message
    from compactd.integrations.hooks.lost_facts import retention_shares

    cache = FactCache(state.folder or None)
    seen: set[str] = set()
    removed: list[Item] = []
    stays: list[Item] = []

    def add(one: MirroredMessage, message: Message, to: list[Item]) -> None:
        name = one.entry_id if one.entry_id not in seen else f"{one.entry_id}.{len(seen)}"
        seen.add(name)
        kind: Literal["summary", "message"] = "summary" if one.is_summary else "message"
        to.append(Item(entry_id=name, body=message, tokens=one.tokens, kind=kind))
        cache.add_learned(name, kind, one.facts)

    stay = frozenset(kept)
    for one in past:
        add(one, decode_message(one.message), removed)
    for at, (one, message) in enumerate(zip(known.held, known.messages, strict=True)):
        if at not in stay and (one.entry_id in seen or (past and is_own_summary(message))):
            # It was carried over from before the last compaction; the original is in `past`.
            continue
        add(one, message, stays if at in stay else removed)
    items = [*removed, *stays]
    reader = WorkReader()
    for item in items:
        reader.add(item)
    request = newest_request(stays)
    budget = max(
        MIN_SUMMARY_TOKENS, min(SUMMARY_TOKENS, sum(one.tokens for one in removed) // SUMMARY_DIVISOR)
    )
    end = _END.format(transcript=_safe_path(transcript)) if transcript else ""
    count = Chars4().count
    source = ExtractSource(
        removed,
        stays,
        request=None if request is None else stays[request],
        budget_tokens=budget,
        working_dir=state.folder or None,
        cache=cache,
        demands=constraints_of(items),
        work=reader.state(),
        earlier=earlier_summaries(removed),
    )
    body = source.record(budget - count(end), count, lead=LEAD)
    shares = retention_shares(removed, stays, cache, body)
    if shares is not None:
        # The summary is what Claude Code keeps; nothing is added to it.
        shares = RetentionShares(shares.together, shares.together)
    return f"{body}\n\n{end}" if end else body, shares


_END: Final = (
    "[e12] is the number of a message. Messages that are no longer here can be found with compactd's tools"
    " search_history and expand if they are available, otherwise in the transcript: {transcript}"
)


def _safe_path(path: str) -> str:
    from compactd.core.text.quoting import without_frames

    return without_frames(path)


def is_own_summary(message: Message) -> bool:
    """Return whether the message is a summary that compactd wrote."""
    from compactd.core.history.entries import is_summary
    from compactd.core.text.summary_format import LEAD

    return is_summary(message) and join_text_blocks(message.content).startswith(LEAD)


# --- what an event says about the module's compaction ---------------------------------------------


def note_event(mirror: Mirror, files: HookStateFiles, kind: str, source: str) -> None:
    """Handle an event of Claude Code that says whether the module's answer was used: a start or the end of a
    compaction (`kind`). O(1) if the module did nothing."""
    action = read_action(files, time.time())
    if action is None:
        return
    if action.step == "replace":
        if kind == "before":
            # Claude Code's own compaction begins, so the answer was not used.
            write_action(files, None)
        elif kind == "after" or (kind == "start" and source == "compact"):
            settle_replaced(mirror, files, action)
    elif kind == "prompt":
        # The module did not get to add the lost facts. The hook adds them now.
        write_action(files, None)


def is_held_back(files: HookStateFiles) -> bool:
    """Return whether no hook may add lost facts now, because the module will add them."""
    action = read_action(files, time.time())
    return action is not None and action.step == "complete"


def settle_recorded(mirror: Mirror, files: HookStateFiles, summary: str) -> None:
    """Do the same as `settle_replaced` for a compaction that the transcript records before any event reported
    it."""
    action = read_action(files, time.time())
    if action is None or action.step != "replace":
        action = ModuleAction(step="replace", at=0.0, summary=summary)
    settle_replaced(mirror, files, action)


def settle_replaced(mirror: Mirror, files: HookStateFiles, action: ModuleAction) -> None:
    """Change the mirror as the module's compaction changed the conversation: what was removed goes to the
    past, and the summary and the messages that stayed are the context. Nothing has to be restored. O(bytes).
    """
    state = mirror.state
    write_action(files, None)
    if not state.is_pending:
        return
    known = Conversation(read_messages_file(files.path(".gone"), state.gone_bytes))
    stayed = frozenset(known.find_kept(frozenset(action.kept), len(action.kept)))
    add_past(files, [one for at, one in enumerate(known.held) if at not in stayed])
    mirror.note_replaced(action.summary, [known.held[at] for at in sorted(stayed)])
    write_copies(files, tuple(key for at in sorted(stayed) for key in known.keys[at]))
    state.kept = action.shares


# --- complete -------------------------------------------------------------------------------------


def _complete(
    mirror: Mirror, files: HookStateFiles, request: ModuleRequest, options: Options, done: Done
) -> bytes:
    """Return what Claude Code's own compaction lost. Its summary and the messages that it kept are known
    exactly."""
    from compactd.integrations.hooks.ahead import ask
    from compactd.integrations.hooks.hook import AHEAD_SHARE

    state = mirror.state
    if not state.is_pending or not request.messages:
        return b""
    summary, *rest = request.messages
    known = Conversation(read_messages_file(files.path(".gone"), state.gone_bytes))
    stayed = known.find_kept(_keys_in(rest), len(rest))
    stays = "\n".join(message.text for message in rest if message.text)
    state.summary, state.stays, state.is_told = summary.text, stays, True
    state.stayed = [known.held[at].entry_id for at in stayed]
    # The hook began to read the messages when the compaction began.
    reply = ask(files, state, options, options.deadline_s * AHEAD_SHARE)
    files.socket_path.unlink(missing_ok=True)
    if reply is None:
        from compactd.integrations.hooks.lost_facts import find_lost

        found = find_lost(
            known.held,
            summary.text,
            stays,
            stayed=state.stayed,
            is_told=True,
            folder=state.folder,
            most=options.most_chars,
        )
        text, state.kept = found.text, found.kept
    else:
        text, state.kept = reply.text, reply.kept
    mirror.note_completed(summary.text, [known.held[at] for at in stayed], text)
    write_copies(files, tuple(key for at in stayed for key in known.keys[at]))
    done.did = f"added {len(text):,} characters" if text else "the agent's summary lost no facts"
    return msgspec.json.encode(ModuleAnswer(text=text)) if text else b""
