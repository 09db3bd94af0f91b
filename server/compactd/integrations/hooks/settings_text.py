"""Read and edit JSON with comments, trailing commas and any spacing, without changing other bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

DEEPEST: Final = 200
_SCALAR = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SPACE = re.compile(r"[ \t\r\n\ufeff]*")
_INDENT = re.compile(r"\n([ \t]+)")


class NotSettings(Exception):
    """The text is not a JSON object, or cannot be changed safely. The message says what is
    wrong and where.
    """


class Node(Struct, frozen=True):
    """A JSON value and its position in the text."""

    kind: str
    """`object`, `array`, `string` or `other`."""
    start: int
    end: int
    members: tuple[Member, ...] = ()
    """The members of an object or array, in order."""
    value: Json = None
    """The value of a string."""

    def find(self, key: str) -> Member | None:
        """Return the member of this object with the name `key`: the last one if there are several, None if
        there is none.
        """
        return next((member for member in reversed(self.members) if member.key == key), None)


class Member(Struct, frozen=True):
    """A member of an object, or an element of an array."""

    key: str
    """The member's name; empty for an element of an array."""
    start: int
    """The position of the key, or of the element."""
    node: Node
    comma: int
    """The position of the comma after the member or element; -1 if there is none."""


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def space(self) -> None:
        """Skip white space and comments."""
        while True:
            found = _SPACE.match(self.text, self.at)
            self.at = found.end() if found is not None else self.at
            if self.text.startswith("//", self.at):
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif self.text.startswith("/*", self.at):
                end = self.text.find("*/", self.at + 2)
                if end < 0:
                    raise self.wrong("a comment is not closed")
                self.at = end + 2
            else:
                return

    def wrong(self, what: str) -> NotSettings:
        line = self.text.count("\n", 0, self.at) + 1
        return NotSettings(f"line {line}: {what}")

    def value(self, depth: int = 0) -> Node:
        if depth > DEEPEST:
            raise self.wrong("lists and objects are nested too deeply here")
        start, text = self.at, self.text
        match text[start : start + 1]:
            case "{" | "[":
                return self._container(depth)
            case '"':
                found = _STRING.match(text, start)
                if found is None:
                    raise self.wrong("a string is not closed")
                self.at = found.end()
                return Node("string", start, self.at, value=self._decoded(found[0]))
            case _:
                found = _SCALAR.match(text, start)
                if found is None:
                    raise self.wrong("a value is missing")
                self.at = found.end()
                return Node("other", start, self.at)

    def _decoded(self, quoted: str) -> str:
        try:
            return str(json.loads(quoted))
        except ValueError:
            raise self.wrong("a string is invalid") from None

    def _container(self, depth: int) -> Node:
        start, text = self.at, self.text
        is_object = text[start] == "{"
        close = "}" if is_object else "]"
        members: list[Member] = []
        self.at += 1
        while True:
            self.space()
            if text.startswith(close, self.at):
                self.at += 1
                return Node("object" if is_object else "array", start, self.at, tuple(members))
            if members and members[-1].comma < 0:
                raise self.wrong("a comma is missing")
            begin, key = self.at, ""
            if is_object:
                name = self.value(depth + 1)
                if not isinstance(name.value, str) or name.kind != "string":
                    raise self.wrong("the name of a member, in quotes, is missing")
                key = name.value
                self.space()
                if not text.startswith(":", self.at):
                    raise self.wrong("a colon is missing")
                self.at += 1
                self.space()
            node = self.value(depth + 1)
            self.space()
            comma = self.at if text.startswith(",", self.at) else -1
            if comma >= 0:
                self.at += 1
            members.append(Member(key, begin, node, comma))


def parse(text: str) -> Node:
    """Parse the object in `text`. Raise `NotSettings`. O(length)."""
    reader = _Reader(text)
    reader.space()
    if not text.startswith("{", reader.at):
        raise reader.wrong("the file is not a JSON object")
    root = reader.value()
    reader.space()
    if reader.at < len(text):
        raise reader.wrong("there is more text after the end of the JSON object")
    return root


def at_path(root: Node | None, path: Sequence[str]) -> Node | None:
    """Return the value that the names in `path` lead to from `root`; None if there is none."""
    node = root
    for key in path:
        member = node.find(key) if node is not None and node.kind == "object" else None
        node = member.node if member is not None else None
    return node


def line_end(text: str) -> str:
    """Return the line end that `text` uses."""
    return "\r\n" if "\r\n" in text else "\n"


def indent_of(text: str) -> str:
    """Return the indentation of one level in `text`; two spaces if it shows none."""
    found = _INDENT.search(text)
    return found[1] if found is not None and found.start() < len(text) - 2 else "  "


def with_member(text: str, parent: Node, key: str, value: Json) -> str:
    """Return `text` with a member (an element if `parent` is an array) added at the end of `parent`."""
    name = f"{json.dumps(key, ensure_ascii=False)}: " if parent.kind == "object" else ""
    inner = text[parent.start : parent.end]
    if parent.members and "\n" not in inner:
        return _after(text, parent, " " + name + json.dumps(value, ensure_ascii=False))
    outer = _indent_at(text, parent.start)
    unit, end = indent_of(text), line_end(text)
    deep = _indent_at(text, parent.members[-1].start) if parent.members else outer + unit
    shown = json.dumps(value, ensure_ascii=False, indent=unit).replace("\n", end + deep)
    if parent.members:
        return _after(text, parent, end + deep + name + shown)
    # If there are only comments, the member goes on a new line after them.
    last = parent.start + len(inner[:-1].rstrip())
    return text[:last] + end + deep + name + shown + end + outer + text[parent.end - 1 :]


def _after(text: str, parent: Node, added: str) -> str:
    """Return `text` with `added` inserted after the last member of `parent`, and after the comments on that
    member's line."""
    last = parent.members[-1]
    value_end = last.node.end
    at = last.comma + 1 if last.comma >= 0 else value_end
    place = _after_comments(text, at, parent.end - 1)
    comma = "" if last.comma >= 0 else ","
    return text[:value_end] + comma + text[value_end:place] + added + text[place:]


def _after_comments(text: str, at: int, stop: int) -> int:
    """Return the position after the comments that follow `at` on the same line, before `stop`."""
    place = at
    while at < stop:
        if text[at] in " \t":
            at += 1
        elif text.startswith("//", at):
            end = text.find("\n", at)
            line = stop if end < 0 else end
            return line - 1 if text[line - 1 : line] == "\r" else line
        elif text.startswith("/*", at):
            end = text.find("*/", at) + 2
            if "\n" in text[at:end]:
                return place
            at = place = end
        else:
            return place
    return place


def _indent_at(text: str, at: int) -> str:
    """Return the white space at the beginning of the line of `at`."""
    begin = text.rfind("\n", 0, at) + 1
    end = begin
    while text[end : end + 1] in (" ", "\t") and end < at:
        end += 1
    return text[begin:end]


def without_member(text: str, parent: Node, member: Member) -> str:
    """Return `text` without a member of `parent`, the white space before it and one comma."""
    bare = _without(text, parent, member, with_space=True)
    try:
        parse(bare)
    except NotSettings:
        # The line before ends in a comment, which would swallow what follows.
        return _without(text, parent, member, with_space=False)
    return bare


def _without(text: str, parent: Node, member: Member, *, with_space: bool) -> str:
    at = next(place for place, one in enumerate(parent.members) if one is member)
    begin, end = member.start, member.node.end
    while with_space and begin > parent.start + 1 and text[begin - 1] in " \t\r\n":
        begin -= 1
    if member.comma >= 0:
        return text[:begin] + text[end : member.comma] + text[member.comma + 1 :]
    if at:
        comma = parent.members[at - 1].comma
        return text[:comma] + text[comma + 1 : begin] + text[end:]
    if len(parent.members) == 1 and not text[end : parent.end - 1].strip():
        return text[:begin] + text[parent.end - 1 :]
    return text[:begin] + text[end:]
