"""Ask the provider of the session's model to compact with its own method (strategy `provider`).

The provider gets the messages before the tail as a request of the session would contain them. Its answer can
be read by this provider only, so compactd's own summary is always written too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from functools import partial

from msgspec import Raw, Struct
from msgspec.structs import replace

from compactd.compaction.summarizer import cost_so_far
from compactd.core.cost.lifetime import Lifetime
from compactd.core.history.entries import Item, ProviderSummary
from compactd.core.history.projection import project
from compactd.core.planning.plan import Plan
from compactd.core.planning.request import CompactRequest
from compactd.core.summary.answers import ProviderAnswer
from compactd.core.tokens.counting import Counter
from compactd.formats.messages.anthropic_blocks import BETA_HEADER, ON_DEMAND_BETA
from compactd.formats.messages.anthropic_request import render as render_anthropic
from compactd.formats.messages.base import render
from compactd.formats.messages.cache_markers import mark_anthropic
from compactd.formats.messages.provenance import ANTHROPIC
from compactd.formats.messages.provider_summary import (
    focus_prompt,
    offers_compaction,
    read_anthropic,
    read_openai,
)
from compactd.formats.messages.rendering import Rendered
from compactd.models.providers.provider import Finished, ModelRequest, Provider, Retrying
from compactd.protocol.errors import NoProvider, ProviderFailed
from compactd.protocol.messages import Opaque, Retry, Tool
from compactd.session.prompt_cache import cache_key, choose_session_lifetime
from compactd.session.provider_summary import ChooseSummary, summary_chooser
from compactd.session.session import Session

MIN_OUTPUT_TOKENS = 8_192
"""The output limit of the request is at least this, because it also covers what the model thinks before it
writes (platform.claude.com, "Compaction on demand": "allow several thousand tokens")."""

STRATEGY = "provider"

NO_INSTRUCTIONS = "the provider's compaction takes no instructions"


class ProviderCompaction(Struct, frozen=True, kw_only=True):
    """The provider of the session's model, and what a request to compact needs."""

    provider: Provider
    name: str
    """The model's name in the session."""
    model: str
    """The model's id at the provider."""
    deadline_s: float


def provider_compaction_of(session: Session, request: CompactRequest) -> ProviderCompaction | ProviderAnswer:
    """Return whom to ask, or an answer that says why nobody can be asked. Call this after `read_keys`.

    The session's model may be asked if the daemon runs the session's loop, or if the user named this model
    for summaries.
    """
    settings, own = session.resolved.settings, session.state.model
    name, base_url = own.model, own.base_url
    if request.trigger == "model_switch":
        return ProviderAnswer(why="the next request goes to another model")
    if name is None:
        return ProviderAnswer(why="the session has no model, so no provider can compact it")
    if not session.runs_loop and name not in (request.model, settings.model):
        return ProviderAnswer(
            why=f"{name} was not asked: name it in `model`, or in the setting `compaction.model`"
        )
    if settings.max_cost is not None and cost_so_far(session) >= settings.max_cost:
        return ProviderAnswer(
            why=f"the spending cap for summaries (`max_cost`: {settings.max_cost:g} dollars) is reached"
        )
    try:
        provider, model = session.host.provider(name, base_url)
    except NoProvider as error:
        return ProviderAnswer(why=error.message)
    own_method = provider.compaction()
    if own_method is None or not offers_compaction(provider.shape, model):
        return ProviderAnswer(why=f"{name} has no compaction of its own")
    return ProviderCompaction(
        provider=own_method, name=name, model=model, deadline_s=settings.summary_deadline_s
    )


def asks_provider(plan: Plan) -> bool:
    """Return whether carrying out the plan begins with the provider's own compaction."""
    return plan.strategies[0] == STRATEGY and plan.summary_budget > 0


async def ask_provider(session: Session, plan: Plan, found: ProviderCompaction) -> ProviderAnswer:
    """Ask the provider for its own summary of what `plan` removes. Return it, or why there is none."""
    asked, window = request_tokens(plan, found.provider.shape), plan.inputs.standing.window
    if window is not None and asked + MIN_OUTPUT_TOKENS > window:
        return ProviderAnswer(
            why=f"its request of {asked:,} tokens and the summary do not fit {found.name}'s window"
        )
    try:
        async with asyncio.timeout(found.deadline_s):
            return await _request(session, plan, found)
    except TimeoutError:
        return ProviderAnswer(why=f"the provider took longer than {found.deadline_s:g} seconds")
    except ProviderFailed as error:
        return ProviderAnswer(why=error.message)


def replaced_items(plan: Plan, shape: str) -> tuple[Item, ...]:
    """Return the items of the view that the provider gets: those before the tail.

    OpenAI returns the user's messages word for word, so it does not get those that stay anyway. Anthropic
    gets them, because a summary of work needs the request that the work was done for.
    """
    kept = frozenset(plan.kept)
    pinned = frozenset(() if shape == ANTHROPIC else plan.pinned)
    return tuple(
        item for item in plan.inputs.view.items if item.entry_id not in kept and item.entry_id not in pinned
    )


def request_tokens(plan: Plan, shape: str) -> int:
    """Return the estimated tokens of the request to the provider."""
    fixed = plan.inputs.fixed
    return sum(item.tokens for item in replaced_items(plan, shape)) + fixed.system + fixed.tools


async def _request(session: Session, plan: Plan, found: ProviderCompaction) -> ProviderAnswer:
    """Send the request, and return what the answer contains."""
    model, counter = session.state.model, plan.inputs.counter
    prepare = partial(
        _prepare,
        plan,
        found,
        system=session.state.system_prompt,
        tools=session.tools(),
        choose=summary_chooser(session, found.provider.shape),
        key=cache_key(session, found.provider.shape),
        lifetime=choose_session_lifetime(session),
    )
    request = await session.host.in_worker(prepare)
    finished: Finished | None = None
    async with aclosing(found.provider.stream(request)) as events:
        async for event in events:
            match event:
                case Retrying():
                    session.emit(Retry(attempt=event.attempt, delay_s=event.delay_s, reason=event.reason))
                case Finished():
                    finished = event
                case _:
                    pass
    if finished is None:
        return ProviderAnswer(why="the provider's answer ended before it was complete")
    read = _read(found.provider.shape, finished, request, counter)
    if isinstance(read, str):
        return ProviderAnswer(why=read, usage=finished.usage)
    items, tokens = read
    return ProviderAnswer(
        summary=ProviderSummary(
            format=found.provider.shape,
            model=found.name,
            items=items,
            tokens=tokens,
            base_url=model.base_url,
        ),
        note=NO_INSTRUCTIONS if _focus(plan) and found.provider.shape != ANTHROPIC else "",
        usage=finished.usage,
    )


def _focus(plan: Plan) -> str:
    """Return what the summary should pay attention to, and what the client's hook adds for the summariser."""
    request = plan.inputs.request
    return "\n\n".join(part for part in (request.instructions, *request.context) if part)


def _prepare(
    plan: Plan,
    found: ProviderCompaction,
    *,
    system: str | None,
    tools: Sequence[Tool],
    choose: ChooseSummary,
    key: str | None,
    lifetime: Lifetime,
) -> ModelRequest:
    """Return the request: the same beginning as the session's requests have, so that the provider can read it
    from its cache."""
    shape, settings = found.provider.shape, plan.inputs.settings
    items = replaced_items(plan, shape)
    projection = choose(project(items, plan.inputs.counter), items)
    if shape != ANTHROPIC:
        made = render(shape, system, tools, projection, found.name)
        return ModelRequest(
            model=found.model, system=made.system, messages=tuple(made.messages), cache_key=key, stream=False
        )
    made = render_anthropic(system, tools, projection, found.name, to_compact=True)
    marked: Raw | None = None
    if settings.cache != "off":
        made, marked = _mark_sent(made, lifetime=lifetime, starts_with_summary=plan.merged is not None)
    return ModelRequest(
        model=found.model,
        system=made.system if marked is None else marked,
        messages=tuple(made.messages),
        tools=tuple(made.tools or ()),
        max_output_tokens=max(MIN_OUTPUT_TOKENS, plan.summary_budget),
        headers={BETA_HEADER: ON_DEMAND_BETA},
        compaction_prompt=focus_prompt(_focus(plan)),
    )


def _mark_sent(
    made: Rendered, *, lifetime: Lifetime, starts_with_summary: bool
) -> tuple[Rendered, Raw | None]:
    """Return the request to Anthropic with marks for its prompt cache, and the marked system prompt. The last
    mark is on the last user message, because a request of the session ended there. What follows is not
    marked: nobody will read it from the cache again."""
    end = next((n for n in range(len(made.messages), 0, -1) if _is_users(made.messages[n - 1])), 0)
    marked, system, _ = mark_anthropic(
        replace(made, messages=made.messages[:end]),
        starts_with_summary=starts_with_summary,
        last_sent=0,
        lifetime=lifetime,
        marks_system=True,
    )
    return replace(marked, messages=[*marked.messages, *made.messages[end:]]), system


def _is_users(message: Raw) -> bool:
    return bytes(message).startswith(b'{"role":"user"')


def _read(shape: str, finished: Finished, request: ModelRequest, counter: Counter) -> tuple[Raw, int] | str:
    """Return (what is sent back, its tokens), or why the answer contains no summary."""
    content = [block for block in finished.message.content if isinstance(block, Opaque)]
    if shape != ANTHROPIC:
        return read_openai([block.raw for block in content], request.messages, finished.usage, counter)
    if finished.raw_stop != "compaction":
        return f"its answer contains no summary (stop reason: {finished.raw_stop or 'none'})"
    if len(content) != len(finished.message.content):
        return "its answer contains more than a summary"
    return read_anthropic(content, counter)
