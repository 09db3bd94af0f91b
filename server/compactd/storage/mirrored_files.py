"""Which session files of agents a hook already mirrors into the store, so that `compactd import` does not
store them a second time.
"""

from __future__ import annotations

from pathlib import Path

from compactd.storage.hook_files import AGENTS
from compactd.storage.paths import file_stem

_UUID_CHARS = 36
_SHORT_ID_CHARS = 8
"""How much of the session's id Gemini CLI writes at the end of a file's name."""


class MirroredFiles:
    """The mirrors in the data folder `home`, recognised by the names of their journals. O(sessions)."""

    def __init__(self, home: Path) -> None:
        prefixes = tuple(f"{agent}-" for agent in AGENTS)
        try:
            names = [path.name for path in (home / "sessions").iterdir()]
        except OSError:
            names = []
        self._stems = {
            name.removesuffix(".jsonl")
            for name in names
            if name.endswith(".jsonl") and name.startswith(prefixes)
        }

    def contains(self, agent: str, path: Path) -> bool:
        """Return whether a hook mirrors the session whose file is at `path`. O(mirrors) for Gemini CLI."""
        if not self._stems or agent not in AGENTS:
            return False
        if agent == "gemini-cli":
            start = f"gemini-cli-{path.stem[-_SHORT_ID_CHARS:]}"
            return any(stem.startswith(start) for stem in self._stems)
        session_id = path.stem[-_UUID_CHARS:] if agent == "codex" else path.stem
        return file_stem(f"{agent}:{session_id}") in self._stems
