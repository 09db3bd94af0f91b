"""What a tool call does, recognised from the tool's name and its arguments."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactd.core.work.file_operations import Json
from compactd.core.work.shell import commands_in
from compactd.core.work.tool_kinds import ToolKind, command_line, tool_kind
from tests.support.examples import examples

PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n-a\n+b\n*** End Patch\n"
TASKS: Json = [{"content": "a", "status": "pending"}]


@pytest.mark.parametrize(
    ("name", "arguments", "kind"),
    [
        ("Bash", {"command": "ls"}, "shell"),
        ("exec_command", {"cmd": "ls"}, "shell"),
        ("functions.exec_command", {"cmd": "ls"}, "shell"),
        ("container.exec", {"command": ["ls"]}, "shell"),
        ("mcp__desktop__run_command", {"command": "ls"}, "shell"),
        ("Edit", {"file_path": "a.py", "old_string": "a", "new_string": "b"}, "edit"),
        ("replace", {"file_path": "a.py", "old_string": "a", "new_string": "b"}, "edit"),
        ("str_replace_editor", {"command": "str_replace", "path": "a.py", "old_str": "a"}, "edit"),
        ("str_replace_editor", {"command": "view", "path": "a.py"}, "look"),
        ("str_replace_editor", {"command": "undo_edit", "path": "a.py"}, "look"),
        ("str_replace_editor", {"command": "create", "path": "a.py", "file_text": "x"}, "write"),
        ("edit", {"question": "which?"}, "other"),
        ("edit", {"command": ["view"]}, "other"),
        ("Write", {"file_path": "a.py", "content": "x"}, "write"),
        ("apply_patch", {"input": PATCH}, "patch"),
        ("TodoWrite", {"todos": TASKS}, "plan"),
        ("update_plan", {"plan": TASKS}, "plan"),
        ("TaskCreate", {"subject": "a"}, "task_create"),
        ("TaskUpdate", {"taskId": "1", "status": "completed"}, "task_update"),
        ("AskUserQuestion", {"questions": []}, "ask"),
        ("ExitPlanMode", {"plan": "a"}, "propose"),
        ("Task", {"prompt": "a"}, "agent"),
        ("Read", {"file_path": "a.py"}, "look"),
        # Tools that no table names.
        ("run_it", {"command": "ls"}, "shell"),
        ("change", {"path": "a.py", "old_text": "a", "new_text": "b"}, "edit"),
        ("produce", {"path": "a.py", "content": "x"}, "write"),
        ("amend", {"patch": PATCH}, "patch"),
        ("track", {"items": TASKS}, "plan"),
        ("track", {"items": ["a"]}, "other"),
        ("track", {"items": []}, "other"),
        ("peruse", {"path": "a.py"}, "other"),
        ("", {}, "other"),
    ],
)
def test_a_call_does_this(name: str, arguments: dict[str, Json], kind: ToolKind) -> None:
    assert tool_kind(name, arguments) == kind


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"command": "ls -l"}, "ls -l"),
        ({"cmd": "ls"}, "ls"),
        ({"command": ["bash", "-lc", "cd a && ls"]}, "cd a && ls"),
        ({"command": ["/bin/zsh", "-c", "ls"]}, "ls"),
        ({"command": ["ls -l"]}, "ls -l"),
        ({"command": ["cd", "a", "&&", "ls"]}, "cd a && ls"),
        ({"command": ["pytest", "-k", "a and b"]}, "pytest -k 'a and b'"),
        ({"command": ["bash", "cat", "abc"]}, "bash cat abc"),
        ({"commands": ["cd a", "ls"]}, "cd a\nls"),
        ({"command": ["ls", 1]}, ""),
        ({"command": []}, ""),
        ({"command": None, "script": "ls"}, "ls"),
        ({"path": "a.py"}, ""),
    ],
)
def test_the_command_line_is_among_the_arguments(arguments: dict[str, Json], line: str) -> None:
    assert command_line(arguments) == line


def test_a_word_with_white_space_stays_one_argument() -> None:
    (command,) = commands_in(command_line({"command": ["git", "commit", "-m", "it's a; b"]}))

    assert command.words == ("commit", "-m", "it's a; b")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(
    ["command", "commands", "path", "content", "todos", "plan", "patch", "items", "old_string"]
)


@settings(max_examples=examples(200))
@given(
    st.one_of(st.text(), st.sampled_from(["Bash", "Edit", "TodoWrite"])),
    st.dictionaries(NAMES | st.text(), JSON),
)
def test_any_call_has_one_kind(name: str, arguments: dict[str, Json]) -> None:
    assert tool_kind(name, arguments) == tool_kind(name, dict(arguments))
    assert isinstance(command_line(arguments), str)
