"""What an edit did is told by the lines that it added or removed."""

from __future__ import annotations

import pytest

from compactd.core.work.edits import gist_of


def test_an_edit_is_told_by_the_lines_it_added() -> None:
    old = "def load(path):\n    return read(path)\n"
    new = "def load(path):\n    # read it twice\n    check_size(path, limit)\n    return read(path)\n"

    assert gist_of({"old_string": old, "new_string": new}).added == (
        "# read it twice",
        "check_size(path, limit)",
    )


def test_a_definition_tells_more_than_other_code() -> None:
    new = (
        "one = other_value\nimport json\ndef expire(self) -> None:\n    self.clear_all()\nlast = first_value"
    )

    assert "def expire(self) -> None:" in gist_of({"old_string": "", "new_string": new}).added


def test_an_edit_that_only_removes_says_what() -> None:
    gist = gist_of({"old_str": "keep_this(one)\nunused_name(two)\n", "new_str": "keep_this(one)\n"})

    assert gist.text == "removed `unused_name(two)`"


def test_several_changes_in_one_call_are_read() -> None:
    edits = [
        {"old_string": "a_name = one_value", "new_string": "a_name = two_value"},
        {"oldText": "", "newText": "class Cache:"},
    ]

    assert gist_of({"edits": edits}).added == ("a_name = two_value", "class Cache:")


def test_a_patch_is_read() -> None:
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-old_call(value)\n+new_call(value)\n*** End Patch"

    assert gist_of({"input": patch}).added == ("new_call(value)",)


@pytest.mark.parametrize("arguments", [{}, {"old_string": "a", "new_string": "a"}, {"new_string": 3}])
def test_an_edit_without_telling_lines_says_nothing(arguments: dict[str, object]) -> None:
    assert gist_of(arguments).text == ""  # type: ignore[arg-type]
