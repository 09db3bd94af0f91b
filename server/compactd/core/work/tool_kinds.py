"""Recognise what a tool call does, by the tool's name and its arguments.

Each agent has its own tools. The tables name those of Claude Code, Codex, Gemini CLI, OpenCode, pi, Cline,
Roo Code, OpenHands, SWE-agent and mini-swe-agent (recorded sessions and the agents' sources, 2026-11). A tool
that no table names is recognised by the shape of its arguments: a command line, a list of tasks, new content
of a file.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Final, Literal

from compactd.core.text.lazy_patterns import LazyPattern
from compactd.core.work.file_operations import CHANGE_ARGUMENTS, Json, patched_paths, paths_in

ToolKind = Literal[
    "edit",
    "write",
    "patch",
    "shell",
    "plan",
    "task_create",
    "task_update",
    "task_list",
    "ask",
    "propose",
    "agent",
    "look",
    "other",
]
"""What a tool call does. `task_list` shows the tasks, `propose` presents a
plan for approval, `agent` starts another agent, `look` only
reads."""

_NAMES: Final[dict[ToolKind, str]] = {
    "shell": """
        bash shell terminal execute_bash run_shell_command exec_command execute_command run_commands
        run_command run_terminal_cmd local_shell container.exec cmd powershell
        """,
    "edit": """
        edit multiedit multi_edit str_replace_editor str_replace_based_edit_tool file_editor editor replace
        notebookedit replace_in_file apply_diff insert_content search_and_replace edit_file search_replace
        insert str_replace
        """,
    "write": "write write_file write_to_file create create_file save_file new_file",
    "patch": "apply_patch patch",
    "plan": "todowrite todo_write update_plan write_todos update_todo_list task_tracker todo",
    "task_create": "taskcreate task_create create_task",
    "task_update": "taskupdate task_update update_task",
    "task_list": "tasklist task_list list_tasks",
    "ask": "askuserquestion ask_followup_question ask_user ask_question question request_user_input",
    "propose": "exitplanmode exit_plan_mode plan_mode_respond present_plan",
    "agent": "task agent new_task dispatch_agent spawn_agent delegate subagent",
    "look": """
        read grep glob ls read_file read_files list_files search_files find_file view open cat websearch
        webfetch taskget taskoutput todoread list_directory read_many_files search_file_content skill
        """,
}
_KINDS: Final[dict[str, ToolKind]] = {name: kind for kind, names in _NAMES.items() for name in names.split()}
"""What a tool does, by its name in lower case."""

COMMAND_ARGUMENTS: Final = ("command", "cmd", "commands", "script")
"""Names of the argument with a command line."""
TASK_LISTS: Final = ("todos", "plan", "task_list", "tasks", "items")
"""Names of the argument with the tasks of a plan."""

_SPACE: Final = LazyPattern(r"\s|\A\Z")
"""Matches white space, or an empty word."""
_VIEWS: Final = ("view", "undo_edit")
"""Commands of an editor tool that change nothing, or take a change back."""


def tool_kind(name: str, arguments: Mapping[str, Json]) -> ToolKind:
    """Return what a call of this tool does. O(arguments)."""
    kind = _KINDS.get(name.lower().rsplit("__", 1)[-1].removeprefix("functions."))
    if kind == "edit" and arguments.get("command") in _VIEWS:
        return "look"
    if kind == "edit" and arguments.get("command") == "create":
        return "write"
    if kind == "other" or kind is None:
        return _by_shape(arguments)
    if kind in ("write", "edit") and not paths_in(arguments):
        return "other"
    return kind


def command_line(arguments: Mapping[str, Json]) -> str:
    """Return the command line in the arguments of a call; empty if there is none. A list of words or of
    command lines is joined; the line of `["bash", "-lc", line]` is returned alone."""
    for name in COMMAND_ARGUMENTS:
        value = arguments.get(name)
        if isinstance(value, str):
            return value
        if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
            words = [str(word) for word in value]
            if name not in ("command", "cmd"):
                return "\n".join(words)
            is_shell = words[0].rsplit("/", 1)[-1] in ("bash", "sh", "zsh")
            if len(words) > 2 and is_shell and words[1].startswith("-") and words[1].endswith("c"):
                return words[2]
            if len(words) == 1:
                return words[0]
            # A word with white space is one argument, so it needs quotes.
            return " ".join(shlex.quote(word) if _SPACE.search(word) else word for word in words)
    return ""


def _by_shape(arguments: Mapping[str, Json]) -> ToolKind:
    """Return what a call of an unknown tool does, by its arguments."""
    if patched_paths(arguments):
        return "patch"
    paths = paths_in(arguments)
    if paths and not CHANGE_ARGUMENTS.isdisjoint(arguments):
        return "edit" if any(name.startswith("old") for name in arguments) else "write"
    if any(isinstance(arguments.get(name), list) and _are_tasks(arguments[name]) for name in TASK_LISTS):
        return "plan"
    if not paths and command_line(arguments):
        return "shell"
    return "other"


def _are_tasks(value: Json) -> bool:
    """Return whether a value is a list of tasks with a status."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(one, dict) and "status" in one for one in value)
    )
