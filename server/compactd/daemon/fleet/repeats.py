"""Which requests may be carried out twice."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Raw, Struct

from compactd.protocol.methods import FORMATS_WITH_IDS, ID_FIELDS, Method


class _Message(Struct):
    id: str | None = None


_decode = msgspec.json.Decoder(_Message).decode


def is_repeatable(method: Method, params: Struct) -> bool:
    """Return whether a request to an open session can be carried out twice with the same effect as once.
    O(bytes).
    """
    if method.repeat != "with_ids":
        return method.repeat == "yes"
    if (messages := getattr(params, "messages", None)) is not None:
        return getattr(params, "format", None) in FORMATS_WITH_IDS and _have_ids(messages)
    return bool(getattr(params, ID_FIELDS.get(method.name, ""), None))


def _have_ids(messages: Iterable[Raw]) -> bool:
    try:
        return all(_decode(message).id for message in messages)
    except msgspec.DecodeError:  # the handler refuses it
        return True
