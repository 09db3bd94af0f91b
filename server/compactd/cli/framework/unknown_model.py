"""What a user is told about a model's name that no source knows: it may be a typing error."""

from __future__ import annotations

import os
from collections.abc import Sequence

from compactd.cli.framework.page import one_line, print_notes
from compactd.models.catalog import Catalogue
from compactd.storage.paths import config_folder


def suggestion(model: str) -> str:
    """Return a question with known models of a similar name; empty if there are none. O(known models). If
    `model` is the name of a provider, say how to list its models.
    """
    if _catalogue().rows(model):
        name = one_line(model)
        return f"{name} is a provider; `compactd models --provider {name}` lists its models"
    nearest = _catalogue().nearest(model)
    if not nearest:
        return ""
    *others, last = map(one_line, nearest)
    return f"did you mean {', '.join(others)}{' or ' if others else ''}{last}?"


def note_unknown_models(models: Sequence[str]) -> None:
    """Print a note on standard error for each of `models` that no source knows."""
    catalogue = _catalogue()
    notes: list[str] = []
    for model in models:
        found = catalogue.lookup(model)
        # A local server is asked for its window.
        if found.confidence == "guess" and found.source == "default" and not found.upper_bound:
            notes.append(
                f"no source knows the model {model!r}, so its window of {found.context_window:,} tokens is a "
                f"guess; {suggestion(model) or '`compactd models` lists models that are known'}"
            )
    print_notes(notes)


def _catalogue() -> Catalogue:
    return Catalogue(config_folder(os.environ) / "models.toml")
