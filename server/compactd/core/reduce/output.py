"""The input and the result of a reduction: a tool's output with its call, and the text to show instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, get_args

from msgspec import Struct

from compactd.core.history.entries import EntryId

Level = Literal["light", "default", "strong"]
"""How much is left out. `light`: only what is shown elsewhere or has no meaning. `strong`: also what is
seldom used later."""
LEVELS: Final[tuple[Level, ...]] = get_args(Level)


class ToolOutput(Struct, frozen=True):
    """A tool's output with the call that it answers."""

    name: str
    """The tool's name, as the agent calls it."""
    arguments: Mapping[str, object]
    text: str
    is_error: bool = False
    """Whether the agent marked the result as an error."""


class Reduction(Struct, frozen=True):
    """The text to show instead of a tool's output."""

    text: str
    """Never longer than the output. Equal to it if nothing was left out."""
    rules: tuple[str, ...] = ()
    """The names of the rules that acted, in the order of their first mark. Empty if nothing was left out."""
    entry_ids: tuple[EntryId, ...] = ()
    """Other entries that marks refer to, because these entries show the omitted lines."""
