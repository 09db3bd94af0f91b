"""The session's own directory, told from the paths that its tools were given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from compactd.core.extract.facts import Facts
from compactd.core.extract.lexicon import Lexicon

MIN_WITNESSES = 2
MAX_PATHS = 400


def working_directory(facts: Iterable[Facts], lexicon: Lexicon) -> str:
    """The folder below which the conversation itself names files by relative paths, or none (empty).

    A folder that merely holds most files may be a part of the session's: paths cut there would be names that
    nobody used. So a folder counts each file given to a tool by its absolute path whose path relative to the
    folder, of two steps at least, was written somewhere in the conversation as well. The most counts win, the
    longer folder among equals. O(atoms + files).
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
    """The files that a message's calls were given by absolute paths."""
    return [path for call in known.calls for path in call.files if path.startswith("/")]
