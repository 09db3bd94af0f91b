"""Remove from a model's endpoint (base URL) what may be secret: user, password, query and fragment.

The `base_url` that a client sends is written to the journal, listed and shown. A credential in it would be
written to disk and shown to anyone who asks. Keys belong in keys.toml or in the environment.
"""

from __future__ import annotations

from compactd.core.text.lazy_patterns import LazyPattern

_PARTS = LazyPattern(r"(?s)(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)?(?P<authority>[^/?#]*)(?P<path>[^?#]*)")
_HOST = LazyPattern(r"(?:\[[^\]]*\]|[^:\[\]]*)(?::\d*)?")


def bare_endpoint(url: str) -> str:
    """Return `url` reduced to scheme, host, port and path, in its original spelling. `url` may be any
    text. O(characters)."""
    # A URL has no control characters. Parsers drop them, so they could hide where a part ends.
    url = "".join(sign for sign in url.strip() if sign.isprintable())
    parts = _PARTS.match(url)
    if parts is None:
        return ""
    scheme, authority, path = parts["scheme"] or "", parts["authority"].rpartition("@")[2], parts["path"]
    if "@" in path and (not _HOST.fullmatch(authority) or not authority):
        # The password contains a slash, so the host is after the last @.
        authority, slash, rest = path.rpartition("@")[2].partition("/")
        path = slash + rest
    return scheme + authority + path


def has_secret_place(url: str) -> bool:
    """Return whether `url` has parts that `bare_endpoint` removes: a user, a password, a query or a
    fragment."""
    return bare_endpoint(url) != url.strip()
