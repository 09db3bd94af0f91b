"""The editor's workspace folders, and whether a session belongs to them."""

from __future__ import annotations

import os
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Raw, Struct, UnsetType, field


class _Folder(Struct, frozen=True):
    uri: str


class _Params(Struct, frozen=True):
    folders: tuple[_Folder, ...] | None = field(name="workspaceFolders", default=None)
    root_uri: str | None = field(name="rootUri", default=None)
    root_path: str | None = field(name="rootPath", default=None)


def folders_of(raw: Raw | UnsetType) -> tuple[str, ...]:
    """Return the workspace folders in the params of `initialize`: `workspaceFolders`, or the older
    `rootUri` or `rootPath`. Folders that are not local files are left out.
    """
    try:
        params = msgspec.json.decode(b"{}" if isinstance(raw, UnsetType) else raw, type=_Params)
    except msgspec.ValidationError:
        return ()
    uris = [folder.uri for folder in params.folders or ()]
    if not uris and params.root_uri is not None:
        uris = [params.root_uri]
    paths = [_path_of(uri) for uri in uris]
    if not uris and params.root_path is not None:
        paths = [params.root_path]
    return tuple(os.path.normpath(path) for path in paths if path.startswith("/"))


def _path_of(uri: str) -> str:
    try:
        parts = urlsplit(uri)
    except ValueError:
        return ""
    return unquote(parts.path) if parts.scheme == "file" else ""


def is_below(folders: tuple[str, ...], path: str | None) -> bool:
    """Return true if `path` is one of `folders` or inside one of them. Compares the paths as text."""
    if path is None:
        return False
    whole = os.path.normpath(path)
    return any(whole == folder or whole.startswith(folder.rstrip("/") + "/") for folder in folders)


def with_targets(folders: tuple[str, ...]) -> tuple[str, ...]:
    """Return `folders` and the targets of those that are symbolic links. Reads the disk."""
    return (*folders, *(real for folder in folders if (real := os.path.realpath(folder)) not in folders))
