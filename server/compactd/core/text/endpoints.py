"""A model's endpoint (base URL) without what may be a secret: no user, no password, no query, no fragment.

What a client gives as `base_url` is journalled, listed and shown, so a credential in it would be written to
disk and told to whoever asks. Keys belong into keys.toml or the environment.
"""

from __future__ import annotations

import re

_PARTS = re.compile(r"(?s)(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)?(?P<authority>[^/?#]*)(?P<path>[^?#]*)")
_HOST = re.compile(r"(?:\[[^\]]*\]|[^:\[\]]*)(?::\d*)?")


def bare_endpoint(url: str) -> str:
    """`url` as scheme, host, port and path alone; spelled as it was. Works on any text. O(characters)."""
    # A URL has no control characters; parsers leave them out, so they could hide where a part ends.
    url = "".join(sign for sign in url.strip() if sign.isprintable())
    parts = _PARTS.match(url)
    if parts is None:
        return ""
    scheme, authority, path = parts["scheme"] or "", parts["authority"].rpartition("@")[2], parts["path"]
    if "@" in path and (not _HOST.fullmatch(authority) or not authority):
        # A password with a slash in it: the host comes after the last @, as whoever wrote it meant.
        authority, slash, rest = path.rpartition("@")[2].partition("/")
        path = slash + rest
    return scheme + authority + path


def has_secret_place(url: str) -> bool:
    """Whether `url` holds more than `bare_endpoint` keeps: a user, a password, a query or a fragment."""
    return bare_endpoint(url) != url.strip()
