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
            "Opens a new session, or resumes one by its `session_id`. A session that another process has "
            "open is opened `read_only` and follows what that process does: its events are sent here too.",
        ),
        _row(
            "session/append",
            wire.AppendParams,
            wire.AppendResult,
            (*WRITES, SessionBusy, FormatNotSupported),
            "Appends messages, all or none. When the result arrives, they are durable. A message whose `id` "
            "is already known is not added twice. While the daemon answers a prompt itself, messages that "
            "end with an assistant's are refused, because they would take the place of the model's answer.",
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
            "Replaces older messages of the context by a summary. Nothing is deleted: `session/expand`, "
            "`session/search` and `session/undo` reach everything.",
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
            "Replaces old tool output by one-line stubs, according to the settings, whether `prune` is on "
            "or off.",
        ),
        _row(
            "session/branch",
            wire.BranchParams,
            wire.BranchResult,
            CHANGES,
            "Goes back to an entry, so that the next one follows it. Nothing is deleted.",
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
            "Closes the session here and cancels a running compaction. It stays stored.",
        ),
        _row(
            "session/delete",
            wire.SessionParams,
            wire.DeleteResult,
            CHANGES,
            "Removes a session for good: its journal, its part of the search index, its snapshots, a hook's "
            "data about it, its ACP link. `left` names what is not compactd's: files that `session/export` "
            "wrote and that still exist, and the transcript of an agent whose session a hook mirrors. If "
            "that agent continues its session, the hook stores only what is new.",
        ),
        _row(
            "session/configure",
            wire.ConfigureParams,
            wire.ConfigureResult,
            WRITES,
            "Sets the given settings and returns every setting in force, with where it came from.",
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
            "Removes what messages say from the session, for a secret that was pasted. It is the one "
            'exception to "nothing is deleted". Role, blocks and call ids stay; the contents become '
            "`[redacted]` in the view, the history, the search, and in the journal's file, which is "
            "rewritten. Words that no other message contains are also removed from summaries, titles, file "
            "lists, error texts and waiting prompts: words of 6 characters and more anywhere, shorter ones "
            "as separate words. A summary that a model wrote of a redacted message is written again without "
            "a model. Snapshots of the work tree that were taken before are removed, and so is what a hook "
            "keeps. `cleaned` lists the places, `left` what cannot be cleaned and why.",
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
            "Creates a new session from a session file of another agent (docs/formats.md lists them) or of "
            "compactd, or from a list of messages in OpenAI's, Anthropic's, Gemini's or compactd's shape. "
            "Compactions in the file are imported too: what a summary replaced is in the history, and "
            "`session/undo` restores it.",
            "none",
        ),
        _row(
            "session/export",
            wire.ExportParams,
            wire.ExportResult,
            (*READS, StorageFailed, LimitExceeded, FormatNotSupported),
            "Returns the session inline or writes it to a file. `compactd` is lossless. Message formats "
            "contain the whole history in a JSON object from which a request can be made. Names of other "
            "agents give session files that those agents can open.",
        ),
        _row(
            "agent/state",
            wire.SessionParams,
            wire.StateResult,
            READS,
            "Returns the state of the session: status, tokens, budget, compactions. Never waits.",
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
            "Takes back a prompt that waits. (`agent/abort` stops the one that is being answered.)",
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
            "Reports a failed model request and says what it was. An overflow is answered with a smaller "
            "conversation, at most three times before the next `turn/end`, and the window that it names is "
            "learned. Without a session, the error's `data` still says what the failure was.",
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
            "Lists every model that the registry knows, or those of one provider, and the windows learned "
            "from servers.",
            "none",
        ),
        _row(
            "models/forget",
            wire.ForgetParams,
            wire.ForgetResult,
            (StorageFailed,),
            "Forgets windows that were learned from servers.",
            "none",
        ),
        _row(
            "overflow/classify",
            wire.ClassifyParams,
            wire.ClassifyResult,
            (SessionNotFound,),
            "Says whether a failed model request was an overflow, what the error states, and what fixes it.",
            "none",
        ),
        _row(
            "trust/set",
            wire.TrustParams,
            wire.TrustResult,
            (StorageFailed,),
            "Trusts the present content of a folder's `.compactd.toml`, or revokes that trust. A person "
            "decides this. Without trust, the file may only set sizes, within bounds (docs/settings.md).",
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
