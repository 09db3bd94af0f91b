"""What an edit did is told by the lines that it added or removed."""

from __future__ import annotations

import pytest

from compactd.core.work.edits import MAX_EDIT_CHARS, FileEdit, edits_in
from compactd.core.work.file_operations import Json
from compactd.core.work.gists import MAX_SHOWN_CHARS, EditGist, gist_of


def gist(old: str, new: str, path: str = "a.py") -> EditGist:
    (edit,) = edits_in({"file_path": path, "old_string": old, "new_string": new})
    return gist_of(edit)


def shown(old: str, new: str, path: str = "a.py") -> tuple[str, ...]:
    return tuple(one.shown for one in gist(old, new, path).added)


def test_an_edit_is_told_by_the_lines_it_added() -> None:
    old = "def load(path):\n    return read(path)\n"
    new = "def load(path):\n    check_size(path, limit)\n    note_time(path, clock)\n    return read(path)\n"

    assert shown(old, new) == ("check_size(path, limit)", "note_time(path, clock)")


def test_a_line_that_was_moved_or_copied_from_the_context_was_not_added() -> None:
    old = "first_call(value)\nsecond_call(value)\nlast_call(value)"
    new = "last_call(value)\nfirst_call(value)\nnew_call(value)\nsecond_call(value)"

    assert gist(old, new).text == "`new_call(value)`"


def test_a_line_that_is_now_there_twice_was_added() -> None:
    assert shown("use_cache(entry)", "use_cache(entry)\nuse_cache(entry)") == ("use_cache(entry)",)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("def expire(self) -> None:", "definition"),
        ("func (s *Store) Drop(key string) {", "definition"),
        ("  private refresh(entry: Entry): void {", "definition"),
        ("return stale_copy(entry)", "end"),
        ("raise StaleEntry(entry.name)", "end"),
        ('return "", fmt.Errorf("no entry %q", name)', "end"),
        ("entry = load(name) or fallback_entry", "end"),
        ("if entry.age > limit:", "condition"),
    ],
)
def test_a_telling_line_is_shown_instead_of_longer_ones(line: str, kind: str) -> None:
    others = "long_name = other_value + one_more_value + two_more_values\nnext_name = third_value + fourth"

    assert line.strip() in shown("", f"{others}\n{line}\n{others}"), kind


def test_a_definition_and_how_it_ends_tell_more_than_two_definitions() -> None:
    new = "def first_one(self):\n    pass\ndef second_one(self):\n    raise StaleEntry(self.name)"

    assert shown("", new) == ("def first_one(self):", "raise StaleEntry(self.name)")


@pytest.mark.parametrize(
    "dull",
    [
        "# look at the age of the entry first",
        "// look at the age of the entry first",
        "import clock_source",
        "from clock import source_of_time",
        'import { source } from "clock";',
        '"example.com/clock/source"',
        "@spec expire(String.t()) :: any()",
        "if err != nil {",
        "return nil, err",
        "return None",
    ],
)
def test_comments_imports_and_common_lines_are_shown_only_alone(dull: str) -> None:
    assert shown("", f"{dull}\nuse_entry(name)\n{dull}") == ("use_entry(name)",)
    assert gist("removed_call(name)", dull).text == f"`{dull}`"


def test_a_heading_of_a_text_is_no_comment() -> None:
    assert shown("", "# Loading entries\nok", "guide.md") == ("# Loading entries",)


def test_markup_tells_less_than_code() -> None:
    markup = '<div class="entries that are long" style="color: grey">'

    assert shown("", f"{markup}\n{markup}\none = call(x)\ntwo = call(x)") == (
        "one = call(x)",
        "two = call(x)",
    )


def test_an_edit_that_only_removes_says_what() -> None:
    assert gist("keep_this(one)\nunused_name(two)\n", "keep_this(one)\n").text == "removed `unused_name(two)`"


def test_an_edit_that_adds_something_does_not_only_say_what_it_removed() -> None:
    assert gist("removed_call(value)", "x = 0").text == "`x = 0`"


def test_an_extended_line_is_shown_from_its_changed_part() -> None:
    old = "result = compute_everything(first_argument, second_argument, third_argument, last_argument)"
    new = "result = compute_everything(first_argument, second_argument, third_argument, last_argument, clock)"

    (line,) = shown(old, new)

    assert line == "…third_argument, last_argument, clock)"


def test_a_short_line_and_a_new_line_are_shown_as_a_whole() -> None:
    long = "other = something_else(first_argument, second_argument, third_argument, last_argument)"

    assert shown("call(first_value, second)", "call(first_value, third)") == ("call(first_value, third)",)
    assert shown("call(first_value, second)", long) == (long,)
    assert shown("other = something_else(first_argument, second_argument, " + "x, " * 30, long) == (long,)


def test_a_long_line_is_cut() -> None:
    (line,) = shown("", "call_it(value) " * 40)

    assert line.startswith("call_it(value) ")
    assert line.endswith("…")
    assert len(line) <= MAX_SHOWN_CHARS


def test_several_changes_in_one_call_are_read() -> None:
    edits: Json = [
        {"old_string": "a_name = one_value", "new_string": "a_name = two_value"},
        {"oldText": "", "newText": "class Cache:"},
    ]

    assert edits_in({"path": "a.py", "edits": edits}) == (
        FileEdit("a.py", ("a_name = one_value",), ("a_name = two_value", "class Cache:")),
    )


def test_a_patch_is_read_file_by_file() -> None:
    patch = (
        "*** Begin Patch\n*** Update File: a.py\n@@ def load\n kept_call(value)\n-old_call(value)\n"
        "+new_call(value)\n@@\n-last_call(value)\n*** Add File: b.py\n+class Cache:\n*** Delete File: c.py\n"
        "*** Update File: d.py\n*** Move to: e.py\n@@\n-one_call(x)\n+two_calls(x)\n*** End Patch"
    )

    assert edits_in({"input": patch}) == (
        FileEdit("a.py", ("old_call(value)", "last_call(value)"), ("new_call(value)",)),
        FileEdit("b.py", (), ("class Cache:",), is_whole=True),
        FileEdit("e.py", ("one_call(x)",), ("two_calls(x)",)),
    )


def test_a_written_file_is_told_by_what_it_defines() -> None:
    (edit,) = edits_in({"file_path": "a.py", "content": "import os\n\nclass Cache:\n    size = one + two\n"})

    assert edit.is_whole
    assert gist_of(edit).best == "`class Cache:`"


def test_what_follows_the_part_that_is_read_was_not_removed() -> None:
    tail = "\nlast_call(value)"
    filling = "x" * (MAX_EDIT_CHARS - len(tail))

    assert edits_in(
        {"path": "a", "old_string": f"{filling}{tail}", "new_string": f"yy\n{filling}{tail}"}
    ) == (FileEdit("a", (), ("yy",)),)


@pytest.mark.parametrize(
    "arguments",
    [{}, {"old_string": "a", "new_string": "a"}, {"new_string": 3}, {"old_string": 3, "new_string": "a b"}],
)
def test_an_edit_without_telling_lines_says_nothing(arguments: dict[str, Json]) -> None:
    assert [gist_of(edit).text for edit in edits_in(arguments) if gist_of(edit).text] == []
