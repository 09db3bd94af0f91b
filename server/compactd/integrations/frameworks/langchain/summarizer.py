"""Summaries for LangChain's own `SummarizationMiddleware`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from langchain_core.messages import AnyMessage
from langchain_core.messages.utils import get_buffer_string

from compactd.integrations.frameworks.engine import engine_of
from compactd.integrations.frameworks.langchain import messages as mapping
from compactd.integrations.frameworks.summary import summary_of

_CLIENT = "langchain"


def compactd_summarizer(
    *, target_tokens: int | None = None, command: Sequence[str] | None = None
) -> Callable[[list[AnyMessage]], str]:
    """Return a summarizer that asks no model.

        SummarizationMiddleware(model, summarizer=compactd_summarizer(), trim_tokens_to_summarize=None)

    `target_tokens`: the length of a summary, about. LangChain removes the messages from the agent's state
    after it has the summary. So there is no recall and no undo: for these, use `CompactdMiddleware`.

    If the daemon fails, the summary is the messages' whole text: nothing is lost.
    """
    return _Summarizer(target_tokens, None if command is None else tuple(command))


class _Summarizer:
    def __init__(self, target_tokens: int | None, command: tuple[str, ...] | None) -> None:
        self._target_tokens = target_tokens
        self._command = command

    def __call__(self, messages: list[AnyMessage]) -> str:
        """Return a summary of all `messages`."""
        history = mapping.history_of(messages)
        text = engine_of(self._command).attempt(
            lambda client: summary_of(client, history, _CLIENT, self._target_tokens)
        )
        return text or get_buffer_string(messages)
