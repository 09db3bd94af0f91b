"""Build the next model request of the daemon's agent loop, in the provider's format."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from compactd.core.history.projection import project
from compactd.core.models.lookup import WANT_REASONING
from compactd.formats.messages.base import render
from compactd.models.providers.provider import Finished, ModelRequest, Provider
from compactd.protocol.messages import ToolCall
from compactd.session.prompt_cache import (
    PreparedRequest,
    cache_key,
    choose_session_lifetime,
    prepare_request,
)
from compactd.session.provider_summary import summary_chooser
from compactd.session.session import Session

OUTPUT_TOKENS = 32_000
"""The output limit of a request if the model's own limit is unknown (docs/specs-evmts-opencode.md,
"opencode.md", `isOverflow`)."""


def output_limit(session: Session, most: int | None) -> int | None:
    """Return the output limit of a request: `most`, the highest limit that fits, but at least 1. If the
    model's own limit is unknown, it is at most `OUTPUT_TOKENS`. If `most` is None, return None: the provider
    then uses its own limit."""
    if most is None:
        return None
    # Providers do not accept 0. If no room is left, the provider reports it.
    most = max(1, most)
    return most if session.window.output_limit is not None else min(most, OUTPUT_TOKENS)


async def next_request(
    session: Session, provider: Provider, model: str, max_output_tokens: int | None
) -> tuple[ModelRequest, Mapping[str, str]]:
    """Return (the next request, a mapping from the tool names that the model sees to the client's names).
    The mapping contains only the tools whose names had to be changed for the provider. O(view), in a worker.

    Calling it also records that the current epoch of the view was handed out.
    """
    view, system, tools = session.state.view(), session.state.system_prompt, session.tools()
    counter, name, choose = (
        session.counter,
        session.state.model.model,
        summary_chooser(session, provider.shape),
    )
    lifetime = choose_session_lifetime(session)
    session.note_sent_epoch(view.epoch)
    reasoning = provider.name in WANT_REASONING
    fixed = sum(session.state.fixed)

    def prepare() -> PreparedRequest:
        projection = choose(project(view.items, counter), view.items)
        made = render(provider.shape, system, tools, projection, name, with_reasoning=reasoning)
        return prepare_request(
            session,
            provider.shape,
            made,
            projection,
            fixed_tokens=fixed,
            lifetime=lifetime,
            marks_system=True,
        )

    prepared = await session.host.in_worker(prepare)
    made = prepared.rendered
    request = ModelRequest(
        model=model,
        system=made.system if prepared.system is None else prepared.system,
        messages=tuple(made.messages),
        tools=tuple(made.tools or ()),
        max_output_tokens=max_output_tokens,
        context_window=session.budget_status().window,
        cache_key=cache_key(session, provider.shape),
        headers=made.headers,
    )
    return request, made.names


def with_own_names(finished: Finished, names: Mapping[str, str]) -> Finished:
    """Return the model's answer `finished` with the client's names of the tools. `names` is the mapping that
    `next_request` returned."""
    if not names:
        return finished
    content = tuple(
        msgspec.structs.replace(block, name=names.get(block.name, block.name))
        if isinstance(block, ToolCall)
        else block
        for block in finished.message.content
    )
    message = msgspec.structs.replace(finished.message, content=content)
    return msgspec.structs.replace(finished, message=message)
