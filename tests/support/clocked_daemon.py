"""A program: the daemon with a clock that a test sets. Its only argument is a file with the Unix seconds."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from compactd.daemon.app import Daemon, serve_alone
from compactd.daemon.rpc.stdio import take_stdio


class ClockedDaemon(Daemon):
    """Reads the time from a file."""

    def now(self) -> float:
        """Return the time in Unix seconds."""
        return float(Path(sys.argv[1]).read_text(encoding="utf-8"))


if __name__ == "__main__":
    sys.exit(asyncio.run(serve_alone(ClockedDaemon(dict(os.environ)), take_stdio())))
