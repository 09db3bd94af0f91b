"""How this process reaches models: keys, addresses, connections, and the user's limits on them.

Everything is made at the first request: a daemon that asks no model imports no HTTP.
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
from msgspec import Struct

from compactd.protocol.errors import NoProvider
from compactd.storage.settings_files import PREFIX, USER_FILE
from compactd.storage.settings_reader import READ_S, in_own_thread

if TYPE_CHECKING:
    from compactd.core.models.registry import Lookup
    from compactd.models.providers.http import Links
    from compactd.models.providers.keys import Keyring
    from compactd.models.providers.protocol import Provider
    from compactd.models.providers.retries import Retries


_log = logging.getLogger("compactd.models")


class ProviderLimits(Struct, frozen=True, kw_only=True):
    """`[providers]` in the user's config.toml, or `COMPACTD_PROVIDERS_…`. What is left out is the default."""

    connect_s: float | None = None
    first_byte_s: float | None = None
    """Until an answer's head."""
    idle_s: float | None = None
    """Between two pieces of a stream."""
    total_s: float | None = None
    body_bytes: int | None = None
    """Most of one answer: a model that never ends is cut off there."""
    line_bytes: int | None = None
    """Most of one line or event of a stream."""
    requests: int | None = None
    """Most requests for one answer."""
    retry_s: float | None = None
    """Before the first repetition; each later one waits twice as long."""
    ask_local: bool = False
    """A model server on this machine may be asked for its window: the user's consent."""
    ask_s: float = 1.5
    """How long it may take to say it."""


class _Clock:
    def now(self) -> float:
        return time()

    async def sleep(self, delay_s: float) -> None:
        await asyncio.sleep(delay_s)

    def random(self) -> float:
        return random.random()


class ModelAccess:
    """The providers of one process. For the loop's thread."""

    def __init__(self, environ: Mapping[str, str], config: Path) -> None:
        self._environ = environ
        self._config = config
        self._given: ProviderLimits | NoProvider | None = None
        self._links: Links | None = None
        self._keyring: Keyring | None = None
        self._retries: Retries | None = None
        self._looking: asyncio.Task[None] | None = None
        self._to_look: asyncio.Task[None] | None = None
        """The look that is under way, and the one behind it."""

    async def read(self, read_s: float = READ_S) -> None:
        """Reads the user's keys, and the first time the limits, beside the loop; what cannot be read within
        `read_s` is as it was, at first as if there were no file.

        Those who ask while one look is under way share the next: with a thread for each, a hundred
        compactions that began at once kept the loop from everybody else for 0.2 s (measured 2026-11).
        """
        if self._to_look is None or self._to_look.done():
            self._to_look = asyncio.ensure_future(self._look_behind(self._looking, read_s))
        await asyncio.shield(self._to_look)

    async def _look_behind(self, before: asyncio.Task[None] | None, read_s: float) -> None:
        if before is not None and not before.done():
            await asyncio.wait((before,))
        self._looking, self._to_look = self._to_look, None
        await self._look(read_s)

    async def _look(self, read_s: float) -> None:
        given, keyring = self._given, self._keyring

        def look() -> tuple[ProviderLimits | NoProvider, Keyring]:
            from compactd.models.providers.keys import KEYS_FILE, Keyring

            found = self._limits(self._config / USER_FILE) if given is None else given
            return found, (keyring or Keyring(self._environ, self._config / KEYS_FILE)).read()

        try:
            async with asyncio.timeout(read_s):
                self._given, self._keyring = await in_own_thread(look)
        except TimeoutError:
            _log.warning("the user's folder gave no answer within %g seconds: its keys are ignored", read_s)

    def _limits(self, file: Path | None) -> ProviderLimits | NoProvider:
        try:
            return limits_from(self._environ, file)
        except NoProvider as error:
            return error

    def provider(self, model: str, base_url: str | None, known: Lookup | None) -> tuple[Provider, str]:
        """Who answers for `model` (`provider/id`, or the id alone), and the name it has there, by what `read`
        found last.

        `base_url` is the client's. Raises `NoProvider` where no address or key is known.
        """
        from compactd.models.providers.factory import provider_for
        from compactd.models.providers.http import Limits, Links
        from compactd.models.providers.keys import Keyring
        from compactd.models.providers.retries import Retries

        if self._links is None or self._retries is None:
            given = self._given or self._limits(None)
            if isinstance(given, NoProvider):
                raise NoProvider(given.message)
            times = {
                name: value
                for name in ("connect_s", "first_byte_s", "idle_s", "total_s", "body_bytes", "line_bytes")
                if (value := getattr(given, name)) is not None
            }
            self._links = Links(self._environ, msgspec.structs.replace(Limits(), **times))
            retries = Retries()
            self._retries = Retries(
                requests=given.requests or retries.requests,
                first_s=retries.first_s if given.retry_s is None else given.retry_s,
            )
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
        """The window that a server on this machine says it has, in tokens; none without the user's consent,
        for any other place, or where it says none within `ask_s`."""
        from compactd.models.providers.factory import name_of
        from compactd.models.providers.local_servers import is_loopback, stated_window

        if not is_loopback(base_url):
            return None
        try:
            async with asyncio.timeout(READ_S):
                # Anew each time: consent that was withdrawn is none.
                limits = await in_own_thread(lambda: self._limits(self._config / USER_FILE))
            if isinstance(limits, NoProvider) or not limits.ask_local:
                return None
            _, id = name_of(model, None, base_url)
        except (NoProvider, TimeoutError):
            return None
        stated = await stated_window(base_url, id, limits.ask_s)
        return None if stated is None else stated.window

    async def close(self) -> None:
        """Closes what is open."""
        if self._links is not None:
            await self._links.close()


def limits_from(environ: Mapping[str, str], user_file: Path | None) -> ProviderLimits:
    """The user's limits: the environment's, else the file's. Reads the file: not for the loop.

    Raises `NoProvider` with what is wrong: a limit that is not understood might cost money.
    """
    import tomllib

    given: dict[str, object] = {}
    try:
        text = "" if user_file is None else user_file.read_text("utf-8")
        table = tomllib.loads(text).get("providers", {})
        given.update(table if isinstance(table, dict) else {})
    except (OSError, ValueError, RecursionError):
        # The settings' reader has told of it already.
        pass
    for name in ProviderLimits.__struct_encode_fields__:
        if own := environ.get(f"{PREFIX}PROVIDERS_{name.upper()}"):
            given[name] = own
    try:
        return msgspec.convert(given, ProviderLimits, strict=False)
    except msgspec.ValidationError as error:
        raise NoProvider(f"[providers] in {USER_FILE} is wrong: {error}; mend it") from None
