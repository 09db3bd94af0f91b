"""The next model request of the daemon's own loop, in its provider's shape."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from compactd.core.history.projection import project
from compactd.core.models.lookup import WANT_REASONING
from compactd.formats.messages.base import render
from compactd.models.providers.protocol import Finished, ModelRequest, Provider
from compactd.protocol.messages import ToolCall
from compactd.session.session import Session

OUTPUT_TOKENS = 32_000
"""Most that is asked for where the model's output limit is not known (docs/specs-evmts-opencode.md,
"opencode.md", `isOverflow`)."""


def output_limit(session: Session, most: int | None) -> int | None:
    """Tokens of an answer that a request asks for at most, where `most` have room; never below 1."""
    if most is None:
        return None
    # No provider takes 0: where nothing is left, it says so itself.
    most = max(1, most)
    return most if session.window.output_limit is not None else min(most, OUTPUT_TOKENS)


async def next_request(
    session: Session, provider: Provider, model: str, max_output_tokens: int | None
) -> tuple[ModelRequest, Mapping[str, str]]:
    """(the next request, the tools' own names by those that the model sees). Hands out the view's epoch.
    O(view), in a worker."""
    view, system, tools = session.fold.view(), session.fold.system_prompt, session.tools()
    counter, name = session.counter, session.fold.model.model
    session.hand_out(view.epoch)
    reasoning = provider.name in WANT_REASONING
    made = await session.world.in_worker(
        lambda: render(
            provider.shape, system, tools, project(view.items, counter), name, with_reasoning=reasoning
        )
    )
    request = ModelRequest(
        model=model,
        system=made.system,
        messages=tuple(made.messages),
        tools=tuple(made.tools or ()),
        max_output_tokens=max_output_tokens,
        context_window=session.standing().window,
    )
    return request, made.names


def with_own_names(finished: Finished, names: Mapping[str, str]) -> Finished:
    """`finished` with the tools named as the client knows them: some providers refuse some names."""
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
