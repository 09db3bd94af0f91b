"""The entries of a journal, and the types of the view that is computed from them.

A journal only grows. The `View`, which is what the next model request contains, is a fold over its entries
(`state.py`). Folding all entries at once and applying them one by one give the same view (law 9 in
docs/laws.md).

A compaction does not change earlier entries. It names the first entry that is kept, the older entries that
stay anyway (`pinned`), and the entries that are shown shortened (`stubs`). The view shows the newest
compaction that is *in force*, that is, not undone and on the current branch. A prune replaces old tool output
in the view by short stubs. After an `undo`, a compaction or prune is no longer in force; after a `redo`, it
is again.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Raw, Struct

from compactd.core.cost.ledger import Cause
from compactd.core.history.lazy_message import LazyMessage
from compactd.protocol.messages import NULL, CompactionResult, Message, Meta, Text, ToolResult, Trigger, Usage

EntryId = str
Part = Literal["tools", "system", "messages"]
"""A part of a request."""
_MAX_DIGITS = 18


class Stub(Struct, frozen=True, array_like=True):
    """A message of the view in which some tool results, or the texts of a user's message, are replaced by a
    shorter text."""

    entry_id: EntryId
    texts: tuple[tuple[int, str], ...]
    """(index of the block in the message, text shown instead), by ascending index."""
    tokens: int
    """Tokens of the whole message after the replacement."""


class OutputLink(Struct, frozen=True, array_like=True):
    """Where a message shows a tool output that was reduced."""

    block: int
    """The index of the tool result in the message."""
    part: int | None
    """The index of the text in the tool result's blocks; None if the whole result is meant."""
    output: EntryId
    """The `Reduced` entry, which has the original."""
    is_exact: bool
    """Whether the message shows exactly the text that the reduction gave."""


class Opened(Struct, frozen=True, kw_only=True, tag="session", omit_defaults=True):
    """The first record of a journal."""

    v: int
    id: str
    at: float
    parent_session_id: str | None = None
    working_dir: str | None = None
    real_dir: str | None = None
    """`working_dir` with its links resolved when the session began, because a link may later point elsewhere.
    None in journals of older versions."""
    imported_dir: str | None = None
    """The folder that an imported file names. It only shortens paths in summaries. The folder's settings and
    snapshots do not apply, and recall does not count the session among the folder's sessions."""
    is_imported: bool = False


class Appended(Struct, frozen=True, kw_only=True, tag="message", omit_defaults=True):
    """One message, as the client sent it."""

    id: EntryId
    at: float
    tokens: tuple[int, str]
    """(estimate, name of the estimator)."""
    message: Raw
    """The message in compactd's own format, byte for byte as received if it came in that format."""
    parent: EntryId | None = None
    client_id: str | None = None
    read: tuple[str, ...] = ()
    """Files that this message's tools read, as reported by the client."""
    modified: tuple[str, ...] = ()
    """Files that this message's tools modified, as reported by the client."""
    outputs: tuple[OutputLink, ...] = ()
    """The tool outputs in this message that were reduced before it was appended."""


class Reduced(Struct, frozen=True, kw_only=True, tag="reduced", omit_defaults=True):
    """The original of a tool output, and the shorter text that is shown instead. It is no message: no view
    contains it. Versions before 2026-12 cannot open a journal that has one."""

    id: EntryId
    at: float
    tokens: tuple[int, str]
    """(estimate of the original's text, name of the estimator)."""
    name: str
    """The tool."""
    message: Raw
    """The original as a tool message in compactd's own format."""
    arguments: Raw = Raw(b"{}")
    """The arguments of the tool call."""
    shown: str
    """The text that is shown instead of the original."""
    tokens_shown: int
    """The estimate of `shown`."""
    rules: tuple[str, ...]
    """The rules that acted."""
    level: str
    """How much was left out: `light`, `default` or `strong`."""
    parent: EntryId | None = None
    """The entry after which the output came."""
    call_id: str | None = None
    """The call that the output answers, if the client named it."""
    refers: tuple[EntryId, ...] = ()
    """Other entries that `shown` refers to."""
    is_error: bool = False
    """Whether the client marked the output as an error."""


class ReductionObserved(Struct, frozen=True, kw_only=True, tag="reduction", omit_defaults=True):
    """What a reduction would have saved. Nothing was reduced. Versions before 2026-12 cannot open a journal
    that has one."""

    at: float
    name: str
    """The tool."""
    tokens: tuple[int, str]
    """(estimate of the output's text, name of the estimator)."""
    tokens_shown: int
    """The estimate of the text that would have been shown."""
    rules: tuple[str, ...]
    """The rules that would have acted."""


class UsageReported(Struct, frozen=True, kw_only=True, tag="usage", omit_defaults=True):
    """A provider's usage report for one request."""

    at: float
    usage: Usage
    epoch: int
    """The epoch of the context that the request was built from."""
    entry_id: EntryId | None = None
    """The answer that the report belongs to, if the answer was appended."""
    reported_output: bool = True
    """Whether the report named the output tokens. If not, the answer's size is an estimate."""
    is_base: bool = True
    """Whether the report measures the context. False for an aborted or failed turn: the report is billed but
    never becomes the current size."""
    estimator: str = ""
    """The estimator that the session used. An empty text means the estimator that counted the last
    message."""
    is_side: bool = False
    """Whether the request was not one of the conversation: a sub-agent's, in an imported file. It is billed
    only."""
    model: str | None = None
    """The model that answered, if an imported file names another one than the session's."""
    chain: str = ""
    """Which sub-agent made the request, in an imported file; empty if `is_side` is false or if the file does
    not say. Versions before 2026-12 leave out this field and those below."""
    reported_cost: float | None = None
    """The cost that an imported file reports, in US dollars."""
    predicted: float | None = None
    """What the request was predicted to cost before it was answered, in US dollars."""
    cause: Cause | None = None
    """Why the provider's cache was built again by this request; None if it was not."""
    first_change: Part | None = None
    """The first part of the request that differed from the request before, other than by added messages. None
    if there was none, or if the client did not ask compactd for the request."""
    summary_cost: float | None = None
    """If the report is for a summary that was prepared and not used: its cost in US dollars, 0 if it is
    unknown. `model` then wrote the summary. None for any other request."""


class CompactionBegun(Struct, frozen=True, kw_only=True, tag="compaction_start"):
    """A compaction started. If no matching end follows, the daemon died during the compaction."""

    at: float
    compaction_id: str
    trigger: Trigger


class CompactionEnded(Struct, frozen=True, kw_only=True, tag="compaction_end", omit_defaults=True):
    """A compaction ended without a `Compacted` entry."""

    at: float
    compaction_id: str
    status: str
    reason: str = ""
    summary_usage: Usage | None = None
    """What the model that was asked for a summary reported; None if none was asked."""
    summary_model: str | None = None
    summary_cost: float | None = None
    """The cost of `summary_usage`, in US dollars; None if the model's prices were not known."""


class ProviderSummary(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A provider's own summary of the messages before the tail. Only this provider can read it."""

    format: str
    """The message format of the provider's API: `anthropic` or `openai_responses`."""
    model: str
    """The session's model that made it, `provider/id`."""
    items: Raw
    """What the provider returned, as a JSON list, byte for byte: for Anthropic one block, for OpenAI the
    items of the new context window. It is sent back unchanged, in place of compactd's summary."""
    tokens: int
    """The estimated tokens of `items` in a request."""
    base_url: str | None = None
    """The session's endpoint when it was made."""


class Compacted(Struct, frozen=True, kw_only=True, tag="compaction", omit_defaults=True):
    """A summary replaced older messages of the view."""

    id: EntryId
    at: float
    compaction_id: str
    epoch: int
    """The view's epoch from this entry on."""
    summary: str
    """The whole text of the summary message."""
    summary_tokens: int
    result: CompactionResult
    """The result for the client, without the summary's text."""
    parent: EntryId | None = None
    first_kept: EntryId | None = None
    """The first message of the verbatim tail; None if the tail is empty."""
    pinned: tuple[EntryId, ...] = ()
    """Messages that stay although they are older than `first_kept`, in order."""
    stubs: tuple[Stub, ...] = ()
    read_files: tuple[str, ...] = ()
    modified_files: tuple[str, ...] = ()
    asked: str = ""
    """Trigger and budget of the request for the compaction, to recognise a repeated request (law 2)."""
    estimator: str = ""
    """The estimator that counted the summary and the stubs. An empty text means the estimator that counted
    the message before this entry."""
    summary_model: str | None = None
    """The model that was asked for a summary, also if `result.model` is left out because its answers did not
    become the summary."""
    provider: ProviderSummary | None = None
    """The provider's own summary of everything before `first_kept`; None if there is none, or if a redaction
    dropped it. Versions before 2026-12 leave it out. `result.strategy` is then `extract`, which wrote
    `summary`."""

    @property
    def shown_result(self) -> CompactionResult:
        """`result` with the strategy that clients are told."""
        if self.provider is None:
            return self.result
        return msgspec.structs.replace(self.result, strategy="provider")


class Pruned(Struct, frozen=True, kw_only=True, tag="prune", omit_defaults=True):
    """Old tool output is shown as stubs from this entry on."""

    id: EntryId
    at: float
    epoch: int
    stubs: tuple[Stub, ...]
    parent: EntryId | None = None
    tokens_saved: int = 0
    compaction_id: str | None = None
    """The compaction that found nothing to do except this prune; None if the prune was not part of one."""
    estimator: str = ""
    """The estimator that counted the stubs. An empty text means the estimator that counted the message before
    this entry."""
    summary_usage: Usage | None = None
    """What the model that was asked for a summary reported; None if none was asked."""
    summary_model: str | None = None
    summary_cost: float | None = None
    """The cost of `summary_usage`, in US dollars; None if the model's prices were not known."""


class Undone(Struct, frozen=True, kw_only=True, tag="undo"):
    """A compaction or prune was taken out of force."""

    at: float
    target: EntryId
    epoch: int


class Redone(Struct, frozen=True, kw_only=True, tag="redo"):
    """A compaction or prune that was undone was put in force again."""

    at: float
    target: EntryId
    epoch: int


class Branched(Struct, frozen=True, kw_only=True, tag="leaf"):
    """The next entry's parent is `entry_id`. What came after `entry_id` is on another branch."""

    at: float
    entry_id: EntryId
    epoch: int


class ModelSet(Struct, frozen=True, kw_only=True, tag="model", omit_defaults=True):
    """The session's model was set."""

    at: float
    model: str | None
    """`provider/id`, or the id alone."""
    base_url: str | None = None
    """The endpoint, without user, password and query."""
    context_window: int | None = None
    """The window that `session/start` gave for the model."""
    epoch: int = 1
    recorded_window: int | None = None
    """The window that an imported file shows for the model (`core/budget/recorded_window.py`). Versions
    before 2026-12 leave it out."""
    recorded_source: str = ""
    """Where `recorded_window` comes from, in words."""

    def __post_init__(self) -> None:
        # Journals of older versions may contain credentials in the address; remove them here too.
        if self.base_url is not None:
            from compactd.core.text.endpoints import bare_endpoint

            msgspec.structs.force_setattr(self, "base_url", bare_endpoint(self.base_url))


class SettingsSet(Struct, frozen=True, kw_only=True, tag="settings", omit_defaults=True):
    """Settings that the client set. A field that is left out is unchanged."""

    at: float
    layer: str = "start"
    """Where the compaction settings came from: `start` or `configure`."""
    compaction: Raw = NULL
    """The client's `compaction` object. It replaces the earlier object of the same layer."""
    system_prompt: str | None = None
    tools: tuple[Raw, ...] | None = None
    """The tools in compactd's own format."""
    title: str | None = None
    fixed_tokens: tuple[int, int] | None = None
    """(system prompt, tools) in tokens, as estimated when they were set."""
    epoch: int | None = None
    """The new epoch if this changes the system prompt or the tools of a session that has messages. Older
    versions leave it out, and the epoch did not change."""
    snapshots: bool | None = None
    """Whether snapshots of the work tree's files are taken at the beginning and the end of each turn."""


class Rejected(Struct, frozen=True, kw_only=True, tag="rejected", omit_defaults=True):
    """A provider refused a request of this session as too large."""

    at: float
    limit: int | None = None
    """The window in tokens that the refusal named, if it is believed."""
    requested: int | None = None
    """The size of the request in tokens, as the provider counted it."""
    doubtful: bool = False
    """True if `limit` is doubtful. It then counts in this session only (`core/models/observed.py`)."""


class Queued(Struct, frozen=True, kw_only=True, tag="queued"):
    """A prompt that waits until the daemon's own agent loop can take it."""

    at: float
    turn_id: str
    message: Raw
    """The prompt in compactd's own format."""


class Unqueued(Struct, frozen=True, kw_only=True, tag="unqueued"):
    """A prompt no longer waits: it was appended together with this record, or it was cancelled."""

    at: float
    turn_id: str


class PinSet(Struct, frozen=True, kw_only=True, tag="pin"):
    """Messages were pinned, so that they stay in every later view, or unpinned."""

    at: float
    entry_ids: tuple[EntryId, ...]
    pinned: bool = True


class Redacted(Struct, frozen=True, kw_only=True, tag="redacted"):
    """The contents of messages were replaced by a mark, in this journal and in all copies."""

    at: float
    entry_ids: tuple[EntryId, ...]
    epoch: int


class Snapshot(Struct, frozen=True, kw_only=True, tag="snapshot", omit_defaults=True):
    """The files of the session's work tree at the beginning or the end of a turn."""

    at: float
    moment: Literal["begin", "end"]
    tree: str
    """The name of a git tree. Its objects are in the data folder and in the user's repository."""
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
    | Reduced
    | ReductionObserved
)


class Item(Struct, frozen=True, kw_only=True):
    """One message of a view."""

    entry_id: EntryId
    """The entry of the message; for a summary, the entry of its compaction."""
    body: Message | LazyMessage
    """The message, or its bytes until someone asks for it."""
    tokens: int
    """The estimated tokens, by the session's estimator."""
    source: Raw | None = None
    """The message as the client sent it, in compactd's own format; None if compactd wrote or shortened it."""
    kind: str = "message"
    """`message`, `summary`, `stub` if tool output or a user's text is shown shortened, or `output` for the
    original of a reduced tool output, which no view contains."""
    read: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    model: str | None = None
    """The session's model when the message came. Signatures in the message are from this model."""
    provider: ProviderSummary | None = None
    """For a summary, the provider's own summary of the same messages, if there is one."""

    @property
    def message(self) -> Message:
        """The message, decoded if necessary. O(bytes) the first time. Raises if the journal's bytes are not a
        message."""
        body = self.body
        return body if isinstance(body, Message) else body.message

    @property
    def is_decoded(self) -> bool:
        """Whether the message is already decoded."""
        return isinstance(self.body, Message) or self.body.is_decoded

    def decoded(self) -> Item:
        """Return the item with its message decoded. `self` keeps the bytes, which saves memory. O(bytes) if
        they are not decoded yet."""
        body = self.body
        if isinstance(body, Message) or body.is_decoded:
            return self
        return msgspec.structs.replace(self, body=body.decode(body.source))


class View(Struct, frozen=True, kw_only=True):
    """What the next model request contains, except system prompt and tools."""

    items: tuple[Item, ...]
    """The messages in the order of the request: summary, pinned, tail."""
    tail_from: int
    """The index in `items` of the first message of the verbatim tail. The search for a cut point, which goes
    back from the newest message, ends at this message."""
    tokens: int
    """The sum of the items' tokens."""
    epoch: int


def number_of(entry_id: EntryId) -> int | None:
    """Return the number in an entry id, such as 12 in `e12`. None for an id that the daemon did not assign,
    which a journal from elsewhere may contain."""
    digits = entry_id[1:]
    is_ours = entry_id[:1] == "e" and len(digits) <= _MAX_DIGITS and digits.isascii() and digits.isdecimal()
    return int(digits) if is_ours else None


def summary_message(entry: Compacted) -> Message:
    """Return the message that replaces what `entry` summarised. Its role is user; `meta` marks it as a
    summary."""
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
    """Return whether a message is compactd's summary. Only `meta` decides, never the text, because a user may
    type such a text."""
    return message.meta is not None and message.meta.type == "compaction_summary"


def with_stub(item: Item, stub: Stub) -> Item:
    """Return `item` with the tool results and texts that `stub` names replaced by its texts. Other blocks and
    the entry id stay."""
    content = list(item.message.content)
    for index, text in stub.texts:
        block = content[index]
        if isinstance(block, ToolResult):
            content[index] = msgspec.structs.replace(block, content=text)
        elif isinstance(block, Text):
            content[index] = msgspec.structs.replace(block, text=text)
    return msgspec.structs.replace(
        item,
        body=msgspec.structs.replace(item.message, content=tuple(content)),
        tokens=stub.tokens,
        source=None,
        kind="stub",
    )
