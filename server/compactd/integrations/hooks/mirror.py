"""Mirror an agent's session: store new messages, and keep what is needed to find facts lost in a compaction.

Two files are used. The *stretch* contains the messages that are in the agent's context now, with their facts.
*gone* contains the messages that the last compaction removed, until their facts were restored.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from compactd.core.authors.authors import is_typed
from compactd.core.extract.facts import FactCache
from compactd.core.history.entries import Item, is_summary
from compactd.core.text.message_text import join_text_blocks
from compactd.core.tokens.counting import Chars4, message_tokens
from compactd.formats.messages.neutral import decode_message
from compactd.formats.messages.neutral_out import encode_message
from compactd.integrations.hooks.events import AgentName
from compactd.integrations.hooks.hook_state import (
    REPORTERS,
    CompactionReporter,
    HookState,
    HookStateFiles,
    MirroredMessage,
    append,
    by_client_id,
    frame_message,
    read_messages_file,
)
from compactd.integrations.hooks.mirror_journal import MirrorJournal
from compactd.integrations.hooks.module_file import message_keys, take_copies
from compactd.integrations.hooks.output_links import NOTHING, LinkedOutputs, find_outputs, without_marks
from compactd.integrations.hooks.transcript_steps import (
    ANSWERS,
    BOUNDARIES,
    RESTORED_ID,
    CompactionStep,
    MessageStep,
    quotations,
    steps_of,
    with_call_names,
    worth_restoring,
)
from compactd.integrations.hooks.transcripts import CHUNK, MAX_TRANSCRIPT_LINE, Transcript, TranscriptPiece
from compactd.protocol.messages import Message, Meta, Text, ToolResult
from compactd.storage.hook_files import REDACTED, message_key, of_all_sessions, read_hashed, with_key

REPEATERS = ("claude-code", "gemini-cli")
"""Agents that write a message again with the same id (Gemini CLI 0.61, run 2026-11; Claude Code 2.1 at its
second compaction: anthropics/claude-code issues 66947 and 92089, 2026).
"""
HUGE = 4_000_000
"""If a transcript has more bytes than this when the hook first sees it, facts are collected only after the
offset that `Mirror._worth_learning` returns.
"""
MAX_CARRIED_BYTES = 65_536
"""After a compaction, the new stretch begins with the newest messages that the user typed, up to this many
bytes.
"""
MAX_SUMMARY_CHARS = 262_144


class Mirror:
    """The mirror of one session. Use it only while you have the lock on the session's hook files."""

    def __init__(self, agent: AgentName, files: HookStateFiles, state: HookState) -> None:
        self.agent: AgentName = agent
        self.state = state
        self._files = files
        self._journal = MirrorJournal(files, agent, state, time.time())
        self._cache = FactCache(state.folder or None)
        self._counter = Chars4()
        self._stretch: list[bytes] = []
        self._ids: list[int] = []
        self._known: set[int] = set()
        """Keys of messages that earlier runs stored. Only filled if the transcript may contain them again."""
        self._met: set[int] = set()
        """Keys of messages that this run stored, if the agent is in `REPEATERS`."""
        self._is_lost = not state.place.path
        """Whether no earlier run saved how far it read. Messages that were stored nevertheless are not stored
        again, but their facts are collected again.
        """
        self._passed = 0
        """The number of messages that were skipped because an earlier run stored them."""
        self._stored_ids: list[str] = []
        """The entry ids of what earlier runs stored, if `_is_lost`."""
        lists = (files.path(REDACTED), of_all_sessions(files.folder, agent))
        self._redacted = read_hashed(files.folder, *lists)
        """Keys of messages that were redacted in a mirror of this agent. The session's transcript, or that of
        a fork, may still contain them.
        """
        self._left: dict[str, MirroredMessage] = {}
        """Messages before the newest compaction, by the agent's ids for them. Some may have stayed in the
        context.
        """
        self._carried: frozenset[str] = frozenset()
        """The entry ids of the messages with which this run began a new stretch."""
        self._is_behind = False
        """Whether this run has read the record of the newest compaction."""
        self._copies: dict[str, int] = {}
        """Keys of messages, and how many such messages there are, that stayed in the context and that the
        agent may write again after the record of the compaction.
        """
        self._answers = 0
        """The number of answers of the model that this run has read since the last compaction."""

    # --- reading --------------------------------------------------------------------------------------

    def catch_up(self, transcript: Transcript, until: float, *, is_open: bool, is_over: bool = False) -> None:
        """Read new lines of the transcript until `time.monotonic` reaches `until`. The next run reads further
        lines. O(new bytes).

        `is_open`: whether the agent is in the middle of a turn. `is_over`: whether it is at the end of a
        turn.
        """
        state = self.state
        is_first = not state.is_caught_up
        if transcript.is_other or self._is_lost or self.agent in REPEATERS:
            self._known = self._known or self._read_ids()
        if self._is_lost and self._known and not self._stored_ids:
            self._stored_ids, notes = self._journal.read_stored()
            state.outputs = {**notes, **state.outputs}
        if not state.place.path and transcript.size > HUGE:
            state.learn_from = self._worth_learning(transcript)
        if transcript.is_other:
            state.learn_from = 0
            state.between = None
        for piece in self._pieces(transcript):
            data = self._without_unfinished(piece, transcript) if is_open else piece.data
            is_last = is_over and piece.end >= transcript.size
            steps, state.between = steps_of(self.agent, data, state.between, is_last=is_last)
            for step in steps:
                if isinstance(step, CompactionStep):
                    self._add_recorded(step)
                else:
                    self._add_message(step, learn=piece.end > state.learn_from)
            if len(data) < len(piece.data):
                state.is_caught_up = True
                break
            if time.monotonic() > until:
                break
        if is_first and state.is_pending and self._answers > 0:
            # The compaction happened before compactd was installed, and the agent has continued since.
            self._settle()
        state.is_caught_up |= transcript.is_read
        state.place = transcript.place()

    def _pieces(self, transcript: Transcript) -> Iterable[TranscriptPiece]:
        if self.agent != "gemini-cli":
            return transcript.pieces(CHUNK)
        if transcript.place().path.endswith(".json"):
            whole = transcript.whole()
            return () if whole is None else (whole,)
        # Gemini CLI writes an answer again after its calls are done. One read sees only the last version.
        return transcript.pieces(MAX_TRANSCRIPT_LINE // 2)

    def _without_unfinished(self, piece: TranscriptPiece, transcript: Transcript) -> bytes:
        """Return the lines of `piece`. For Gemini CLI, which may write its last answer again, return only the
        lines before that answer, and move the transcript's read position back to the answer.
        """
        if self.agent != "gemini-cli" or piece.start == 0 == transcript.place().offset:
            return piece.data
        at = piece.data.rfind(ANSWERS["gemini-cli"])
        if at < 0:
            return piece.data
        begin = piece.data.rfind(b"\n", 0, at) + 1
        transcript.rewind_to(piece.start + begin)
        return piece.data[:begin]

    def _worth_learning(self, transcript: Transcript) -> int:
        """Return the offset in the transcript from which on facts are collected.

        That is the offset of the last compaction, because the next one removes only later messages. If no
        answer followed the last compaction, its lost facts may still have to be restored; then it is the
        offset of the compaction before.
        """
        bounds = transcript.find_last_lines(*BOUNDARIES[self.agent])
        if not bounds:
            return 0
        if transcript.contains(ANSWERS[self.agent], bounds[0]):
            return bounds[0]
        return bounds[1] if len(bounds) > 1 else 0

    # --- messages -------------------------------------------------------------------------------------

    def _add_message(self, step: MessageStep, *, learn: bool) -> None:
        message = with_call_names(step.message, self.state.calls)
        key = message_key(message.id or step.raw)
        if self._redacted:
            message = self._without_redacted(message, step.raw)
        outputs = find_outputs(message, self.state.outputs) if self.state.outputs else NOTHING
        if outputs.is_redacted:
            from compactd.core.redaction.blank_message import blank

            message = blank(message)
        if self._is_behind and message.id is not None and message.id in self._left:
            self._note_stayed(self._left.pop(message.id))
            return
        if self._copies and self._is_copy(message, key):
            return
        is_known = self._is_known(key)
        if self._is_met(key, message.id) or (is_known and not self._is_lost):
            return
        raw = step.raw if message is step.message else encode_message(message)
        tokens = message_tokens(message, self._counter)
        self._note_outputs(message, outputs)
        if is_known:
            entry_id = self._next_stored_id()
        else:
            entry_id = self._journal.add(message, raw, tokens, message.id, outputs.links)
            self._ids.append(key)
        self._answers += message.role == "assistant"
        said = worth_restoring(without_marks(message) if outputs.links else message) if learn else None
        if said is not None:
            raw = raw if said is message else encode_message(said)
            self._stretch.append(frame_message(self._mirrored_message(entry_id, said, raw, tokens)))

    def _next_stored_id(self) -> str:
        """Return the entry id of the next message or compaction that an earlier run stored."""
        self._passed += 1
        known = self._stored_ids
        return known[self._passed - 1] if self._passed <= len(known) else f"e{self._passed}"

    def _note_outputs(self, message: Message, outputs: LinkedOutputs) -> None:
        """Forget the reduced outputs in a message that is stored, and count whether the agent used them."""
        state = self.state
        for block in message.content if outputs.links else ():
            if isinstance(block, ToolResult):
                state.outputs.pop(block.call_id, None)
        state.ignored = 0 if outputs.reduced else state.ignored + outputs.ignored

    def _without_redacted(self, message: Message, raw: bytes) -> Message:
        """Return the message; if it was redacted, a copy with a mark instead of its content."""
        from compactd.core.redaction.blank_message import blank, message_words

        names = (message.id or raw, raw, encode_message(message), message_words(message))
        return blank(message) if any(map(self._redacted.contains, map(message_key, names))) else message

    def _is_known(self, key: int) -> bool:
        """Return whether an earlier run stored the message or compaction with this key. For redacted
        messages, keyed hashes are stored instead of keys.
        """
        secret = self._redacted.secret
        return key in self._known or (bool(secret) and with_key(key, secret) in self._known)

    def _is_met(self, key: int, id: str | None) -> bool:
        """Return whether this run has already stored the message or compaction with this key, and note that
        it has. Only agents in `REPEATERS` write a message or compaction twice.
        """
        is_met = key in self._met
        if id and self.agent in REPEATERS:
            self._met.add(key)
        return is_met

    def _mirrored_message(self, entry_id: str, message: Message, raw: bytes, tokens: int) -> MirroredMessage:
        item = Item(entry_id=entry_id, body=message, tokens=tokens)
        facts = self._cache.learn(item)
        # The facts are needed only once, and a message that is read again may get the id of another entry.
        self._cache.forget(entry_id)
        return MirroredMessage(
            entry_id=entry_id,
            message=raw,
            tokens=tokens,
            client_id=message.id or "",
            facts=facts,
            is_typed=is_typed(message)
            and not any(isinstance(block, ToolResult) for block in message.content),
            is_summary=is_summary(message),
        )

    # --- compactions ----------------------------------------------------------------------------------

    def _add_recorded(self, step: CompactionStep) -> None:
        """Handle a compaction that the transcript records."""
        key = message_key(step.id or step.summary)
        if self._redacted:
            from compactd.core.redaction.scrub import MARK

            # What the agent kept word for word may contain what was redacted.
            is_redacted = self._redacted.contains(key) or self._redacted.contains(message_key(step.summary))
            step = replace(step, summary=MARK if is_redacted else step.summary, stays="")
        if self._is_met(key, step.id):
            return
        if not self._is_known(key):
            self._ids.append(key)
            tokens = self._counter.count(step.summary)
            self._journal.add_compaction(step.summary, tokens, is_own=step.is_own)
        elif self._is_lost:
            self._next_stored_id()
        else:
            return
        is_new = self._note_announcement("record")
        if not is_new and self.state.is_pending:
            self._add_late()
        if is_new or (self.state.is_pending and not self.state.is_told):
            self._set_summary(step.summary, step.stays)
        if self.state.is_pending:
            self._kept_messages(step)
        elif not is_new and self.state.gone_bytes:
            self._kept_messages(step)
            self._keep_as_carried()
            self._drop_gone()
        if step.is_own and self.state.is_pending:
            from compactd.integrations.hooks.session_compact import settle_recorded

            settle_recorded(self, self._files, step.summary)
        self._copies = take_copies(self._files) if self.agent == "claude-code" else {}
        self._is_behind = True
        # After a compaction, Gemini CLI adds an answer in which its model acknowledges the summary.
        self._answers = -1 if self.agent == "gemini-cli" else 0

    def note_compaction(self, summary: str) -> None:
        """Handle an event that reports a compaction, with its summary if the agent passes it."""
        if (self._note_announcement("after") or not self.state.is_told) and summary:
            self._set_summary(summary, "")

    def newest_role(self) -> str:
        """Return the role of the newest message in the agent's context; empty if there is none.
        O(context)."""
        self._flush()
        held = read_messages_file(self._files.path(".stretch"), self.state.stretch_bytes)
        newest = next((one for one in reversed(held) if one.client_id), None)
        return "" if newest is None else decode_role(newest.message)

    def note_start(self, summary: str, *, is_auto: bool = False) -> None:
        """Handle the start event that an agent sends after a compaction. `summary`: the agent's summary, if
        an earlier event passed it. `is_auto`: whether the agent compacted by itself.
        """
        is_new = self._note_announcement("start")
        if summary and (is_new or (self.state.is_pending and not self.state.is_told)):
            self._set_summary(summary, "")
        if is_new and self.agent == "claude-code":
            self._assume_kept(is_auto=is_auto)

    def clear(self) -> None:
        """Handle the start event of an empty context: nothing of the previous messages has to be restored."""
        self._flush()
        state = self.state
        state.is_pending = False
        state.stretch_bytes = state.carried_bytes = 0
        state.turns = 0

    def note_history(self) -> None:
        """Record that the session's earlier compactions were before the hook's first event, so that no event
        will report them.
        """
        state = self.state
        if state.is_caught_up:
            for reporter in REPORTERS:
                state.counts[reporter] = max(state.counts.get(reporter, 0), state.compactions)

    def _note_announcement(self, by: CompactionReporter) -> bool:
        """Record that `by` (the transcript or an event) reported a compaction. Return True if it is the first
        report of that compaction.
        """
        counts, state = self.state.counts, self.state
        if state.compactions and not self._stretch and state.stretch_bytes == state.carried_bytes:
            # Nothing was said since the last compaction, so this is the same one.
            counts[by] = state.compactions
            return False
        number = counts[by] = counts.get(by, 0) + 1
        if number <= state.compactions:
            return False
        for other in REPORTERS:
            # A source that did not report the last compaction will not report it any more.
            counts[other] = max(counts.get(other, 0), number - 1)
        state.compactions = number
        self._rotate()
        return True

    def _set_summary(self, summary: str, stays: str) -> None:
        state = self.state
        state.summary, state.stays, state.is_told = summary[:MAX_SUMMARY_CHARS], stays, True
        self._carry_over(summary, "summary-")

    def _rotate(self) -> None:
        """Move the stretch (the messages in the agent's context so far) to the file *gone*, because they were
        compacted. Begin a new stretch with the newest messages that the user typed.
        """
        self._flush()
        state, files = self.state, self._files
        held = read_messages_file(files.path(".stretch"), state.stretch_bytes)
        if held:
            files.path(".stretch").replace(files.path(".gone"))
        else:
            files.path(".gone").unlink(missing_ok=True)
        state.gone_bytes = state.stretch_bytes if held else 0
        state.is_pending, state.is_told, state.attempts = bool(held), False, 0
        state.are_limits_given = False
        state.summary = state.stays = ""
        state.stayed = []
        state.turns = 0
        self._is_behind = False
        self._left = by_client_id(held)
        left = MAX_CARRIED_BYTES
        carried: list[MirroredMessage] = []
        for one in reversed(held):
            if one.is_typed and len(one.message) <= left:
                left -= len(one.message)
                carried.append(one)
        self._carried = frozenset(one.entry_id for one in carried)
        data = b"".join(frame_message(one) for one in reversed(carried))
        state.stretch_bytes = append(files.path(".stretch"), 0, data)
        state.carried_bytes = state.stretch_bytes

    def _carry_over(self, summary: str, name: str) -> None:
        """Add `summary`, which is the agent's summary or a restored text, to the new stretch, because the
        next compaction will remove it. `name`: the beginning of its entry id.
        """
        if not summary:
            return
        message = Message(
            role="user", content=(Text(text=summary),), meta=Meta(type="compaction_summary", synthetic=True)
        )
        raw = encode_message(message)
        tokens = self._counter.count(summary)
        entry_id = f"{name}{self.state.compactions}"
        self._stretch.append(frame_message(self._mirrored_message(entry_id, message, raw, tokens)))
        self._keep_as_carried()

    def _kept_messages(self, step: CompactionStep) -> None:
        """Handle the messages of which the record of a compaction says that they stayed in the context."""
        state = self.state
        if not self._left and state.gone_bytes and self.agent in REPEATERS:
            # An earlier run handled the compaction.
            gone = read_messages_file(self._files.path(".gone"), state.gone_bytes)
            self._left = by_client_id(one for one in gone if one.entry_id not in state.stayed)
        names = list(self._left)
        kept = list(step.kept)
        if step.first_kept in self._left:
            end = names.index(step.last_kept) + 1 if step.last_kept in self._left else len(names)
            kept += names[names.index(step.first_kept) : end]
        for client_id in kept:
            if client_id in self._left:
                self._note_stayed(self._left.pop(client_id))

    def _assume_kept(self, *, is_auto: bool) -> None:
        """Handle the messages that Claude Code is known to keep before its record says so. "Summarize from
        here" keeps none of them, which no event says.
        """
        for held in newest_answer(list(self._left.values()), is_auto=is_auto):
            self._note_stayed(self._left.pop(held.client_id))
        self._keep_as_carried()

    def _keep_as_carried(self) -> None:
        """Count everything in the stretch as coming from before the last compaction."""
        self._flush()
        self.state.carried_bytes = self.state.stretch_bytes

    def _note_stayed(self, held: MirroredMessage) -> None:
        """Add a message from before the compaction to the new stretch (the messages in the agent's context
        now), because it stayed there.
        """
        state = self.state
        state.stayed.append(held.entry_id)
        if held.entry_id not in self._carried:
            self._stretch.append(frame_message(held))
        if not state.is_pending:
            return
        state.stays = f"{state.stays}{kept_text([held])[0]}"[:MAX_SUMMARY_CHARS]

    def _add_late(self) -> None:
        """Move messages from the stretch to *gone* (the removed messages): those that came before the
        compaction, but that the agent wrote to its transcript after the compaction was reported.
        """
        self._flush()
        state, files = self.state, self._files
        with files.path(".stretch").open("rb") as file:
            file.seek(state.carried_bytes)
            late = file.read(state.stretch_bytes - state.carried_bytes)
        if late:
            state.gone_bytes = append(files.path(".gone"), state.gone_bytes, late)
            state.stretch_bytes = append(files.path(".stretch"), state.carried_bytes, b"")

    def note_given_back(self, text: str) -> None:
        """Record that the facts of the last compaction were restored as `text`, or that there were none."""
        self._carry_over(quotations(text), RESTORED_ID)
        self._settle()

    def flush(self) -> None:
        """Write the messages that this run read to the file `.stretch`. Raise `OSError`."""
        self._flush()

    def note_replaced(self, summary: str, stayed: Iterable[MirroredMessage]) -> None:
        """Record that a summary of compactd replaced the messages, except those in `stayed`. Nothing has to
        be restored.
        """
        self._begin_with(summary, stayed)
        self._settle()
        self._drop_gone()

    def note_completed(self, summary: str, stayed: Iterable[MirroredMessage], text: str) -> None:
        """Record the agent's `summary`, that the messages `stayed` are still in the context, and that lost
        facts were restored as `text`.
        """
        self._begin_with(summary, stayed)
        self.note_given_back(text)
        self._drop_gone()

    def _begin_with(self, summary: str, stayed: Iterable[MirroredMessage]) -> None:
        """Begin the stretch again: what was typed before the compaction, the summary, and the messages that
        stayed.
        """
        path, state = self._files.path(".stretch"), self.state
        self._flush()
        kept = {one.entry_id: one for one in stayed}
        carried = [
            frame_message(one)
            for one in read_messages_file(path, state.stretch_bytes)
            if one.is_typed and one.entry_id not in kept
        ]
        state.stretch_bytes = append(path, 0, b"".join(carried))
        self._set_summary(summary, "")
        self._stretch.extend(map(frame_message, kept.values()))
        self._flush()
        state.carried_bytes = state.stretch_bytes

    def _is_copy(self, message: Message, key: int) -> bool:
        """Return whether the agent wrote a message that stayed in the context again, with another id."""
        keys = message_keys(message)
        is_copy = any(self._copies.get(key) for key in keys)
        if not is_copy and worth_restoring(message) is not None:
            self._copies.clear()
            return False
        # A program's message before another copy is a copy too; the mirror does not keep its text.
        for text in keys:
            if text in self._copies and not text.startswith(("call:", "result:")):
                self._copies[text] -= 1
        self._ids.append(key)
        return True

    def _settle(self) -> None:
        self.state.is_pending = False
        self.state.summary = self.state.stays = ""
        if self.agent != "claude-code" or self.state.counts.get("record", 0) >= self.state.compactions:
            self._drop_gone()
        # Otherwise the record will say which of the removed messages stayed.

    def _drop_gone(self) -> None:
        self.state.stayed = []
        self.state.gone_bytes = 0
        self._files.path(".gone").unlink(missing_ok=True)

    # --- files ----------------------------------------------------------------------------------------

    def write(self) -> bool:
        """Write the new messages, their ids and the journal to disk. Return False if the journal could not be
        written. Raise `OSError` if another file could not.
        """
        self._flush()
        if self._ids:
            import array

            path = self._files.path(".ids")
            size = path.stat().st_size if path.exists() else 0
            append(path, size, array.array("Q", self._ids).tobytes())
            self._ids.clear()
        return self._journal.write()

    def _flush(self) -> None:
        if self._stretch:
            state = self.state
            data = b"".join(self._stretch)
            state.stretch_bytes = append(self._files.path(".stretch"), state.stretch_bytes, data)
            self._stretch.clear()

    def _read_ids(self) -> set[int]:
        import array

        found = array.array("Q")
        try:
            data = self._files.path(".ids").read_bytes()
        except OSError:
            return set()
        found.frombytes(data[: len(data) // 8 * 8])
        return set(found)


def newest_answer(held: Sequence[MirroredMessage], *, is_auto: bool) -> list[MirroredMessage]:
    """Return the model's last answer in `held` (oldest first) and the tool results after it; empty if there
    is no answer. Claude Code keeps at least these (2.1.197, 2.1.240 and 2.1.330, run 2026-11). If it compacts
    by itself (`is_auto`), it also keeps the prompt that it is about to answer.
    """
    newest: list[MirroredMessage] = []
    for one in reversed(held):
        role = decode_role(one.message) if one.client_id else ""
        if role in ("assistant", "tool") or (role == "user" and is_auto):
            newest.append(one)
        if role == "assistant":
            return newest[::-1]
    return []


def decode_role(message: bytes) -> str:
    """Return the role of a message in neutral form."""
    return decode_message(message).role


def kept_text(kept: Iterable[MirroredMessage]) -> tuple[str, list[str]]:
    """Return (the text of the messages that stayed in the context, each after a line end; their ids)."""
    text, names = "", list[str]()
    for one in kept:
        words = join_text_blocks(decode_message(one.message).content)
        text += f"\n{words}" if words else ""
        names.append(one.entry_id)
    return text, names
