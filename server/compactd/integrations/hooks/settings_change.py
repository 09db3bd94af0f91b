"""The settings that each agent needs for compactd's hooks, and how to add and remove them.

Claude Code: `settings.json` (hooks reference, 2.1.240); Codex: `hooks.json` of the same form (0.169.0, run
2026-11); Gemini CLI: `settings.json`, timeouts in milliseconds (0.61.0, run 2026-11).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from compactd.integrations.hooks.events import AgentName
from compactd.integrations.hooks.settings_text import (
    Json,
    Member,
    Node,
    NotSettings,
    at_path,
    parse,
    with_member,
    without_member,
)

TIMEOUT_S: Final = 10
"""Seconds after which the agent ends the hook. The hook ends itself long before."""

EVENTS: Final[dict[AgentName, tuple[str, ...]]] = {
    "claude-code": ("SessionStart", "UserPromptSubmit", "Stop", "SubagentStop", "PreCompact", "PostCompact"),
    "codex": ("SessionStart", "UserPromptSubmit", "Stop", "PreCompact", "PostCompact"),
    "gemini-cli": ("SessionStart", "BeforeAgent", "AfterAgent", "PreCompress"),
}
TOOL_EVENT: Final = "PostToolUse"
"""The event at which compactd reduces a tool's output."""
TOOL_MATCHER: Final = "Bash|Read|Grep|Glob|mcp__.*"
"""The tools whose output compactd can reduce. Claude Code starts no process for others."""
NO_STEER: Final = "--no-steer"
STEERS_AT: Final = "PreCompact"
"""The event at which compactd says what a summary must contain."""
_REDUCE = re.compile(r"\s+(?:--reduce(?:[=\s]\s*\w+)?|--observe\b)")
"""A pattern for the options of a command that reduces tool outputs."""
_NO_STEER = re.compile(rf"\s+{NO_STEER}\b")
_HOOK_COMMAND = re.compile(
    r"compactd(?:\.exe)?['\"]?(?:\s+-m\s+compactd)?\s+(?:hook|statusline)\s+(?:claude-code|codex|gemini-cli)\b"
)
_PY = r"py(?:thon)?[\d.]*(?:\.exe)?"
_PYTHON = rf"(?:'[^']*{_PY}'|\"[^\"]*{_PY}\"|[^\s'\"]*{_PY})"
_BEFORE_AGENT = r"(?=\s+(?:hook|statusline)\s+(?:claude-code|codex|gemini-cli)\b)"
_UNSAFE = re.compile(rf"(?<!\S)(?:{_PYTHON}\s+-m\s+compactd|(?<!-m\s)compactd(?:\.exe)?){_BEFORE_AGENT}")
"""A pattern for an unsafe program in a command of compactd that an earlier version or the user wrote: a
Python that imports from the folder in which the agent works, or a name that is looked up on the PATH.
"""

_SCRIPT = r"(?:'[^']*compactd(?:\.exe)?'|\"[^\"]*compactd(?:\.exe)?\"|[^\s'\"]*compactd(?:\.exe)?)"
_PROGRAM = re.compile(
    rf"(?<!\S)(?:(?P<python>{_PYTHON})(?:\s+-[IP])?\s+-m\s+compactd|(?<!-m\s)(?P<script>{_SCRIPT})){_BEFORE_AGENT}"
)
"""A pattern for the program in a command of compactd: its script, or a Python with compactd as a module."""


class WantedHooks(Struct, frozen=True):
    """What an agent's settings should contain."""

    agent: AgentName
    program: str
    """The command that starts `compactd`, quoted for a shell."""
    with_statusline: bool = True
    steers: bool | None = None
    """Whether compactd says what a summary of Claude Code must contain; None keeps what the settings say.
    Without settings it does.
    """
    reduction: str | None = None
    """The options of the command that reduces tool outputs, such as `--reduce default`; empty for no such
    command; None keeps what the settings say. Without settings there is none.
    """


def settings_path(agent: AgentName, environ: Mapping[str, str]) -> Path:
    """Return the user's settings file of an agent. It need not exist. Raise `KeyError` if there is no home
    folder.
    """
    home = Path(environ.get("HOME") or environ["USERPROFILE"])
    match agent:
        case "claude-code":
            return Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude") / "settings.json"
        case "codex":
            return Path(environ.get("CODEX_HOME") or home / ".codex") / "hooks.json"
        case "gemini-cli":
            return home / ".gemini" / "settings.json"


def add_hooks(text: str, wanted: WantedHooks) -> tuple[str, tuple[str, ...]]:
    """Return (the settings `text` with compactd's hooks, notes for the user about other changes, and about
    what was left unchanged). The text stays the same if it already has the hooks.

    Raise `NotSettings`.
    """
    if not text.strip("\ufeff \t\r\n"):
        text = text + "{}\n"
    notes: list[str] = []
    text, edits = upgrade_commands(text, wanted)
    if edits:
        notes.append(
            f"{len(edits)} of compactd's commands in it could have run a program from your working folder; "
            "they were rewritten"
        )
    for event in EVENTS[wanted.agent]:
        text = _with_hook(text, event, wanted)
    text = _with_steering(text, wanted)
    text = _with_reduction(text, wanted)
    if wanted.agent == "claude-code" and wanted.with_statusline:
        present = parse(text).find("statusLine")
        if present is None:
            told: Json = {"type": "command", "command": f"{wanted.program} statusline {wanted.agent}"}
            text = with_member(text, parse(text), "statusLine", told)
        elif not _is_compactd_hook(present.node):
            notes.append("the settings already have a status line; it was not changed")
    if wanted.agent == "claude-code" and not _is_strict_json(text):
        notes.append(
            "Claude Code ignores this file because it contains comments or trailing commas; the hooks run "
            "once these are removed"
        )
    return text, tuple(notes)


def _is_strict_json(text: str) -> bool:
    """Return whether Claude Code reads the settings `text`: with comments or trailing commas, it ignores all
    of them (2.1.197, 2.1.240 and 2.1.330, run 2026-11).
    """
    try:
        json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return False
    return True


def _with_steering(text: str, wanted: WantedHooks) -> str:
    """Return the settings `text` in which compactd's command at PreCompact steers, or does not."""
    if wanted.agent != "claude-code" or wanted.steers is None:
        return text
    groups = at_path(parse(text), ("hooks", STEERS_AT))
    places = range(groups.start, groups.end) if groups is not None else range(0)

    def steered(command: str) -> str:
        plain = _NO_STEER.sub("", command)
        return plain if wanted.steers else _HOOK_COMMAND.sub(lambda m: f"{m[0]} {NO_STEER}", plain, count=1)

    return _rewrite(text, steered, places)[0]


def _with_reduction(text: str, wanted: WantedHooks) -> str:
    """Return the settings `text` with compactd's command at `TOOL_EVENT` as it is wanted, or without it."""
    if wanted.agent != "claude-code" or wanted.reduction is None:
        return text
    if not wanted.reduction:
        while (found := _first_hook(root := parse(text), TOOL_EVENT)) is not None:
            text = _without_hook(text, root, found, None)
        return text
    added = f" {wanted.reduction}"
    text = _with_hook(text, TOOL_EVENT, wanted, TOOL_MATCHER, added)
    groups = at_path(parse(text), ("hooks", TOOL_EVENT))
    assert groups is not None

    def reducing(command: str) -> str:
        return _HOOK_COMMAND.sub(lambda m: f"{m[0]}{added}", _REDUCE.sub("", command), count=1)

    return _rewrite(text, reducing, range(groups.start, groups.end))[0]


class Edit(Struct, frozen=True, array_like=True):
    """A command that was rewritten."""

    start: int
    """Where the command begins in the new text."""
    end: int
    old: str
    """The command before the change, as a JSON string."""


def upgrade_commands(text: str, wanted: WantedHooks) -> tuple[str, tuple[Edit, ...]]:
    """Replace, in an agent's settings `text`, each unsafe program of a compactd hook (`_UNSAFE`) by the
    program in `wanted`. Return (the new text, the commands that were changed).

    The rest of each command stays: what precedes the program, and its options. Raise `NotSettings` if `text`
    is not a settings file.
    """
    if _UNSAFE.search(f"{wanted.program} hook {wanted.agent}"):
        return text, ()
    return _rewrite(text, lambda command: _UNSAFE.sub(lambda _: wanted.program, command))


def repair_commands(text: str, wanted: WantedHooks, exists: Callable[[str], bool]) -> tuple[str, int]:
    """Replace, in an agent's settings `text`, each program of a compactd hook that does not exist by the
    program in `wanted`. Return (the new text, the number of commands that were changed). Raise `NotSettings`.
    """

    def repaired(command: str) -> str:
        return _PROGRAM.sub(lambda m: m[0] if exists(_program_of(m)) else wanted.program, command)

    text, edits = _rewrite(text, repaired)
    return text, len(edits)


def programs_in(text: str) -> tuple[str, ...]:
    """Return the programs that compactd's hooks in an agent's settings `text` run, each once. Raise
    `NotSettings`.
    """
    commands = [str(node.value) for node in _command_nodes(text)] if text.strip("\ufeff \t\r\n") else []
    return tuple(dict.fromkeys(_program_of(m) for command in commands for m in _PROGRAM.finditer(command)))


def _program_of(found: re.Match[str]) -> str:
    return (found["python"] or found["script"]).strip("'\"")


def _command_nodes(text: str) -> list[Node]:
    """Return the strings in the hooks and in the status line, in order."""
    root = parse(text)
    places = [member.node for member in (root.find("hooks"), root.find("statusLine")) if member is not None]
    nodes = [node for place in places for node in _string_nodes(place)]
    return sorted(nodes, key=lambda node: node.start)


def _rewrite(
    text: str, change: Callable[[str], str], places: range | None = None
) -> tuple[str, tuple[Edit, ...]]:
    """Return (the settings with each command changed by `change`, the commands that differ). With `places`,
    only the commands that begin there are changed.
    """
    edits: list[Edit] = []
    pieces: list[str] = []
    read = size = 0
    for node in _command_nodes(text):
        if places is not None and node.start not in places:
            continue
        command = change(str(node.value))
        if command == node.value:
            continue
        pieces += (text[read : node.start], json.dumps(command, ensure_ascii=False))
        size += node.start - read
        edits.append(Edit(size, size + len(pieces[-1]), text[node.start : node.end]))
        size += len(pieces[-1])
        read = node.end
    return "".join((*pieces, text[read:])), tuple(edits)


def _string_nodes(node: Node) -> list[Node]:
    found = [node] if isinstance(node.value, str) else []
    return found + [one for member in node.members for one in _string_nodes(member.node)]


def _with_hook(text: str, event: str, wanted: WantedHooks, matcher: str = "", options: str = "") -> str:
    """Return the settings `text` with a command of compactd at `event`. Raise `NotSettings`."""
    root = parse(text)
    if at_path(root, ("hooks",)) is None:
        text = with_member(text, root, "hooks", {})
        root = parse(text)
    hooks = at_path(root, ("hooks",))
    if hooks is None or hooks.kind != "object":
        raise NotSettings("`hooks` is not an object")
    groups = at_path(hooks, (event,))
    if groups is None:
        return with_member(text, hooks, event, [_group(wanted, matcher, options)])
    if groups.kind != "array":
        raise NotSettings(f"`hooks.{event}` is not a list")
    if any(_is_compactd_hook(member.node) for member in groups.members):
        return text
    return with_member(text, groups, "", _group(wanted, matcher, options))


def _group(wanted: WantedHooks, matcher: str, options: str) -> Json:
    command: dict[str, Json] = {
        "type": "command",
        "command": f"{wanted.program} hook {wanted.agent}{options}",
        "timeout": TIMEOUT_S,
    }
    if wanted.agent == "gemini-cli":
        command = {"name": "compactd", **command, "timeout": 1000 * TIMEOUT_S}
    return {"matcher": matcher, "hooks": [command]} if matcher else {"hooks": [command]}


def _is_compactd_hook(node: Node) -> bool:
    return any(_HOOK_COMMAND.search(str(one.value)) for one in _string_nodes(node))


def without_hooks(text: str, before: str | None = None) -> str:
    """Return the settings `text` without compactd's hooks. Lists and objects that are empty after that are
    removed too, unless the earlier settings `before` already contained them.

    Raise `NotSettings`.
    """
    root_before = parse(before) if before and before.strip("\ufeff \t\r\n") else None
    while True:
        root = parse(text)
        status = root.find("statusLine")
        if status is not None and _is_compactd_hook(status.node):
            text = without_member(text, root, status)
            continue
        found = _first_hook(root)
        if found is None:
            return text
        text = _without_hook(text, root, found, root_before)


class _Found(Struct, frozen=True):
    """A hook of compactd in the settings, and the lists and objects that contain it."""

    hooks: Node
    event: Member
    group: Member
    handlers: Node
    handler: Member


def events_in(text: str) -> tuple[str, ...] | None:
    """Return the events in the settings `text` that compactd's hooks use too; None if the settings have no
    `hooks`. Raise `NotSettings`.
    """
    hooks = at_path(parse(text), ("hooks",)) if text.strip("\ufeff \t\r\n") else None
    if hooks is None:
        return None
    known = {TOOL_EVENT, *(event for events in EVENTS.values() for event in events)}
    return tuple(member.key for member in hooks.members if member.key in known)


def _first_hook(root: Node, at: str | None = None) -> _Found | None:
    """Return the first hook of compactd; with `at`, the first at this event."""
    hooks = at_path(root, ("hooks",))
    if hooks is None or hooks.kind != "object":
        return None
    for event in hooks.members:
        if at is not None and event.key != at:
            continue
        for group in event.node.members if event.node.kind == "array" else ():
            handlers = at_path(group.node, ("hooks",))
            for handler in handlers.members if handlers is not None and handlers.kind == "array" else ():
                command = at_path(handler.node, ("command",))
                if command is not None and isinstance(command.value, str) and _is_compactd_hook(command):
                    assert handlers is not None
                    return _Found(hooks, event, group, handlers, handler)
    return None


def _without_hook(text: str, root: Node, found: _Found, before: Node | None) -> str:
    if len(found.handlers.members) > 1:
        return without_member(text, found.handlers, found.handler)
    if len(found.event.node.members) > 1 or at_path(before, ("hooks", found.event.key)):
        return without_member(text, found.event.node, found.group)
    if len(found.hooks.members) > 1 or at_path(before, ("hooks",)):
        return without_member(text, found.hooks, found.event)
    member = root.find("hooks")
    assert member is not None
    return without_member(text, root, member)
