"""The text of a Claude Code tool's output is taken out of each shape, and put back into the same shape."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactd.integrations.hooks.tool_outputs import numbered, renumbered, response_with, tool_use_of
from tests.support.examples import examples
from tests.support.recorded_claude import RECORDINGS, needs_recordings

TEXT = "alpha\nbeta\ngamma"
SHAPES: dict[str, tuple[str, Any]] = {
    "Bash": (
        "Bash",
        {"stdout": TEXT, "stderr": "e", "interrupted": False, "isImage": False, "new": [1, None]},
    ),
    "Read": (
        "Read",
        {"type": "text", "file": {"filePath": "/a.py", "content": TEXT, "startLine": 7, "n": 1}},
    ),
    "Grep, lines": ("Grep", {"mode": "content", "numFiles": 0, "filenames": [], "content": TEXT}),
    "Grep, files": ("Grep", {"mode": "files_with_matches", "filenames": TEXT.split("\n"), "numFiles": 3}),
    "Glob": ("Glob", {"filenames": TEXT.split("\n"), "durationMs": 3, "numFiles": 3, "totalMatches": 3}),
    "MCP, blocks": (
        "mcp__a__b",
        [{"type": "text", "text": TEXT}, {"type": "image", "source": {"data": "AAAA"}}],
    ),
    "MCP, text": ("mcp__a__b", TEXT),
}
UNTOUCHED: dict[str, tuple[str, Any]] = {
    "an image": ("Bash", {"stdout": "iVBOR", "stderr": "", "isImage": True}),
    "written to a file": ("Bash", {"stdout": TEXT, "stderr": "", "persistedOutputPath": "/tmp/x.txt"}),
    "a picture": ("Read", {"type": "image", "file": {"base64": "AAAA"}}),
    "unchanged": ("Read", {"type": "file_unchanged", "file": {"filePath": "/a.py"}}),
    "a notebook": ("Read", {"type": "notebook", "file": {"cells": []}}),
    "an agent": ("Agent", {"status": "completed", "content": [{"type": "text", "text": TEXT}]}),
    "a task": ("Task", {"content": [{"type": "text", "text": TEXT}]}),
    "a page": ("WebFetch", {"result": TEXT, "code": 200}),
    "an edit": ("Edit", {"filePath": "/a.py", "oldString": "a", "newString": TEXT}),
    "structured content": ("mcp__a__b", {"structuredContent": {"a": TEXT}}),
    "an odd name": ("Glob", {"filenames": ["a\nb"]}),
    "another shape": ("Bash", [TEXT]),
    "what compactd recalls": ("mcp__compactd__expand", [{"type": "text", "text": TEXT}]),
    "what compactd recalls, another server": ("mcp__memory__search_history", TEXT),
}


def event(name: str, response: object, **arguments: object) -> bytes:
    told = {"tool_name": name, "tool_use_id": "toolu_1", "tool_input": arguments, "tool_response": response}
    return json.dumps(told).encode()


@pytest.mark.parametrize("shape", SHAPES)
def test_a_text_is_put_back_into_its_shape_and_nothing_else_changes(shape: str) -> None:
    name, response = SHAPES[shape]
    use = tool_use_of(event(name, response))
    assert use is not None

    same = response_with(use, {part.part: part.text for part in use.parts})
    (text, *_) = use.parts
    shorter = response_with(use, {text.part: text.text.replace("beta", "B")})

    assert json.loads(bytes(same)) == response
    assert json.loads(bytes(shorter)) == json.loads(json.dumps(response).replace("beta", "B"))


@pytest.mark.parametrize("shape", UNTOUCHED)
def test_other_shapes_and_tools_are_left_alone(shape: str) -> None:
    name, response = UNTOUCHED[shape]

    assert tool_use_of(event(name, response)) is None


@pytest.mark.parametrize("command", ["compactd sessions show x e4", "cd a && ~/bin/compactd search foo"])
def test_what_a_shell_recalls_is_left_alone(command: str) -> None:
    response = {"stdout": TEXT, "stderr": ""}

    assert tool_use_of(event("Bash", response, command=command)) is None
    assert tool_use_of(event("Bash", response, command="ls /src/compactd")) is not None


@pytest.mark.parametrize("data", [b"", b"[]", b'{"tool_name": "Bash"}', b'{"tool_name": 1}', b"\xff"])
def test_an_event_without_an_output_is_left_alone(data: bytes) -> None:
    assert tool_use_of(data) is None


def test_a_short_list_of_files_does_not_look_cut_off() -> None:
    use = tool_use_of(event(*SHAPES["Glob"]))
    assert use is not None

    shown = json.loads(bytes(response_with(use, {None: "alpha\ngamma"})))

    assert (shown["numFiles"], shown["totalMatches"], shown["durationMs"]) == (2, 2, 3)


def seen(text: str) -> list[str]:
    """Return the lines that Claude Code shows of an answer for `Read`."""
    use = tool_use_of(event("Read", {"type": "text", "file": {"content": TEXT, "startLine": 1}}))
    assert use is not None
    file = json.loads(bytes(response_with(use, {None: text})))["file"]
    return numbered(file["content"].split("\n"), file["startLine"]).split("\n")


MARK = "[… 5 lines left out, expand e4]"


def test_lines_of_a_file_keep_their_numbers_after_a_mark_at_the_beginning() -> None:
    shown = renumbered(f"{MARK}\n6\tsix\n7\tseven", 1)

    assert seen(shown) == shown.split("\n") == [f"5\t{MARK}", "6\tsix", "7\tseven"]


def test_a_mark_within_a_file_says_which_line_follows() -> None:
    shown = renumbered(f"1\tone\n{MARK}\n7\tseven\n8\teight\n{MARK}", 1)

    assert seen(shown) == shown.split("\n")
    assert shown.split("\n") == [
        "1\tone",
        f"2\t{MARK} (line 7 follows)",
        "3\tseven",
        "4\teight",
        f"5\t{MARK}",
    ]


def test_a_mark_for_one_line_changes_no_number() -> None:
    shown = renumbered(f"1\tone\n{MARK}\n3\tthree", 1)

    assert shown.split("\n") == ["1\tone", f"2\t{MARK}", "3\tthree"]


@settings(max_examples=examples(60))
@given(
    st.lists(st.text(st.characters(exclude_characters="\n"), max_size=8), min_size=1), st.integers(1, 9999)
)
def test_a_file_without_marks_stays_as_it_is(lines: list[str], start: int) -> None:
    shown = numbered(lines, start)

    assert renumbered(shown, start) == shown


@needs_recordings
def test_each_recorded_output_comes_back_as_it_was() -> None:
    assert RECORDINGS is not None
    names = []
    for file in sorted(RECORDINGS.glob("*/*/events/*PostToolUse-*.json")):
        data = file.read_bytes()
        use = tool_use_of(data)
        if use is not None:
            names.append(use.name)
            back = response_with(use, {part.part: part.text for part in use.parts})
            assert json.loads(bytes(back)) == json.loads(data)["tool_response"]
    assert set(names) == {"Bash", "Read"}
