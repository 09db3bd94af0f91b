"""`compactd handoff --from AGENT --to AGENT [FILE]`: continues a session of one agent in another agent."""

from __future__ import annotations

from compactd.cli.agent_files.choose import PICK, SESSION_FILE, agent_name, agent_names
from compactd.cli.agent_files.move import Move, MoveOptions, move
from compactd.cli.agent_files.show_moved import show_moved
from compactd.cli.framework import sizes
from compactd.cli.framework.command import Command, Flag, Option
from compactd.cli.framework.complete import models
from compactd.cli.framework.options import size_options
from compactd.cli.framework.page import Page

ABOUT = """\
Writes this folder's newest session of one agent as a new session of another, where that
agent looks for it, and prints the command that continues it. The agents are claude-code,
codex, gemini-cli, opencode and pi; sessions of Cline can be handed over too. The session
itself is never changed.

A session that fits into the other agent's window is handed over word for word. A larger
one is compacted first. Without --model, the model is the one that the other agent's
settings name, otherwise its default; the output says which.

`compactd compact FILE --resumable --to FORMAT` always compacts, and for the window of the
session's own model. `compactd resume` continues a session in the agent that wrote it.
"""


class Options(MoveOptions, frozen=True, kw_only=True):
    """The command's options."""

    source_agent: str | None
    target_agent: str


def run(options: Options, page: Page) -> int:
    """Write the session for the other agent."""
    order = Move(
        command="handoff",
        source_agent=options.source_agent,
        target_agent=options.target_agent,
        options=options,
    )
    return show_moved(page, move(order, page))


COMMAND = Command(
    "handoff",
    Options,
    run,
    about=ABOUT,
    params=(
        SESSION_FILE,
        Option(
            "--from",
            "the agent that wrote the session (default: the newest of any but --to)",
            field="source_agent",
            metavar="AGENT",
            read=agent_name,
            completed=agent_names,
        ),
        Option(
            "--to",
            "the agent that continues it",
            field="target_agent",
            metavar="AGENT",
            required=True,
            read=agent_name,
            completed=agent_names,
        ),
        PICK,
        *size_options(
            "compact in any case, to this size in tokens, e.g. 16k",
            "compact in any case; how many tokens of the newest messages to keep unchanged",
            "compact in any case; how many of the newest messages to keep unchanged",
        ),
        Option("--instructions", "what a summary should focus on"),
        Option(
            "--model",
            "the model that the other agent will use",
            metavar="ID",
            completed=models,
            is_model=True,
        ),
        Option("--window", "the window of that model in tokens", read=sizes.tokens, metavar="N"),
        Flag("--dry-run", "write nothing"),
    ),
    examples=(
        (
            "compactd handoff --from claude-code --to codex",
            "continue this folder's newest session of Claude Code in Codex",
        ),
        (
            "compactd handoff --to pi session.jsonl --model ollama/qwen3 --window 32k",
            "continue a session in pi, with a local model",
        ),
    ),
)
