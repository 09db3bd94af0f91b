"""The usage reports of an imported file: those of its messages, with their times, and those of sub-agents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from compactd.core.history.entries import UsageReported
from compactd.core.tokens.usage import normalise
from compactd.formats.files.session_file import FileRequest, SessionFile
from compactd.protocol.errors import InvalidParams
from compactd.protocol.messages import Message


class FileBills:
    """The usage reports of a file, in its order. Some files report requests whose answers are no messages of
    the session, because a sub-agent made them. They were billed too."""

    def __init__(self, file: SessionFile) -> None:
        self._model = file.model
        self._requests = file.requests
        self._places = {
            one.message_id: at for at, one in enumerate(file.requests) if one.message_id is not None
        }
        self._done = 0

    def reports(self, entry: UsageReported, message: Message) -> Iterator[UsageReported]:
        """Yield the entries for the report of `message`: those of sub-agents before it, then `entry` with the
        time and the model of the answer. Its time is 0 if the file does not say it."""
        at = self._places.get(message.id) if message.id is not None else None
        request = None if at is None else self._requests[at]
        if request is None or at is None:
            yield replace(entry, at=message.created_at or 0.0)
            return
        yield from self._sides(self._requests[self._done : at], entry.epoch)
        self._done = max(self._done, at + 1)
        usage, names_output = normalise(request.usage)
        yield replace(
            entry,
            at=request.at or message.created_at or 0.0,
            usage=usage,
            reported_output=names_output,
            model=self._other_model(request),
        )

    def rest(self, epoch: int) -> Iterator[UsageReported]:
        """Yield the entries for the reports after the last message that has one."""
        yield from self._sides(self._requests[self._done :], epoch)
        self._done = len(self._requests)

    def _sides(self, requests: Sequence[FileRequest], epoch: int) -> Iterator[UsageReported]:
        for request in requests:
            if not request.is_side:
                continue
            try:
                usage, names_output = normalise(request.usage)
            except InvalidParams:
                continue  # a message with such a report has a warning; a sub-agent's is not shown at all
            yield UsageReported(
                at=request.at or 0.0,
                usage=usage,
                epoch=epoch,
                reported_output=names_output,
                is_base=False,
                is_side=True,
                model=self._other_model(request),
            )

    def _other_model(self, request: FileRequest) -> str | None:
        return request.model if request.model and request.model != self._model else None
