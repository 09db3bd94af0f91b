"""`compactd mcp`: an agent's recall of what was said, as tools of an MCP server on stdin and stdout."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct

from compactd.cli.framework.command import Command, Flag, Option
from compactd.cli.framework.complete import session_ids
from compactd.cli.framework.exit_codes import DONE, USAGE, Stop
from compactd.cli.framework.page import Page
from compactd.integrations.mcp.recall_sessions import Wanted
from compactd.storage.paths import real_folder

ABOUT = """\
An MCP server on stdin and stdout, with three tools for a model that misses something
from before a compaction: search_history, expand, context_state. They read the sessions
stored here, also those that hooks mirror (`compactd install`); nothing leaves the
machine.

Which session: the newest that was begun in this folder (with --agent, only that
agent's). It is looked for at each call. Sessions of other folders are other projects:
the model sees nothing of them, unless you name one session with --session or open all
with --all-projects.

Needs the extra: pip install 'compactd[mcp]'
"""


class Options(Struct, frozen=True, kw_only=True):
    """What was chosen."""

    session: str | None
    agent: str | None
    folder: str | None
    all_projects: bool


def run(options: Options, page: Page) -> int:
    """Serves until stdin ends."""
    if options.session is not None and (options.agent is not None or options.folder is not None):
        raise Stop("--session names the session: --agent and --folder go without it.", exit_code=USAGE)
    if find_spec("mcp") is None:
        raise Stop("the MCP library is not installed.", hint="pip install 'compactd[mcp]'")
    import asyncio

    from compactd.integrations.mcp.server import serve

    # Resolved once: a link that is changed later leads to no other project.
    folder = real_folder(str(Path.cwd() / (options.folder or "")))
    if folder is None:
        raise Stop(f"{options.folder!r} cannot be read as a folder.", exit_code=USAGE)
    wanted = Wanted(
        session_id=options.session, agent=options.agent, folder=folder, all_projects=options.all_projects
    )

    async def served() -> None:
        # From here on Ctrl-C ends the server in an orderly way.
        if sys.stdin.isatty():
            sys.stderr.write(
                "compactd mcp: waiting for an MCP client's messages on standard input. End it with Ctrl-C.\n"
            )
        await serve(wanted, dict(os.environ))

    asyncio.run(served())
    return DONE


COMMAND = Command(
    "mcp",
    Options,
    run,
    about=ABOUT,
    params=(
        Option(
            "--session",
            "this session, whatever its folder; a part of an id counts in this folder only",
            metavar="ID",
            completed=session_ids,
        ),
        Option("--agent", "only this agent's mirrored sessions: claude-code, codex ...", metavar="NAME"),
        Option("--folder", "where the agent works (the current folder)", metavar="DIR", is_file=True),
        Flag("--all-projects", "sessions of every folder, and the model may choose one"),
    ),
    examples=(
        ("claude mcp add compactd -- compactd mcp --agent claude-code", "into Claude Code"),
        ("codex mcp add compactd -- compactd mcp --agent codex", "into Codex"),
        ("compactd mcp --session ID", "over one stored session"),
    ),
    has_json=False,
)
