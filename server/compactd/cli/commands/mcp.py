"""`compactd mcp`: an MCP server on stdin and stdout, with tools that let a model search what was compacted
away.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct

from compactd.cli.framework.command import Argument, Command, Flag, Option
from compactd.cli.framework.complete import session_ids
from compactd.cli.framework.exit_codes import DONE, USAGE, CommandError
from compactd.cli.framework.page import Page
from compactd.core.reduce.output import LEVELS
from compactd.integrations.mcp.recall_sessions import SessionChoice
from compactd.storage.paths import real_folder

ABOUT = """\
Runs an MCP server on stdin and stdout. It has three tools for a model that needs
something from before a compaction: search_history, expand and context_state. They
read the sessions stored on this machine, including those that hooks copy
(`compactd install`). Nothing leaves the machine.

Each call uses the newest session that was started in this folder (with --agent, the
newest of that agent). Sessions of other folders belong to other projects. The model
cannot see them unless you name one with --session or allow all with --all-projects.

With --wrap, it runs another MCP server instead, whose command follows --, and shortens
the results of its tools for the model. A tool that is added, compactd_expand_output, shows the
whole output. Everything else goes through unchanged.

Without --wrap, it needs the MCP library. If it is missing, the command prints the line that installs it.
"""


class Options(Struct, frozen=True, kw_only=True):
    """The command's options."""

    session: str | None
    agent: str | None
    folder: str | None
    all_projects: bool
    wrap: bool
    command: tuple[str, ...]
    level: str | None
    observe: bool


def run(options: Options, page: Page) -> int:
    """Serve MCP until stdin ends."""
    if options.wrap:
        return _wrap(options)
    if options.command or options.level or options.observe:
        raise CommandError("A command after --, --level and --observe need --wrap.", exit_code=USAGE)
    if options.session is not None and (options.agent is not None or options.folder is not None):
        raise CommandError("--session cannot be combined with --agent or --folder.", exit_code=USAGE)
    if find_spec("mcp") is None:
        from compactd._runtime.installation import install_command

        raise CommandError(
            "the MCP library is not installed.", hint=f"Install it with: {install_command('mcp')}"
        )
    import asyncio

    from compactd.integrations.mcp.server import serve

    # Links are resolved once, so that changing one later does not give access to another project.
    folder = real_folder(str(Path.cwd() / (options.folder or "")))
    if folder is None:
        raise CommandError(f"{options.folder!r} is not a folder that can be read.", exit_code=USAGE)
    wanted = SessionChoice(
        session_id=options.session, agent=options.agent, folder=folder, all_projects=options.all_projects
    )

    async def served() -> None:
        # From here on, Ctrl-C stops the server cleanly.
        if sys.stdin.isatty():
            sys.stderr.write(
                "compactd mcp: waiting for an MCP client's messages on standard input. Ctrl-C ends it.\n"
            )
        await serve(wanted, dict(os.environ))

    asyncio.run(served())
    return DONE


def _wrap(options: Options) -> int:
    from compactd._runtime.programs import project_root
    from compactd.integrations.mcp.wrapper import Wrapper

    if not options.command:
        raise CommandError(
            "--wrap needs the command of an MCP server after --.",
            hint="For example: compactd mcp --wrap -- npx -y some-mcp-server",
            exit_code=USAGE,
        )
    if options.session or options.agent or options.all_projects:
        raise CommandError(
            "--wrap reads no session: leave out --session, --agent and --all-projects.", exit_code=USAGE
        )
    folder = project_root(Path.cwd() / (options.folder or ""))
    wrapper = Wrapper(options.command, folder, dict(os.environ), level=options.level, observe=options.observe)
    try:
        return wrapper.run()
    except OSError as error:
        raise CommandError(f"{options.command[0]} cannot be started: {error.strerror}.") from error


COMMAND = Command(
    "mcp",
    Options,
    run,
    about=ABOUT,
    params=(
        Option(
            "--session",
            "use this session, from any folder; a partial id only finds sessions of this folder",
            metavar="ID",
            completed=session_ids,
        ),
        Option("--agent", "use only this agent's sessions: claude-code, codex, gemini-cli", metavar="NAME"),
        Option(
            "--folder",
            "the folder in which the agent works (the current folder)",
            metavar="DIR",
            is_file=True,
        ),
        Flag("--all-projects", "let the model choose sessions of every folder"),
        Flag("--wrap", "run the MCP server after -- and shorten the results of its tools"),
        Option("--level", "with --wrap: how much is left out (default)", choices=LEVELS),
        Flag("--observe", "with --wrap: change nothing; count what would be left out"),
        Argument(
            "command",
            "with --wrap: the command that starts the other server",
            required=False,
            is_many=True,
            is_file=True,
            metavar="-- COMMAND",
        ),
    ),
    examples=(
        ("claude mcp add compactd -- compactd mcp --agent claude-code", "add the server to Claude Code"),
        ("codex mcp add compactd -- compactd mcp --agent codex", "add the server to Codex"),
        ("compactd mcp --session ID", "serve one stored session"),
        ("compactd mcp --wrap -- npx -y some-mcp-server", "run another server; shorten its results"),
    ),
    has_json=False,
)
