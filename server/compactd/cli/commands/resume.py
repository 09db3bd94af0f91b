"""`compactd resume AGENT [FILE]`: compacts a session of an agent and shows how the agent continues it."""

from __future__ import annotations

from compactd.cli.agent_files.choose import PICK, SESSION_FILE, agent_name, agent_names
from compactd.cli.agent_files.move import Move, MoveOptions, move
from compactd.cli.agent_files.show_moved import show_moved
from compactd.cli.framework.command import Argument, Command, Flag, Option
from compactd.cli.framework.options import MODEL, WINDOW, size_options
from compactd.cli.framework.page import Page

ABOUT = """\
Compacts this folder's newest session of AGENT, writes the result as a new session where
the agent looks for it, and prints the command that continues it. AGENT is claude-code,
codex, gemini-cli, opencode or pi. The session itself is never changed.

`compactd compact FILE --resumable` does the same for any FILE, and shows the summary and
what was lost. `compactd handoff` continues a session in another agent.
"""


class Options(MoveOptions, frozen=True, kw_only=True):
    """The command's options."""

    agent: str


def run(options: Options, page: Page) -> int:
    """Compact the session and write it for its own agent."""
    order = Move(
        command="resume",
        source_agent=options.agent,
        target_agent=options.agent,
        options=options,
    )
    return show_moved(page, move(order, page))


COMMAND = Command(
    "resume",
    Options,
    run,
    about=ABOUT,
    params=(
        Argument("agent", "the agent that wrote the session", read=agent_name, completed=agent_names),
        SESSION_FILE,
        PICK,
        *size_options(
            "size in tokens that the session should have afterwards, e.g. 16k",
            "how many tokens of the newest messages to keep unchanged (20k)",
            "how many of the newest messages to keep unchanged",
        ),
        Option("--instructions", "what the summary should focus on"),
        MODEL,
        WINDOW,
        Flag("--dry-run", "write nothing"),
    ),
    examples=(
        (
            "compactd resume claude-code",
            "compact this folder's newest session of Claude Code, and show how to continue it",
        ),
        (
            "compactd resume codex --pick --target 30k",
            "choose a session of Codex, compact it to 30,000 tokens",
        ),
    ),
)
