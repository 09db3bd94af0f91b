"""The list of all commands, with usage and a one-line description. This module imports no command."""

from __future__ import annotations

from typing import NamedTuple


class About(NamedTuple):
    """A command's row in `compactd --help`."""

    usage: str
    """The arguments after the command's name."""
    told: str


COMMANDS = {
    "compact": About("FILE", "compact a session file; show sizes and summary"),
    "inspect": About("FILE", "show what uses the tokens, and when a compaction is due"),
    "watch": About("FILE", "show live how full a running agent's context is"),
    "diff": About("FILE", "show the context before and after a compaction"),
    "convert": About("IN OUT", "write a session file in another program's format"),
    "doctor": About("FILE", "find what is wrong with a session file; write a repaired copy"),
    "chat": About("", "talk to a model; compactd keeps and compacts the session"),
    "search": About("WORDS", "find messages in all stored sessions, also compacted ones"),
    "sessions": About("", "list stored sessions; `sessions delete ID` removes one"),
    "models": About("[NAME]", "show a model's window, limits and prices, with their source"),
    "classify": About("FILE", "say if a provider's error is a context overflow, and what to do"),
    "schema": About("[KIND]", "print the protocol as JSON Schema, OpenRPC or types"),
    "completion": About("", "print the completion script for bash, zsh or fish"),
    "conformance": About("", "test if a program implements the protocol correctly"),
    "install": About("AGENT", "add hooks to Claude Code, Codex or Gemini CLI"),
    "uninstall": About("AGENT", "remove compactd's hooks from an agent's settings"),
    "trust": About("[DIR]", "let a folder's .compactd.toml change more than sizes"),
    "untrust": About("DIR", "withdraw the trust in a folder's .compactd.toml"),
    "hook": About("AGENT", "the program that the installed hooks run"),
    "statusline": About("AGENT", "print the context's fill level for Claude Code's status line"),
    "acp": About("[-- AGENT]", "run an ACP agent for Zed and others, or a proxy for one"),
    "mcp": About("", "run an MCP server: a model can search what was compacted away"),
    "serve": About("", "run the daemon: JSON-RPC on stdin and stdout"),
}
"""Command name -> its row, in the order of the help. The command is `COMMAND` in `commands/<name>.py`."""
