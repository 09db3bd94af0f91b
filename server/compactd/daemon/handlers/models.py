"""Handlers that need no session: models, token counts, overflow classification, facts about the daemon."""

from __future__ import annotations

from msgspec import Raw

from compactd.agent.recovery import verdict_of
from compactd.core.models.observed import lookup_with_observed
from compactd.core.tokens.counting import is_text_only, messages_tokens
from compactd.daemon.handlers import decode, encode
from compactd.daemon.handlers.base import HandlerGroup
from compactd.daemon.rpc.request import Request
from compactd.formats.messages.client_messages import read_given
from compactd.models.tokenizers.counters import counter_for
from compactd.protocol import wire
from compactd.protocol.errors import InvalidParams
from compactd.session.session import Session


class SessionlessHandlers(HandlerGroup):
    """Handlers of the methods that work without a session."""

    async def tokens_count(self, params: wire.CountParams, request: Request) -> wire.CountResult:
        """Count the tokens of a text or of messages, in a worker.

        `exact` is true if the model's own tokenizer counted and all content is text. Raises `InvalidParams`
        if both or neither of `text` and `messages` are given.
        """
        if (params.text is None) == (params.messages is None):
            raise InvalidParams("give either `text` or `messages`", "$.text")
        found = await self._daemon.find_model(params.model, None, None) if params.model else None
        counter = counter_for("auto", found.tokenizer if found else None, params.model)
        text, messages, format = params.text or "", params.messages, params.format

        def counted() -> wire.CountResult:
            if messages is None:
                return wire.CountResult(tokens=counter.count(text), exact=counter.exact, method=counter.name)
            read = [message for message, _ in read_given(messages, format)]
            is_exact = counter.exact and all(is_text_only(message) for message in read)
            tokens = sum(messages_tokens(read, counter))
            return wire.CountResult(tokens=tokens, exact=is_exact, method=counter.name)

        return await self._daemon.in_worker(counted)

    async def models_lookup(self, params: wire.LookupParams, request: Request) -> wire.LookupResult:
        """Find a model's limits and prices in the registry, corrected by observed windows.

        If `base_url` names a server on this machine, first asks it for the model's window.
        """
        base_url = decode.endpoint_of(params.base_url)
        asked = (params.model, params.provider, base_url)
        name = params.model if params.provider is None else f"{params.provider}/{params.model}"
        await self._daemon.ask_server(name, base_url)
        found = await self._daemon.find_model(*asked)
        learned = self._daemon.learned_windows.of(found, base_url)
        answer = encode.lookup_of(lookup_with_observed(found, learned))
        if params.explain is not True:
            return answer
        steps = await self._daemon.in_worker(lambda: self._daemon.catalogue.explain(*asked))
        return encode.encode_lookup(answer, steps, learned)

    async def models_list(self, params: wire.ListModelsParams, request: Request) -> Raw:
        """Return a page of the known models, encoded in a worker. The first page also has the observed
        windows.
        """
        daemon = self._daemon

        def made() -> Raw:
            rows, next = encode.models_page(
                daemon.catalogue.rows(params.provider), params.from_, params.limit
            )
            observed = daemon.learned_windows.all_observed() if params.from_ is None else ()
            return encode.model_list(rows, observed, next)

        return await daemon.in_worker(made)

    async def models_forget(self, params: wire.ForgetParams, request: Request) -> wire.ForgetResult:
        """Forget observed windows. Open sessions then use the registry's window at once.

        Raises `InvalidParams` if the params neither name a model, provider or endpoint nor have `all: true`,
        or if they do both.
        """
        daemon = self._daemon
        is_named = any(part is not None for part in (params.model, params.provider, params.base_url))
        if is_named == (params.all is True):
            raise InvalidParams(
                "give `model`, `provider` or `base_url` to choose which learned context windows to forget, "
                "or only `all: true` to forget all of them",
                "$.all" if is_named else "$.model",
            )
        found = None
        if params.model is not None:
            base_url = decode.endpoint_of(params.base_url)
            found = await daemon.find_model(params.model, params.provider, base_url)
        is_meant = decode.observation_filter(params, found)
        forgotten = await daemon.in_worker(lambda: daemon.learned_windows.forget(is_meant))
        written: list[tuple[Session, int]] = []
        for session in self._sessions.open.values():
            if session.sighting is not None and is_meant(session.sighting):
                number = session.forget_sighting()
                if number is not None:
                    written.append((session, number))
        if forgotten or written:
            daemon.refresh_sessions()
        for session, number in written:
            await session.wait_durable(number)
        return wire.ForgetResult(forgotten=forgotten)

    async def overflow_classify(self, params: wire.ClassifyParams, request: Request) -> wire.ClassifyResult:
        """Classify an error of a provider: is it a context overflow, and what fixes it?

        Runs in a worker, because a body can be megabytes of arbitrary text.
        """
        session = None if params.session_id is None else self._sessions.get(params.session_id)
        failed, rules = decode.decode_failure(params), decode.rules_of(params.profile)
        verdict = await self._daemon.in_worker(lambda: verdict_of(failed, session, rules))
        return encode.to_wire(verdict, wire.ClassifyResult)

    def daemon_info(self, params: wire.Nothing, request: Request) -> wire.InfoResult:
        """Return the daemon's version, process id, paths, number of sessions and warnings."""
        return self._daemon.info()
