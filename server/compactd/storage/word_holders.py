"""A table of all kinds of files below the data folder: which part of a session each kind contains, and what
`session/redact` and `session/delete` do to it.

These methods and `compactd doctor --where` use the table. A feature that writes a file below the data folder
must add a row: a test fails for a file that no row describes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from compactd.storage.paths import INDEX, file_stem

HolderKind = Literal["journal", "index", "git", "plain"]
"""How a file is searched: a journal record by record, an index by its table rows, a git object decompressed,
a plain file as raw bytes."""

ACP: Final = "acp:"
"""The prefix of the ids of sessions that `compactd acp` stores. The name of a session's ACP link file is
made from the id without this prefix."""


class Holder(Struct, frozen=True, kw_only=True):
    """One kind of file below the data folder, and what a redaction and a deletion do to it."""

    name: str
    what: str
    files: tuple[str, ...]
    """Patterns of paths relative to the data folder. `*` matches part of a name, `**` any path, `{stem}` the
    file name of a session (`file_stem`), `{link}` the file name of its ACP link."""
    on_redact: str
    on_delete: str
    kind: HolderKind = "plain"
    removed_with_session: bool = False
    """True if `FolderStore.delete` simply removes these files. If false, other code does what `on_delete`
    says."""


_NO_WORDS: Final = "nothing: it contains no text of a conversation"

HOLDERS: Final[tuple[Holder, ...]] = (
    Holder(
        name="journal",
        what="every message, summary, stub, title, waiting prompt, system prompt and tool of a session",
        files=("sessions/{stem}.jsonl", "sessions/{stem}.jsonl.new"),
        on_redact="rewritten without the messages and everything that was made from them",
        on_delete="removed",
        kind="journal",
        removed_with_session=True,
    ),
    Holder(
        name="list",
        what="what `session/list` shows of a session: title, model, counts",
        files=("sessions/{stem}.info", "sessions/{stem}.info.new"),
        on_redact="removed before the journal is rewritten",
        on_delete="removed",
        removed_with_session=True,
    ),
    Holder(
        name="trust",
        what="folders that the user trusts, by path, and the hash of each one's .compactd.toml",
        files=("trusted.json*",),
        on_redact=_NO_WORDS,
        on_delete=_NO_WORDS,
    ),
    Holder(
        name="imports",
        what="which session files `compactd import` has read, by path and size, and into which sessions",
        files=("imports.jsonl", "imports.jsonl.new"),
        on_redact=_NO_WORDS,
        on_delete=_NO_WORDS,
    ),
    Holder(
        name="exports",
        what="the paths of the files that `session/export` wrote",
        files=("sessions/{stem}.exports",),
        on_redact="stays; the answer names the exported files, which the user must clean",
        on_delete="removed; the answer names the exported files, which the user must remove",
        removed_with_session=True,
    ),
    Holder(
        name="lock",
        what="which process writes the session's journal or its hook files",
        files=("sessions/{stem}.lock", "hooks/{stem}.lock"),
        on_redact=_NO_WORDS,
        on_delete="removed",
    ),
    Holder(
        name="index",
        what="the search index of all sessions",
        files=(INDEX, INDEX + "-wal", INDEX + "-shm", INDEX + "-journal"),
        on_redact="removed as a whole before the journal is rewritten; built again at the next search",
        on_delete="the session's rows are removed and their pages overwritten",
        kind="index",
    ),
    Holder(
        name="hook",
        what="what an agent's hook keeps: messages in its context, messages that its compaction removed, "
        "records that wait for the journal, the agent's summary, the summary that replaced it",
        files=(
            "hooks/{stem}.json",
            "hooks/{stem}.json.new",
            "hooks/{stem}.stretch",
            "hooks/{stem}.gone",
            "hooks/{stem}.past",
            "hooks/{stem}.module",
            "hooks/{stem}.module.new",
            "hooks/{stem}.ready",
            "hooks/{stem}.ready.new",
            "hooks/{stem}.wait",
            "hooks/{stem}.wait.new",
        ),
        on_redact="removed under the hook's lock, and the transcript is read again; waiting records are "
        "rewritten",
        on_delete="removed under the hook's lock, except how far the transcript was read",
    ),
    Holder(
        name="hook's numbers",
        what="hashes by which the hook recognises messages that it has read, the status line's counts",
        files=(
            "hooks/{stem}.ids",
            "hooks/{stem}.ids.new",
            "hooks/{stem}.redacted",
            "hooks/{stem}.redacted.new",
            "hooks/{stem}.line",
            "hooks/{stem}.line.new",
        ),
        on_redact="hashes of the redacted messages are added, so that the hook does not import them again",
        on_delete="stay: hashes and counts without text, so that nothing comes back if the agent continues",
    ),
    Holder(
        name="redactions",
        what="hashes of redacted text of all sessions, by which an import recognises it, and their key",
        files=(
            "redactions/redacted.key",
            "redactions/redacted.key.new",
            "redactions/redacted.lock",
            "redactions/all.redacted",
            "redactions/all.redacted.new",
            "redactions/all.lock",
        ),
        on_redact="hashes of the redacted messages are added",
        on_delete="stay: hashes without text",
    ),
    Holder(
        name="hooks' key",
        what="a random key for the hashes of redacted text",
        files=("hooks/redacted.key", "hooks/redacted.key.new"),
        on_redact=_NO_WORDS,
        on_delete=_NO_WORDS,
    ),
    Holder(
        name="hooks' log",
        what="what hooks did and where they failed: names, counts and positions in compactd's code",
        files=("hooks/hooks.log", "hooks/hooks.log.1"),
        on_redact=_NO_WORDS,
        on_delete=_NO_WORDS,
    ),
    Holder(
        name="installed hooks",
        what="where `compactd install` put compactd's hooks into an agent's settings, and their hash",
        files=("hooks/{stem}.installed", "hooks/{stem}.installed.new"),
        on_redact=_NO_WORDS,
        on_delete=_NO_WORDS,
    ),
    Holder(
        name="ACP link",
        what="which session of an agent belongs to which session of an ACP client",
        files=("acp/{link}.json", "acp/{link}.json.new"),
        on_redact=_NO_WORDS,
        on_delete="removed",
        removed_with_session=True,
    ),
    Holder(
        name="snapshots",
        what="files of the user's git work tree at the beginning and end of each turn, as git objects",
        files=("snapshots/{stem}/**",),
        on_redact="removed",
        on_delete="removed",
        kind="git",
    ),
    Holder(
        name="learned windows",
        what="context windows that servers reported",
        files=("observed.jsonl", "observed.jsonl.new"),
        on_redact=_NO_WORDS,
        on_delete=_NO_WORDS,
    ),
    Holder(
        name="settings",
        what="the user's own settings, models and keys, if the platform keeps them in the data folder",
        files=("*.toml", "*.toml.new"),
        on_redact="nothing: the user wrote them",
        on_delete="nothing: the user wrote them",
    ),
)


def holder_of(name: str) -> Holder | None:
    """Return the row that describes a file, or None. `name` is the file's path relative to the data folder,
    with `/`.
    """
    return next((holder for holder, pattern in _patterns() if pattern.fullmatch(name)), None)


def files_with_holder(home: Path) -> Iterator[tuple[Path, Holder | None]]:
    """Yield every file below the data folder, sorted by path, with the row that describes it or None. A
    symbolic link counts as a file. O(files).
    """
    for folder, folders, names in os.walk(home):
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        for name in sorted([*names, *links]):
            path = Path(folder) / name
            yield path, holder_of(path.relative_to(home).as_posix())
        folders.sort()


def files_of(home: Path, session_id: str) -> list[Path]:
    """Return the paths of the files that `FolderStore.delete` removes for a session (the rows of `HOLDERS`
    with `removed_with_session`), the journal first.

    The files may not exist: this function does not read the disk. `home` is the data folder.
    """
    stem = file_stem(session_id)
    link = file_stem(session_id[len(ACP) :]) if session_id.startswith(ACP) else ""
    return [
        home / pattern.format(stem=stem, link=link)
        for holder in HOLDERS
        if holder.removed_with_session
        for pattern in holder.files
        if link or "{link}" not in pattern
    ]


def _patterns() -> Iterator[tuple[Holder, re.Pattern[str]]]:
    for holder in HOLDERS:
        for pattern in holder.files:
            yield holder, re.compile(_regex(pattern))


def _regex(pattern: str) -> str:
    made = re.escape(pattern)
    for written, meant in (
        (r"\{stem\}", "[a-z0-9-]+"),
        (r"\{link\}", "[a-z0-9-]+"),
        (r"\*\*", ".*"),
        (r"\*", "[^/]*"),
    ):
        made = made.replace(written, meant)
    return made
