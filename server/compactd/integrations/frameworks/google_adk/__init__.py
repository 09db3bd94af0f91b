"""compactd in Google's Agent Development Kit (ADK).

    app = App(name="my_app", root_agent=root_agent, plugins=[CompactdPlugin()])

`CompactdPlugin` is the whole engine: it decides before each model request what the request contains, and
gives the model a tool to look up the rest. `CompactdSummarizer` only writes the summaries of ADK's own
`EventsCompactionConfig`.
"""

from __future__ import annotations

from compactd.integrations.frameworks.google_adk.versions import ADK

ADK.check()

from compactd.integrations.frameworks.google_adk.plugin import CompactdPlugin  # noqa: E402 - after the check
from compactd.integrations.frameworks.google_adk.summarizer import CompactdSummarizer  # noqa: E402

__all__ = ["CompactdPlugin", "CompactdSummarizer"]
