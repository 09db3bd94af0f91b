"""The paths of transcripts. Keys come from clients and are never used as paths (`storage/paths.file_stem`).

    <folder>/<project>/<session>.jsonl                                the transcript of a session
    <folder>/<project>/<session>.summary                              what `list_session_summaries` returns
    <folder>/<project>/<session>.mirrored                             compactd has a session with its messages
    <folder>/<project>/<session>.lock                                 held by the process that writes
    <folder>/<project>/<session>/subagents/agent-<subpath>.jsonl      one of its sub-agents' transcripts

This is the layout of Claude Code's `projects` folder with other names. The first line of a transcript has the
real key.
"""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from compactd.storage.paths import file_stem

TRANSCRIPT, SUMMARY, LOCK = ".jsonl", ".summary", ".lock"


class Key(Struct, frozen=True):
    """Which transcript: the SDK's `SessionKey`."""

    project_key: str
    session_id: str
    subpath: str | None = None

    @classmethod
    def of(cls, given: object) -> Key:
        """Return the key that the SDK gave. Raise `TypeError` or `ValueError` if it is none."""
        if not isinstance(given, dict):
            raise TypeError(f"a session key must be a dict, not {type(given).__name__}")
        for name in ("project_key", "session_id"):
            if not isinstance(given.get(name), str):
                raise TypeError(f"`{name}` of a session key must be a string")
        subpath = given.get("subpath")
        if subpath is not None and not isinstance(subpath, str):
            raise TypeError("`subpath` of a session key must be a string")
        if subpath == "":
            raise ValueError("`subpath` of a session key is empty; leave it out for the main transcript")
        return cls(given["project_key"], given["session_id"], subpath)


def project_folder(folder: Path, project_key: str) -> Path:
    """Return the folder of a project's transcripts. It need not exist."""
    return folder / file_stem(project_key)


def subagents_folder(folder: Path, key: Key) -> Path:
    """Return the folder of the transcripts of a session's sub-agents. It need not exist."""
    return project_folder(folder, key.project_key) / file_stem(key.session_id) / "subagents"


def transcript_path(folder: Path, key: Key) -> Path:
    """Return the path of a transcript. It need not exist."""
    if key.subpath is not None:
        return subagents_folder(folder, key) / f"agent-{file_stem(key.subpath)}{TRANSCRIPT}"
    return project_folder(folder, key.project_key) / f"{file_stem(key.session_id)}{TRANSCRIPT}"
