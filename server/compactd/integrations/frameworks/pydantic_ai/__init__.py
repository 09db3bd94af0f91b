"""compactd for Pydantic AI (`compactd[pydantic-ai]`): `Agent(…, capabilities=[CompactdCapability()])`."""

from __future__ import annotations

from compactd.integrations.frameworks.pydantic_ai.versions import check as _check

_check()

from compactd.integrations.frameworks.pydantic_ai.capability import CompactdCapability  # noqa: E402 - after the check
from compactd.integrations.frameworks.pydantic_ai.processor import (  # noqa: E402
    CompactdProcessor,
    compactd_history_processor,
)

__all__ = ["CompactdCapability", "CompactdProcessor", "compactd_history_processor"]
