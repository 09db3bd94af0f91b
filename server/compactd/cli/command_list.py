"""The list of all commands, with usage and a one-line description. This module imports no command."""

from __future__ import annotations

from typing import NamedTuple


class CommandSummary(NamedTuple):
    """A command's row in `compactd --help`."""

    usage: str
    """The arguments after the command's name."""
    told: str


COMMANDS = {
    "compact": CommandSummary("[FILE]", "compact a session file; show sizes and summary"),
    "resume": CommandSummary("AGENT", "compact an agent's session; show how to continue it"),
    "handoff": CommandSummary("[FILE]", "continue a session in another agent"),
    "inspect": CommandSummary("[FILE]", "show what uses the tokens, and when a compaction is due"),
    "usage": CommandSummary("[FILE...]", "show tokens and cost of all agents by day, project or model"),
    "audit": CommandSummary("[FILE]", "show what a session cost, cache rebuilds, and what was lost"),
    "watch": CommandSummary("[FILE]", "show live how full a running agent's context is"),
    "diff": CommandSummary("[FILE]", "show the context before and after a compaction"),
    "convert": CommandSummary("IN OUT", "write a session file in another program's format"),
    "doctor": CommandSummary("FILE", "find what is wrong with a session file; write a repaired copy"),
    "chat": CommandSummary("", "talk to a model; compactd keeps and compacts the session"),
    "import": CommandSummary("[AGENT]", "bring agents' sessions into compactd's store, for search"),
    "search": CommandSummary("WORDS", "find messages in all stored sessions, also compacted ones"),
    "sessions": CommandSummary("", "list stored sessions; `sessions show ID` prints one in full"),
    "models": CommandSummary("[NAME]", "show a model's window, limits and prices, with their source"),
    "count": CommandSummary("[FILE]", "count the tokens of texts and session files, for a model"),
    "classify": CommandSummary("FILE", "say if a provider's error is an overflow, and what to do"),
    "reduce": CommandSummary("[-- COMMAND]", "shorten a command's output for a model; keep the whole"),
    "schema": CommandSummary("[KIND]", "print the protocol as JSON Schema or OpenRPC"),
    "completion": CommandSummary("", "print the completion script for bash, zsh or fish"),
    "conformance": CommandSummary("", "test if a program implements the protocol correctly"),
    "install": CommandSummary("AGENT", "add hooks to Claude Code, Codex or Gemini CLI"),
    "uninstall": CommandSummary("AGENT", "remove compactd's hooks from an agent's settings"),
    "trust": CommandSummary("[DIR]", "let a folder's .compactd.toml change more than sizes"),
    "untrust": CommandSummary("DIR", "withdraw the trust in a folder's .compactd.toml"),
    "hook": CommandSummary("AGENT", "the program that the installed hooks run"),
    "statusline": CommandSummary("AGENT", "print the context's fill level for Claude Code's status line"),
    "acp": CommandSummary("[-- AGENT]", "run an ACP agent for Zed and others, or a proxy for one"),
    "mcp": CommandSummary("", "run an MCP server: a model can search what was compacted away"),
    "store": CommandSummary("", "set up a PostgreSQL database for sessions; copy them"),
    "serve": CommandSummary("", "run the daemon: JSON-RPC on stdin and stdout"),
    "attach": CommandSummary("", "like serve, but by one daemon for all clients of this user"),
}
"""Command name -> its row, in the order of the help. The command is `COMMAND` in the module `module_of`."""


def module_of(name: str) -> str:
    """Return the name of the module that contains the command `name`."""
    # A module called `import` could not be imported by a statement.
    return f"compactd.cli.commands.{'import_sessions' if name == 'import' else name}"
