"""The texts that a call writes to a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from compactd.core.work.file_operations import CHANGE_ARGUMENTS

_MAX_NESTED: Final = 3


def written_texts(value: object, name: str = "", nested: int = 0) -> Iterator[str]:
    """Yield the new texts in the arguments of a call."""
    if isinstance(value, str):
        if name in CHANGE_ARGUMENTS and not name.startswith("old"):
            yield value
    elif isinstance(value, Mapping) and nested < _MAX_NESTED:
        for key, one in value.items():
            yield from written_texts(one, str(key), nested + 1)
    elif isinstance(value, (list, tuple)) and nested < _MAX_NESTED:
        for one in value:
            yield from written_texts(one, name, nested + 1)
