"""Replace texts of tool results in a message's bytes, so that its unknown fields stay."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Raw

from compactd.core.history.outputs import replace_texts
from compactd.formats.messages.neutral import decode_message
from compactd.formats.messages.neutral_out import encode_message
from compactd.protocol.errors import CompactdError
from compactd.protocol.messages import Message

_encode = msgspec.json.Encoder().encode


def with_texts(
    message: Message, raw: Raw, texts: Mapping[tuple[int, int | None], str]
) -> tuple[Message, Raw]:
    """Return the message and its bytes in compactd's own format with some texts of tool results replaced, as
    `replace_texts` does. O(bytes)."""
    changed = replace_texts(message, texts)
    try:
        patched = _patch(raw, texts)
        if decode_message(patched) == changed:
            return changed, patched
    except (msgspec.MsgspecError, CompactdError, LookupError, RecursionError, UnicodeDecodeError):
        pass
    # The client wrote the blocks in a form that only the reader of messages understands.
    return changed, Raw(encode_message(changed))


def _patch(raw: Raw, texts: Mapping[tuple[int, int | None], str]) -> Raw:
    fields = msgspec.json.decode(raw, type=dict[str, Raw])
    blocks = msgspec.json.decode(fields["content"], type=list[Raw])
    for (at, part), text in texts.items():
        block = msgspec.json.decode(blocks[at], type=dict[str, Raw])
        if part is None:
            block["content"] = Raw(_encode(text))
        else:
            inner = msgspec.json.decode(block["content"], type=list[Raw])
            one = msgspec.json.decode(inner[part], type=dict[str, Raw])
            inner[part] = Raw(_encode({**one, "text": text}))
            block["content"] = Raw(_encode(inner))
        blocks[at] = Raw(_encode(block))
    return Raw(_encode({**fields, "content": blocks}))
