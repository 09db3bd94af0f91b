"""`CompactdEngine`: Hermes' context engine that has compactd compact."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from compactd.client import Json
from compactd.integrations.frameworks import recall
from compactd.integrations.frameworks.engine import SessionOptions, engine_of
from compactd.integrations.frameworks.hermes import archive, refusals
from compactd.integrations.frameworks.hermes.measured_engine import MeasuredEngine
from compactd.integrations.frameworks.hermes.messages import Message, history_of
from compactd.integrations.frameworks.hermes.shown import messages_of, shown
from compactd.integrations.frameworks.hermes.versions import TESTED
from compactd.integrations.frameworks.history import Setup
from compactd.integrations.frameworks.mirror import Mirror

NAME: Final = "compactd"
PREFIX: Final = "hermes:"


class CompactdEngine(MeasuredEngine):
    """Compacts a conversation of Hermes without a model: `ctx.register_context_engine(CompactdEngine())`.

    It holds options and numbers only, so Hermes may copy and pickle it.
    """

    compacts_outside_compress = False
    """For hosts that ask: nothing but `compress` changes a conversation."""

    def __init__(
        self,
        *,
        context_window: int | None = None,
        compaction: Mapping[str, Json] | None = None,
        recall: bool = True,
        persist: bool = True,
        working_dir: str | None = None,
        command: Sequence[str] | None = None,
    ) -> None:
        """`context_window`: the most tokens of a request, if that is less than the model's window.
        `compaction`: settings of compactions. `recall`: whether the model gets a tool that looks up what was
        said earlier. `persist`: whether sessions are kept on disk. `command`: the one that starts the daemon;
        None: this Python's. Raise `ValueError` for settings that do not exist.
        """
        options = SessionOptions(
            client="hermes",
            tested=TESTED,
            context_window=context_window,
            compaction=None if compaction is None else dict(compaction),
            working_dir=working_dir,
            persist=persist,
        )
        super().__init__(options, command)
        self.recall = recall
        self._system_prompt = ""

    @property
    def name(self) -> str:
        """Return the engine's name in Hermes' configuration."""
        return NAME

    # --- the conversation -------------------------------------------------------------------------------

    def compress(
        self,
        messages: list[Message],
        current_tokens: int | None = None,
        focus_topic: str | None = None,
        force: bool = False,
    ) -> list[Message]:
        """Return the messages that the next request shall contain: a summary, and the newest messages as they
        are. If that fails, return `messages`.

        `focus_topic`: what the summary should pay special attention to. `force`: a person asked for it.
        """
        compacted = engine_of(self.command).guard(
            lambda: self._compacted(messages, focus_topic, is_wanted=force or bool(focus_topic)), TESTED
        )
        if compacted is None or compacted == messages:
            return messages
        self.compression_count += 1
        self._is_waiting = True
        return compacted

    def _compacted(
        self, messages: list[Message], focus: str | None, *, is_wanted: bool
    ) -> list[Message] | None:
        """Return the shortened messages; None if the daemon cannot be reached."""
        mirror, name = self._mirror(), self._name()
        whole = archive.whole_history(name, messages)
        history, setup = history_of(whole, self._usages), self._setup()
        refused = refusals.take(self._id)
        if refused is not None and mirror.record(history, setup):
            answer = mirror.failed(refused)
            if answer is not None and answer.overflow:
                self._learn_window(mirror, answer.compaction)
                setup = self._setup()
        view = mirror.prepare(history, setup)
        if view is None:
            return None
        self._usages = []
        placed = shown(view.items, whole)
        if is_wanted or messages_of(placed) == messages:
            # Hermes counts more than compactd does, or a person asks for it.
            mirror.compact(history, setup, focus)
            view = mirror.prepare(history, setup) or view
            placed = shown(view.items, whole)
        if view.is_whole:
            return messages
        archive.remember(name, placed, whole)
        return messages_of(placed)

    def on_session_start(self, session_id: str, **kwargs: Any) -> None:
        """Use the session of a conversation. After a compaction, Hermes may give the conversation another id;
        it keeps its session.
        """
        if kwargs.get("boundary_reason") == "compression":
            archive.continue_as(session_id, str(kwargs.get("old_session_id") or self._id))
        else:
            self._forget_numbers()
        self._id = session_id

    def on_session_end(self, session_id: str, messages: list[Message]) -> None:
        """Give the session what it does not have yet."""
        self._record(messages)

    def on_session_reset(self) -> None:
        """Forget the numbers of the last conversation."""
        super().on_session_reset()
        self._forget_numbers()

    def on_turn_complete(
        self, messages: list[Message], usage: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        """Give the session what a turn said. Hermes calls this in versions after 0.19.0."""
        self._record(messages)

    def select_context(
        self,
        request_messages: list[Message],
        *,
        conversation_messages: list[Message] | None = None,
        incoming_message: Message | None = None,
        budget_tokens: int = 0,
    ) -> list[Message] | None:
        """Return what a request shall contain if it would be too large; None if it stays as it is. The
        conversation does not change. Hermes calls this in versions after 0.19.0.
        """
        if not conversation_messages:
            return None
        return engine_of(self.command).guard(
            lambda: self._selected(request_messages, conversation_messages), TESTED
        )

    def _selected(self, request: list[Message], messages: list[Message]) -> list[Message] | None:
        head = len(request) - len(messages)
        if head < 0 or any(
            one.get("role") != other.get("role") for one, other in zip(request[head:], messages, strict=True)
        ):
            return None
        name = self._name()
        whole = archive.whole_history(name, messages)
        self._system_prompt = "\n\n".join(
            str(message.get("content") or "") for message in request[:head] if message.get("role") == "system"
        )
        view = self._mirror().prepare(history_of(whole, self._usages), self._setup())
        if view is None:
            return None
        self._usages = []
        placed = shown(view.items, whole)
        if messages_of(placed) == messages:
            return None
        # The request's own copies may have texts that the conversation lacks.
        first = len(whole) - len(messages)
        copies = dict(enumerate(request[head:], first)) if whole[first:] == messages else {}
        return request[:head] + [
            copies.get(place, message) if place is not None and message == whole[place] else message
            for message, place in placed
        ]

    def _record(self, messages: Sequence[Message]) -> None:
        if not messages:
            return

        def recorded() -> None:
            whole = archive.whole_history(self._name(), messages)
            if self._mirror().record(history_of(whole, self._usages), self._setup()):
                self._usages = []

        engine_of(self.command).guard(recorded, TESTED)

    # --- the past ---------------------------------------------------------------------------------------

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """Return the recall tool."""
        if not self.recall:
            return []
        return [{"name": recall.NAME, "description": recall.DESCRIPTION, "parameters": _PARAMETERS}]

    def handle_tool_call(self, name: str, args: dict[str, Any], **kwargs: Any) -> str:
        """Return what was said earlier, as JSON with the text in `record`."""
        if name != recall.NAME:
            return json.dumps({"error": f"there is no tool {name!r}"})
        self._record(kwargs.get("messages") or ())
        query, ids, start = args.get("query"), args.get("entry_ids"), args.get("start")
        ids = [ids] if isinstance(ids, str) else ids if isinstance(ids, list) else []
        text = self._mirror().recall(
            query if isinstance(query, str) else "",
            [each for each in ids if isinstance(each, str)],
            start if isinstance(start, int) else 0,
        )
        return json.dumps({"record": text}, ensure_ascii=False)

    # --- for people -------------------------------------------------------------------------------------

    def session(self) -> Mirror:
        """Return the session of the conversation. Its `state()` says how full the context is and what was
        billed.
        """
        return self._mirror()

    def _name(self) -> str:
        return PREFIX + archive.root_of(self._id)

    def _mirror(self) -> Mirror:
        return engine_of(self.command).mirror(self._name(), self.options)

    def _setup(self) -> Setup:
        return Setup(model=self._model, context_window=self._window(), system_prompt=self._system_prompt)


_PARAMETERS: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": recall.QUERY},
        "entry_ids": {"type": "array", "items": {"type": "string"}, "description": recall.ENTRY_IDS},
        "start": {"type": "integer", "description": recall.START},
    },
    "additionalProperties": False,
}
