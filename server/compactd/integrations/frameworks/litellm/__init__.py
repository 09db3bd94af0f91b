"""compactd for LiteLLM (`compactd[litellm]`): `litellm.callbacks = [CompactdLogger()]`, and a `session_id` in
each request's metadata.
"""

from __future__ import annotations

from compactd.integrations.frameworks.litellm.versions import LITELLM

LITELLM.check()

from compactd.integrations.frameworks.litellm.logger import CompactdLogger  # noqa: E402 - after the check
from compactd.integrations.frameworks.litellm.recall_tool import RecallTool  # noqa: E402

__all__ = ["CompactdLogger", "RecallTool"]
