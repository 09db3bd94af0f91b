"""The overview that `compactd` prints without a command: sessions on this machine, and what to try."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from shutil import get_terminal_size
from textwrap import wrap

from msgspec import Struct

from compactd.cli.agent_files.places import (
    AGENTS,
    TITLES,
    UNSIZED,
    AgentFile,
    files_of_folder,
    find_files,
    places_of,
    uses_database,
)
from compactd.cli.command_list import COMMANDS
from compactd.cli.framework.quantities import age_text, size_text

ABOUT = (
    "compactd shows what fills the context of a coding agent, compacts it without losing what matters, "
    "and finds again what was said."
)

MAX_TRIED = 3
"""How many commands are suggested."""

WIDTH = 80
WIDEST = 100
NARROW = 60
"""With fewer columns, each agent takes two lines."""

LIVE_S = 300
"""A session that was written in the last so many seconds is probably in use."""


class AgentSummary(Struct, frozen=True, kw_only=True):
    """What is on this machine of one agent."""

    agent: str
    name: str
    sessions: int
    """Sessions of sub-agents are not counted."""
    size_bytes: int | None
    """The size of all session files, also of sub-agents; None if it is unknown."""
    newest_at: float
    """When the newest session was written last, in seconds since 1970 (UTC)."""


class Suggestion(Struct, frozen=True, kw_only=True):
    """A command to try."""

    command: str
    what: str


class Overview(Struct, frozen=True, kw_only=True):
    """What was found on this machine."""

    agents: tuple[AgentSummary, ...]
    newest_here: AgentFile | None
    """The newest session of the current folder."""
    has_database: bool
    """True if OpenCode keeps sessions in a database, which compactd does not read."""
    suggestions: tuple[Suggestion, ...]


def look_around(environ: Mapping[str, str], folder: Path | None, now: float) -> Overview:
    """Return the sessions of all agents on this machine. `folder`: the current folder, if it exists. `now`:
    seconds since 1970 (UTC). O(session files).
    """
    files = find_files(environ)
    mains = [file for file in files if not file.is_subagent]
    here = next(files_of_folder(mains, folder, environ), None) if folder is not None else None
    agents = [_summary(agent, files) for agent in AGENTS]
    return Overview(
        agents=tuple(summary for summary in agents if summary is not None),
        newest_here=here,
        has_database=uses_database(environ),
        suggestions=suggest(mains, here, now, has_stored=_has_stored(environ)),
    )


def _has_stored(environ: Mapping[str, str]) -> bool:
    """Return whether compactd's data folder contains a session."""
    from compactd.storage.paths import data_folder

    try:
        with os.scandir(data_folder(environ) / "sessions") as entries:
            return any(entry.name.endswith(".jsonl") for entry in entries)
    except (OSError, RuntimeError, KeyError):  # no folder, or no home
        return False


def _summary(agent: str, files: Sequence[AgentFile]) -> AgentSummary | None:
    own = [file for file in files if file.agent == agent]
    mains = [file for file in own if not file.is_subagent]
    if not mains:
        return None
    return AgentSummary(
        agent=agent,
        name=TITLES[agent],
        sessions=len(mains),
        size_bytes=None if agent in UNSIZED else sum(file.size_bytes for file in own),
        newest_at=mains[0].modified_ns / 1e9,
    )


def suggest(
    mains: Sequence[AgentFile], here: AgentFile | None, now: float, *, has_stored: bool = False
) -> tuple[Suggestion, ...]:
    """Return commands that fit what was found. `mains`: the sessions, the newest first. `here`: the newest
    one of the current folder. `has_stored`: whether compactd has stored a session already.
    """
    if not mains:
        found = [
            ("chat --echo", "talk to a model that repeats your words; needs no key"),
            ("inspect FILE", "show what uses the tokens of a session file"),
            ("classify FILE", "say if a provider's error is a context overflow"),
        ]
    else:
        if here is None and len(mains) > 1:
            found = [("inspect --pick", "choose a session and see what fills its context")]
        else:
            found = [("inspect", "see what fills the context of the newest session")]
        if here is not None and now - here.modified_ns / 1e9 < LIVE_S:
            found.append(("watch", "see live how full the running session's context is"))
        found += [
            ("usage", "see tokens and cost by day, project, agent or model"),
            ("search WORDS", "find what was said; `compactd import --all` brings new sessions in")
            if has_stored
            else ("import --all", "bring these sessions in, so that `compactd search` finds what was said"),
            ("compact", "see what a compaction would keep of the newest session"),
            ("diff", "compare the context before and after a compaction"),
        ]
    known = [(line, what) for line, what in found if line.split()[0] in COMMANDS]
    return tuple(Suggestion(command=f"compactd {line}", what=what) for line, what in known[:MAX_TRIED])


def print_overview(*, is_json: bool) -> None:
    """Print the overview on standard output."""
    try:
        folder = Path.cwd()
    except OSError:
        folder = None
    now = time.time()
    overview = look_around(os.environ, folder, now)
    if is_json:
        from compactd.cli.framework.page import Page

        Page(is_json=True).json(overview_facts(overview, os.environ))
        return
    is_drawn = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    columns = min(get_terminal_size().columns, WIDEST) if is_drawn or os.environ.get("FORCE_COLOR") else WIDTH
    sys.stdout.write("".join(f"{line}\n" for line in overview_lines(overview, columns, now)))


def overview_facts(overview: Overview, environ: Mapping[str, str]) -> dict[str, object]:
    """Return the overview for `--json`."""
    from compactd import PROTOCOL_VERSION, __version__
    from compactd.cli.framework.page import make_encodable

    here = overview.newest_here
    return {
        "version": __version__,
        "protocol_version": PROTOCOL_VERSION,
        "agents": overview.agents,
        "newest_here": here
        and {
            "path": make_encodable(str(here.path)),
            "agent": here.agent,
            "modified_at": here.modified_ns / 1e9,
        },
        "opencode_database": overview.has_database,
        "looked_in": {
            agent: [make_encodable(str(root)) for root in places_of(agent, environ)] for agent in AGENTS
        },
        "try": overview.suggestions,
    }


def overview_lines(overview: Overview, columns: int, now: float) -> list[str]:
    """Return the overview as lines of at most `columns` columns."""
    lines = [*wrap(ABOUT, columns), ""]
    if overview.agents:
        lines += ["Sessions on this machine:", *_agent_lines(overview.agents, columns, now)]
        here = overview.newest_here
        if here is None:
            about = "This folder has none of them."
        else:
            age = age_text(here.modified_ns / 1e9, now)
            about = f"The newest one of this folder is from {TITLES[here.agent]}, {age}."
        lines += wrap(about, columns)
    else:
        names = f"{', '.join(TITLES[agent] for agent in AGENTS[:-1])} or {TITLES[AGENTS[-1]]}"
        lines += wrap(f"No sessions of {names} were found on this machine.", columns)
    if overview.has_database:
        lines += wrap(
            "OpenCode keeps sessions in a database, which compactd does not read. `opencode export ID > "
            "session.json` writes one to a file.",
            columns,
        )
    lines += ["", "Try:", *_suggestion_lines(overview.suggestions, columns), ""]
    return [*lines, *wrap("`compactd --help` lists all commands.", columns)]


def _agent_lines(agents: Sequence[AgentSummary], columns: int, now: float) -> list[str]:
    rows = []
    for one in agents:
        count = f"{one.sessions:,} session{'s' if one.sessions != 1 else ''}"
        size = "" if one.size_bytes is None else size_text(one.size_bytes)
        rows.append((one.name, count, size, f"newest {age_text(one.newest_at, now)}"))
    if columns < NARROW:
        lines = []
        for name, count, size, age in rows:
            about = ", ".join(part for part in (count, size, age) if part)
            lines += [f"  {name}", *wrap(about, columns, initial_indent="    ", subsequent_indent="    ")]
        return lines
    name_columns, count_columns, size_columns = (max(len(row[at]) for row in rows) for at in range(3))
    return [
        f"  {name:<{name_columns}}   {count:>{count_columns}}   {size:>{size_columns}}   {age}"
        for name, count, size, age in rows
    ]


def _suggestion_lines(suggestions: Sequence[Suggestion], columns: int) -> list[str]:
    widest = max(len(one.command) for one in suggestions)
    lines = []
    for one in suggestions:
        if columns < NARROW:
            lines += [
                f"  {one.command}",
                *wrap(one.what, columns, initial_indent="    ", subsequent_indent="    "),
            ]
        else:
            indent = " " * (widest + 5)
            first, *more = wrap(one.what, columns, initial_indent=indent, subsequent_indent=indent)
            lines += [f"  {one.command:<{widest}}   {first.strip()}", *more]
    return lines
