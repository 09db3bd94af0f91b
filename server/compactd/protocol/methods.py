"""The table of all methods: name, params, result, and the errors that a client should expect.

`protocol.md`, the schema and the editors' types are generated from this table.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from compactd.protocol import wire
from compactd.protocol.errors import (
    CannotFit,
    CompactdError,
    FormatNotSupported,
    LimitExceeded,
    NoProvider,
    NothingToUndo,
    SessionBusy,
    SessionCorrupt,
    SessionLocked,
    SessionNotFound,
    StorageFailed,
)
from compactd.protocol.messages import CompactionResult

Scope = Literal["session", "none"]

Repeat = Literal["yes", "no", "with_ids"]
"""Whether a client that lost the answer to a request may send the request again.

`yes`: twice has the same effect and the same result as once. `no`: it would be carried out twice, or answered
differently. `with_ids`: yes if the client gave the ids of the new session, messages or tool call, which the
daemon then recognises; otherwise no.
"""

FORMATS_WITH_IDS = (None, "neutral")
"""Values of the param `format` for which a message may have an id: compactd's neutral format, which is also
the default (None).
"""
ID_FIELDS = {"session/start": "session_id", "session/reduce": "call_id"}
"""By method, the param by which the daemon recognises a request that is sent again. For other methods, it is
the ids of the messages.
"""


class Method(Struct, frozen=True, kw_only=True):
    """One method of the protocol: all that the daemon, its clients and the documents know about it."""

    name: str
    params: type[Struct]
    result: type | None
    scope: Scope = "session"
    """`session` if the method needs a session, otherwise `none`."""
    errors: tuple[type[CompactdError], ...] = ()
    """The errors that a client should expect, in addition to -32602, -32603 and -32800."""
    doc: str = ""
    opens: bool = False
    """Whether it opens a session. While it runs, other requests for that session wait."""
    ends: bool = False
    """Whether it closes or deletes a session. While it runs, other requests for that session wait."""
    waits: bool = True
    """Whether its handler is called only after earlier requests to the session. If not, it waits only for
    those that open, close or delete the session; `session/redact` joins the queue itself."""
    grows: bool = False
    """Whether it adds messages to the session. The daemon reads them ahead of the next compaction."""
    reads_view: bool = False
    """Whether it decodes all messages of the session's view."""
    read_only: bool = False
    """Whether it changes nothing. An editor's command may then open the session without its lock."""
    long_running: bool = False
    """Whether an editor is shown progress even if its request has no progress token."""
    repeat: Repeat = "yes"
    """Whether a client that lost the answer may send the request again."""

    @property
    def handler(self) -> str:
        """The name of the function in `daemon/handlers` that carries the method out: `session_compact` for
        `session/compact`."""
        return self.name.replace("/", "_")


READS = (SessionNotFound, SessionCorrupt)
WRITES = (SessionNotFound, SessionLocked, SessionCorrupt, StorageFailed)
CHANGES = (*WRITES, SessionBusy)


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            name="session/start",
            params=wire.StartParams,
            result=wire.StartResult,
            errors=(SessionNotFound, SessionCorrupt, StorageFailed, FormatNotSupported),
            opens=True,
            repeat="with_ids",
            doc=(
                "Opens a new session, or resumes one by its `session_id`. If another process has the "
                "session open, it is opened `read_only` here and follows that process: the events of its "
                "changes are sent to this client, too."
            ),
        ),
        Method(
            name="session/append",
            params=wire.AppendParams,
            result=wire.AppendResult,
            errors=(*WRITES, SessionBusy, FormatNotSupported),
            grows=True,
            repeat="with_ids",
            doc=(
                "Appends messages: all of them, or none if there is an error. When the result arrives, "
                "they are durable. A message whose `id` is already known is not added twice. While the "
                "daemon's own loop answers a prompt (`agent/prompt`), messages of which the last is an "
                "assistant's are refused, because it would take the place of the model's answer."
            ),
        ),
        Method(
            name="session/reduce",
            params=wire.ReduceParams,
            result=wire.ReduceResult,
            errors=WRITES,
            reads_view=True,
            repeat="with_ids",
            doc=(
                "Returns a shorter text to show to the model instead of a tool's output. Each place where "
                "something is left out is marked, with the entry that has the original: `session/expand` "
                "returns it, and `session/search` finds it. The original is no message: it is in no context "
                "and in no history. Append the tool result with the shorter text as usual."
            ),
        ),
        Method(
            name="session/context",
            params=wire.ContextParams,
            result=wire.ContextResult,
            errors=(*READS, FormatNotSupported),
            reads_view=True,
            read_only=True,
            doc=(
                "Returns what the next model request must contain. It is always valid for the provider of "
                "`format`."
            ),
        ),
        Method(
            name="session/cost",
            params=wire.SessionParams,
            result=wire.CostResult,
            errors=READS,
            read_only=True,
            doc=(
                "Returns what the session cost so far: by kind of token, what was paid for again because the "
                "provider's cache was built again and why, and what the next request will cost."
            ),
        ),
        Method(
            name="session/compact",
            params=wire.CompactParams,
            result=CompactionResult,
            errors=(*CHANGES, CannotFit, NoProvider),
            long_running=True,
            repeat="no",
            doc=(
                "Replaces older messages of the context by a summary. Nothing is deleted: "
                "`session/expand` and `session/search` return the originals, and `session/undo` restores "
                "them to the context."
            ),
        ),
        Method(
            name="session/history",
            params=wire.HistoryParams,
            result=wire.HistoryResult,
            errors=READS,
            read_only=True,
            doc=("Returns every message ever appended, compacted or not, with the compactions between them."),
        ),
        Method(
            name="session/search",
            params=wire.SearchParams,
            result=wire.SearchResult,
            errors=READS,
            read_only=True,
            doc=(
                "Finds messages that contain a text, including those that a compaction removed from the "
                "context, and originals of reduced tool outputs. Searches one session, or every stored one."
            ),
        ),
        Method(
            name="session/expand",
            params=wire.ExpandParams,
            result=wire.ExpandResult,
            errors=READS,
            reads_view=True,
            read_only=True,
            doc=(
                "Returns the original messages that a compaction's summary replaced, or those of the "
                "given entries. An entry can also be the original of a reduced tool output."
            ),
        ),
        Method(
            name="session/prune",
            params=wire.PruneParams,
            result=wire.PruneResult,
            errors=CHANGES,
            repeat="no",
            doc=(
                "Replaces old tool output by one-line stubs, as much as the settings say, even if the "
                "setting `prune` is off."
            ),
        ),
        Method(
            name="session/branch",
            params=wire.BranchParams,
            result=wire.BranchResult,
            errors=CHANGES,
            repeat="no",
            doc=(
                "Goes back to an older entry and continues from there, on a new branch. Nothing is deleted."
            ),
        ),
        Method(
            name="session/undo",
            params=wire.UndoParams,
            result=wire.UndoResult,
            errors=(*CHANGES, NothingToUndo, CannotFit),
            repeat="no",
            doc="Undoes the last compaction or prune. Later messages stay.",
        ),
        Method(
            name="session/redo",
            params=wire.SessionParams,
            result=wire.UndoResult,
            errors=(*CHANGES, NothingToUndo, CannotFit),
            repeat="no",
            doc="Restores the compaction or prune that was undone last.",
        ),
        Method(
            name="session/list",
            params=wire.Nothing,
            result=wire.ListResult,
            scope="none",
            read_only=True,
            doc="Lists all sessions.",
        ),
        Method(
            name="session/close",
            params=wire.SessionParams,
            result=wire.Nothing,
            errors=READS,
            ends=True,
            doc=(
                "Closes the session in this daemon and cancels a running compaction. The session stays "
                "stored. If other clients of a shared daemon have it open, it stays open for them."
            ),
        ),
        Method(
            name="session/delete",
            params=wire.SessionParams,
            result=wire.DeleteResult,
            errors=CHANGES,
            ends=True,
            doc=(
                "Removes a session for good: its journal, its part of the search index, its snapshots, a "
                "hook's data about it, and the link to an ACP session. `left` lists files with text of "
                "the session that are not deleted: those that `session/export` wrote, and the transcript "
                "of the agent if a hook mirrors the agent's session. If that agent continues its session, "
                "the hook stores only what is new. A session that another client has open is not deleted "
                "(error 1004)."
            ),
        ),
        Method(
            name="session/configure",
            params=wire.ConfigureParams,
            result=wire.ConfigureResult,
            errors=WRITES,
            doc="Sets the given settings and returns the value of every setting, and where it comes from.",
        ),
        Method(
            name="session/pin",
            params=wire.PinParams,
            result=wire.PinResult,
            errors=WRITES,
            doc=(
                "Pins messages, so that they stay in every later context whatever is compacted, or unpins "
                "them."
            ),
        ),
        Method(
            name="session/redact",
            params=wire.RedactParams,
            result=wire.RedactResult,
            waits=False,
            errors=CHANGES,
            repeat="no",
            doc=(
                "Removes the contents of messages from the session, for example because a secret was "
                'pasted. This is the one exception to "nothing is deleted". Role, blocks and call ids '
                "stay; the contents become `[redacted]` in the view, the history, the search, and in the "
                "journal's file, which is rewritten. Words that no other message contains are also "
                "removed from summaries, titles, file lists, error texts and waiting prompts: words of 6 "
                "characters and more anywhere, shorter ones as separate words. A summary that a model "
                "wrote of a redacted message is written again without a model. Earlier snapshots of the "
                "work tree are deleted, and so are a hook's copies of the messages. `cleaned` lists what "
                "was cleaned, `left` what could not be cleaned and why."
            ),
        ),
        Method(
            name="session/diff",
            params=wire.DiffParams,
            result=wire.DiffResult,
            errors=READS,
            read_only=True,
            doc=(
                "Returns the files that changed between the snapshots of a session that was started with "
                "`snapshots`. If there are none, `files` is empty and `reason` says why."
            ),
        ),
        Method(
            name="session/import",
            params=wire.ImportParams,
            result=wire.ImportResult,
            scope="none",
            errors=(
                SessionLocked,
                SessionBusy,
                StorageFailed,
                LimitExceeded,
                FormatNotSupported,
            ),
            repeat="no",
            doc=(
                "Creates a new session from a session file of another agent (docs/formats.md lists them) "
                "or of compactd, or from a list of messages in OpenAI's, Anthropic's, Gemini's or "
                "compactd's format. Compactions in the file are imported too: the messages that a summary "
                "replaced are in the history, and `session/undo` restores them to the context. With "
                "`session_id`, brings a session up to date that was imported from the same file."
            ),
        ),
        Method(
            name="session/export",
            params=wire.ExportParams,
            result=wire.ExportResult,
            errors=(*READS, StorageFailed, LimitExceeded, FormatNotSupported),
            reads_view=True,
            doc=(
                "Returns the session inline or writes it to a file. `compactd` is lossless. A message "
                "format, such as `openai`, contains the whole history in a JSON object from which a model "
                "request can be made. The name of another agent gives a session file that this agent can "
                "open."
            ),
        ),
        Method(
            name="agent/state",
            params=wire.StateParams,
            result=wire.StateResult,
            waits=False,
            errors=READS,
            read_only=True,
            doc=(
                "Returns the state of the session: status, tokens, budget, compactions. Answers at once, "
                "even while a prompt or a compaction runs. With `work`, the result also says where the work "
                "stands: plan, changed files, checks, errors, decisions. The daemon first reads the messages "
                "that it has not read yet."
            ),
        ),
        Method(
            name="agent/prompt",
            params=wire.PromptParams,
            result=wire.PromptResult,
            errors=(*WRITES, NoProvider),
            grows=True,
            reads_view=True,
            repeat="no",
            doc=(
                "Gives a prompt to the daemon's own loop. It asks the session's model, has the client run "
                "its tools (`tool/execute`), compacts if that is due, and reports everything as events, "
                "from `agent_start` to `agent_end` or `error`."
            ),
        ),
        Method(
            name="agent/abort",
            params=wire.SessionParams,
            result=wire.AbortResult,
            waits=False,
            errors=READS,
            repeat="no",
            doc=(
                "Stops the prompt that is being answered. Prompts that wait stay queued until the next "
                "`agent/prompt`."
            ),
        ),
        Method(
            name="prompt/drop",
            params=wire.DropParams,
            result=wire.DropResult,
            waits=False,
            errors=WRITES,
            repeat="no",
            doc=(
                "Removes a prompt that waits in the queue. (`agent/abort` stops the one that is being "
                "answered.)"
            ),
        ),
        Method(
            name="turn/begin",
            params=wire.SessionParams,
            result=wire.BeginResult,
            errors=(*WRITES, CannotFit),
            grows=True,
            repeat="no",
            doc=(
                "Checks the context before a model request: prunes or compacts if that is due, then answers."
            ),
        ),
        Method(
            name="turn/end",
            params=wire.EndParams,
            result=wire.EndResult,
            errors=(*WRITES, SessionBusy, FormatNotSupported),
            grows=True,
            repeat="with_ids",
            doc="Appends the model's answer and the results of its tools.",
        ),
        Method(
            name="turn/error",
            params=wire.ErrorParams,
            result=wire.ErrorResult,
            errors=WRITES,
            repeat="no",
            doc=(
                "Reports a failed model request and returns what kind of failure it was. After an "
                "overflow, the session is compacted so that the next request is smaller, at most three "
                "times before the next `turn/end`. If the provider's error names the model's window, "
                "compactd learns it. If the session is not found or locked, the `data` of the error still "
                "says what kind of failure it was."
            ),
        ),
        Method(
            name="model/set",
            params=wire.ModelSetParams,
            result=wire.ModelSetResult,
            errors=(*CHANGES, CannotFit),
            repeat="no",
            doc="Changes the session's model, if the conversation fits its window or can be made to fit.",
        ),
        Method(
            name="tokens/count",
            params=wire.CountParams,
            result=wire.CountResult,
            scope="none",
            errors=(FormatNotSupported,),
            read_only=True,
            doc="Counts the tokens of a text or of messages, for a model.",
        ),
        Method(
            name="models/lookup",
            params=wire.LookupParams,
            result=wire.LookupResult,
            scope="none",
            read_only=True,
            doc=(
                "Returns a model's window and limits, with their sources. For an unknown model, the "
                "window is 128000, a guess."
            ),
        ),
        Method(
            name="models/list",
            params=wire.ListModelsParams,
            result=wire.ListModelsResult,
            scope="none",
            read_only=True,
            doc=(
                "Lists every model that the registry knows, or those of one provider, and the context "
                "windows that compactd learned from servers."
            ),
        ),
        Method(
            name="models/forget",
            params=wire.ForgetParams,
            result=wire.ForgetResult,
            scope="none",
            errors=(StorageFailed,),
            repeat="no",
            doc="Forgets context windows that compactd learned from servers.",
        ),
        Method(
            name="overflow/classify",
            params=wire.ClassifyParams,
            result=wire.ClassifyResult,
            scope="none",
            errors=(SessionNotFound,),
            read_only=True,
            doc=(
                "Returns whether a failed model request was an overflow, which sizes the provider's error "
                "names, and what fixes it."
            ),
        ),
        Method(
            name="trust/set",
            params=wire.TrustParams,
            result=wire.TrustResult,
            scope="none",
            errors=(StorageFailed,),
            doc=(
                "Trusts the current content of a folder's `.compactd.toml`, or revokes that trust. Only a "
                "person should decide this. Without trust, the file may only set sizes, within bounds "
                "(docs/settings.md)."
            ),
        ),
        Method(
            name="trust/list",
            params=wire.Nothing,
            result=wire.TrustList,
            scope="none",
            read_only=True,
            doc="Lists the folders that were trusted, and whether their files are unchanged.",
        ),
        Method(
            name="daemon/ping",
            params=wire.Nothing,
            result=wire.Nothing,
            scope="none",
            read_only=True,
            doc="Answers, to show that the daemon is alive.",
        ),
        Method(
            name="session/subscribe",
            params=wire.SubscribeParams,
            result=wire.SubscribeResult,
            errors=READS,
            waits=False,
            read_only=True,
            doc=(
                "Sends the events of an open session to this client, also those that other clients of a "
                "shared daemon cause (docs/sharing.md). `session/start` subscribes, too. After the answer, "
                "the events after `since_seq` are sent again: all of the last 256 KiB, and of the older ones "
                "those about messages."
            ),
        ),
        Method(
            name="session/unsubscribe",
            params=wire.SessionParams,
            result=wire.Nothing,
            errors=READS,
            waits=False,
            read_only=True,
            doc=(
                "Sends no more events of a session to this client, until it calls `session/subscribe` or "
                "`session/start`."
            ),
        ),
        Method(
            name="daemon/retire",
            params=wire.Nothing,
            result=wire.RetireResult,
            scope="none",
            doc=(
                "Makes a shared daemon take no further clients, and end when the last one has left. A newer "
                "version of compactd that is started next to it asks for this. A daemon that serves only one "
                "client ends with it anyway."
            ),
        ),
        Method(
            name="daemon/info",
            params=wire.Nothing,
            result=wire.InfoResult,
            scope="none",
            read_only=True,
            doc="Returns facts about this daemon: versions, paths, encodings.",
        ),
    )
}
