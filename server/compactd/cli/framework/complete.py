"""Shell completion of arguments: stored sessions and known models. The functions read files directly, without
a daemon.
"""

from __future__ import annotations

import os
import re

from compactd.models.registry_files import PACKAGED
from compactd.storage.paths import data_folder

MAX_COMPLETIONS = 200
"""The most suggestions that are offered; more do not fit on a screen."""

_ROW = re.compile(rb'^\{"provider":"([^"]*)","id":"([^"]*)"', re.M)
"""A pattern for the beginning of each line of models.jsonl. Providers and ids contain no JSON escapes."""


def session_ids(begin: str) -> list[tuple[str, str]]:
    """Return (id, time of last use) of the stored sessions whose id starts with `begin`, newest first.

    The beginning of each session file is read. The list is empty if the folder cannot be read.
    """
    from datetime import datetime

    from compactd.protocol.errors import CompactdError
    from compactd.storage.folder import FolderStore

    try:
        stored = FolderStore(data_folder(os.environ)).list()
    except (CompactdError, OSError):
        return []
    return [
        (one.session_id, datetime.fromtimestamp(one.updated_at).strftime("%Y-%m-%d %H:%M"))
        for one in stored
        if one.session_id.startswith(begin)
    ][:MAX_COMPLETIONS]


def providers(begin: str) -> list[tuple[str, str]]:
    """Return (name, empty description) of the providers whose name starts with `begin`."""
    names = {provider for provider, _ in _models()}
    return [(name, "") for name in sorted(names) if name.startswith(begin)]


def models(begin: str) -> list[tuple[str, str]]:
    """Return (name, empty description) of the names that complete `begin`.

    With a slash in `begin`, they are models as `provider/id`. Otherwise they are ids of models, and providers
    as `provider/`.
    """
    if "/" in begin:
        found = {f"{provider}/{model}" for provider, model in _models() if begin.startswith(f"{provider}/")}
    else:
        found = {model for _, model in _models() if "/" not in model}
        found |= {f"{provider}/" for provider, _ in providers(begin)}
    return [(name, "") for name in sorted(found) if name.startswith(begin)][:MAX_COMPLETIONS]


def _models() -> list[tuple[str, str]]:
    """Return (provider, id) of every model in the packaged registry. Takes about 10 ms."""
    try:
        data = (PACKAGED / "models.jsonl").read_bytes()
    except OSError:
        return []
    return [(provider.decode(), model.decode()) for provider, model in _ROW.findall(data)]
