"""The table of all methods: name, params, result, and the errors that a client should expect.

`protocol.md`, the schema and the editors' types are generated from this table.
"""

from __future__ import annotations

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


class Method(Struct, frozen=True, kw_only=True):
    """One method of the protocol."""

    name: str
    params: type[Struct]
    result: type | None
    scope: str
    """`session` if the method needs a session, otherwise `none`."""
    errors: tuple[type[CompactdError], ...] = ()
    """The errors that a client should expect, in addition to -32602, -32603 and -32800."""
    doc: str = ""


READS = (SessionNotFound, SessionCorrupt)
WRITES = (SessionNotFound, SessionLocked, SessionCorrupt, StorageFailed)
CHANGES = (*WRITES, SessionBusy)


def _row(
    name: str,
    params: type[Struct],
    result: type,
    errors: tuple[type[CompactdError], ...],
    doc: str,
    scope: str = "session",
) -> Method:
    return Method(name=name, params=params, result=result, scope=scope, errors=errors, doc=doc)


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        _row(
            "session/start",
            wire.StartParams,
            wire.StartResult,
            (SessionNotFound, SessionCorrupt, StorageFailed, FormatNotSupported),
            "Opens a new session, or resumes one by its `session_id`. If another process has the session "
            "open, it is opened `read_only` here and follows that process: the events of its changes are "
            "sent to this client, too.",
        ),
        _row(
            "session/append",
            wire.AppendParams,
            wire.AppendResult,
            (*WRITES, SessionBusy, FormatNotSupported),
            "Appends messages: all of them, or none if there is an error. When the result arrives, they "
            "are durable. A message whose `id` is already known is not added twice. While the daemon's "
            "own loop answers a prompt (`agent/prompt`), messages of which the last is an assistant's are "
            "refused, because it would take the place of the model's answer.",
        ),
        _row(
            "session/context",
            wire.ContextParams,
            wire.ContextResult,
            (*READS, FormatNotSupported),
            "Returns what the next model request must contain. It is always valid for the provider of "
            "`format`.",
        ),
        _row(
            "session/compact",
            wire.CompactParams,
            CompactionResult,
            (*CHANGES, CannotFit, NoProvider),
            "Replaces older messages of the context by a summary. Nothing is deleted: `session/expand` "
            "and `session/search` return the originals, and `session/undo` restores them to the context.",
        ),
        _row(
            "session/history",
            wire.HistoryParams,
            wire.HistoryResult,
            READS,
            "Returns every message ever appended, compacted or not, with the compactions between them.",
        ),
        _row(
            "session/search",
            wire.SearchParams,
            wire.SearchResult,
            READS,
            "Finds messages that contain a text, including those that a compaction removed from the "
            "context. Searches one session, or every stored one.",
        ),
        _row(
            "session/expand",
            wire.ExpandParams,
            wire.ExpandResult,
            READS,
            "Returns the original messages that a compaction's summary replaced, or those of the given "
            "entries.",
        ),
        _row(
            "session/prune",
            wire.PruneParams,
            wire.PruneResult,
            CHANGES,
            "Replaces old tool output by one-line stubs, as much as the settings say, even if the setting "
            "`prune` is off.",
        ),
        _row(
            "session/branch",
            wire.BranchParams,
            wire.BranchResult,
            CHANGES,
            "Goes back to an older entry and continues from there, on a new branch. Nothing is deleted.",
        ),
        _row(
            "session/undo",
            wire.UndoParams,
            wire.UndoResult,
            (*CHANGES, NothingToUndo, CannotFit),
            "Undoes the last compaction or prune. Later messages stay.",
        ),
        _row(
            "session/redo",
            wire.SessionParams,
            wire.UndoResult,
            (*CHANGES, NothingToUndo, CannotFit),
            "Restores the compaction or prune that was undone last.",
        ),
        _row("session/list", wire.Nothing, wire.ListResult, (), "Lists all sessions.", "none"),
        _row(
            "session/close",
            wire.SessionParams,
            wire.Nothing,
            READS,
            "Closes the session in this daemon and cancels a running compaction. The session stays stored.",
        ),
        _row(
            "session/delete",
            wire.SessionParams,
            wire.DeleteResult,
            CHANGES,
            "Removes a session for good: its journal, its part of the search index, its snapshots, a "
            "hook's data about it, and the link to an ACP session. `left` lists files with text of the "
            "session that are not deleted: those that `session/export` wrote, and the transcript of the "
            "agent if a hook mirrors the agent's session. If that agent continues its session, the hook "
            "stores only what is new.",
        ),
        _row(
            "session/configure",
            wire.ConfigureParams,
            wire.ConfigureResult,
            WRITES,
            "Sets the given settings and returns the value of every setting, and where it comes from.",
        ),
        _row(
            "session/pin",
            wire.PinParams,
            wire.PinResult,
            WRITES,
            "Pins messages, so that they stay in every later context whatever is compacted, or unpins them.",
        ),
        _row(
            "session/redact",
            wire.RedactParams,
            wire.RedactResult,
            CHANGES,
            "Removes the contents of messages from the session, for example because a secret was pasted. "
            'This is the one exception to "nothing is deleted". Role, blocks and call ids stay; the '
            "contents become `[redacted]` in the view, the history, the search, and in the journal's "
            "file, which is rewritten. Words that no other message contains are also removed from "
            "summaries, titles, file lists, error texts and waiting prompts: words of 6 characters and "
            "more anywhere, shorter ones as separate words. A summary that a model wrote of a redacted "
            "message is written again without a model. Earlier snapshots of the work tree are deleted, "
            "and so are a hook's copies of the messages. `cleaned` lists what was cleaned, `left` what "
            "could not be cleaned and why.",
        ),
        _row(
            "session/diff",
            wire.DiffParams,
            wire.DiffResult,
            READS,
            "Returns the files that changed between the snapshots of a session that was started with "
            "`snapshots`. If there are none, `files` is empty and `reason` says why.",
        ),
        _row(
            "session/import",
            wire.ImportParams,
            wire.ImportResult,
            (StorageFailed, LimitExceeded, FormatNotSupported),
            "Creates a new session from a session file of another agent (docs/formats.md lists them) or "
            "of compactd, or from a list of messages in OpenAI's, Anthropic's, Gemini's or compactd's "
            "format. Compactions in the file are imported too: the messages that a summary replaced are "
            "in the history, and `session/undo` restores them to the context.",
            "none",
        ),
        _row(
            "session/export",
            wire.ExportParams,
            wire.ExportResult,
            (*READS, StorageFailed, LimitExceeded, FormatNotSupported),
            "Returns the session inline or writes it to a file. `compactd` is lossless. A message format, "
            "such as `openai`, contains the whole history in a JSON object from which a model request can "
            "be made. The name of another agent gives a session file that this agent can open.",
        ),
        _row(
            "agent/state",
            wire.SessionParams,
            wire.StateResult,
            READS,
            "Returns the state of the session: status, tokens, budget, compactions. Answers at once, even "
            "while a prompt or a compaction runs.",
        ),
        _row(
            "agent/prompt",
            wire.PromptParams,
            wire.PromptResult,
            (*WRITES, NoProvider),
            "Gives a prompt to the daemon's own loop. It asks the session's model, has the client run its "
            "tools (`tool/execute`), compacts if that is due, and reports everything as events, from "
            "`agent_start` to `agent_end` or `error`.",
        ),
        _row(
            "agent/abort",
            wire.SessionParams,
            wire.AbortResult,
            READS,
            "Stops the prompt that is being answered. Prompts that wait stay queued until the next "
            "`agent/prompt`.",
        ),
        _row(
            "prompt/drop",
            wire.DropParams,
            wire.DropResult,
            WRITES,
            "Removes a prompt that waits in the queue. (`agent/abort` stops the one that is being answered.)",
        ),
        _row(
            "turn/begin",
            wire.SessionParams,
            wire.BeginResult,
            (*WRITES, CannotFit),
            "Checks the context before a model request: prunes or compacts if that is due, then answers.",
        ),
        _row(
            "turn/end",
            wire.EndParams,
            wire.EndResult,
            (*WRITES, SessionBusy, FormatNotSupported),
            "Appends the model's answer and the results of its tools.",
        ),
        _row(
            "turn/error",
            wire.ErrorParams,
            wire.ErrorResult,
            WRITES,
            "Reports a failed model request and returns what kind of failure it was. After an overflow, "
            "the session is compacted so that the next request is smaller, at most three times before the "
            "next `turn/end`. If the provider's error names the model's window, compactd learns it. If "
            "the session is not found or locked, the `data` of the error still says what kind of failure "
            "it was.",
        ),
        _row(
            "model/set",
            wire.ModelSetParams,
            wire.ModelSetResult,
            (*CHANGES, CannotFit),
            "Changes the session's model, if the conversation fits its window or can be made to fit.",
        ),
        _row(
            "tokens/count",
            wire.CountParams,
            wire.CountResult,
            (FormatNotSupported,),
            "Counts the tokens of a text or of messages, for a model.",
            "none",
        ),
        _row(
            "models/lookup",
            wire.LookupParams,
            wire.LookupResult,
            (),
            "Returns a model's window and limits, with their sources. For an unknown model, the window is "
            "128000, a guess.",
            "none",
        ),
        _row(
            "models/list",
            wire.ListModelsParams,
            wire.ListModelsResult,
            (),
            "Lists every model that the registry knows, or those of one provider, and the context windows "
            "that compactd learned from servers.",
            "none",
        ),
        _row(
            "models/forget",
            wire.ForgetParams,
            wire.ForgetResult,
            (StorageFailed,),
            "Forgets context windows that compactd learned from servers.",
            "none",
        ),
        _row(
            "overflow/classify",
            wire.ClassifyParams,
            wire.ClassifyResult,
            (SessionNotFound,),
            "Returns whether a failed model request was an overflow, which sizes the provider's error "
            "names, and what fixes it.",
            "none",
        ),
        _row(
            "trust/set",
            wire.TrustParams,
            wire.TrustResult,
            (StorageFailed,),
            "Trusts the current content of a folder's `.compactd.toml`, or revokes that trust. Only a "
            "person should decide this. Without trust, the file may only set sizes, within bounds "
            "(docs/settings.md).",
            "none",
        ),
        _row(
            "trust/list",
            wire.Nothing,
            wire.TrustList,
            (),
            "Lists the folders that were trusted, and whether their files are unchanged.",
            "none",
        ),
        _row(
            "daemon/ping",
            wire.Nothing,
            wire.Nothing,
            (),
            "Answers, to show that the daemon is alive.",
            "none",
        ),
        _row(
            "daemon/info",
            wire.Nothing,
            wire.InfoResult,
            (),
            "Returns facts about this daemon: versions, paths, encodings.",
            "none",
        ),
    )
}
