"""compactd in LangChain, LangGraph and deepagents.

    agent = create_agent(model, tools, middleware=[CompactdMiddleware()], checkpointer=checkpointer)

`CompactdMiddleware` is the whole engine: it decides before each model request what the request contains, and
gives the model a tool to look up the rest. `compactd_summarizer` only writes the summaries of LangChain's own
`SummarizationMiddleware`.
"""

from __future__ import annotations

from compactd.integrations.frameworks.langchain.versions import LANGCHAIN

LANGCHAIN.check()

from compactd.integrations.frameworks.langchain.middleware import (  # noqa: E402 - after the check
    CompactdMiddleware,
)
from compactd.integrations.frameworks.langchain.summarizer import compactd_summarizer  # noqa: E402

__all__ = ["CompactdMiddleware", "compactd_summarizer"]
