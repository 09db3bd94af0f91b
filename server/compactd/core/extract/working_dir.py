"""Find the session's working folder from the paths that its tools were given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from compactd.core.extract.facts import Facts
from compactd.core.extract.lexicon import Lexicon

MIN_WITNESSES = 2
"""A folder needs at least this many votes."""
MAX_PATHS = 400
"""Only this many files, the newest, vote."""


def working_directory(facts: Iterable[Facts], lexicon: Lexicon) -> str:
    """Return the folder to which the relative paths in the conversation refer; empty if it cannot be
    determined.

    The common parent of most files is not enough, because it may be a folder below the working folder. Paths
    cut at that folder would be names that nobody used. Instead, a folder gets one vote for each file that a
    tool was given by absolute path, if the file's path relative to the folder (at least two steps long) also
    occurs in the conversation. The folder with the most votes wins; of folders with equal votes, the longer
    path wins. O(atoms + files).
    """
    if isinstance(facts, Sequence) and not any(_absolute(known) for known in facts):
        return ""
    files: dict[str, None] = {}
    written: set[int] = set()
    for known in facts:
        files.update(dict.fromkeys(_absolute(known)))
        written.update(known.atoms)
    votes: dict[str, int] = {}
    for path in list(files)[-MAX_PATHS:]:
        steps = path.split("/")
        for k in range(3, len(steps) - 1):
            if lexicon.number(("path", "/".join(steps[k:]))) in written:
                folder = "/".join(steps[:k])
                votes[folder] = votes.get(folder, 0) + 1
    best = max(votes, key=lambda folder: (votes[folder], len(folder)), default="")
    return best if votes.get(best, 0) >= MIN_WITNESSES else ""


def _absolute(known: Facts) -> list[str]:
    """Return the files to which the calls of a message refer by absolute path."""
    return [path for call in known.calls for path in call.files if path.startswith("/")]
