"""The usage reports of an imported file: those of its messages, with their times, and those of answers that
are no messages of the session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from compactd.core.history.entries import UsageReported
from compactd.core.tokens.usage import normalise
from compactd.formats.files.session_file import FileRequest, SessionFile
from compactd.protocol.errors import InvalidParams
from compactd.protocol.messages import Message


class FileBills:
    """The usage reports of a file, in its order. Some belong to no message of the session: those of
    sub-agents, of aborted and failed answers, and of branches that were left. They were billed too."""

    def __init__(self, file: SessionFile) -> None:
        self._model = file.model
        self._requests = file.requests
        self._answers = {one.place: at for at, one in enumerate(file.requests) if one.is_answer}
        self._done = 0

    def reports(self, entry: UsageReported, message: Message, place: int) -> Iterator[UsageReported]:
        """Yield the entries for the report of `message`, which is at `place` in the file: the reports before
        it that belong to no message, then `entry` with the time, the model and the cost of the answer. Its
        time is 0 if the file does not say it."""
        at = self._answers.get(place)
        if at is None:
            yield replace(entry, at=message.created_at or 0.0)
            return
        request = self._requests[at]
        yield from self._others(self._requests[self._done : at], entry.epoch)
        self._done = max(self._done, at + 1)
        usage, names_output = normalise(request.usage)
        yield replace(
            entry,
            at=request.at or message.created_at or 0.0,
            usage=usage,
            reported_output=names_output,
            model=self._other_model(request),
            reported_cost=request.cost,
        )

    def before(self, place: int, epoch: int) -> Iterator[UsageReported]:
        """Yield the entries for the reports that belong to no message, up to the message at `place`."""
        end = self._done
        while end < len(self._requests) and self._requests[end].place <= place:
            end += 1
        yield from self._others(self._requests[self._done : end], epoch)
        self._done = end

    def rest(self, epoch: int) -> Iterator[UsageReported]:
        """Yield the entries for the reports after the last message that has one."""
        yield from self._others(self._requests[self._done :], epoch)
        self._done = len(self._requests)

    def _others(self, requests: Sequence[FileRequest], epoch: int) -> Iterator[UsageReported]:
        for request in requests:
            if request.is_answer:
                continue
            try:
                usage, names_output = normalise(request.usage)
            except InvalidParams:
                continue  # a message with such a report has a warning; other answers are not shown at all
            yield UsageReported(
                at=request.at or 0.0,
                usage=usage,
                epoch=epoch,
                reported_output=names_output,
                is_base=False,
                is_side=bool(request.chain),
                model=self._other_model(request),
                chain=request.chain,
                reported_cost=request.cost,
            )

    def _other_model(self, request: FileRequest) -> str | None:
        return request.model if request.model and request.model != self._model else None
