"""`compactd import`: brings agents' session files into the store, so that `search` and `sessions` show them.
Files that have not changed since the last import are skipped.
"""

from __future__ import annotations

import os
import re
import secrets
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from compactd.cli.agent_files.places import AGENTS, AgentFile, find_files
from compactd.cli.framework.command import Argument, Command, Flag, Option
from compactd.cli.framework.exit_codes import DONE, FAILED, NOTHING_TO_DO, USAGE, CommandError
from compactd.cli.framework.page import Page, one_line, plural
from compactd.cli.framework.progress import ProgressSpinner
from compactd.client import Client, RpcError
from compactd.protocol.errors import FormatNotSupported, InvalidParams
from compactd.protocol.wire import ImportResult
from compactd.storage.imports import ImportMemory, ImportRecord
from compactd.storage.mirrored_files import MirroredFiles
from compactd.storage.paths import data_folder, file_stem

ABOUT = """\
Brings the session files of agents into compactd's store, so that `compactd search` and
`compactd sessions` find them: those of all agents (--all), of one agent (claude-code,
codex, gemini-cli, pi), or single files. The files are only read.

A file that was imported and has not changed is skipped. If its agent has continued the
session, the stored session is brought up to date, and keeps what was added in compactd.
Ctrl-C keeps what is done; the next import continues.

Sub-agents' files are skipped unless you name them, and so are sessions that compactd's
hooks already store.
"""

TIMEOUT_S = 600.0
"""Timeout of the import of one file, in seconds."""

SUBAGENT = "written by a sub-agent"
MIRRORED = "already stored by compactd's hooks"
DELETED = "deleted from the store; name the file to import it again"
EMPTY = "empty"
NO_MESSAGES = "no messages"
DAMAGED = "damaged: the content is binary"
UNKNOWN_FORMAT = "not a session file that compactd can read"
_HEAD_BYTES = 8192

MAX_SHOWN = 3
"""The most files that are named for one reason."""

_PERIOD = re.compile(r"(\d{1,5})([hdwm])")
_SECONDS = {"h": 3600, "d": 86_400, "w": 7 * 86_400, "m": 30 * 86_400}


def parse_since(text: str) -> float:
    """Return the time, in Unix seconds, that `30d`, `12h`, `4w`, `6m` or a date names. Raise `ValueError` if
    it is none of them.
    """
    from datetime import datetime

    if found := _PERIOD.fullmatch(text.strip().lower()):
        return time.time() - int(found[1]) * _SECONDS[found[2]]
    try:
        return datetime.fromisoformat(text.strip()).timestamp()
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is not a time; write it as 30d, 12h, 4w, 6m or 2026-11-01") from None


class Options(Struct, frozen=True, kw_only=True):
    """The command's options."""

    what: tuple[str, ...]
    all: bool
    since: float | None
    dry_run: bool


class Chosen(Struct, frozen=True, kw_only=True):
    """One file that the user chose."""

    path: str
    size_bytes: int
    modified_ns: int
    agent: str = ""
    """The agent whose folder it is in; empty if it is in none."""
    is_subagent: bool = False
    is_named: bool = False
    """Whether the user named the file itself, and not only its agent."""


class Handled(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What happened, or would happen, to one file."""

    path: str
    agent: str = ""
    session_id: str = ""
    messages: int = 0
    why: str = ""
    """Why it was skipped."""


class Outcome(Struct, kw_only=True):
    """What happened, or would happen, to all files."""

    imported: list[Handled] = []
    updated: list[Handled] = []
    skipped: list[Handled] = []
    unchanged: int = 0
    bytes: int = 0
    """The total size of the files that were imported or updated."""
    dry_run: bool = False
    interrupted: bool = False


def run(options: Options, page: Page) -> int:
    """Import the files and say what was done."""
    files = _chosen(options)
    home = data_folder(os.environ)
    memory, outcome = ImportMemory(home), Outcome(dry_run=options.dry_run)
    begun = time.monotonic()
    try:
        todo = _plan(files, memory, MirroredFiles(home), home, outcome)
        if options.dry_run:
            for file, record in todo:
                (outcome.updated if record else outcome.imported).append(_handled(file))
                outcome.bytes += file.size_bytes
        elif todo:
            _import(todo, memory, home, outcome)
    except KeyboardInterrupt:
        outcome.interrupted = True
        _show(page, outcome, files, time.monotonic() - begun)
        raise
    finally:
        memory.close()
    _show(page, outcome, files, time.monotonic() - begun)
    if any(file.is_named and one.path == file.path for one in outcome.skipped for file in files):
        return FAILED
    return DONE if files else NOTHING_TO_DO


# --- which files ------------------------------------------------------------------------------------


def _chosen(options: Options) -> list[Chosen]:
    """Return the files that the options choose, the newest first."""
    agents = [one for one in options.what if one in AGENTS]
    named = [one for one in options.what if one not in AGENTS]
    if not options.what and not options.all:
        found = sum(not file.is_subagent for file in find_files(os.environ))
        raise CommandError(
            "say what to import: --all, an agent or a file.",
            hint=f"compactd found {plural(found, 'session')} of agents on this machine. "
            f"`compactd import --all` imports all of them. The agents are: {', '.join(AGENTS)}.",
            exit_code=USAGE,
        )
    files = find_files(os.environ, AGENTS if options.all else agents) if options.all or agents else []
    chosen = {str(file.path): _of_agent(file) for file in files}
    if options.since is not None:
        earliest = options.since * 1e9
        chosen = {path: file for path, file in chosen.items() if file.modified_ns >= earliest}
    for name in named:
        file = _named(name)
        known = chosen.get(file.path)
        chosen[file.path] = file if known is None else replace(known, is_named=True)
    return list(chosen.values())


def _of_agent(file: AgentFile) -> Chosen:
    return Chosen(
        path=str(file.path),
        size_bytes=file.size_bytes,
        modified_ns=file.modified_ns,
        agent=file.agent,
        is_subagent=file.is_subagent,
    )


def _named(name: str) -> Chosen:
    path = Path(name)
    try:
        about = path.stat()
    except OSError as error:
        is_word = isinstance(error, FileNotFoundError) and os.sep not in name and "." not in name
        what = "neither an agent nor a file" if is_word else error.strerror
        raise CommandError(
            f"cannot import {one_line(name)}: {what}.",
            hint=f"The agents are: {', '.join(AGENTS)}. See `compactd import --help`.",
            exit_code=USAGE,
        ) from error
    if path.is_dir():
        raise CommandError(
            f"cannot import {one_line(name)}: it is a folder.",
            hint="Name the files in it, or the agent that wrote them.",
            exit_code=USAGE,
        )
    for file in find_files(os.environ):
        if file.modified_ns == about.st_mtime_ns and file.path.samefile(path):
            return replace(_of_agent(file), is_named=True)
    return Chosen(
        path=str(path.resolve()), size_bytes=about.st_size, modified_ns=about.st_mtime_ns, is_named=True
    )


def _plan(
    files: Sequence[Chosen], memory: ImportMemory, mirrored: MirroredFiles, home: Path, outcome: Outcome
) -> list[tuple[Chosen, ImportRecord | None]]:
    """Return the files to import, each with the record of its earlier import if there is one. Note the others
    in `outcome`. No file is opened.
    """
    todo: list[tuple[Chosen, ImportRecord | None]] = []
    for file in files:
        record = memory.get(file.path)
        if file.agent and mirrored.contains(file.agent, Path(file.path)):
            if record is not None and record.session_id:
                # The hooks were installed after the import.
                todo.append((replace(file, agent=MIRRORED), record))
            else:
                outcome.skipped.append(_handled(file, MIRRORED))
        elif file.is_subagent and not file.is_named:
            outcome.skipped.append(_handled(file, SUBAGENT))
        elif record is None or record.is_begun or (record.why and file.is_named):
            todo.append((file, record if record and record.session_id else None))
        elif (record.size_bytes, record.modified_ns) == (file.size_bytes, file.modified_ns):
            is_lost = file.is_named and not _is_stored(home, record.session_id)
            if is_lost:
                todo.append((file, None))
            elif record.why:
                outcome.skipped.append(_handled(file, record.why))
            else:
                outcome.unchanged += 1
        elif not record.session_id:
            todo.append((file, None))
        elif _is_stored(home, record.session_id):
            todo.append((file, record))
        elif file.is_named:
            todo.append((file, None))
        else:
            outcome.skipped.append(_handled(file, DELETED))
    return todo


def _handled(file: Chosen, why: str = "") -> Handled:
    return Handled(path=file.path, agent=file.agent, why=why)


def _journal(home: Path, session_id: str) -> Path:
    return home / "sessions" / f"{file_stem(session_id)}.jsonl"


def _is_stored(home: Path, session_id: str) -> bool:
    return bool(session_id) and _journal(home, session_id).exists()


# --- importing --------------------------------------------------------------------------------------


def _import(
    todo: Sequence[tuple[Chosen, ImportRecord | None]], memory: ImportMemory, home: Path, outcome: Outcome
) -> None:
    total = sum(file.size_bytes for file, _ in todo)
    done = 0
    with Client() as client, ProgressSpinner("") as spinner:
        for number, (file, record) in enumerate(todo, 1):
            spinner.set_text(
                f"importing {number:,} of {plural(len(todo), 'file')}, {_mb(done)} of {_mb(total)}: "
                f"{one_line(Path(file.path).name)}"
            )
            if file.agent == MIRRORED and record is not None:
                _drop_copy(client, file, record, memory, home, outcome)
            else:
                _import_one(client, file, record, memory, home, outcome)
            done += file.size_bytes


def _import_one(
    client: Client,
    file: Chosen,
    record: ImportRecord | None,
    memory: ImportMemory,
    home: Path,
    outcome: Outcome,
) -> None:
    new = ImportRecord(path=file.path, size_bytes=file.size_bytes, modified_ns=file.modified_ns)
    session_id = secrets.token_hex(8) if record is None else record.session_id
    is_update = record is not None and _is_stored(home, session_id)
    # If this process ends now, the next import continues with the same session.
    memory.add(replace(new, session_id=session_id, is_begun=True))
    try:
        result = _ask(client, file, session_id)
    except RpcError as error:
        outcome.skipped.append(_handled(file, why := _why(file, error)))
        if record is not None and is_update:
            with suppress(RpcError):
                client.session_close(session_id=session_id)
            # The stored session stays as it is. The next import tries again.
            memory.add(record)
        else:
            memory.add(replace(new, why=why))
        return
    client.session_close(session_id=result.session_id)
    size_bytes = 0
    with suppress(OSError):
        size_bytes = _journal(home, result.session_id).stat().st_size
    memory.add(
        replace(new, session_id=result.session_id, messages=result.message_count, stored_bytes=size_bytes)
    )
    one = replace(_handled(file), session_id=result.session_id, messages=result.message_count)
    (outcome.updated if is_update else outcome.imported).append(one)
    outcome.bytes += file.size_bytes


def _ask(client: Client, file: Chosen, session_id: str) -> ImportResult:
    """Import the file into the session with this id, which may exist. The format is detected. If that fails,
    it is the one of the file's agent.
    """
    for format in ("auto", file.agent):
        try:
            return client.session_import(
                path=file.path, format=format, session_id=session_id, timeout_s=TIMEOUT_S
            )
        except RpcError as error:
            if error.code != FormatNotSupported.code or format == file.agent or not file.agent:
                raise
    raise AssertionError("unreachable")


def _drop_copy(
    client: Client,
    file: Chosen,
    record: ImportRecord,
    memory: ImportMemory,
    home: Path,
    outcome: Outcome,
) -> None:
    """Delete the imported copy of a session that a hook stores too, if nothing was added to the copy.
    Otherwise its messages would appear twice in a search.
    """
    journal = _journal(home, record.session_id)
    try:
        is_untouched = journal.stat().st_size == record.stored_bytes
    except OSError:
        is_untouched = False
    if is_untouched:
        try:
            client.session_delete(session_id=record.session_id)
        except RpcError as error:
            # The record stays, so that the next import tries again.
            why = f"its copy cannot be deleted: {one_line(error.message)}"
            outcome.skipped.append(_handled(replace(file, agent=""), why))
            return
    memory.add(
        ImportRecord(path=file.path, size_bytes=file.size_bytes, modified_ns=file.modified_ns, why=MIRRORED)
    )
    outcome.skipped.append(_handled(replace(file, agent=""), MIRRORED))


def _why(file: Chosen, error: RpcError) -> str:
    """Return in a few words why a file could not be imported."""
    if not file.size_bytes or "content is empty" in error.message:
        return EMPTY
    if _is_binary(file.path):
        return DAMAGED
    if error.code == InvalidParams.code and "contains no messages" in error.message:
        return NO_MESSAGES
    if error.code == FormatNotSupported.code:
        return UNKNOWN_FORMAT
    text = one_line(error.message).removeprefix(f"{file.path} ").partition(" - at `")[0]
    return f"cannot be read: {text.removeprefix('cannot be read: ')}".rstrip(".")


def _is_binary(path: str) -> bool:
    try:
        with Path(path).open("rb") as file:
            return b"\0" in file.read(_HEAD_BYTES)
    except OSError:
        return False


# --- showing ----------------------------------------------------------------------------------------


def _mb(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:,.1f} MB" if size_bytes < 1e8 else f"{size_bytes / 1e6:,.0f} MB"


def _show(page: Page, outcome: Outcome, files: Sequence[Chosen], seconds: float) -> None:
    if page.is_json:
        page.json(outcome)
        return
    if not files:
        page.line("no session files were found")
        return
    if outcome.interrupted:
        page.line("interrupted; run the command again to continue", "due")
    would = "would be " if outcome.dry_run else ""
    for what, handled in (("imported", outcome.imported), ("updated", outcome.updated)):
        if handled:
            messages = sum(one.messages for one in handled)
            parts = [plural(len(handled), "session")]
            parts += [plural(messages, "message")] if messages else []
            page.line(f"{would}{what}: {', '.join(parts)}")
    if outcome.imported or outcome.updated:
        took = "" if outcome.dry_run else f" in {seconds:.1f} s"
        page.line(f"{would}read: {_mb(outcome.bytes)}{took}")
    if outcome.unchanged:
        page.line(f"unchanged: {plural(outcome.unchanged, 'file')}")
    _show_skipped(page, outcome.skipped)
    if not outcome.dry_run and outcome.imported:
        page.line()
        page.line("`compactd search WORDS` searches them, `compactd sessions` lists them")


def _show_skipped(page: Page, skipped: Sequence[Handled]) -> None:
    if not skipped:
        return
    page.line(f"skipped: {plural(len(skipped), 'file')}")
    home = os.environ.get("HOME", "")
    for why, count in Counter(one.why for one in skipped).most_common():
        page.line(f"  {count:,} {why}")
        if why in (SUBAGENT, MIRRORED):
            continue
        paths = [one.path for one in skipped if one.why == why]
        for path in paths[:MAX_SHOWN]:
            short = f"~{path[len(home) :]}" if home and path.startswith(home + os.sep) else path
            page.line(f"    {one_line(short)}")
        if count > MAX_SHOWN:
            page.line(f"    and {count - MAX_SHOWN:,} more; --json lists them")


COMMAND = Command(
    "import",
    Options,
    run,
    about=ABOUT,
    params=(
        Argument(
            "what",
            "agents or session files",
            metavar="AGENT|FILE",
            required=False,
            is_many=True,
            is_file=True,
        ),
        Flag("--all", "all sessions of all agents on this machine"),
        Option(
            "--since",
            "of the agents' files, only those that changed since: 30d, 12h, 4w, 6m or a date",
            metavar="TIME",
            read=parse_since,
        ),
        Flag("--dry-run", "only say what would be imported"),
    ),
    examples=(
        ("compactd import --all", "import everything that is new or has changed"),
        ("compactd import claude-code --since 30d", "import the last month of one agent"),
        ("compactd import --all --dry-run", "show what would be imported"),
    ),
)
