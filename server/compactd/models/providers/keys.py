"""API keys: from the environment at the start, or from the user's private `keys.toml`.

No workspace's file can set a key or an address, because it could send the user's conversations and keys
anywhere.

    [openai]
    key = "sk-…"
    base_url = "https://gateway.example/v1"   # if it is not the provider's own
    hosts = ["eu.gateway.example"]            # other hosts that may get this key if a client names them
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from compactd.core.models.names import provider_of
from compactd.models.providers.secret import Secret
from compactd.protocol.errors import NoProvider

KEYS_FILE = "keys.toml"
"""The name of the file in the user's config folder. Nobody but its owner may have access to it."""

_MAX_BYTES = 1024 * 1024
"""The maximum size of `keys.toml`, in bytes."""
_WAIT_S = 1.0
"""How long to wait, in seconds, for another thread that is reading `keys.toml`. After that, the entries that
are known already are used."""


class KeyEntry(Struct, frozen=True, kw_only=True):
    """The entry of one provider in `keys.toml`."""

    key: str | None = None
    """The key that is sent to the provider."""
    base_url: str | None = None
    """The provider's address, if it is not the usual one."""
    hosts: tuple[str, ...] = ()
    """Further places to which the key may be sent: hosts over https, or `scheme://host:port`."""


class Keyring:
    """The keys of all providers: from the environment, and from the file as the last `read` found it."""

    def __init__(self, environ: Mapping[str, str], path: Path | None) -> None:
        """Read nothing yet. `environ` contains keys; `path` is the path of `keys.toml`, which need not
        exist."""
        self._environ = environ
        self._path = path
        self._read_at: tuple[int, int] | None = None
        self._entries: dict[str, KeyEntry] = {}
        self._wrong: NoProvider | None = None
        self._reading = threading.Lock()

    def __repr__(self) -> str:
        return "Keyring(…)"

    def read(self) -> Keyring:
        """Read the file if it has changed, and return this keyring. It blocks, so do not call it on the
        event loop."""
        # If the folder hangs, the first reader hangs for ever. Later ones give up after a while.
        if self._reading.acquire(timeout=_WAIT_S):
            try:
                self._wrong, self._entries = None, self._file()
            except NoProvider as error:
                self._wrong, self._read_at = error, None
            finally:
                self._reading.release()
        return self

    def key(self, provider: str, names: tuple[str, ...]) -> Secret | None:
        """Return the key for `provider`: from the first of the environment variables `names` that is set,
        otherwise from the file. None if there is none.

        Raises `NoProvider` if the value cannot be a key, or if the file cannot be used.
        """
        for name in names:
            if text := self._environ.get(name, "").strip():
                return _secret(text, name)
        entry = self._read_entries().get(provider)
        return None if entry is None or not entry.key else _secret(entry.key.strip(), KEYS_FILE)

    def base_url(self, provider: str, names: tuple[str, ...]) -> str | None:
        """Return the address that the user set for `provider`: in one of the variables `names`, otherwise
        in the file. None if there is none. Raises `NoProvider` if the file cannot be used."""
        for name in names:
            if text := self._environ.get(name, "").strip():
                return text
        entry = self._read_entries().get(provider)
        return None if entry is None else entry.base_url

    def named_addresses(self, provider: str, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return every address to which the user allowed to send the key of `provider`: in the variables
        `names`, and in the file. Raises `NoProvider` if the file cannot be used."""
        entry = self._read_entries().get(provider)
        in_file = () if entry is None else ((entry.base_url or "").strip(), *entry.hosts)
        return tuple(
            text for text in (*(self._environ.get(name, "").strip() for name in names), *in_file) if text
        )

    def _read_entries(self) -> dict[str, KeyEntry]:
        """Return the entries of the file by provider. Raises `NoProvider` if the file cannot be used."""
        if self._wrong is not None:
            raise NoProvider(self._wrong.message)
        return self._entries

    def _file(self) -> dict[str, KeyEntry]:
        """Return the entries of the file, read again if it has changed. Raises `NoProvider`."""
        if self._path is None:
            return {}
        try:
            found = self._path.stat()
        except OSError:
            self._read_at = None
            return {}
        _check_private(found.st_mode, found.st_uid)
        if found.st_size > _MAX_BYTES:
            raise NoProvider(f"{KEYS_FILE} is too large to be a list of keys")
        if self._read_at == (found.st_mtime_ns, found.st_size):
            return self._entries
        entries = _entries(self._path)
        self._read_at = (found.st_mtime_ns, found.st_size)
        return entries


def _check_private(mode: int, owner: int) -> None:
    """Raise `NoProvider` if the file can be read by others or belongs to another user."""
    if sys.platform == "win32":
        return
    import os

    if mode & 0o077:
        raise NoProvider(
            f"{KEYS_FILE} can be read by others, so its keys are not used. Run `chmod 600` on it"
        )
    if owner not in (os.getuid(), 0):
        raise NoProvider(f"{KEYS_FILE} belongs to another user, so its keys are not used")


def _entries(path: Path) -> dict[str, KeyEntry]:
    """Read the entries of `keys.toml`. Raises `NoProvider` if one is invalid."""
    import tomllib

    # The errors' texts are not used: they can quote a line, and with it a key.
    try:
        tables = tomllib.loads(path.read_bytes().decode())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        raise NoProvider(f"{KEYS_FILE} cannot be read as TOML") from None
    entries = {}
    for name, table in tables.items():
        try:
            given = {"key": table} if isinstance(table, str) else table
            entries[provider_of(name)] = msgspec.convert(given, KeyEntry)
        except msgspec.ValidationError:
            raise NoProvider(
                f"{KEYS_FILE}: the entry {name!r} is invalid. An entry has `key` and `base_url`, both "
                "strings, and `hosts`, a list of strings"
            ) from None
    return entries


def _secret(text: str, source: str) -> Secret:
    """Return the key `text`. Raises `NoProvider` if it cannot be part of a header; the error names the
    `source` of the key."""
    if not text.isascii() or not text.isprintable() or " " in text:
        raise NoProvider(
            f"the key in {source} is invalid: it has spaces or characters not allowed in headers"
        )
    return Secret(text)
