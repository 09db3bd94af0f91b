"""Recognise a command line that runs compactd: what it prints for a model is never reduced."""

from __future__ import annotations

from compactd.core.work.shell import commands_in


def runs_compactd(line: str) -> bool:
    """Return whether one of the simple commands of a command line is `compactd`, or Python with this module.
    `bash -c` is followed. O(length)."""
    return any(
        command.program == "compactd"
        or (command.program == "python -m" and command.words[:1] == ("compactd",))
        for command in commands_in(line)
    )
