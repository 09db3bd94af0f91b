"""A session file as it grows: how full its context is after each look."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from time import monotonic
from typing import Protocol

from msgspec import Struct

from compactd.cli.framework.load_file import loaded
from compactd.cli.inspect.growth import Forecast
from compactd.cli.inspect.measure import Meter
from compactd.cli.watch.tail import Gone, News, Tail
from compactd.core.budget.recorded_window import Evidence, accepted_sizes
from compactd.core.tokens.counting import Counter, system_tokens, tool_tokens
from compactd.formats.files.detect import detect, read
from compactd.formats.files.directory_session import gathered
from compactd.formats.files.incremental import Branched, Growing, growing
from compactd.formats.messages.tools import decode_tool
from compactd.protocol.errors import CompactdError
from compactd.protocol.messages import Confidence

END_BYTES = 4_000_000
"""Of a longer file only the beginning and so much of the end are read, where the end holds a report."""
HEAD_BYTES = 65_536
"""Of the beginning: what says which format and whose session it is."""
BOUNDARY = b'"compactMetadata"'
REPORT = b'"usage"'
PATIENCE = 50
"""A file that has to be read whole is not read again before so many times as long as it took have passed."""


class Limits(Struct, frozen=True, kw_only=True):
    """What is known of a model: its window, and where a compaction comes. Tokens."""

    model: str | None
    window: int | None
    confidence: Confidence
    threshold: int | None
    """None where automatic compaction is off."""
    counter: Counter
    source: str = ""
    """Where `window` comes from, in words."""
    is_estimate: bool = False
    """`window` is worked out from what happened in the session."""

    @property
    def is_guess(self) -> bool:
        """Nobody recorded the window."""
        return self.confidence == "guess"


class LimitsOf(Protocol):
    """Answers for a model's name, or none, and what a session's file tells of its window."""

    def __call__(
        self, model: str | None, evidence: Sequence[Evidence] = (), accepted: Sequence[int] = ()
    ) -> Limits:
        """The limits of a session."""
        ...


class Reading(Struct, frozen=True, kw_only=True):
    """How full the context is. Tokens."""

    file: Path
    format: str
    used: int
    source: str
    """`measured`, `mixed`: a report and what came after it, or `estimated`."""
    limits: Limits
    forecast: Forecast | None
    compactions: int
    messages: int

    @property
    def percent(self) -> float | None:
        """Of the window."""
        window = self.limits.window
        return 100 * self.used / window if window else None


class Unreadable(Struct, frozen=True):
    """No session could be read: why."""

    reason: str
    is_gone: bool = False
    """There is no file, or nothing in it: what was shown is so no more."""


class Watched:
    """One session file, looked at again and again."""

    def __init__(self, path: Path, limits_of: LimitsOf) -> None:
        self.path = path
        self._limits_of = limits_of
        self._tail = Tail(path)
        self._format: str | None = None
        self._growing: Growing | None = None
        self._meter: Meter | None = None
        self._skipped: list[int] = []
        """The sizes of accepted requests in the part of a long file that is not read."""
        self._model: str | None = None
        self._rest = b""
        """A line that has no end yet."""
        self._not_before = 0.0
        self._is_behind = False
        """Something came that was not read yet."""

    def look(self) -> Reading | Unreadable | None:
        """How it stands, if anything is new. Costs a `stat` where nothing is, else O(new bytes); for formats
        whose lines cannot be read one by one O(bytes), at most a fiftieth of the time."""
        if self._is_behind and monotonic() < self._not_before:
            return None
        news = self._tail.forget() if self._is_behind else self._tail.look()
        match news:
            case None:
                return None
            case Gone(reason=reason):
                self._anew()
                return Unreadable(reason, is_gone=True)
            case News(data=data, is_anew=is_anew):
                if is_anew:
                    self._anew()
                return self._taken(data, is_anew=is_anew)

    def _anew(self) -> None:
        self._format, self._growing, self._meter, self._rest = None, None, None, b""
        self._skipped = []
        self._is_behind = False

    def _taken(self, data: bytes, *, is_anew: bool) -> Reading | Unreadable | None:
        if self._format is None:
            if not is_anew:
                # It said nothing so far: the whole of it is looked at.
                return self._again()
            self._format = detect(data)
            if self._format is None:
                if not data.strip():
                    return Unreadable("it is empty", is_gone=True)
                return Unreadable("its format is not known")
            self._growing = growing(self._format)
        if self._growing is None:
            return self._whole(data if is_anew else None)
        try:
            return self._grown(self._growing, data, is_anew=is_anew)
        except Branched:
            # The path to the newest entry is another one: it is found in the whole file.
            self._growing, self._meter = None, None
            return self._again() if not is_anew else self._whole(data)

    def _again(self) -> Reading | Unreadable | None:
        news = self._tail.forget()
        if isinstance(news, News):
            return self._whole(news.data) if self._format else self._taken(news.data, is_anew=True)
        return Unreadable(news.reason) if news else None

    # --- line by line ---------------------------------------------------------------------------------

    def _grown(self, session: Growing, data: bytes, *, is_anew: bool) -> Reading | Unreadable | None:
        ends = self._ends(data) if is_anew and len(data) > END_BYTES else None
        if ends is None:
            self._feed(session, data)
        else:
            self._growing = ends
        return self._reading()

    def _feed(self, session: Growing, data: bytes) -> None:
        lines = self._rest + data
        end = lines.rfind(b"\n") + 1
        self._rest = lines[end:]
        if is_whole_object(self._rest):
            end, self._rest = len(lines), b""
        if end:
            session.feed(lines[:end])

    def _ends(self, data: bytes) -> Growing | None:
        """What the beginning and the end of a long file tell; none where the end holds no report."""
        head, end = growing(self._format or ""), growing(self._format or "")
        start = data.find(b"\n", len(data) - END_BYTES) + 1
        if head is None or end is None or not start:
            return None
        head.feed(data[: data.rfind(b"\n", 0, HEAD_BYTES) + 1])
        for line in _compactions(data[:start]):
            head.feed(line)
        self._feed(end, data[start:])
        if end.session.model in (None, head.session.model):
            # What tells of the window may stand in the part that is not read.
            end.session.evidence = [*head.session.evidence, *end.session.evidence]
            begun = () if head.begun is None else (head.begun,)
            self._skipped = accepted_sizes([*(message for message, _ in head.session.messages), *begun])
        end.session.model = end.session.model or head.session.model
        end.session.system_prompt = end.session.system_prompt or head.session.system_prompt
        if any(message.usage is not None for message, _ in end.session.messages):
            return end
        self._rest, self._skipped = b"", []
        return None

    # --- as a whole -----------------------------------------------------------------------------------

    def _whole(self, data: bytes | None) -> Reading | Unreadable | None:
        if data is None:
            if monotonic() < self._not_before:
                self._is_behind = True
                return None
            return self._again()
        began = monotonic()
        self._is_behind = False
        try:
            file = read(gathered(self.path, data), self._format or "auto")
        except CompactdError as error:
            # A document that is being written is none for a moment.
            return Unreadable(error.message.partition(";")[0])
        conversation = loaded(self.path, data, file)
        counter = self._limits_of(conversation.model).counter
        meter = Meter(counter)
        fixed = system_tokens(conversation.system_prompt, counter)
        fixed += sum(tool_tokens(decode_tool(raw), counter) for raw in conversation.tools)
        # Those that are in the context, as all other commands take it.
        meter.take(conversation.live, None, {}, {}, fixed)
        limits = self._limits_of(conversation.model, conversation.evidence, conversation.accepted)
        self._not_before = monotonic() + PATIENCE * (monotonic() - began)
        return self._read_from(meter, limits, file.compactions)

    # --- what comes of it -----------------------------------------------------------------------------

    def _reading(self) -> Reading | Unreadable | None:
        session = self._growing
        if session is None:
            return None
        collected = session.session
        counter = self._limits_of(collected.model).counter
        if self._meter is None or self._model != collected.model:
            # Another model counts otherwise.
            self._model = collected.model
            self._meter = Meter(counter)
        fixed = system_tokens(collected.system_prompt, counter)
        self._meter.take(collected.messages, session.begun, collected.first_kept, collected.pinned, fixed)
        accepted = [*self._skipped, *self._meter.accepted(collected.model_from)]
        limits = self._limits_of(collected.model, collected.evidence, accepted)
        return self._read_from(self._meter, limits, collected.compactions)

    def _read_from(self, meter: Meter, limits: Limits, compactions: int) -> Reading | Unreadable:
        if not meter.count:
            return Unreadable("it holds no messages yet")
        return Reading(
            file=self.path,
            format=self._format or "",
            used=meter.used,
            source=meter.source,
            limits=limits,
            forecast=meter.forecast(limits.threshold),
            compactions=compactions,
            messages=meter.count,
        )


def _compactions(data: bytes) -> Iterator[bytes]:
    """Claude Code's lines that tell of a compaction, each after the last answer before it. O(bytes)."""
    at = 0
    while (at := data.find(BOUNDARY, at)) >= 0:
        report = data.rfind(REPORT, 0, at)
        for place in (report, at):
            if place >= 0:
                end = data.find(b"\n", place)
                yield data[data.rfind(b"\n", 0, place) + 1 : len(data) if end < 0 else end + 1]
        at += len(BOUNDARY)


def is_whole_object(line: bytes) -> bool:
    """Whether the last line, which has no end, is whole all the same: an object ends where it says."""
    if not line.rstrip().endswith(b"}"):
        return False
    from msgspec import DecodeError, Raw
    from msgspec.json import decode

    try:
        decode(line, type=dict[str, Raw])
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True
