"""The entries of a journal, and the view that is folded from them.

A journal only grows. What the next model request holds, the `View`, is a fold over its entries:
`view_of(entries)` folds from scratch, `Fold.apply` adds one entry at a time; both give the same view.

A compaction does not touch what came before it: it names the first entry that is kept, the entries
that stay although they are older (`pinned`), and those whose tool output is shown shortened (`stubs`).
The last compaction in force decides; `undo` and `redo` put compactions and prunes out of force and back.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Raw, Struct

from compactd.core.history.lazy_message import OnDemand
from compactd.protocol.messages import CompactionResult, Message, Meta, Text, ToolResult, Trigger, Usage

EntryId = str
_MOST_DIGITS = 18

NULL = Raw(b"null")
"""A raw field that was left out: `Raw | None` would refuse objects (msgspec 0.22)."""


class Stub(Struct, frozen=True, array_like=True):
    """A message of the view with some of its tool results replaced by a short text."""

    entry_id: EntryId
    texts: tuple[tuple[int, str], ...]
    """(index of the block in the message, text shown instead), by rising index."""
    tokens: int
    """The whole message's tokens after the replacement."""


class Opened(Struct, frozen=True, kw_only=True, tag="session", omit_defaults=True):
    """The first record of a journal."""

    v: int
    id: str
    at: float
    parent_session_id: str | None = None
    working_dir: str | None = None
    real_dir: str | None = None
    """`working_dir` with its links resolved when the session began: a link may be turned round later. None in
    journals of older versions."""
    imported_dir: str | None = None
    """The folder that an imported file names. It shortens paths in summaries and gives nothing else: neither
    the folder's settings nor its snapshots, and recall does not count the session among the folder's."""
    is_imported: bool = False


class Appended(Struct, frozen=True, kw_only=True, tag="message", omit_defaults=True):
    """One message, as the client sent it."""

    id: EntryId
    at: float
    tokens: tuple[int, str]
    """(estimate, name of the estimator)."""
    message: Raw
    """Neutral shape, byte for byte as received where it came in that shape."""
    parent: EntryId | None = None
    client_id: str | None = None
    read: tuple[str, ...] = ()
    """Files the client says this message's tools read."""
    modified: tuple[str, ...] = ()


class UsageReported(Struct, frozen=True, kw_only=True, tag="usage", omit_defaults=True):
    """A provider's report of one request."""

    at: float
    usage: Usage
    epoch: int
    """The epoch of the context that the request was made of."""
    entry_id: EntryId | None = None
    """The answer it belongs to, if the answer was appended."""
    reported_output: bool = True
    """The report named the output; else the answer's size is our estimate."""
    is_base: bool = True
    """False for the report of an aborted or failed turn: billed, never the current size."""
    estimator: str = ""
    """What the session counted with; empty: what counted the last message."""


class CompactionBegun(Struct, frozen=True, kw_only=True, tag="compaction_start"):
    """A compaction was started; without a matching end, the daemon died in it."""

    at: float
    compaction_id: str
    trigger: Trigger


class CompactionEnded(Struct, frozen=True, kw_only=True, tag="compaction_end", omit_defaults=True):
    """A compaction ended without a `Compacted`."""

    at: float
    compaction_id: str
    status: str
    reason: str = ""


class Compacted(Struct, frozen=True, kw_only=True, tag="compaction", omit_defaults=True):
    """Older messages of the view gave way to a summary."""

    id: EntryId
    at: float
    compaction_id: str
    epoch: int
    """The view's epoch from here on."""
    summary: str
    """The whole text of the summary message."""
    summary_tokens: int
    result: CompactionResult
    """Without the summary's text, which stands above."""
    parent: EntryId | None = None
    first_kept: EntryId | None = None
    """The first message of the verbatim tail; none where the tail is empty."""
    pinned: tuple[EntryId, ...] = ()
    """Kept although older than `first_kept`, in their order."""
    stubs: tuple[Stub, ...] = ()
    read_files: tuple[str, ...] = ()
    modified_files: tuple[str, ...] = ()
    asked: str = ""
    """Trigger and budget of the request, to know the same one again (law 2)."""
    estimator: str = ""
    """What counted the summary and the stubs; empty: what counted the message before."""


class Pruned(Struct, frozen=True, kw_only=True, tag="prune", omit_defaults=True):
    """Old tool output is shown as stubs."""

    id: EntryId
    at: float
    epoch: int
    stubs: tuple[Stub, ...]
    parent: EntryId | None = None
    tokens_saved: int = 0
    compaction_id: str | None = None
    """The compaction that found nothing but this to do."""
    estimator: str = ""
    """What counted the stubs; empty: what counted the message before."""


class Undone(Struct, frozen=True, kw_only=True, tag="undo"):
    """A compaction or prune is out of force."""

    at: float
    target: EntryId
    epoch: int


class Redone(Struct, frozen=True, kw_only=True, tag="redo"):
    """A compaction or prune that was undone is in force again."""

    at: float
    target: EntryId
    epoch: int


class Branched(Struct, frozen=True, kw_only=True, tag="leaf"):
    """The next entry's parent is `entry_id`; what came after it is on another branch."""

    at: float
    entry_id: EntryId
    epoch: int


class ModelSet(Struct, frozen=True, kw_only=True, tag="model", omit_defaults=True):
    """The session's model."""

    at: float
    model: str | None
    """`provider/id`, or the id alone."""
    base_url: str | None = None
    """The endpoint, without user, password and query."""
    context_window: int | None = None
    """The window that `session/start` gave for it."""
    epoch: int = 1
    recorded_window: int | None = None
    """The window that an imported file shows for it (`core/budget/recorded_window.py`). Versions before
    2026-12 leave it out."""
    recorded_source: str = ""
    """Where `recorded_window` comes from, in words."""

    def __post_init__(self) -> None:
        # Also for a journal of a version that kept what stood in it beside the address.
        if self.base_url is not None:
            from compactd.core.text.endpoints import bare_endpoint

            msgspec.structs.force_setattr(self, "base_url", bare_endpoint(self.base_url))


class SettingsSet(Struct, frozen=True, kw_only=True, tag="settings", omit_defaults=True):
    """What the client configured. A field left out is as before."""

    at: float
    layer: str = "start"
    """`start` or `configure`: where the compaction settings came from."""
    compaction: Raw = NULL
    """The client's `compaction` object, replacing that layer's."""
    system_prompt: str | None = None
    tools: tuple[Raw, ...] | None = None
    """Neutral shape."""
    title: str | None = None
    fixed_tokens: tuple[int, int] | None = None
    """(system prompt, tools) as estimated when they were set."""
    epoch: int | None = None
    """The epoch from here on, if this changes system prompt or tools of a session that has messages. Left out
    by older versions, which left the epoch as it was."""
    snapshots: bool | None = None
    """The work tree's files are kept at each turn's begin and end."""


class Rejected(Struct, frozen=True, kw_only=True, tag="rejected", omit_defaults=True):
    """A provider refused a request of this session as too large."""

    at: float
    limit: int | None = None
    """The window that the refusal named, in tokens, where it is believed."""
    requested: int | None = None
    """The size that the provider counted."""
    doubtful: bool = False
    """True if `limit` is doubtful. It then counts in this session only (`core/models/observed.py`)."""


class Queued(Struct, frozen=True, kw_only=True, tag="queued"):
    """A prompt that waits until the loop has time for it."""

    at: float
    turn_id: str
    message: Raw
    """Neutral shape."""


class Unqueued(Struct, frozen=True, kw_only=True, tag="unqueued"):
    """A prompt waits no longer: it was appended with this record, or taken back."""

    at: float
    turn_id: str


class PinSet(Struct, frozen=True, kw_only=True, tag="pin"):
    """Messages that stay in every later view, or no longer do."""

    at: float
    entry_ids: tuple[EntryId, ...]
    pinned: bool = True


class Redacted(Struct, frozen=True, kw_only=True, tag="redacted"):
    """The contents of messages were replaced by a mark, here and wherever they were copied to."""

    at: float
    entry_ids: tuple[EntryId, ...]
    epoch: int


class Snapshot(Struct, frozen=True, kw_only=True, tag="snapshot", omit_defaults=True):
    """The files of the session's work tree as they were at a turn's begin or end."""

    at: float
    moment: Literal["begin", "end"]
    tree: str
    """The name of a git tree, whose objects are in the data folder and in the user's repository."""
    entry_id: EntryId | None = None
    """The newest user message at that time."""


Entry = (
    Opened
    | Appended
    | UsageReported
    | CompactionBegun
    | CompactionEnded
    | Compacted
    | Pruned
    | Undone
    | Redone
    | Branched
    | ModelSet
    | SettingsSet
    | PinSet
    | Rejected
    | Queued
    | Unqueued
    | Redacted
    | Snapshot
)


class Item(Struct, frozen=True, kw_only=True):
    """One message of a view."""

    entry_id: EntryId
    """Of a summary: its compaction's entry."""
    body: Message | OnDemand
    """The message, or its bytes until somebody asks for it."""
    tokens: int
    """Estimate, in the session's estimator."""
    source: Raw | None = None
    """The message as the client sent it, in neutral shape; none where we wrote or shortened it."""
    kind: str = "message"
    """`message`, `summary`, or `stub` where tool output is shown shortened."""
    read: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    model: str | None = None
    """The session's model when the message came: whose signatures it may hold."""

    @property
    def message(self) -> Message:
        """The message, decoded if need be: O(bytes) the first time. Raises where the journal holds none."""
        body = self.body
        return body if isinstance(body, Message) else body.message

    @property
    def is_decoded(self) -> bool:
        """False while `message` would have to be decoded."""
        return isinstance(self.body, Message) or self.body.is_decoded


class View(Struct, frozen=True, kw_only=True):
    """What the next model request holds, beside system prompt and tools."""

    items: tuple[Item, ...]
    """In the order of the request: summary, pinned, tail."""
    tail_from: int
    """Index in `items` of the first message of the verbatim tail (the walk for a cut ends here)."""
    tokens: int
    """Sum of the items' tokens."""
    epoch: int


def number_of(entry_id: EntryId) -> int | None:
    """The number in an entry's id, as `e12` has one; none for an id that no daemon gave, which a journal that
    somebody else made may hold."""
    digits = entry_id[1:]
    is_ours = entry_id[:1] == "e" and len(digits) <= _MOST_DIGITS and digits.isascii() and digits.isdecimal()
    return int(digits) if is_ours else None


def summary_message(entry: Compacted) -> Message:
    """The message that stands for what `entry` summarised. Role user; known by its `meta`."""
    return Message(
        role="user",
        content=(Text(text=entry.summary),),
        meta=Meta(
            type="compaction_summary",
            compaction_id=entry.compaction_id,
            read_files=entry.read_files,
            modified_files=entry.modified_files,
        ),
    )


def is_summary(message: Message) -> bool:
    """True for a summary of ours: known by its `meta`, never by its words, which a user may type."""
    return message.meta is not None and message.meta.type == "compaction_summary"


def with_stub(item: Item, stub: Stub) -> Item:
    """`item` with the tool results that `stub` names shortened; other blocks and its entry id unchanged."""
    content = list(item.message.content)
    for index, text in stub.texts:
        block = content[index]
        if isinstance(block, ToolResult):
            content[index] = msgspec.structs.replace(block, content=text)
    return msgspec.structs.replace(
        item,
        body=msgspec.structs.replace(item.message, content=tuple(content)),
        tokens=stub.tokens,
        source=None,
        kind="stub",
    )
