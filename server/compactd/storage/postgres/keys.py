"""The names of sessions and messages as the database has them."""

from __future__ import annotations

import hashlib

import msgspec
from msgspec import Struct

_MAX_BYTES = 400
"""Longer names are shortened, because an index of PostgreSQL refuses keys of more than 2,704 bytes."""
_MESSAGE = b'{"type":"message"'


class _Message(Struct, frozen=True):
    client_id: str | None = None


_message_of = msgspec.json.Decoder(_Message).decode


def key_of(name: str) -> str:
    """Return the key of a session id or message id. Different names have different keys.

    The key is the name itself, except that U+0000, lone surrogates and backslashes are escaped, because
    PostgreSQL stores no such characters, and that a very long name ends in its SHA-256.
    """
    key = name.replace("\\", "\\\\").replace("\0", "\\0").encode("utf-8", "backslashreplace")
    if len(key) <= _MAX_BYTES:
        return key.decode()
    return key[:100].decode(errors="ignore") + "\\#" + hashlib.sha256(key).hexdigest()


def message_key(record: bytes) -> str | None:
    """Return the key of the id that the client gave a message, or None if `record` has no such id."""
    if not record.startswith(_MESSAGE) or b'"client_id"' not in record:
        return None
    try:
        client_id = _message_of(record).client_id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return None if client_id is None else key_of(client_id)


def notice_of(tenant: str, session_id: str) -> str:
    """Return the payload of a notification about a session: a hash, never text of a client."""
    return hashlib.sha256(f"{tenant}\0{key_of(session_id)}".encode()).hexdigest()[:32]
