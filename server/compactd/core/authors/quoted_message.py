"""Show a message as text: split into stretches with their authors, and quoted line by line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from compactd.core.authors.authors import Stretch, stretches_of
from compactd.core.text.quoting import quote
from compactd.protocol.messages import Author, Message, Thinking, ToolCall


def message_stretches(message: Message) -> Iterator[Stretch]:
    """Yield everything that a message says, in order, as stretches with their authors. Reasoning and tool
    calls with their arguments have the author `assistant`. Images and other binary data are left out.
    O(characters)."""
    for block in message.content:
        match block:
            case Thinking(text=text):
                yield Stretch("assistant", text)
            case ToolCall():
                # A name must be one line, because a second line would look like another record.
                name = " ".join(block.name.split())
                arguments = bytes(block.arguments).decode("utf-8", "replace")
                yield Stretch("assistant", f"{name} {arguments}")
            case _:
                yield from stretches_of(message, block)


def authors(parts: Iterable[Stretch]) -> tuple[Author, ...]:
    """Return the authors of `parts`, each once, in the order in which they first appear. Blank parts do not
    count."""
    return tuple(dict.fromkeys(part.author for part in parts if part.text and not part.text.isspace()))


def quote_stretches(parts: Iterable[Stretch]) -> str:
    """Return the stretches as text for a model, quoted with their authors (see `core/text/quoting.quote`),
    each on its own lines. O(characters)."""
    return "\n".join(quote(_without_last_end(part.text), part.author) for part in parts if part.text)


def _without_last_end(text: str) -> str:
    return text[:-1] if text.endswith("\n") else text
