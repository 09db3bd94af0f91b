"""compactd in the OpenAI Agents SDK.

    session = CompactdSession("chat-1")
    result = await Runner.run(agent, "Hello", session=session, run_config=session.run_config())

`CompactdSession` stores the conversation, and its `run_config` keeps each model request within the window.
Where another session stores it, `compactd_run_config` or `compactd_input_filter` does only the latter.
"""

from __future__ import annotations

from compactd.integrations.frameworks.openai_agents import versions

versions.SDK.check()

from compactd.integrations.frameworks.openai_agents.filter import (  # noqa: E402 - after the check
    compactd_input_filter,
    compactd_run_config,
)
from compactd.integrations.frameworks.openai_agents.model import (  # noqa: E402
    compactd_model,
    compactd_provider,
)
from compactd.integrations.frameworks.openai_agents.session import CompactdSession  # noqa: E402
from compactd.integrations.frameworks.openai_agents.tools import (  # noqa: E402
    compactd_recall,
    compactd_reduce,
)

__all__ = [
    "CompactdSession",
    "compactd_input_filter",
    "compactd_model",
    "compactd_provider",
    "compactd_recall",
    "compactd_reduce",
    "compactd_run_config",
]
