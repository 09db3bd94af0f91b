"""Every method of ours: its name, what goes in, what comes out, and the errors a client is to expect.

`protocol.md`, the schema and the editors' types are written from this table.
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
    """One row of the table."""

    name: str
    params: type[Struct]
    result: type | None
    scope: str
    """`session` or `none`."""
    errors: tuple[type[CompactdError], ...] = ()
    """Those that a client is expected to handle, beside -32602, -32603 and -32800."""
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
            "open comes back `read_only` and follows what that process does: its events come here too.",
        ),
        _row(
            "session/append",
            wire.AppendParams,
            wire.AppendResult,
            (*WRITES, SessionBusy, FormatNotSupported),
            "Appends messages, all or none. When the answer is there they are durable. A message whose `id` "
            "is known already is not added twice. While the daemon answers a prompt itself, messages that "
            "end with an assistant's are refused: they would stand in the place of the model's answer.",
        ),
        _row(
            "session/context",
            wire.ContextParams,
            wire.ContextResult,
            (*READS, FormatNotSupported),
            "What the next model request must contain, always valid for the provider of `format`.",
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
            "Every message ever appended, compacted or not, with the compactions between.",
        ),
        _row(
            "session/search",
            wire.SearchParams,
            wire.SearchResult,
            READS,
            "Messages that hold a text, also those that a compaction took out of the context; in one "
            "session, or in every one that is stored.",
        ),
        _row(
            "session/expand",
            wire.ExpandParams,
            wire.ExpandResult,
            READS,
            "The original messages behind a compaction's summary, or those of the entries named.",
        ),
        _row(
            "session/prune",
            wire.PruneParams,
            wire.PruneResult,
            CHANGES,
            "Shows old tool output as one-line stubs, as the settings say, whether `prune` is on or off.",
        ),
        _row(
            "session/branch",
            wire.BranchParams,
            wire.BranchResult,
            CHANGES,
            "Goes back to an entry: the next one follows it. Nothing is deleted.",
        ),
        _row(
            "session/undo",
            wire.UndoParams,
            wire.UndoResult,
            (*CHANGES, NothingToUndo, CannotFit),
            "Takes the last compaction or prune back. Later messages stay.",
        ),
        _row(
            "session/redo",
            wire.SessionParams,
            wire.UndoResult,
            (*CHANGES, NothingToUndo, CannotFit),
            "Puts the compaction or prune that was undone last in force again.",
        ),
        _row("session/list", wire.Nothing, wire.ListResult, (), "Every session there is.", "none"),
        _row(
            "session/close",
            wire.SessionParams,
            wire.Nothing,
            READS,
            "Ends the session here; a running compaction is cancelled. It stays stored.",
        ),
        _row(
            "session/delete",
            wire.SessionParams,
            wire.DeleteResult,
            CHANGES,
            "Removes a session for good: its journal, its part of the search index, its snapshots, what a "
            "hook keeps of it, its ACP link. `left` names what is not compactd's: files which "
            "`session/export` wrote and that are there still, and the transcript of an agent whose session a "
            "hook mirrors. If that agent goes on with its session, the hook stores what is new alone.",
        ),
        _row(
            "session/configure",
            wire.ConfigureParams,
            wire.ConfigureResult,
            WRITES,
            "Sets what is given and answers every setting in force, with where it came from.",
        ),
        _row(
            "session/pin",
            wire.PinParams,
            wire.PinResult,
            WRITES,
            "Keeps messages in every later context, whatever is compacted; or lets them go.",
        ),
        _row(
            "session/redact",
            wire.RedactParams,
            wire.RedactResult,
            CHANGES,
            "Takes what messages say out of the session, for a secret that was pasted: the one exception to "
            '"nothing is deleted". Role, blocks and call ids stay, the contents become `[redacted]`: in the '
            "view, the history, the search, and in the journal's file, which is written anew. Words that no "
            "other message holds go from summaries, titles, file lists, error texts and waiting prompts too: "
            "of 6 characters and more wherever they stand, shorter ones where they stand by themselves. A "
            "summary that a model wrote of a redacted message is made anew without a model. Snapshots of the "
            "work tree that were taken before are removed, and so is what a hook keeps. `cleaned` lists "
            " the places, `left` what cannot be cleaned and why.",
        ),
        _row(
            "session/diff",
            wire.DiffParams,
            wire.DiffResult,
            READS,
            "The files that changed between the snapshots of a session that was started with `snapshots`. "
            "Where there are none, `files` is empty and `reason` says why.",
        ),
        _row(
            "session/import",
            wire.ImportParams,
            wire.ImportResult,
            (StorageFailed, LimitExceeded, FormatNotSupported),
            "Makes a new session of a session file of another agent (docs/formats.md lists them), of "
            "compactd, or of a list of messages in OpenAI's, Anthropic's, Gemini's or our shape. Compactions "
            "of either come in: what a summary stands for is in the history, `session/undo` brings it back.",
            "none",
        ),
        _row(
            "session/export",
            wire.ExportParams,
            wire.ExportResult,
            (*READS, StorageFailed, LimitExceeded, FormatNotSupported),
            "The session as a file, or inline. `compactd` is lossless; the other formats hold the whole "
            "history as messages, in a JSON object that a request is made of. Names of other agents give "
            "session files that those can open.",
        ),
        _row(
            "agent/state",
            wire.SessionParams,
            wire.StateResult,
            READS,
            "Where the session stands: status, tokens, budget, compactions. Never waits.",
        ),
        _row(
            "agent/prompt",
            wire.PromptParams,
            wire.PromptResult,
            (*WRITES, NoProvider),
            "Gives the daemon's own loop a prompt. It asks the session's model, has the client run its tools "
            "(`tool/execute`), compacts where that is due, and tells all of it by events, from `agent_start` "
            "to `agent_end` or `error`.",
        ),
        _row(
            "agent/abort",
            wire.SessionParams,
            wire.AbortResult,
            READS,
            "Stops the prompt that is being answered. Prompts that wait stay queued for the next one.",
        ),
        _row(
            "prompt/drop",
            wire.DropParams,
            wire.DropResult,
            WRITES,
            "Takes back a prompt that waits. `agent/abort` stops the one that is being answered.",
        ),
        _row(
            "turn/begin",
            wire.SessionParams,
            wire.BeginResult,
            (*WRITES, CannotFit),
            "The check before a model request: prunes or compacts if that is due, then answers.",
        ),
        _row(
            "turn/end",
            wire.EndParams,
            wire.EndResult,
            (*WRITES, SessionBusy, FormatNotSupported),
            "Appends what the model answered and what its tools gave back.",
        ),
        _row(
            "turn/error",
            wire.ErrorParams,
            wire.ErrorResult,
            WRITES,
            "Tells what a failed model request was. An overflow is answered with a smaller conversation, at "
            "most three times before the next `turn/end`; the window that it names is learned. Without a "
            "session, the error's `data` still says what the failure was.",
        ),
        _row(
            "model/set",
            wire.ModelSetParams,
            wire.ModelSetResult,
            (*CHANGES, CannotFit),
            "Puts the session on another model, if the conversation fits or can be made to.",
        ),
        _row(
            "tokens/count",
            wire.CountParams,
            wire.CountResult,
            (FormatNotSupported,),
            "Tokens of a text or of messages, for a model.",
            "none",
        ),
        _row(
            "models/lookup",
            wire.LookupParams,
            wire.LookupResult,
            (),
            "A model's window and limits, with their sources. An unknown model answers 128000, a guess.",
            "none",
        ),
        _row(
            "models/list",
            wire.ListModelsParams,
            wire.ListModelsResult,
            (),
            "Every model that the registry knows, or one provider's, and the windows that servers taught.",
            "none",
        ),
        _row(
            "models/forget",
            wire.ForgetParams,
            wire.ForgetResult,
            (StorageFailed,),
            "Forgets windows that servers taught.",
            "none",
        ),
        _row(
            "overflow/classify",
            wire.ClassifyParams,
            wire.ClassifyResult,
            (SessionNotFound,),
            "Whether a failed model request was an overflow, what it says, and what mends it.",
            "none",
        ),
        _row(
            "trust/set",
            wire.TrustParams,
            wire.TrustResult,
            (StorageFailed,),
            "Trusts what a folder's `.compactd.toml` holds now, or takes that back; a person decides this. "
            "Without trust the file may only set sizes, within bounds (docs/settings.md).",
            "none",
        ),
        _row(
            "trust/list",
            wire.Nothing,
            wire.TrustList,
            (),
            "The folders that were trusted, and whether their files are still the same.",
            "none",
        ),
        _row("daemon/ping", wire.Nothing, wire.Nothing, (), "Answers.", "none"),
        _row("daemon/info", wire.Nothing, wire.InfoResult, (), "This daemon.", "none"),
    )
}
