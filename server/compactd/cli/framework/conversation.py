"""A session file that was read and repaired, as all commands use it."""

from __future__ import annotations

from msgspec import Raw, Struct

from compactd.core.budget.recorded_window import Evidence, Recorded
from compactd.formats.files.session_file import MessageLine


class LoadedConversation(Struct, frozen=True, kw_only=True):
    """A session file that was read and repaired, ready to be appended to a session."""

    format: str
    name: str
    """The session's id, shortened if it is a UUID. The file's name if the file has no id."""
    session_id: str | None
    title: str | None
    model: str | None
    messages: tuple[MessageLine, ...]
    """All messages, oldest first, without a leading system prompt."""
    entry_ids: tuple[str, ...]
    """The entry id of each of `messages`: those of a compactd journal, otherwise e1, e2, … as in an
    import.
    """
    live: tuple[MessageLine, ...]
    """The messages that are still in the context: those from the last summary on. For a compactd journal, the
    view.
    """
    live_numbers: tuple[int, ...]
    """For each message of `live`, its number in `messages`, from 1; 0 for a summary that compactd wrote."""
    system_prompt: str | None
    tools: tuple[Raw, ...]
    working_dir: str | None
    compactions: int
    compacted_after: tuple[int, ...]
    """For each compaction whose summary is not in `messages`: how many of `messages` came before it."""
    context_window: int | None
    """The context window that the file records for its session, in tokens."""
    evidence: tuple[Evidence, ...]
    """The numbers in the file that say something about the window of `model`."""
    accepted: tuple[int, ...]
    """Sizes in tokens of the requests that `model` answered, from the usage reports in the file."""
    recorded: Recorded | None = None
    """For a compactd journal: what it recorded about the window when the session was imported."""
    warnings: tuple[str, ...]
