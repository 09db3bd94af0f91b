"""Every place on the disk that holds words of a session, in one table: how it is found, cleaned and removed.

`session/redact`, `session/delete` and `compactd doctor --where` go by it. A feature that writes a file below
the data folder adds a row; a test fails for a file that no row claims.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from compactd.storage.paths import INDEX, file_stem

Kind = Literal["journal", "index", "git", "plain"]
"""How a file is looked into: record by record, by its table, decompressed, or as it is."""

ACP: Final = "acp:"
"""What the name of a session begins with that `compactd acp` stores; its link is named without that."""


class Holder(Struct, frozen=True, kw_only=True):
    """One kind of file and what becomes of it."""

    name: str
    what: str
    files: tuple[str, ...]
    """Patterns below the data folder: `*` is a part of a name, `**` anything below; `{stem}` is the name of a
    session's files, `{link}` that of its ACP link."""
    on_redact: str
    on_delete: str
    kind: Kind = "plain"
    removed_with_session: bool = True
    """`FolderStore.delete` removes these files of a session; others it cleans in their own way."""


_NO_WORDS: Final = "nothing: it holds no words of a conversation"

HOLDERS: Final[tuple[Holder, ...]] = (
    Holder(
        name="journal",
        what="every message, summary, stub, title, prompt that waits, system prompt and tool of a session",
        files=("sessions/{stem}.jsonl", "sessions/{stem}.jsonl.new"),
        on_redact="written anew: messages and whatever was made from them",
        on_delete="removed",
        kind="journal",
    ),
    Holder(
        name="list",
        what="what `session/list` shows of a session: title, model, counts",
        files=("sessions/{stem}.info", "sessions/{stem}.info.new"),
        on_redact="removed before the journal is written anew",
        on_delete="removed",
    ),
    Holder(
        name="trust",
        what="folders that the user trusts, by path, and the hash of each one's .compactd.toml",
        files=("trusted.json*",),
        on_redact=_NO_WORDS,
        on_delete=_NO_WORDS,
        removed_with_session=False,
    ),
    Holder(
        name="exports",
        what="the paths of the files that `session/export` wrote",
        files=("sessions/{stem}.exports",),
        on_redact="stays: the answer names the files, which are the user's",
        on_delete="removed: the answer names the files, which are the user's",
    ),
    Holder(
        name="lock",
        what="who writes a session, or what a hook keeps of it",
        files=("sessions/{stem}.lock", "hooks/{stem}.lock"),
        on_redact=_NO_WORDS,
        on_delete="removed",
        removed_with_session=False,
    ),
    Holder(
        name="index",
        what="the search index of all sessions",
        files=(INDEX, INDEX + "-wal", INDEX + "-shm", INDEX + "-journal"),
        on_redact="removed as a whole before the journal is written anew; made again at the next search",
        on_delete="the session's rows are removed and their pages overwritten",
        kind="index",
        removed_with_session=False,
    ),
    Holder(
        name="hook",
        what="what the hook of an agent holds: messages in its context, messages that its compaction took, "
        "records that wait for the journal, the agent's summary",
        files=(
            "hooks/{stem}.json",
            "hooks/{stem}.json.new",
            "hooks/{stem}.stretch",
            "hooks/{stem}.gone",
            "hooks/{stem}.wait",
            "hooks/{stem}.wait.new",
        ),
        on_redact="removed under the hook's lock, and the transcript is read anew; records that wait are "
        "written anew",
        on_delete="removed under the hook's lock; of the state stays how far the transcript was read",
        removed_with_session=False,
    ),
    Holder(
        name="hook's numbers",
        what="hashes by which the hook knows messages again, the status line's counts",
        files=(
            "hooks/{stem}.ids",
            "hooks/{stem}.ids.new",
            "hooks/{stem}.redacted",
            "hooks/{stem}.redacted.new",
            "hooks/{stem}.line",
            "hooks/{stem}.line.new",
        ),
        on_redact="hashes of the redacted messages are added, so that the hook does not take them in again",
        on_delete="stay: hashes and counts, no words, so that the agent going on brings nothing back",
        removed_with_session=False,
    ),
    Holder(
        name="redactions",
        what="hashes of what was redacted in any session, by which an import knows it again, and their key",
        files=(
            "redactions/redacted.key",
            "redactions/redacted.key.new",
            "redactions/redacted.lock",
            "redactions/all.redacted",
            "redactions/all.redacted.new",
            "redactions/all.lock",
        ),
        on_redact="hashes of the redacted messages are added",
        on_delete="stay: hashes, no words",
        removed_with_session=False,
    ),
    Holder(
        name="hooks' key",
        what="a random key for the hashes of what was redacted",
        files=("hooks/redacted.key", "hooks/redacted.key.new"),
        on_redact=_NO_WORDS,
        on_delete=_NO_WORDS,
        removed_with_session=False,
    ),
    Holder(
        name="hooks' log",
        what="what hooks did and where they failed: names, counts and places in the program",
        files=("hooks/hooks.log", "hooks/hooks.log.1"),
        on_redact=_NO_WORDS,
        on_delete=_NO_WORDS,
        removed_with_session=False,
    ),
    Holder(
        name="installed hooks",
        what="where `compactd install` put our hooks into an agent's settings, and the hash of these",
        files=("hooks/{stem}.installed", "hooks/{stem}.installed.new"),
        on_redact=_NO_WORDS,
        on_delete=_NO_WORDS,
        removed_with_session=False,
    ),
    Holder(
        name="ACP link",
        what="which session of an agent stands for one of an ACP client",
        files=("acp/{link}.json", "acp/{link}.json.new"),
        on_redact=_NO_WORDS,
        on_delete="removed",
    ),
    Holder(
        name="snapshots",
        what="files of the work tree at each turn's begin and end, as git objects",
        files=("snapshots/{stem}/**",),
        on_redact="removed",
        on_delete="removed",
        kind="git",
        removed_with_session=False,
    ),
    Holder(
        name="learned windows",
        what="sizes of models that servers told of",
        files=("observed.jsonl", "observed.jsonl.new"),
        on_redact=_NO_WORDS,
        on_delete=_NO_WORDS,
        removed_with_session=False,
    ),
    Holder(
        name="settings",
        what="the user's own settings, models and keys, where the platform keeps them in the data folder",
        files=("*.toml", "*.toml.new"),
        on_redact="nothing: the user wrote them",
        on_delete="nothing: the user wrote them",
        removed_with_session=False,
    ),
)


def holder_of(name: str) -> Holder | None:
    """What claims a file of the data folder, by its path below it with `/`; None where no row does."""
    return next((holder for holder, pattern in _patterns() if pattern.fullmatch(name)), None)


def claims(home: Path) -> Iterator[tuple[Path, Holder | None]]:
    """Every file below the data folder, by name, and what claims it. Links are files. O(files)."""
    for folder, folders, names in os.walk(home):
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        for name in sorted([*names, *links]):
            path = Path(folder) / name
            yield path, holder_of(path.relative_to(home).as_posix())
        folders.sort()


def files_of(home: Path, session_id: str) -> list[Path]:
    """Where the files of one session are or would be, of the rows that go with it, the journal first. No
    folder is read."""
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
