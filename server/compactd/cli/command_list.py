"""The commands of `compactd`: name, usage and one line each. Loads nothing."""

from __future__ import annotations

from typing import NamedTuple


class About(NamedTuple):
    """A command's row in `compactd --help`."""

    usage: str
    """What stands behind its name."""
    told: str


COMMANDS = {
    "compact": About("FILE", "compact a session file: before and after, and the summary"),
    "inspect": About("FILE", "where its tokens are, and when a compaction comes"),
    "watch": About("FILE", "a live gauge of a running agent's session file"),
    "diff": About("FILE", "the context before and after a compaction, side by side"),
    "convert": About("IN OUT", "a session file in another program's format"),
    "doctor": About("FILE", "what is wrong with a session file; writes a repaired copy"),
    "chat": About("", "a conversation with a model, kept and compacted by the daemon"),
    "search": About("WORDS", "messages of every stored session that hold them, compacted or not"),
    "sessions": About("", "the sessions that are stored; `sessions delete ID` removes one"),
    "models": About("[NAME]", "a model's window and limits, and where the numbers come from"),
    "classify": About("FILE", "whether a provider's error was an overflow, and what to do"),
    "schema": About("[KIND]", "the protocol for programs: JSON Schema, OpenRPC, types"),
    "completion": About("", "completion of these commands for bash, zsh and fish"),
    "conformance": About("", "whether a program speaks the protocol and keeps its laws"),
    "install": About("AGENT", "hooks into Claude Code, Codex or Gemini CLI: what compactions lose"),
    "uninstall": About("AGENT", "the same out again"),
    "trust": About("[DIR]", "lets a folder's .compactd.toml decide what a stranger's may not"),
    "untrust": About("DIR", "takes that trust back"),
    "hook": About("AGENT", "what those agents run at their events"),
    "statusline": About("AGENT", "one line for Claude Code's status line"),
    "acp": About("[-- AGENT]", "an agent for Zed and other ACP editors, or before another one"),
    "mcp": About("", "an MCP server: a model's recall of what was compacted away"),
    "serve": About("", "the daemon itself: JSON-RPC on stdin and stdout"),
}
"""Each is `COMMAND` in the module of `commands/` with its name; in the order of the help."""
