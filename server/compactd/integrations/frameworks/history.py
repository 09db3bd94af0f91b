"""What an adapter gives to a mirror, and gets from it: a conversation as the framework holds it, and what the
next request shall contain.

A message's id is a digest of the message and all that came before it. So the same history has the same ids in
every process, and two histories have the same ids up to their first difference.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import Raw, Struct

from compactd.client import Json

MAX_TOKEN_BYTES = 5
"""Bytes per token of a message as JSON, at most: English has about 4, with the JSON around it."""

NeutralMessage = dict[str, Any]
"""A message in the protocol's neutral form, without an id."""


class ShownMessage(Struct, frozen=True):
    """A message of the view that the history does not have in this form: a summary, or a changed message."""

    role: str
    content: Raw
    """A string or blocks, in the neutral form."""
    index: int | None = None
    """The message of the history that it replaces; None if it replaces none."""
    is_summary: bool = False

    def blocks(self) -> list[dict[str, Any]]:
        """Return the content as blocks. O(length)."""
        content = msgspec.json.decode(self.content)
        return [{"type": "text", "text": content}] if isinstance(content, str) else content


def text_of(content: str | Sequence[Mapping[str, Any]]) -> str:
    """Return the text of a message's or a result's content. Blocks without a text are left out."""
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in content if block["type"] == "text")


@dataclass(frozen=True, slots=True)
class History:
    """All messages of a conversation, oldest first, as an adapter reads them."""

    keys: Sequence[Hashable]
    """For each message, a value that is equal as long as the message says the same."""
    encode: Callable[[int], NeutralMessage]
    """Returns the message at an index in the neutral form. Called for new messages only. A `usage` in it is
    the provider's report on the request that this message answers.
    """


@dataclass(frozen=True, slots=True)
class Setup:
    """What a model request contains in addition to its messages."""

    model: str | None = None
    """`provider/id`; None if it is not known."""
    context_window: int | None = None
    """The window in tokens; None: the daemon looks it up."""
    fallback_window: int | None = None
    """The window in tokens that counts if the daemon does not know the model."""
    system_prompt: str = ""
    tools_key: Hashable = ()
    """A value that is equal as long as the tools are the same."""
    tools: Callable[[], Sequence[Json]] = field(default=tuple, compare=False)
    """Returns the tools, in any format that `session/start` takes. Called if they changed."""


@dataclass(frozen=True, slots=True)
class View:
    """What the next model request shall contain."""

    items: Sequence[int | ShownMessage]
    """Its messages: indices of the history for those that stay as they are."""
    is_whole: bool
    """True if the items are the whole history, unchanged."""
    max_output_tokens: int | None = None
    """The most output tokens that the request may ask for; None if that is not known."""
    is_compacted: bool = False
    """False if no compaction, prune or branch has changed what the session shows. What the items lack then is
    only what providers reject, such as an empty message.
    """


@dataclass(frozen=True, slots=True)
class Encoded:
    """Messages of a history from the index `start` on, as they are sent."""

    start: int
    ids: list[str]
    messages: list[bytes]
    roles: list[str]
    usages: list[Json]

    @staticmethod
    def of(history: History, start: int, before: str) -> Encoded:
        """Encode the messages from `start` on. `before`: the id of the message before them. O(their text)."""
        new = Encoded(start, [], [], [], [])
        for index in range(start, len(history.keys)):
            neutral = history.encode(index)
            new.usages.append(neutral.pop("usage", None))
            new.roles.append(str(neutral["role"]))
            body = _json(neutral)
            digest = blake2b(before.encode(), digest_size=12)
            digest.update(body)
            before = digest.hexdigest()
            new.ids.append(before)
            new.messages.append(body)
        return new

    def without_usages(self) -> Encoded:
        """Return the messages without the provider's reports."""
        return replace(self, usages=[None] * len(self.usages))

    def with_believable_usages(self) -> Encoded:
        """Return the messages of a whole history with the reports that may be on requests of all messages
        before them. A report on a compacted request must not pass for the size of the whole history.
        """
        usages: list[Json] = []
        size = 0
        for message, usage in zip(self.messages, self.usages, strict=True):
            usages.append(usage if size <= MAX_TOKEN_BYTES * _most_tokens(usage) else None)
            size += len(message)
        return replace(self, usages=usages)

    def from_index(self, index: int) -> Encoded:
        """Return the messages from `index` of the history on."""
        at = max(0, index - self.start)
        return Encoded(index, self.ids[at:], self.messages[at:], self.roles[at:], self.usages[at:])


def _most_tokens(usage: Json) -> int:
    """Return a number of tokens that the input of a report is at most, whatever provider wrote it."""
    values = usage.values() if isinstance(usage, Mapping) else ()
    return sum(value for value in values if isinstance(value, int) and value > 0)


def _json(value: object) -> bytes:
    """Encode a value. Half of a surrogate pair becomes a question mark; what JSON cannot hold becomes text,
    since frameworks have subclasses of `str`.
    """
    try:
        return msgspec.json.encode(value, enc_hook=str)
    except UnicodeEncodeError:
        return msgspec.json.encode(_without_surrogates(value), enc_hook=str)


def _without_surrogates(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_without_surrogates(each) for each in value]
    return value


def common_length(old: Sequence[Hashable], new: Sequence[Hashable]) -> int:
    """Return how many keys at the beginning are equal. O(keys)."""
    count = len(old)
    if count <= len(new) and old == new[:count]:
        return count
    for index, (one, other) in enumerate(zip(old, new, strict=False)):
        if one != other:
            return index
    return min(len(old), len(new))
