"""A message as text for a reader: stretch by stretch, with who wrote each, and quoted line by line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from compactd.core.authors.authors import Stretch, stretches_of
from compactd.core.text.quoting import quote
from compactd.protocol.messages import Author, Message, Thinking, ToolCall


def said(message: Message) -> Iterator[Stretch]:
    """All that a message says, in its order: also reasoning and calls with their arguments, which the
    assistant wrote. Pictures and other bytes are left out. O(characters)."""
    for block in message.content:
        match block:
            case Thinking(text=text):
                yield Stretch("assistant", text)
            case ToolCall():
                # A name is one line: a second one would look like another record.
                name = " ".join(block.name.split())
                arguments = bytes(block.arguments).decode("utf-8", "replace")
                yield Stretch("assistant", f"{name} {arguments}")
            case _:
                yield from stretches_of(message, block)


def authors(parts: Iterable[Stretch]) -> tuple[Author, ...]:
    """Who wrote them, each once, in the order of their first words."""
    return tuple(dict.fromkeys(part.author for part in parts if part.text and not part.text.isspace()))


def quoted(parts: Iterable[Stretch]) -> str:
    """The stretches as a model may read them (`quote`), each on lines of its own. O(characters)."""
    return "\n".join(quote(_without_last_end(part.text), part.author) for part in parts if part.text)


def _without_last_end(text: str) -> str:
    return text[:-1] if text.endswith("\n") else text
