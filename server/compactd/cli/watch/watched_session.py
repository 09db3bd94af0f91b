"""Compute how full the context of a session is while an agent appends to the session's file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import monotonic

from msgspec import Struct

from compactd.cli.framework.load_file import load_session
from compactd.cli.framework.model_facts import ModelFacts
from compactd.cli.inspect.growth import Forecast
from compactd.cli.inspect.meter import Meter
from compactd.cli.watch.tail import FileGone, Tail, TailNews
from compactd.core.budget.budget import is_due
from compactd.core.budget.recorded_window import Evidence, accepted_sizes
from compactd.core.tokens.counting import system_tokens, tool_tokens
from compactd.formats.agents.pi import BranchChanged
from compactd.formats.files.detect import detect, read
from compactd.formats.files.directory_session import gather
from compactd.formats.files.incremental import IncrementalReader, incremental_reader
from compactd.formats.messages.tools import decode_tool
from compactd.protocol.errors import CompactdError

END_BYTES = 4_000_000
"""A file with more bytes than this is parsed only in part: the first `HEAD_BYTES`, the lines about
compactions, and the last `END_BYTES`. It is parsed as a whole if its end contains no usage report.
"""
HEAD_BYTES = 65_536
"""How many bytes at the beginning of a long file are parsed (see `END_BYTES`). They contain the session's
model and system prompt.
"""
BOUNDARY = b'"compactMetadata"'
REPORT = b'"usage"'
REREAD_WAIT_FACTOR = 50
"""A file that must be parsed as a whole is parsed again only after a pause: this many times as long as
parsing it took.
"""


LimitsOf = Callable[[str | None, Sequence[Evidence], Sequence[int]], ModelFacts]
"""A function that returns the limits of a model (None: of an unknown one), from its name and from what the
session's file shows about the window: evidence, and sizes in tokens of answered requests.
"""


class ContextReading(Struct, frozen=True, kw_only=True):
    """How full the context is. Sizes are in tokens."""

    file: Path
    format: str
    used: int
    source: str
    """Where `used` comes from: `measured` (the provider's usage report), `mixed` (that report plus an
    estimate of the messages after it) or `estimated`.
    """
    limits: ModelFacts
    forecast: Forecast | None
    compactions: int

    @property
    def percent(self) -> float | None:
        """The fill in percent of the window; None if the window is unknown."""
        window = self.limits.window
        return 100 * self.used / window if window else None

    @property
    def is_due(self) -> bool:
        """Whether a compaction of compactd would be due."""
        return is_due(self.used, self.limits.threshold)


class Unreadable(Struct, frozen=True):
    """Why no session could be read."""

    reason: str
    is_gone: bool = False
    """True if the file is missing or empty, so that the last `ContextReading` is out of date."""


class Watched:
    """One session file that another process writes. Call `look` repeatedly to follow it."""

    def __init__(self, path: Path, limits_of: LimitsOf) -> None:
        self.path = path
        self._limits_of = limits_of
        self._tail = Tail(path)
        self._format: str | None = None
        self._growing: IncrementalReader | None = None
        self._meter: Meter | None = None
        self._skipped: list[int] = []
        """Sizes in tokens of the answered requests in the beginning of a long file, which `_meter` does not
        know.
        """
        self._model: str | None = None
        self._rest = b""
        """The end of the file, if it is a line that is not complete yet."""
        self._not_before = 0.0
        self._is_behind = False
        """True if the file has changed, but the pause before it is parsed again is not over."""

    def look(self) -> ContextReading | Unreadable | None:
        """Return a reading, or why there is none; None if the file has not changed since the last call.

        Costs one `stat` if nothing is new, otherwise O(new bytes). A file whose format cannot be parsed line
        by line is parsed as a whole. That is O(bytes), but because of `REREAD_WAIT_FACTOR` it takes at most a
        fiftieth of the elapsed time.
        """
        if self._is_behind and monotonic() < self._not_before:
            return None
        news = self._tail.reread() if self._is_behind else self._tail.look()
        match news:
            case None:
                return None
            case FileGone(reason=reason):
                self._reset()
                return Unreadable(reason, is_gone=True)
            case TailNews(data=data, is_anew=is_anew):
                if is_anew:
                    self._reset()
                return self._process(data, is_anew=is_anew)

    def _reset(self) -> None:
        self._format, self._growing, self._meter, self._rest = None, None, None, b""
        self._skipped = []
        self._is_behind = False

    def _process(self, data: bytes, *, is_anew: bool) -> ContextReading | Unreadable | None:
        if self._format is None:
            if not is_anew:
                # The format was not recognised so far, so the whole file is examined again.
                return self._reread()
            self._format = detect(data)
            if self._format is None:
                if not data.strip():
                    return Unreadable("the file is empty", is_gone=True)
                return Unreadable("the format of the file is unknown")
            self._growing = incremental_reader(self._format)
        if self._growing is None:
            return self._read_whole(data if is_anew else None)
        try:
            return self._process_lines(self._growing, data, is_anew=is_anew)
        except BranchChanged:
            # The newest entry is on another branch, which only the whole file shows.
            self._growing, self._meter = None, None
            return self._reread() if not is_anew else self._read_whole(data)

    def _reread(self) -> ContextReading | Unreadable | None:
        news = self._tail.reread()
        if isinstance(news, TailNews):
            return self._read_whole(news.data) if self._format else self._process(news.data, is_anew=True)
        return Unreadable(news.reason) if news else None

    # --- parsing line by line -------------------------------------------------------------------------

    def _process_lines(
        self, session: IncrementalReader, data: bytes, *, is_anew: bool
    ) -> ContextReading | Unreadable | None:
        ends = self._read_ends(data) if is_anew and len(data) > END_BYTES else None
        if ends is None:
            self._feed_lines(session, data)
        else:
            self._growing = ends
        return self._reading()

    def _feed_lines(self, session: IncrementalReader, data: bytes) -> None:
        lines = self._rest + data
        end = lines.rfind(b"\n") + 1
        self._rest = lines[end:]
        if is_whole_object(self._rest):
            end, self._rest = len(lines), b""
        if end:
            session.feed(lines[:end])

    def _read_ends(self, data: bytes) -> IncrementalReader | None:
        """Parse only the beginning and the end of a long file. Return a reader that continues at the end and
        knows the model, the system prompt and the compactions from the beginning; None if the end contains no
        usage report.
        """
        head, end = incremental_reader(self._format or ""), incremental_reader(self._format or "")
        start = data.find(b"\n", len(data) - END_BYTES) + 1
        if head is None or end is None or not start:
            return None
        head.feed(data[: data.rfind(b"\n", 0, HEAD_BYTES) + 1])
        for line in _compactions(data[:start]):
            head.feed(line)
        self._feed_lines(end, data[start:])
        if end.session.model in (None, head.session.model):
            # The beginning, too, may contain evidence of the window's size.
            end.session.evidence = [*head.session.evidence, *end.session.evidence]
            begun = () if head.begun is None else (head.begun,)
            self._skipped = accepted_sizes([*(message for message, _ in head.session.messages), *begun])
        end.session.model = end.session.model or head.session.model
        end.session.system_prompt = end.session.system_prompt or head.session.system_prompt
        if any(message.usage is not None for message, _ in end.session.messages):
            return end
        self._rest, self._skipped = b"", []
        return None

    # --- parsing the whole file -----------------------------------------------------------------------

    def _read_whole(self, data: bytes | None) -> ContextReading | Unreadable | None:
        if data is None:
            if monotonic() < self._not_before:
                self._is_behind = True
                return None
            return self._reread()
        began = monotonic()
        self._is_behind = False
        try:
            file = read(gather(self.path, data), self._format or "auto")
        except CompactdError as error:
            # A JSON document is incomplete for a moment while it is being written.
            return Unreadable(error.message.partition(";")[0])
        conversation = load_session(self.path, data, file)
        counter = self._limits_of(conversation.model, (), ()).counter
        meter = Meter(counter)
        fixed = system_tokens(conversation.system_prompt, counter)
        fixed += sum(tool_tokens(decode_tool(raw), counter) for raw in conversation.tools)
        # Only messages that are in the context are measured, as in all other commands.
        meter.take(conversation.live, None, {}, {}, fixed)
        limits = self._limits_of(conversation.model, conversation.evidence, conversation.accepted)
        self._not_before = monotonic() + REREAD_WAIT_FACTOR * (monotonic() - began)
        return self._read_from(meter, limits, file.compactions)

    # --- the reading ----------------------------------------------------------------------------------

    def _reading(self) -> ContextReading | Unreadable | None:
        session = self._growing
        if session is None:
            return None
        collected = session.session
        counter = self._limits_of(collected.model, (), ()).counter
        if self._meter is None or self._model != collected.model:
            # Another model counts tokens differently.
            self._model = collected.model
            self._meter = Meter(counter)
        fixed = system_tokens(collected.system_prompt, counter)
        self._meter.take(collected.messages, session.begun, collected.first_kept, collected.pinned, fixed)
        accepted = [*self._skipped, *self._meter.accepted_sizes(collected.model_from)]
        limits = self._limits_of(collected.model, collected.evidence, accepted)
        return self._read_from(self._meter, limits, collected.compactions)

    def _read_from(self, meter: Meter, limits: ModelFacts, compactions: int) -> ContextReading | Unreadable:
        if not meter.count:
            return Unreadable("the file contains no messages yet")
        return ContextReading(
            file=self.path,
            format=self._format or "",
            used=meter.used,
            source=meter.source,
            limits=limits,
            forecast=meter.forecast(limits.threshold),
            compactions=compactions,
        )


def _compactions(data: bytes) -> Iterator[bytes]:
    """Yield the lines of a Claude Code file that record a compaction, and before each of them the line with
    the last usage report before that compaction. O(bytes).
    """
    at = 0
    while (at := data.find(BOUNDARY, at)) >= 0:
        report = data.rfind(REPORT, 0, at)
        for place in (report, at):
            if place >= 0:
                end = data.find(b"\n", place)
                yield data[data.rfind(b"\n", 0, place) + 1 : len(data) if end < 0 else end + 1]
        at += len(BOUNDARY)


def is_whole_object(line: bytes) -> bool:
    """Return whether `line`, the last line of a file, is a complete JSON object although it has no line
    end.
    """
    if not line.rstrip().endswith(b"}"):
        return False
    from msgspec import DecodeError, Raw
    from msgspec.json import decode

    try:
        decode(line, type=dict[str, Raw])
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True
