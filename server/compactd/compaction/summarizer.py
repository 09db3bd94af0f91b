"""Ask a model for a summary, within a deadline and a spending cap."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import aclosing, suppress
from typing import TypeVar

from msgspec import Struct

from compactd.core.history.entries import Compacted, Item
from compactd.core.history.projection import project
from compactd.core.planning.request import CompactRequest
from compactd.core.summary.answers import ModelReply, NoModel, SummaryAnswer, SummaryFailed
from compactd.core.summary.questions import Ask
from compactd.formats.messages.base import render
from compactd.models.providers.provider import Finished, ModelRequest, Provider, Retrying, TextChunk
from compactd.protocol.errors import NoProvider, ProviderFailed
from compactd.protocol.messages import Message, Retry, Text, Usage
from compactd.session.session import Session

T = TypeVar("T")

READ_AHEAD_S = 0.05
"""How many seconds `read_while_asking` waits before it reads, so that the request to the summariser is sent
first."""

TellText = Callable[[str], None]
"""A function that is called with each piece of the summary as it arrives."""


class Summariser(Struct, frozen=True, kw_only=True):
    """A model that writes summaries, and its limits."""

    provider: Provider
    name: str
    """The model's name in the session."""
    model: str
    """The model's id at the provider."""
    window: int | None
    """The model's context window in tokens; None if it is unknown."""
    deadline_s: float
    """The maximum number of seconds for one answer."""
    reports: list[Usage] = []
    """The usage reports of its answers so far."""


def _model_name(session: Session, request: CompactRequest) -> str | None:
    """Return the model to ask for a summary: the one that the request names, otherwise the one in the
    settings. If neither names a model, return the session's own model if the daemon runs its agent loop,
    otherwise None."""
    own = session.state.model.model if session.runs_loop else None
    return request.model or session.resolved.settings.model or own


def _base_url(session: Session, name: str) -> str | None:
    """Return the session's base URL if `name` is the session's model, otherwise None."""
    return session.state.model.base_url if name == session.state.model.model else None


async def read_keys(session: Session, request: CompactRequest) -> None:
    """Read the user's API keys if a model will be asked. Call this before `summariser_of`."""
    asks_provider = (request.strategy or session.resolved.settings.strategy) == "provider"
    if asks_provider or _model_name(session, request) is not None:
        await session.host.read_keys()


def summariser_of(session: Session, request: CompactRequest) -> Summariser | NoModel | SummaryFailed:
    """Return the model that writes the summary; `NoModel` if none is named; `SummaryFailed` with the reason
    if it cannot be asked."""
    settings, name = session.resolved.settings, _model_name(session, request)
    if name is None:
        return NoModel()
    if settings.max_cost is not None and cost_so_far(session) >= settings.max_cost:
        return SummaryFailed(
            f"the spending cap for summaries (`max_cost`: {settings.max_cost:g} dollars) is reached"
        )
    base_url = _base_url(session, name)
    try:
        provider, model = session.host.provider(name, base_url)
    except NoProvider as error:
        return SummaryFailed(error.message)
    found = session.host.lookup(name, base_url)
    return Summariser(
        provider=provider,
        name=name,
        model=model,
        window=found.context_window if found else None,
        deadline_s=settings.summary_deadline_s,
    )


def check_model(session: Session, request: CompactRequest) -> None:
    """Raise `NoProvider` if the request itself asks for a model's summary and no model can be asked.

    Call this after `read_keys`. If only the settings ask for a model, nothing is raised, because settings
    must not stop a conversation. The compaction then uses the next strategy.
    """
    settings, name = session.resolved.settings, _model_name(session, request)
    is_auto = (request.strategy or settings.strategy) in ("auto", "summarize")
    if request.strategy != "summarize" and not (request.model is not None and is_auto):
        return
    if name is not None:
        session.host.provider(name, _base_url(session, name))
        return
    own = session.state.model.model
    which = f", for example the session's own, `model: {own!r}`" if own else ""
    raise NoProvider(
        "The strategy `summarize` needs a model to ask, and none is named: give `model` in the request, or "
        f"the setting `compaction.model`{which}."
    )


def cost_so_far(session: Session) -> float:
    """Return what the summaries of this session have cost so far, in US dollars, those included that were
    not used. O(compactions)."""
    results = (step.result for step in session.state.steps.values() if isinstance(step, Compacted))
    used = sum(cost for result in results if isinstance(cost := result.cost, float))
    return used + session.state.unused_summary_cost


async def answers_of(
    summariser: Summariser | NoModel | SummaryFailed,
    asks: Sequence[Ask],
    session: Session,
    tell: TellText | None,
) -> tuple[SummaryAnswer, ...]:
    """Ask the model all questions at the same time, and return the answers in the order of `asks`. Only
    the text of the first answer is passed to `tell`; with None, no event is sent. Without a model, each
    answer is `summariser` itself."""
    if not isinstance(summariser, Summariser):
        return tuple(summariser for _ in asks)
    return tuple(
        await asyncio.gather(
            *(
                _answer(summariser, ask, session, tell if at == 0 else None, is_silent=tell is None)
                for at, ask in enumerate(asks)
            )
        )
    )


async def read_while_asking(
    asking: Coroutine[object, object, T], session: Session, read: Callable[[Callable[[], bool]], None]
) -> T:
    """Await `asking` and return its result. Meanwhile run `read` in a worker.

    `read` receives a function that returns true once `asking` has ended. When this function returns, `read`
    has ended too; when it raises, `read` may still be running.
    """
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
    """Run `read` in a worker after `READ_AHEAD_S` seconds. Its errors are ignored."""

    def in_worker() -> None:
        # A failure here happens again, and is reported, when the summary is checked.
        with suppress(Exception):
            read()

    await asyncio.sleep(READ_AHEAD_S)
    await session.host.run_compute(in_worker, session.state.size)


async def _answer(
    summariser: Summariser, ask: Ask, session: Session, tell: TellText | None, *, is_silent: bool
) -> SummaryAnswer:
    """Return the answer to one question; `SummaryFailed` if it takes longer than the deadline or the provider
    fails."""
    try:
        async with asyncio.timeout(summariser.deadline_s):
            return await _request_summary(summariser, ask, session, tell, is_silent=is_silent)
    except TimeoutError:
        return SummaryFailed(f"the summariser took longer than {summariser.deadline_s:g} seconds")
    except ProviderFailed as error:
        return SummaryFailed(error.message)


async def _request_summary(
    summariser: Summariser, ask: Ask, session: Session, tell: TellText | None, *, is_silent: bool
) -> SummaryAnswer:
    """Send one question to the model and return its answer. With `is_silent`, the client gets no event."""
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
                case TextChunk(text=text) if tell is not None:
                    tell(text)
                case Retrying() if not is_silent:
                    session.emit(Retry(attempt=event.attempt, delay_s=event.delay_s, reason=event.reason))
                case Finished():
                    if event.usage is not None:
                        summariser.reports.append(event.usage)
                    text = "".join(b.text for b in event.message.content if isinstance(b, Text))
                    return ModelReply(text=text, stop_reason=event.stop_reason, usage=event.usage)
                case _:
                    pass
    return SummaryFailed("the summariser's answer ended before it was complete")
