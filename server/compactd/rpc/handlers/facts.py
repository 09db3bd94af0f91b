"""What needs no session: models, tokens, the daemon itself."""

from __future__ import annotations

from collections.abc import Mapping

from compactd.core.tokens import message_tokens
from compactd.errors import InvalidParams
from compactd.formats.base import read_messages
from compactd.providers.counters import counter_for
from compactd.rpc import answers, wire
from compactd.rpc.handlers.base import Area, Handler
from compactd.rpc.request import Request


class FactHandlers(Area):
    """Answers without a session."""

    def by_method(self) -> Mapping[str, Handler]:
        """The handler of each method."""
        return {
            "tokens/count": self.tokens_count,
            "models/lookup": self.models_lookup,
            "daemon/info": self.daemon_info,
        }

    async def tokens_count(self, params: wire.CountParams, request: Request) -> wire.CountResult:
        """In a worker: ranks may have to be loaded, texts may be large."""
        if (params.text is None) == (params.messages is None):
            raise InvalidParams("give `text` or `messages`, one of them", "$.text")
        found = await self._daemon.find_model(params.model, None, None) if params.model else None
        counter = counter_for("auto", found.tokenizer if found else None)
        if params.messages is None:
            text = params.text or ""
            tokens = await self._daemon.in_worker(lambda: counter.count(text))
        else:
            read = read_messages(params.messages, params.format)
            tokens = await self._daemon.in_worker(
                lambda: sum(message_tokens(message, counter) for message, _ in read)
            )
        return wire.CountResult(tokens=tokens, exact=counter.exact, method=counter.name)

    async def models_lookup(self, params: wire.LookupParams, request: Request) -> wire.LookupResult:
        """By the ladder of the registry."""
        return answers.lookup_of(
            await self._daemon.find_model(params.model, params.provider, params.base_url)
        )

    def daemon_info(self, params: wire.Nothing, request: Request) -> wire.InfoResult:
        """Version, paths, what is loaded."""
        return self._daemon.info()
