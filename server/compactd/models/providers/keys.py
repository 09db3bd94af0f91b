"""Where keys come from: the environment as it was at the start, or the user's private `keys.toml`.

Nowhere else: a workspace's file could send the user's conversations and key wherever it likes.

    [openai]
    key = "sk-…"
    base_url = "https://gateway.example/v1"   # if it is not the provider's own
    hosts = ["eu.gateway.example"]            # more places that may have this key, if a client names them
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
"""In the user's `compactd` folder, for the owner alone."""

_LARGEST_BYTES = 1024 * 1024
_WAIT_S = 1.0


class Entry(Struct, frozen=True, kw_only=True):
    """What `keys.toml` says of one provider."""

    key: str | None = None
    base_url: str | None = None
    hosts: tuple[str, ...] = ()
    """Where the key may go besides: hosts over https, or `scheme://host:port`."""


class Keyring:
    """Keys by provider: the environment's, and those of the file as `read` found it last."""

    def __init__(self, environ: Mapping[str, str], path: Path | None) -> None:
        """`path`: of `keys.toml`; it need not be there."""
        self._environ = environ
        self._path = path
        self._read_at: tuple[int, int] | None = None
        self._entries: dict[str, Entry] = {}
        self._wrong: NoProvider | None = None
        self._reading = threading.Lock()

    def __repr__(self) -> str:
        return "Keyring(…)"

    def read(self) -> Keyring:
        """Reads the file where it has changed, and gives back this keyring. Blocks: not for the loop."""
        # A folder that hangs holds the first reader for ever; those behind it do not pile up.
        if self._reading.acquire(timeout=_WAIT_S):
            try:
                self._wrong, self._entries = None, self._file()
            except NoProvider as error:
                self._wrong, self._read_at = error, None
            finally:
                self._reading.release()
        return self

    def key(self, provider: str, names: tuple[str, ...]) -> Secret | None:
        """The key for `provider`: the first of the variables `names` that is set, else the file's.

        Raises `NoProvider` where what is there cannot be a key, or the file is not private.
        """
        for name in names:
            if text := self._environ.get(name, "").strip():
                return _secret(text, name)
        entry = self._known().get(provider)
        return None if entry is None or not entry.key else _secret(entry.key.strip(), KEYS_FILE)

    def base_url(self, provider: str, names: tuple[str, ...]) -> str | None:
        """The address that the user gave for `provider`, in the environment or the file."""
        for name in names:
            if text := self._environ.get(name, "").strip():
                return text
        entry = self._known().get(provider)
        return None if entry is None else entry.base_url

    def named(self, provider: str, names: tuple[str, ...]) -> tuple[str, ...]:
        """Every address that the user named for the key of `provider`, in the environment or the file."""
        entry = self._known().get(provider)
        in_file = () if entry is None else ((entry.base_url or "").strip(), *entry.hosts)
        return tuple(
            text for text in (*(self._environ.get(name, "").strip() for name in names), *in_file) if text
        )

    def _known(self) -> dict[str, Entry]:
        if self._wrong is not None:
            raise NoProvider(self._wrong.message)
        return self._entries

    def _file(self) -> dict[str, Entry]:
        if self._path is None:
            return {}
        try:
            found = self._path.stat()
        except OSError:
            self._read_at = None
            return {}
        _check_private(found.st_mode, found.st_uid)
        if found.st_size > _LARGEST_BYTES:
            raise NoProvider(f"{KEYS_FILE} is too large to be a list of keys")
        if self._read_at == (found.st_mtime_ns, found.st_size):
            return self._entries
        entries = _entries(self._path)
        self._read_at = (found.st_mtime_ns, found.st_size)
        return entries


def _check_private(mode: int, owner: int) -> None:
    if sys.platform == "win32":
        return
    import os

    if mode & 0o077:
        raise NoProvider(f"{KEYS_FILE} can be read by others, so its keys are not used: chmod 600 it")
    if owner not in (os.getuid(), 0):
        raise NoProvider(f"{KEYS_FILE} belongs to somebody else, so its keys are not used")


def _entries(path: Path) -> dict[str, Entry]:
    import tomllib

    # Errors are told without their text: it may quote a line, and with it a key.
    try:
        tables = tomllib.loads(path.read_bytes().decode())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        raise NoProvider(f"{KEYS_FILE} cannot be read as TOML") from None
    entries = {}
    for name, table in tables.items():
        try:
            given = {"key": table} if isinstance(table, str) else table
            entries[provider_of(name)] = msgspec.convert(given, Entry)
        except msgspec.ValidationError:
            raise NoProvider(
                f"{KEYS_FILE}: a provider has a `key` and a `base_url`, both text, and `hosts`, a list of "
                f"texts; {name!r} has other things"
            ) from None
    return entries


def _secret(text: str, source: str) -> Secret:
    if not text.isascii() or not text.isprintable() or " " in text:
        raise NoProvider(f"what {source} holds is no key: it has spaces or characters that no header takes")
    return Secret(text)
