"""A filter for imported session files. It keeps the messages, and those settings that only set sizes, if the
sizes are within bounds. It removes all other settings.

The author of a file is a stranger. A model's endpoint or a summary model in the file could send the
conversation, with the user's key, to that stranger. A compaction prompt in the file could control the next
summary. A pin in the file could keep tool output in every later view. A provider's own summary could say what
no person can read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Raw

from compactd.core.authors.authors import is_typed
from compactd.core.budget.limits import Window
from compactd.core.budget.untrusted import UntrustedSettings, resolve, split_untrusted
from compactd.core.budget.usage_report import known_window
from compactd.core.history.entries import (
    Appended,
    Compacted,
    Entry,
    EntryId,
    ModelSet,
    Opened,
    PinSet,
    Queued,
    SettingsSet,
    Snapshot,
    Unqueued,
)
from compactd.formats.files.session_file import MessageLine
from compactd.formats.messages.neutral import decode_message
from compactd.protocol.messages import NULL, Message
from compactd.protocol.settings import GivenSettings, IgnoredSetting
from compactd.session.host import SessionHost
from compactd.session.manager import VERSION

SOURCE = "session/import"
"""The source that is reported to the client for each ignored setting of the file."""


class ImportFilter:
    """A filter that removes from a file's entries or messages what a stranger may not decide, and reports
    what it removed.
    """

    def __init__(self, world: SessionHost) -> None:
        self._world = world
        self._ignored: dict[str, IgnoredSetting] = {}
        self._unpinned = 0
        self._dropped_prompts = 0
        self._provider_summaries = 0
        self._system_prompt: str | None = None

    @property
    def ignored(self) -> tuple[IgnoredSetting, ...]:
        """The settings of the file that were removed, each once."""
        return tuple(self._ignored.values())

    def warnings(self) -> Iterator[str]:
        """Yield warnings about what was removed, and about the system prompt, which is kept but which the
        user should check.
        """
        if "base_url" in self._ignored:
            yield "the `base_url` of the file's model was not imported: give it at session/start to use it"
        if "model" in self._ignored:
            yield "the file's summary model was not imported: give `compaction.model` at session/start"
        others = [name for name in self._ignored if name not in ("base_url", "model")]
        if others:
            were = "was" if len(others) == 1 else "were"
            yield (
                f"{', '.join(others)} {were} not imported: a file may only set sizes, within bounds. Give "
                "the settings that you want at session/start"
            )
        if self._system_prompt:
            yield (
                f"the file contains a system prompt of {len(self._system_prompt):,} characters, which the "
                "model will obey: read it before you go on, or give your own `system_prompt` at session/start"
            )
        if self._dropped_prompts:
            yield (
                f"{self._dropped_prompts} prompts that waited for an answer were not imported: send them "
                "again to have them answered"
            )
        if self._provider_summaries:
            were = "summary was" if self._provider_summaries == 1 else "summaries were"
            yield (
                f"{self._provider_summaries} {were} not imported that only a provider can read: nobody can "
                "check what it says. compactd's own summary of the same messages is used"
            )
        if self._unpinned:
            yield (
                f"{self._unpinned} {'pin was' if self._unpinned == 1 else 'pins were'} not imported: in an "
                "imported file, only messages that a person typed stay pinned"
            )

    def entries(self, entries: Sequence[Entry], session_id: str) -> list[Entry]:
        """Return the filtered entries of a compactd journal, for a new session with the id `session_id`.
        O(entries).
        """
        kept: list[Entry] = []
        waiting: set[str] = set()
        model = next((entry.model for entry in reversed(entries) if isinstance(entry, ModelSet)), None)
        messages = {entry.id: entry.message for entry in entries if isinstance(entry, Appended)}
        for entry in entries:
            match entry:
                case Opened():
                    kept.append(
                        msgspec.structs.replace(
                            entry,
                            id=session_id,
                            v=VERSION,
                            working_dir=None,
                            real_dir=None,
                            imported_dir=entry.working_dir or entry.imported_dir,
                            is_imported=True,
                        )
                    )
                case ModelSet():
                    kept.append(self._model(entry))
                case SettingsSet():
                    kept.append(self._settings(entry, model))
                case Appended():
                    kept.append(self._filter_message(entry))
                case PinSet(pinned=True):
                    kept.append(self._pins(entry, messages))
                case Compacted():
                    self._provider_summaries += entry.provider is not None
                    kept.append(msgspec.structs.replace(entry, provider=None))
                case Snapshot():
                    continue
                case Queued():
                    # The daemon asks a session's model only for prompts of its own clients.
                    waiting.add(entry.turn_id)
                case Unqueued():
                    waiting.discard(entry.turn_id)
                case _:
                    kept.append(entry)
        self._dropped_prompts = len(waiting)
        return kept

    def lines(self, lines: Sequence[MessageLine]) -> list[MessageLine]:
        """Return the filtered messages of another program's session. O(messages)."""
        return [self._line(message, raw) for message, raw in lines]

    def system_prompt(self, prompt: str | None) -> str | None:
        """Return the file's system prompt unchanged, and note it for a warning.

        The prompt is kept because the conversation depends on it. The warning tells the user to read it,
        because a model obeys it.
        """
        self._system_prompt = prompt
        return prompt

    def _model(self, entry: ModelSet) -> ModelSet:
        if entry.base_url is not None:
            reason = "it decides to which server the conversation is sent; give `base_url` at session/start"
            self._ignore(IgnoredSetting(name="base_url", source=SOURCE, reason=reason))
        window = self._bound(GivenSettings(context_window=entry.context_window), entry.model).context_window
        recorded = GivenSettings(context_window=entry.recorded_window)
        return msgspec.structs.replace(
            entry,
            base_url=None,
            context_window=window,
            recorded_window=self._bound(recorded, entry.model).context_window,
        )

    def _settings(self, entry: SettingsSet, model: str | None) -> SettingsSet:
        if entry.system_prompt is not None:
            self.system_prompt(entry.system_prompt)
        entry = msgspec.structs.replace(entry, snapshots=None)
        if entry.compaction == NULL:
            return entry
        given = self._bound(msgspec.json.decode(entry.compaction, type=GivenSettings), model)
        return msgspec.structs.replace(entry, compaction=Raw(msgspec.json.encode(given)))

    def _bound(self, given: GivenSettings, model: str | None) -> UntrustedSettings:
        """Return those of the settings `given` that an imported file may set for this model. The others are
        noted as ignored.
        """
        kept, ignored = split_untrusted(given, SOURCE)
        found = self._world.lookup(model, None)
        window = Window(source="no model is named") if found is None else known_window(found, None)
        _, raised = resolve(((SOURCE, kept), *self._world.layers("", None)), window)
        for one in (*ignored, *raised):
            self._ignore(one)
        return msgspec.structs.replace(kept, **{one.name: None for one in raised})

    def _ignore(self, setting: IgnoredSetting) -> None:
        self._ignored[setting.name] = setting

    def _filter_message(self, entry: Appended) -> Appended:
        # Only a message with `pinned` in its JSON, perhaps written with escapes, must be decoded.
        text = bytes(entry.message)
        if b"pinned" not in text and b"\\u" not in text:
            return entry
        message = decode_message(entry.message)
        if not self._is_false_pin(message):
            return entry
        return msgspec.structs.replace(entry, message=_unpin(entry.message))

    def _line(self, message: Message, raw: Raw) -> MessageLine:
        if message.meta is None or not self._is_false_pin(message):
            return message, raw
        message = msgspec.structs.replace(message, meta=msgspec.structs.replace(message.meta, pinned=False))
        return message, _unpin(raw)

    def _is_false_pin(self, message: Message) -> bool:
        if message.meta is None or not message.meta.pinned or is_typed(message):
            return False
        self._unpinned += 1
        return True

    def _pins(self, entry: PinSet, messages: dict[EntryId, Raw]) -> PinSet:
        typed = tuple(
            entry_id
            for entry_id in entry.entry_ids
            if entry_id in messages and is_typed(decode_message(messages[entry_id]))
        )
        self._unpinned += len(entry.entry_ids) - len(typed)
        return msgspec.structs.replace(entry, entry_ids=typed)


def _unpin(raw: Raw) -> Raw:
    """Return the message without `pinned` in its `meta`, and otherwise unchanged."""
    fields = msgspec.json.decode(raw, type=dict[str, Raw])
    meta = msgspec.json.decode(fields["meta"], type=dict[str, Raw])
    meta.pop("pinned", None)
    return Raw(msgspec.json.encode({**fields, "meta": meta}))
