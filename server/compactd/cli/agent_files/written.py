"""Write a session as a new session of an agent, in a place where the agent finds it, and say how to resume
it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from compactd.cli.agent_files.resume import Resumption, agent_root, how_to_resume, new_session_id, place_of
from compactd.cli.framework.compacted_file import CompactedFile, compacted_file
from compactd.cli.framework.conversation import LoadedConversation
from compactd.cli.framework.exit_codes import USAGE, CommandError
from compactd.cli.framework.output import check_writable, write_file
from compactd.cli.framework.page import Page, make_encodable, plural
from compactd.client import Client
from compactd.formats.files.session_formats import title_of


class WrittenSession(Struct, frozen=True, kw_only=True):
    """A session file that was written."""

    path: Path
    format: str
    file: CompactedFile
    session_id: str
    resumption: Resumption | None
    """How the agent resumes the file; None if no way is known."""

    @property
    def facts(self) -> dict[str, object]:
        """The description of the file for `--json`."""
        resumption = self.resumption
        place = resumption.place if resumption is not None else None
        return {
            "path": make_encodable(str(self.path)),
            "format": self.format,
            "messages": self.file.messages,
            "session_id": self.session_id,
            "warnings": self.file.warnings,
            "resume": [make_encodable(one) for one in resumption.commands] if resumption else [],
            "agent_path": make_encodable(str(place)) if place else None,
        }


def write_session(
    client: Client,
    daemon_session: str,
    conversation: LoadedConversation,
    format: str,
    *,
    source: Path,
    target: Path | None,
    folder: Path | None = None,
    is_moved: bool = False,
) -> WrittenSession:
    """Write the context of the session `daemon_session`, which was made from `conversation`, to `target`. If
    that is None, write it to where the agent with this format finds it, and never over another file.

    `source`: the file of `conversation`. `folder`: where to write the file of an agent that opens files from
    any folder. `is_moved`: whether the session leaves the folder of `source`. Raise `CommandError` if there
    is no place, or if the file cannot be written.
    """
    session_id = new_session_id(format, target)
    where = conversation.working_dir or None
    place = place_of(format, session_id, where, None if is_moved else source, os.environ)
    new = target
    if new is None and folder is not None and place is None:
        new = folder / f"{session_id}.json"
    if new is None:
        new = _known(format, place)
    file = compacted_file(client, daemon_session, conversation, format, session_id)
    if target is None:
        new.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = check_writable(str(new), source, force=False)
    write_file(new, file.data)
    return WrittenSession(
        path=new,
        format=format,
        file=file,
        session_id=session_id,
        resumption=how_to_resume(format, new, session_id, where, place),
    )


def check_place(format: str) -> None:
    """Raise `CommandError` if the agent with this format keeps no session files on this machine."""
    root = agent_root(format, os.environ)
    if root is None:
        raise CommandError(
            f"--resumable cannot be used for {title_of(format)}: it looks for sessions in no folder.",
            hint="Use --output FILE; the output says how to go on with it.",
            exit_code=USAGE,
        )
    if not root.parent.is_dir():
        raise CommandError(
            f"there is no folder {root.parent}: {title_of(format)} was never used on this machine.",
            hint="Start it once, or use `compactd compact --output FILE --to FORMAT`.",
        )


def show_written(page: Page, written: WrittenSession, warnings: Sequence[str] | None = None) -> None:
    """Print which file was written, what it lacks, and how its agent resumes it. `warnings` replaces the list
    of what it lacks.
    """
    page.line(f"wrote {written.path}: {plural(written.file.messages, 'message')}, {written.file.what}")
    for warning in written.file.warnings if warnings is None else warnings:
        page.line(f"  {warning}", "due")
    if written.resumption is not None:
        page.line()
        show_resumption(page, written.format, written.resumption)


def show_resumption(page: Page, format: str, resumption: Resumption) -> None:
    """Print the commands by which the agent with this format resumes a session."""
    page.line(f"To continue in {title_of(format)}:")
    for command in resumption.commands:
        page.command(f"  {command}")


def _known(format: str, place: Path | None) -> Path:
    """Return `place`. Raise `CommandError` if it is None."""
    if place is None:
        raise CommandError(
            f"the file does not say in which folder {title_of(format)} worked.",
            hint="Nothing was written. Use --output FILE.",
        )
    return place
