"""What a session's view already shows of tool outputs, kept up to date with the view."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from compactd.core.history.entries import EntryId, Item, OutputLink, number_of
from compactd.core.history.outputs import ReducedOutputs
from compactd.core.history.state import SessionState
from compactd.core.reduce.output import ToolOutput
from compactd.core.reduce.shown import ShownLines
from compactd.core.text.tool_results import text_of_result
from compactd.core.work.file_operations import arguments_of
from compactd.protocol.messages import Message, ToolCall, ToolResult


class ViewNews(Struct, frozen=True):
    """What came to a view since `ShownView.follow` last read it."""

    epoch: int
    items: Sequence[Item]
    """The new messages; all messages if the view has changed otherwise."""
    loose: tuple[EntryId, ...]
    """The outputs that were reduced and that no message shows yet. The client shows them to its model."""
    outputs: ReducedOutputs


class ShownView:
    """The tool outputs that one session's view shows. Use it in one thread at a time.

    A text counts as shown only while it is in the view. A compaction, prune, undo, branch or redaction makes
    another view, and all is read again.
    """

    def __init__(self) -> None:
        self._start(0)

    def _start(self, epoch: int) -> None:
        self._epoch = epoch
        self._count = 0
        self._lines = ShownLines()
        self._loose: set[EntryId] = set()
        self._calls: dict[str, ToolCall] = {}

    def news(self, state: SessionState) -> ViewNews:
        """Return what `follow` has to read. Call it on the event loop. O(new messages)."""
        is_same = state.view_epoch == self._epoch and len(state.items) >= self._count
        return ViewNews(
            epoch=state.view_epoch,
            items=tuple(state.items[self._count if is_same else 0 :]),
            loose=tuple(state.outputs.loose),
            outputs=state.outputs,
        )

    @property
    def lines(self) -> ShownLines:
        """The lines that the view shows, as far as `follow` has read."""
        return self._lines

    def call(self, call_id: str) -> ToolCall | None:
        """Return the call with this id that the view has no result for, if there is one."""
        return self._calls.get(call_id)

    def follow(self, news: ViewNews) -> None:
        """Read on. O(length of the new messages)."""
        if news.epoch != self._epoch:
            self._start(news.epoch)
        loose = [entry_id for entry_id in reversed(news.loose) if entry_id not in self._loose]
        for item in news.items:
            number = number_of(item.entry_id) or 0
            while loose and (number_of(loose[-1]) or 0) < number:
                self._add_loose(loose.pop(), news.outputs)
            self._read(item.decoded().message, item.entry_id, news.outputs)
        while loose:
            self._add_loose(loose.pop(), news.outputs)
        self._count += len(news.items)

    def _add_loose(self, entry_id: EntryId, outputs: ReducedOutputs) -> None:
        self._loose.add(entry_id)
        self._lines.add(entry_id, output_of(outputs, entry_id, outputs.entries[entry_id].shown))

    def _read(self, message: Message, entry_id: EntryId, outputs: ReducedOutputs) -> None:
        links = outputs.links.get(entry_id, ())
        for at, block in enumerate(message.content):
            if isinstance(block, ToolCall):
                self._calls[block.call_id] = block
            elif isinstance(block, ToolResult):
                call = self._calls.pop(block.call_id, None)
                self._add(block, call, entry_id, [link for link in links if link.block == at], outputs)

    def _add(
        self,
        result: ToolResult,
        call: ToolCall | None,
        entry_id: EntryId,
        links: Sequence[OutputLink],
        outputs: ReducedOutputs,
    ) -> None:
        text = text_of_result(result)
        if len(links) != 1:
            self._lines.add(entry_id, given_output(result, call, text))
            return
        # The original's id leads to all of the text, so marks name it and not the message.
        output = links[0].output
        if output in self._loose:
            # It now is where its message is.
            self._loose.discard(output)
            self._lines.forget(output)
        self._lines.add(output, output_of(outputs, output, text))


def output_of(outputs: ReducedOutputs, entry_id: EntryId, text: str) -> ToolOutput:
    """Return the reduced output `entry_id` with `text` in place of its own. O(arguments)."""
    entry = outputs.entries[entry_id]
    call = ToolCall(call_id="", name=entry.name, arguments=entry.arguments)
    return ToolOutput(entry.name, arguments_of(call), text, entry.is_error)


def given_output(result: ToolResult, call: ToolCall | None, text: str) -> ToolOutput:
    """Return a tool result, with `text` as its text, as the output of `call`; None if its call is not
    known. O(arguments)."""
    name = result.name or (call.name if call is not None else "")
    return ToolOutput(name, {} if call is None else arguments_of(call), text, result.is_error)
