"""Access to model providers: keys, addresses, connections, and the limits that the user sets.

Everything is created at the first request, so a daemon that asks no model imports no HTTP library.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Mapping
from pathlib import Path
from time import time
from typing import TYPE_CHECKING

import msgspec

from compactd.models.limits import ProviderLimits
from compactd.protocol.errors import NoProvider
from compactd.storage.settings_files import PREFIX, USER_FILE
from compactd.storage.settings_reader import READ_S, run_in_own_thread

if TYPE_CHECKING:
    from compactd.core.models.registry import Lookup
    from compactd.models.providers.http import ConnectionPool
    from compactd.models.providers.keys import Keyring
    from compactd.models.providers.provider import Provider
    from compactd.models.providers.retries import RetryPolicy


_log = logging.getLogger("compactd.models")


class _Clock:
    def now(self) -> float:
        return time()

    async def sleep(self, delay_s: float) -> None:
        await asyncio.sleep(delay_s)

    def random(self) -> float:
        return random.random()


class ModelAccess:
    """The keys, limits and connections with which one process reaches model providers. Use it only on the
    event loop's thread."""

    def __init__(self, environ: Mapping[str, str], config: Path) -> None:
        self._environ = environ
        self._config = config
        self._given: ProviderLimits | NoProvider | None = None
        self._links: ConnectionPool | None = None
        self._keyring: Keyring | None = None
        self._retries: RetryPolicy | None = None
        self._looking: asyncio.Task[None] | None = None
        """The task that is reading the keys now, or the last one that did."""
        self._to_look: asyncio.Task[None] | None = None
        """The task that waits for `_looking` to end, and then reads the keys again."""

    async def read(self, read_s: float = READ_S) -> None:
        """Read the user's keys in a separate thread. The first call also reads the limits.

        If the files cannot be read within `read_s` seconds, the keys and limits stay as they were; at the
        first call, the files count as missing. All calls during a running read share one further read, which
        begins when the running one has ended.
        """
        if self._to_look is None or self._to_look.done():
            self._to_look = asyncio.ensure_future(self._read_files_after(self._looking, read_s))
        await asyncio.shield(self._to_look)

    async def _read_files_after(self, before: asyncio.Task[None] | None, read_s: float) -> None:
        """Wait until the read `before` has ended, then read."""
        if before is not None and not before.done():
            await asyncio.wait((before,))
        self._looking, self._to_look = self._to_look, None
        await self._read_files(read_s)

    async def _read_files(self, read_s: float) -> None:
        """Read the keys, and the limits if they are not known yet. Give up after `read_s` seconds, and log
        a warning."""
        given, keyring = self._given, self._keyring

        def look() -> tuple[ProviderLimits | NoProvider, Keyring]:
            from compactd.models.providers.keys import KEYS_FILE, Keyring

            found = self._limits(self._config / USER_FILE) if given is None else given
            return found, (keyring or Keyring(self._environ, self._config / KEYS_FILE)).read()

        try:
            async with asyncio.timeout(read_s):
                self._given, self._keyring = await run_in_own_thread(look)
        except TimeoutError:
            _log.warning(
                "the config folder could not be read within %g seconds; the API keys in it are not used",
                read_s,
            )

    def _limits(self, file: Path | None) -> ProviderLimits | NoProvider:
        """Return the limits, or the error if one is invalid."""
        try:
            return limits_from(self._environ, file)
        except NoProvider as error:
            return error

    def provider(self, model: str, base_url: str | None, known: Lookup | None) -> tuple[Provider, str]:
        """Return the provider for `model` (`provider/id`, or the id alone), and the id by which it knows the
        model.

        The keys and limits are those that `read` found last. `base_url` is the address that the client gave.
        `known` is what the registry knows of the model. Raises `NoProvider` if no address or key is known.
        """
        from compactd.models.providers.factory import provider_for
        from compactd.models.providers.http import ConnectionPool
        from compactd.models.providers.keys import Keyring
        from compactd.models.providers.retries import RetryPolicy

        if self._links is None or self._retries is None:
            given = self._given or self._limits(None)
            if isinstance(given, NoProvider):
                raise NoProvider(given.message)
            self._links = ConnectionPool(self._environ, given)
            # 0 requests count as no limit of the user.
            requests = given.requests or RetryPolicy().requests
            self._retries = RetryPolicy(requests=requests, first_s=given.retry_s)
        return provider_for(
            model,
            provider=known.provider if known is not None and "/" not in model else None,
            base_url=base_url,
            keyring=self._keyring or Keyring(self._environ, None),
            links=self._links,
            clock=_Clock(),
            retries=self._retries,
        )

    async def stated_window(self, model: str, base_url: str) -> int | None:
        """Return the context window, in tokens, that a model server on this machine states for `model`.

        None if the user did not allow compactd to ask, if `base_url` is not on this machine, or if no answer
        comes within `ask_s` seconds.
        """
        from compactd.models.providers.factory import split_name
        from compactd.models.providers.local_servers import is_local_server, stated_window

        if not is_local_server(base_url):
            return None
        try:
            async with asyncio.timeout(READ_S):
                # Read this each time, because the user may have withdrawn the consent.
                limits = await run_in_own_thread(lambda: self._limits(self._config / USER_FILE))
            if isinstance(limits, NoProvider) or not limits.ask_local:
                return None
            _, id = split_name(model, None, base_url)
        except (NoProvider, TimeoutError):
            return None
        stated = await stated_window(base_url, id, limits.ask_s)
        return None if stated is None else stated.window

    async def close(self) -> None:
        """Close all connections."""
        if self._links is not None:
            await self._links.close()


def limits_from(environ: Mapping[str, str], user_file: Path | None) -> ProviderLimits:
    """Return the user's limits. A limit in the environment overrides the one in `user_file`.

    Reading the file blocks, so do not call this function on the event loop. Raises `NoProvider` if a limit is
    invalid, because ignoring a limit could cost money.
    """
    import tomllib

    given: dict[str, object] = {}
    try:
        text = "" if user_file is None else user_file.read_text("utf-8")
        table = tomllib.loads(text).get("providers", {})
        given.update(table if isinstance(table, dict) else {})
    except (OSError, ValueError, RecursionError):
        # The reader of settings has already warned about this file.
        pass
    for name in ProviderLimits.__struct_encode_fields__:
        if own := environ.get(f"{PREFIX}PROVIDERS_{name.upper()}"):
            given[name] = own
    try:
        return msgspec.convert(given, ProviderLimits, strict=False)
    except msgspec.ValidationError as error:
        raise NoProvider(
            f"[providers] in {USER_FILE} is invalid: {error}. Correct it and try again"
        ) from None
