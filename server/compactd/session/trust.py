"""Trust in a folder's `.compactd.toml`: given and taken back by the user, once per folder and contents.

As direnv has it: what is trusted is the bytes that were read when the trust was given. The folder is named
without symbolic links. A changed file, another folder with the same file, a moved folder: not trusted.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Raw, Struct

from compactd.core.budget.untrusted import ALLOWED, NEEDS_TRUST, refusal
from compactd.protocol.errors import InvalidParams
from compactd.protocol.settings import GivenSettings
from compactd.storage.settings_files import (
    WORKSPACE_FILE,
    WORKSPACE_LIMIT_BYTES,
    bytes_of,
    digest_of,
    from_bytes,
)
from compactd.storage.trusted_folders import Trust, TrustFile

State = Literal["trusted", "changed", "missing"]


class TrustedValue(Struct, frozen=True, kw_only=True):
    """One setting of a folder's file."""

    name: str
    value: Raw
    allows: str | None
    """What trusting it allows; none where an untrusted file may set it, too."""


class Change(Struct, frozen=True, kw_only=True):
    """What trusting a folder, or not any more, came to."""

    path: str
    trusted: bool
    changed: bool
    sha256: str | None = None
    settings: tuple[TrustedValue, ...] = ()
    warnings: tuple[str, ...] = ()


class Listed(Struct, frozen=True, kw_only=True):
    """A folder that was trusted, and how its file is now."""

    trust: Trust
    state: State


def trust(data: Path, path: str, at: float, *, dry_run: bool = False) -> Change:
    """Trusts what `.compactd.toml` in the folder `path` holds at this moment; durable when it returns.

    `data`: the data folder. With `dry_run` nothing is changed. Raises `InvalidParams` for a folder without a
    file that can be read, `StorageFailed`.
    """
    folder = _folder(path)
    found, warnings = bytes_of(Path(folder) / WORKSPACE_FILE, WORKSPACE_FILE, WORKSPACE_LIMIT_BYTES)
    if found is None:
        raise InvalidParams(warnings[0] if warnings else f"{path!r} holds no {WORKSPACE_FILE}", "$.path")
    given, warnings = from_bytes(found, WORKSPACE_FILE)
    if given is None:
        raise InvalidParams(warnings[0], "$.path")
    digest = digest_of(found)
    changed = not dry_run and TrustFile(data).set(folder, digest, at)
    return Change(
        path=folder,
        trusted=not dry_run,
        changed=changed,
        sha256=digest,
        settings=values_of(given),
        warnings=warnings,
    )


def untrust(data: Path, path: str) -> Change:
    """Takes the trust in a folder back, also in one that is not there any more; durable when it returns.

    Raises `InvalidParams` for a path that is not absolute, `StorageFailed`.
    """
    folder = _folder(path)
    return Change(path=folder, trusted=False, changed=TrustFile(data).remove(folder))


def trusted(data: Path) -> tuple[tuple[Listed, ...], str | None]:
    """(every folder that was trusted, by path; why the list cannot be used). Reads each folder's file."""
    known = TrustFile(data).read()
    return tuple(Listed(trust=one, state=_state(one)) for one in known.by_path.values()), known.problem


def values_of(given: GivenSettings) -> tuple[TrustedValue, ...]:
    """What a file sets, each with what it is that the trust allows."""
    return tuple(
        TrustedValue(name=name, value=Raw(msgspec.json.encode(value)), allows=_allows(name, value))
        for name in GivenSettings.__struct_fields__
        if (value := getattr(given, name)) is not None
    )


def _allows(name: str, value: object) -> str | None:
    if name in NEEDS_TRUST:
        return NEEDS_TRUST[name]
    return (
        None
        if refusal(name, value) is None
        else f"it leaves the bounds of untrusted files: {ALLOWED[name].rule}"
    )


def _folder(path: str) -> str:
    if not Path(path).is_absolute() or "\0" in path:
        raise InvalidParams(f"{path!r} is no absolute path; the daemon has no folder of its own", "$.path")
    return os.path.realpath(path)


def _state(trust: Trust) -> State:
    found, warnings = bytes_of(Path(trust.path) / WORKSPACE_FILE, WORKSPACE_FILE, WORKSPACE_LIMIT_BYTES)
    if found is None:
        return "changed" if warnings else "missing"
    return "trusted" if digest_of(found) == trust.sha256 else "changed"
