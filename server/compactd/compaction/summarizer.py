"""The summariser of a compaction: a model that is asked, within a deadline and a spending cap."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import aclosing, suppress
from typing import TypeVar

from msgspec import Struct

from compactd._runtime.garbage import without_collector
from compactd.core.history.entries import Compacted, Item
from compactd.core.history.projection import project
from compactd.core.planning.request import CompactRequest
from compactd.core.summary.answers import Answer, Failed, NoModel, Reply
from compactd.core.summary.prompting import Ask
from compactd.formats.messages.base import render
from compactd.models.providers.protocol import Finished, ModelRequest, Provider, Retrying, TextDelta
from compactd.protocol.errors import NoProvider, ProviderFailed
from compactd.protocol.messages import Message, Retry, Text
from compactd.session.session import Session

T = TypeVar("T")

READ_AHEAD_S = 0.05
"""Until the summariser's request has left: what is read beside it must not hold it up."""

Tell = Callable[[str], None]
"""Takes each piece of text as it arrives."""


class Summariser(Struct, frozen=True, kw_only=True):
    """A model that writes summaries."""

    provider: Provider
    name: str
    """As the session names it."""
    model: str
    """As the provider names it."""
    window: int | None
    """Tokens."""
    deadline_s: float


def _named(session: Session, request: CompactRequest) -> str | None:
    """The request's model, the settings', or the session's own where the daemon runs its loop."""
    own = session.fold.model.model if session.runs_loop else None
    return request.model or session.resolved.settings.model or own


def _base_url(session: Session, name: str) -> str | None:
    """The session's own endpoint is its own model's alone."""
    return session.fold.model.base_url if name == session.fold.model.model else None


async def read_keys(session: Session, request: CompactRequest) -> None:
    """Before `summariser_of`: reads the user's keys, where a model is named."""
    if _named(session, request) is not None:
        await session.world.read_keys()


def summariser_of(session: Session, request: CompactRequest) -> Summariser | NoModel | Failed:
    """Who writes the summary of this compaction. `Failed` says why there is nobody."""
    settings, name = session.resolved.settings, _named(session, request)
    if name is None:
        return NoModel()
    if settings.max_cost is not None and spent(session) >= settings.max_cost:
        return Failed(f"the spending cap of {settings.max_cost:g} dollars is reached")
    base_url = _base_url(session, name)
    try:
        provider, model = session.world.provider(name, base_url)
    except NoProvider as error:
        return Failed(error.message)
    found = session.world.lookup(name, base_url)
    return Summariser(
        provider=provider,
        name=name,
        model=model,
        window=found.context_window if found else None,
        deadline_s=settings.summary_deadline_s,
    )


def check_model(session: Session, request: CompactRequest) -> None:
    """After `read_keys`: raises `NoProvider` if the request itself asks for a model's summary and none can be
    asked. Settings that ask for one give way to the next strategy: nothing may stop a conversation."""
    settings, name = session.resolved.settings, _named(session, request)
    is_auto = (request.strategy or settings.strategy) in ("auto", "summarize")
    if request.strategy != "summarize" and not (request.model is not None and is_auto):
        return
    if name is not None:
        session.world.provider(name, _base_url(session, name))
        return
    own = session.fold.model.model
    which = f", for example the session's own, `model: {own!r}`" if own else ""
    raise NoProvider(
        "The strategy `summarize` needs a model to ask, and none is named: give `model` in the request, or "
        f"the setting `compaction.model`{which}."
    )


def spent(session: Session) -> float:
    """What the summaries of this session cost so far, in US dollars. O(compactions)."""
    results = (step.result for step in session.fold.steps.values() if isinstance(step, Compacted))
    return sum(cost for result in results if isinstance(cost := result.cost, float))


async def answers_of(
    summariser: Summariser | NoModel | Failed, asks: Sequence[Ask], session: Session, tell: Tell
) -> tuple[Answer, ...]:
    """The answers to `asks`, asked at once, in their order. Only the first one's text is told as it comes."""
    if not isinstance(summariser, Summariser):
        return tuple(summariser for _ in asks)
    return tuple(
        await asyncio.gather(
            *(_answer(summariser, ask, session, tell if at == 0 else None) for at, ask in enumerate(asks))
        )
    )


async def reading_beside(
    asking: Coroutine[object, object, T], session: Session, read: Callable[[Callable[[], bool]], None]
) -> T:
    """What `asking` gives. Meanwhile a worker does `read`, which is told whether there are answers, and is
    over when this returns; where this raises it may still be at it."""
    answered = threading.Event()
    reading = asyncio.ensure_future(_read_soon(session, lambda: read(answered.is_set)))
    try:
        answers = await asking
    except BaseException:
        reading.cancel()
        raise
    finally:
        answered.set()
    await reading
    return answers


async def _read_soon(session: Session, read: Callable[[], None]) -> None:
    def in_worker() -> None:
        # What goes wrong here goes wrong again, and is told, when the summary is checked.
        with suppress(Exception), without_collector():
            read()

    await asyncio.sleep(READ_AHEAD_S)
    await session.world.in_turn(in_worker, session.fold.size)


async def _answer(summariser: Summariser, ask: Ask, session: Session, tell: Tell | None) -> Answer:
    try:
        async with asyncio.timeout(summariser.deadline_s):
            return await _asked(summariser, ask, session, tell)
    except TimeoutError:
        return Failed(f"the summariser took longer than {summariser.deadline_s:g} seconds")
    except ProviderFailed as error:
        return Failed(error.message)


async def _asked(summariser: Summariser, ask: Ask, session: Session, tell: Tell | None) -> Answer:
    provider = summariser.provider
    question = Message(role="user", content=(Text(text=ask.prompt),))
    projection = project((Item(entry_id="ask", body=question, tokens=0),), session.counter)
    made = render(provider.shape, ask.system, (), projection, summariser.name)
    request = ModelRequest(
        model=summariser.model,
        system=made.system,
        messages=tuple(made.messages),
        max_output_tokens=ask.max_tokens,
        context_window=summariser.window,
    )
    async with aclosing(provider.stream(request)) as events:
        async for event in events:
            match event:
                case TextDelta(text=text) if tell is not None:
                    tell(text)
                case Retrying():
                    session.emit(Retry(attempt=event.attempt, delay_s=event.delay_s, reason=event.reason))
                case Finished():
                    text = "".join(b.text for b in event.message.content if isinstance(b, Text))
                    return Reply(text=text, stop_reason=event.stop_reason, usage=event.usage)
                case _:
                    pass
    return Failed("the summariser's answer broke off")
