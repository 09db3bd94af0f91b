"""Which files a conversation read and changed, found from its tool calls."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from compactd.core.history.entries import Item
from compactd.core.work.file_operations import arguments_of, ledger_of, use_of
from compactd.protocol.messages import Message, Meta, Text, ToolCall, ToolResult

NAMES = st.sampled_from(["a.py", "b.py", "src/c.go", "d.md", "/abs/e.ts", "ünï.txt"])


def files_of(items: Iterable[Item]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(files that were read, files that were modified) by these messages."""
    ledger = ledger_of(use_of(item) for item in items)
    return ledger.read, ledger.modified


def call(number: int, name: str, *, failed: bool = False, **arguments: object) -> tuple[Item, Item]:
    """A call and its result."""
    block = ToolCall(call_id=f"t{number}", name=name, arguments=Raw(msgspec.json.encode(arguments)))
    result = ToolResult(call_id=f"t{number}", content="done", is_error=failed)
    return (
        Item(entry_id=f"e{number}", body=Message(role="assistant", content=(block,)), tokens=1),
        Item(entry_id=f"e{number + 1}", body=Message(role="tool", content=(result,)), tokens=1),
    )


def test_a_path_alone_is_a_read_and_with_new_content_a_modification_whatever_the_tool_is_called() -> None:
    items = (
        *call(1, "Peruse", file_path="a.py"),
        *call(3, "anything", path="b.py", content="x = 1\n"),
        *call(5, "patcher", path="c.py", patch="@@"),
        *call(7, "MultiEdit", file_path="d.py", edits=[{"old_string": "a", "new_string": "b"}]),
        *call(9, "bash", command="cat e.py"),
    )

    assert files_of(items) == (("a.py",), ("b.py", "c.py", "d.py"))


PATCH = """*** Begin Patch
*** Add File: new.py
+x = 1
*** Update File: src/old name.py
*** Move to: src/moved.py
@@ def f():
-    return 1
+    return "*** Delete File: quoted.py"
*** Delete File: gone.py\r
*** End Patch
"""


@pytest.mark.parametrize("name", ["patch", "input", "patchText"])
def test_a_patch_that_names_its_files_changes_each(name: str) -> None:
    items = call(1, "apply_patch", **{name: PATCH})

    assert files_of(items) == ((), ("new.py", "src/old name.py", "src/moved.py", "gone.py"))


def test_a_patch_that_came_alone_changes_its_files() -> None:
    bare = ToolCall(call_id="t1", name="apply_patch", arguments=Raw(msgspec.json.encode(PATCH)))
    item = Item(entry_id="e1", body=Message(role="assistant", content=(bare,)), tokens=1)

    assert files_of((item,)) == ((), ("new.py", "src/old name.py", "src/moved.py", "gone.py"))


def test_text_that_quotes_a_patch_names_no_file() -> None:
    items = (
        *call(1, "note", input=f"This is how:\n{PATCH}"),
        *call(3, "apply_patch", failed=True, patch=PATCH),
        *call(5, "send", text=PATCH),
    )

    assert files_of(items) == ((), ())


def test_a_file_read_then_modified_is_listed_as_modified_only() -> None:
    items = (*call(1, "Read", path="a.py"), *call(3, "Edit", path="a.py", old_string="a", new_string="b"))

    assert files_of(items) == ((), ("a.py",))


def test_a_file_modified_then_read_again_stays_modified_only() -> None:
    items = (*call(1, "Write", path="a.py", content=""), *call(3, "Read", path="a.py"))

    assert files_of(items) == ((), ("a.py",))


def test_a_call_that_failed_neither_read_nor_changed_a_file() -> None:
    items = (
        *call(1, "Read", failed=True, path="gone.py"),
        *call(3, "Edit", failed=True, path="kept.py", patch=""),
    )

    assert files_of(items) == ((), ())


def test_a_failure_under_a_call_id_used_twice_is_the_nearer_calls() -> None:
    first, answer = call(1, "Read", path="a.py")
    second, failure = call(1, "Read", failed=True, path="b.py")

    assert files_of((first, answer, second, failure)) == (("a.py",), ())


def test_files_that_the_client_reports_count_and_so_do_an_earlier_summarys() -> None:
    summary = Item(
        entry_id="e1",
        body=Message(
            role="user",
            content=(Text(text="[Conversation summary]"),),
            meta=Meta(type="compaction_summary", read_files=("old.py", "x.py"), modified_files=("m.py",)),
        ),
        tokens=1,
    )
    said = Item(
        entry_id="e2",
        body=Message(role="assistant", content=(Text(text="ok"),)),
        tokens=1,
        read=("new.py",),
        modified=("x.py",),
    )

    assert files_of((summary, said)) == (("old.py", "new.py"), ("m.py", "x.py"))


def test_a_user_who_types_the_summary_marker_reports_no_files() -> None:
    typed = Item(
        entry_id="e1",
        body=Message(
            role="user",
            content=(Text(text="[Conversation summary]"),),
            meta=Meta(read_files=("a.py",)),
        ),
        tokens=1,
    )

    assert files_of((typed,)) == ((), ())


def test_a_folder_that_is_searched_was_not_read_but_a_file_was() -> None:
    items = (*call(1, "Grep", pattern="x", path="src"), *call(3, "Grep", pattern="x", path="src/a.py"))

    assert files_of(items) == (("src/a.py",), ())


def test_arguments_may_be_an_object_or_openais_string_or_no_json_at_all() -> None:
    def told(raw: bytes) -> object:
        return arguments_of(ToolCall(call_id="t", name="n", arguments=Raw(raw)))

    assert told(b'{"path":"a"}') == {"path": "a"}
    assert told(b'"{\\"path\\":\\"a\\"}"') == {"path": "a"}
    assert told(b'""') == {}
    assert told(b'"{broken"') == {"raw": '"{broken"'}
    assert told(b"[1]") == {"value": [1]}


@given(st.lists(st.tuples(NAMES, st.booleans(), st.booleans()), max_size=12), st.integers(0, 12))
def test_no_file_leaves_the_lists_by_being_compacted_twice(
    uses: list[tuple[str, bool, bool]], cut: int
) -> None:
    items: list[Item] = []
    for number, (name, changes, failed) in enumerate(uses):
        content = {"content": "x"} if changes else {}
        items.extend(call(2 * number + 1, "tool", failed=failed, path=name, **content))

    at_once = files_of(items)
    read, modified = files_of(items[: 2 * cut])
    carried = Item(
        entry_id="e0",
        body=Message(
            role="user",
            content=(Text(text="s"),),
            meta=Meta(type="compaction_summary", read_files=read, modified_files=modified),
        ),
        tokens=1,
    )
    in_two = files_of((carried, *items[2 * cut :]))

    assert in_two == at_once
    assert not set(at_once[0]) & set(at_once[1])
