"""compactd for Hermes Agent: a context engine in place of Hermes' own compressor.

`compactd install hermes` puts a plugin into Hermes' folder, which calls `register`. A plugin of your own may
call `ctx.register_context_engine(CompactdEngine())` itself.
"""

from __future__ import annotations

from compactd.integrations.frameworks.hermes.versions import HERMES

HERMES.check()

from compactd.integrations.frameworks.hermes.context_engine import (  # noqa: E402 - after the check
    CompactdEngine,
)
from compactd.integrations.frameworks.hermes.registration import register  # noqa: E402

__all__ = ["CompactdEngine", "register"]
