"""The files of the last turns, and their content as far as the session knows it."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import Raw

from compactd.core.extract.recent_files import FILES, SeenFile, last_files, matches_disk
from compactd.core.history.entries import Item
from compactd.protocol.messages import Message, Text, ToolCall, ToolResult

NUMBERED = "     1→import os\n     2→\n     3→print(os)"


class Talk:
    """Messages as an agent makes them."""

    def __init__(self) -> None:
        self.items: list[Item] = []

    def add(self, message: Message) -> None:
        self.items.append(Item(entry_id=f"e{len(self.items) + 1}", body=message, tokens=1))

    def user(self, text: str) -> None:
        self.add(Message(role="user", content=(Text(text=text),)))

    def call(self, name: str, result: str, *, fails: bool = False, **arguments: object) -> None:
        call_id = f"t{len(self.items)}"
        call = ToolCall(call_id=call_id, name=name, arguments=Raw(msgspec.json.encode(arguments)))
        self.add(Message(role="assistant", content=(call,)))
        answer = ToolResult(call_id=call_id, content=result, is_error=fails)
        self.add(Message(role="tool", content=(answer,)))

    def seen(self) -> tuple[SeenFile, ...]:
        return last_files(self.items)


@pytest.fixture
def talk() -> Talk:
    talk = Talk()
    talk.user("Mend it.")
    return talk


def test_a_whole_read_shows_the_file_without_its_line_numbers(talk: Talk) -> None:
    talk.call("Read", NUMBERED, file_path="a.py")
    talk.call("view", "x = 1\n", path="b.py")

    assert talk.seen() == (SeenFile("b.py", "x = 1"), SeenFile("a.py", "import os\n\nprint(os)"))


def test_a_line_that_begins_with_thousands_of_digits_has_no_number(talk: Talk) -> None:
    talk.call("Read", "1" * 5_000 + "\tx = 1", file_path="a.py")

    assert [one.path for one in talk.seen()] == ["a.py"]


def test_a_part_of_a_file_shows_nothing_of_the_whole(talk: Talk) -> None:
    talk.call("Read", NUMBERED, file_path="a.py", offset=1)
    talk.call("view", "x", path="b.py", view_range=[1, 2])
    talk.call("grep", "a.py:1: x", path="c.py", pattern="x")

    assert [one.text for one in talk.seen()] == [None, None, None]


def test_a_write_and_its_edits_are_followed(talk: Talk) -> None:
    talk.call("Write", "ok", file_path="a.py", content="one two one\n")
    talk.call("Edit", "ok", file_path="a.py", old_string="one", new_string="1")
    assert talk.seen() == (SeenFile("a.py", "1 two one\n"),)

    talk.call("Edit", "ok", file_path="a.py", old_string="one", new_string="1", replace_all=True)
    talk.call("edit", "ok", path="a.py", edits=[{"oldText": "two", "newText": "2"}])
    assert talk.seen() == (SeenFile("a.py", "1 2 1\n"),)


def test_an_edit_of_what_is_not_known_leaves_it_unknown(talk: Talk) -> None:
    talk.call("Edit", "ok", file_path="a.py", old_string="one", new_string="1")
    talk.call("Write", "ok", file_path="b.py", content="x")
    talk.call("Edit", "ok", file_path="b.py", old_string="absent", new_string="1")
    talk.call("apply", "ok", path="c.py", patch="@@ -1 +1 @@")

    assert [one.text for one in talk.seen()] == [None, None, None]


def test_what_failed_did_nothing(talk: Talk) -> None:
    talk.call("Write", "ok", file_path="a.py", content="x")
    talk.call("Write", "disk full", fails=True, file_path="a.py", content="y")
    talk.call("Read", "no such file", fails=True, file_path="b.py")

    assert talk.seen() == (SeenFile("a.py", "x"),)


def test_only_the_last_three_turns_count_and_twenty_files(talk: Talk) -> None:
    talk.call("Read", "old", file_path="old.py")
    for turn in range(3):
        talk.user(f"Then {turn}.")
        for n in range(10):
            talk.call("Read", "x", file_path=f"f{turn}_{n}.py")

    names = [one.path for one in talk.seen()]
    assert len(names) == FILES
    assert names[0] == "f2_9.py"
    assert "old.py" not in names


@pytest.mark.parametrize(
    ("seen", "disk", "same"),
    [
        ("a\nb", "a\nb\n", True),
        ("a\r\nb\r\n", "a\nb\n", True),
        ("a\nb", "a\nc\n", False),
        ("a\nb", "a\nb\nc\n", None),
        ("x" * 2000, "x" * 3000, None),
        ("y" + "x" * 2000, "x" * 3000, None),
        ("a\n[truncated]", "b", None),
    ],
)
def test_whether_a_file_is_as_it_was_seen(seen: str, disk: str, same: bool | None) -> None:
    assert matches_disk(seen, disk) is same
