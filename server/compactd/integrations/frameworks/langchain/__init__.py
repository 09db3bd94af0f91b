"""compactd in LangChain, LangGraph and deepagents.

    agent = create_agent(model, tools, middleware=[CompactdMiddleware()], checkpointer=checkpointer)

`CompactdMiddleware` is the whole engine: it decides before each model request what the request contains, and
gives the model a tool to look up the rest. `compactd_summarizer` only writes the summaries of LangChain's own
`SummarizationMiddleware`.
"""

from __future__ import annotations

try:
    import langchain.agents.middleware  # noqa: F401 - tells that the framework is there
except ImportError as error:
    raise ImportError(
        "compactd.integrations.frameworks.langchain needs LangChain 1.x: pip install 'compactd[langchain]'"
    ) from error

from compactd.integrations.frameworks.langchain.middleware import CompactdMiddleware
from compactd.integrations.frameworks.langchain.summarizer import compactd_summarizer

__all__ = ["CompactdMiddleware", "compactd_summarizer"]
