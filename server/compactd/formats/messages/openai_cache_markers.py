"""Mark in a request to OpenAI's Responses API up to where the provider may cache it.

From GPT-5.6 on, OpenAI bills what it writes to its prompt cache, and reads a prefix only if an earlier
request ended it with a breakpoint. The rules (developers.openai.com, "Prompt caching", read 2026-11; the
field itself as in the SDK openai 3.57.0):

- A breakpoint is the field `prompt_cache_breakpoint` of an `input_text`, `input_image` or `input_file` in a
  message. `instructions`, tools and the assistant's texts take none. The tools come before all messages, so
  each breakpoint also covers them.
- OpenAI sets one more by itself, at the newest message of the user or the newest result of a tool. With it, a
  request writes at most four prefixes.
- A request reads the longest prefix that ends at one of these breakpoints, or at one of the 20 such messages
  before the newest.

So the newest message needs no marker, and the markers are:

- `system`: on the system prompt, if it may become a message of the developer. It survives a compaction.
- `summary`: at the end of the first message, if that is the summary of a compaction.

A request without markers is cached too, but after a compaction or an edit, not even its tools are read.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from compactd.formats.messages.cache_markers import CacheMarker
from compactd.formats.messages.rendering import Rendered

LIFETIME: Final = "30m"
"""How long OpenAI keeps a prefix after it was last read, if the request names no other time."""

_BREAKPOINT = {"mode": "explicit"}
_NAME = b'"prompt_cache_breakpoint"'
_MARKER = _NAME + b":" + msgspec.json.encode(_BREAKPOINT)
_USER_START = b'{"type":"message","role":"user"'
_MESSAGE_END = b"}]}"
"""The last bytes of a message that ends with a block."""


def mark_responses(
    made: Rendered, *, starts_with_summary: bool, marks_system: bool
) -> tuple[Rendered, tuple[CacheMarker, ...]]:
    """Return the request with markers, and the markers. With `marks_system`, a system prompt becomes the
    first message, because only a message can be marked.

    `starts_with_summary`: whether the first message is compactd's summary of a compaction. O(items).
    """
    messages, markers = list(made.messages), list[CacheMarker]()
    if messages and starts_with_summary and (marked := _marked(bytes(messages[0]))) is not None:
        messages[0] = Raw(marked)
        markers.append(CacheMarker(at="summary", ttl=LIFETIME))
    system = made.system
    if system and marks_system:
        block = {"type": "input_text", "text": system, "prompt_cache_breakpoint": _BREAKPOINT}
        item = {"type": "message", "role": "developer", "content": [block]}
        messages.insert(0, Raw(msgspec.json.encode(item)))
        markers.insert(0, CacheMarker(at="system", ttl=LIFETIME))
        system = None
    return replace(made, system=system, messages=messages), tuple(markers)


def _marked(message: bytes) -> bytes | None:
    """Return the message with a marker on its last block; None if it is no message of the user, or if the
    client has marked it."""
    if not (message.startswith(_USER_START) and message.endswith(_MESSAGE_END)) or _NAME in message:
        return None
    return message[: -len(_MESSAGE_END)] + b"," + _MARKER + _MESSAGE_END
