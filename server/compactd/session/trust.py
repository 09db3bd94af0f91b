"""Trust in a folder's `.compactd.toml`: the user gives trust or takes it back, per folder and file content.

As in direnv, the user trusts the bytes that were read when the trust was given. The folder's path is stored
without symbolic links. A changed file, the same file in another folder, and a moved folder are not trusted.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Raw

from compactd.core.budget.untrusted import ALLOWED, NEEDS_TRUST, untrusted_reason
from compactd.protocol.errors import InvalidParams
from compactd.protocol.settings import GivenSettings
from compactd.protocol.wire import TrustedFolder, TrustedSetting, TrustList, TrustResult
from compactd.storage.settings_files import WORKSPACE_FILE, digest_of, from_bytes, read_workspace_bytes
from compactd.storage.trusted_folders import Trust, TrustFile


def trust(data: Path, path: str, at: float, *, dry_run: bool = False) -> TrustResult:
    """Trust the current content of `.compactd.toml` in the folder `path`. The trust is on disk when this
    returns.

    `data` is the data folder, `at` the current time in Unix seconds. With `dry_run`, only return what trust
    would allow, and change nothing. Raises `StorageFailed`, and `InvalidParams` if the folder has no such
    file that can be read.
    """
    folder = _folder(path)
    found, warnings = read_workspace_bytes(Path(folder))
    if found is None:
        raise InvalidParams(warnings[0] if warnings else f"{path!r} contains no {WORKSPACE_FILE}", "$.path")
    given, warnings = from_bytes(found, WORKSPACE_FILE)
    if given is None:
        raise InvalidParams(warnings[0], "$.path")
    digest = digest_of(found)
    changed = not dry_run and TrustFile(data).set(folder, digest, at)
    return TrustResult(
        path=folder,
        trusted=not dry_run,
        changed=changed,
        sha256=digest,
        settings=allowed_values(given),
        warnings=warnings,
    )


def untrust(data: Path, path: str) -> TrustResult:
    """Take the trust in the folder `path` back, even if the folder no longer exists. The change is on disk
    when this returns.

    `data` is the data folder. Raises `StorageFailed`, and `InvalidParams` if `path` is not absolute.
    """
    folder = _folder(path)
    return TrustResult(path=folder, trusted=False, changed=TrustFile(data).remove(folder))


def list_trusted(data: Path) -> TrustList:
    """Return every trusted folder, sorted by path, or why the list of trusted folders cannot be used. Reads
    the `.compactd.toml` of each folder. `data` is the data folder.
    """
    known = TrustFile(data).read()
    folders = tuple(
        TrustedFolder(path=one.path, sha256=one.sha256, trusted_at=one.at, state=_state(one))
        for one in known.by_path.values()
    )
    return TrustList(folders=folders, problem=known.problem)


def allowed_values(given: GivenSettings) -> tuple[TrustedSetting, ...]:
    """Return the settings in `given`, each with what it allows if the user trusts the file."""
    return tuple(
        TrustedSetting(name=name, value=Raw(msgspec.json.encode(value)), allows=_allows(name, value))
        for name in GivenSettings.__struct_fields__
        if (value := getattr(given, name)) is not None
    )


def _allows(name: str, value: object) -> str | None:
    if name in NEEDS_TRUST:
        return NEEDS_TRUST[name]
    return (
        None
        if untrusted_reason(name, value) is None
        else f"it is outside the bounds for untrusted files: {ALLOWED[name].rule}"
    )


def _folder(path: str) -> str:
    if not Path(path).is_absolute() or "\0" in path:
        raise InvalidParams(f"{path!r} is not an absolute path; give an absolute path", "$.path")
    return os.path.realpath(path)


def _state(trust: Trust) -> Literal["trusted", "changed", "missing"]:
    found, warnings = read_workspace_bytes(Path(trust.path))
    if found is None:
        return "changed" if warnings else "missing"
    return "trusted" if digest_of(found) == trust.sha256 else "changed"
