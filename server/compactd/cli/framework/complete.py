"""What a shell offers for an argument: stored sessions and known models, read without a daemon."""

from __future__ import annotations

import os
import re

from compactd.models.files import PACKAGED
from compactd.storage.paths import data_folder

MOST = 200
"""More do not fit on a screen."""

_ROW = re.compile(rb'^\{"provider":"([^"]*)","id":"([^"]*)"', re.M)
"""How each line of models.jsonl begins, without escapes in either."""


def session_ids(begin: str) -> list[tuple[str, str]]:
    """(id, last used) of the stored sessions whose id begins so, newest first. One small read each."""
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
    ][:MOST]


def providers(begin: str) -> list[tuple[str, str]]:
    """The providers whose name begins so."""
    names = {provider for provider, _ in _models()}
    return [(name, "") for name in sorted(names) if name.startswith(begin)]


def models(begin: str) -> list[tuple[str, str]]:
    """What `begin` may become: an id, or `provider/`; behind a slash `provider/id`."""
    if "/" in begin:
        found = {f"{provider}/{model}" for provider, model in _models() if begin.startswith(f"{provider}/")}
    else:
        found = {model for _, model in _models() if "/" not in model}
        found |= {f"{provider}/" for provider, _ in providers(begin)}
    return [(name, "") for name in sorted(found) if name.startswith(begin)][:MOST]


def _models() -> list[tuple[str, str]]:
    """(provider, id) of every packaged row. About 10 ms."""
    try:
        data = (PACKAGED / "models.jsonl").read_bytes()
    except OSError:
        return []
    return [(provider.decode(), model.decode()) for provider, model in _ROW.findall(data)]
