"""Paths of the data and config folders on each platform, and the file name of a session.

Linux: the XDG Base Directory Specification 0.8 (a relative path in a variable is ignored). macOS and
Windows: the same places as platformdirs 4.14, without its import time.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

from compactd.storage.os_files import SYSTEM, Disk

SDK_TRANSCRIPTS = "claude-agent-sdk"
"""The folder in the data folder in which the session store for the Claude Agent SDK keeps transcripts."""
_SLUG_CHARS = 40
_DIGEST_CHARS = 16


def data_folder(environ: Mapping[str, str], platform: str = sys.platform) -> Path:
    """Return the data folder, which contains the sessions: `COMPACTD_HOME`, or else the platform's folder. It
    may not exist yet.
    """
    if chosen := environ.get("COMPACTD_HOME"):
        return Path(chosen).absolute()
    return _folder(environ, platform, "XDG_DATA_HOME", ".local/share")


def config_folder(environ: Mapping[str, str], platform: str = sys.platform) -> Path:
    """Return the folder of the user's `config.toml`, `models.toml` and `keys.toml`. It may not exist."""
    return _folder(environ, platform, "XDG_CONFIG_HOME", ".config")


def cache_folder(environ: Mapping[str, str], platform: str = sys.platform) -> Path:
    """Return the folder of files that can be computed again: `cache` in `COMPACTD_HOME`, or else the
    platform's folder. It may not exist yet.
    """
    if chosen := environ.get("COMPACTD_HOME"):
        return Path(chosen).absolute() / "cache"
    if platform == "win32":
        return _folder(environ, platform, "", "") / "Cache"
    if platform == "darwin":
        return _user_home(environ, platform) / "Library" / "Caches" / "compactd"
    return _folder(environ, platform, "XDG_CACHE_HOME", ".cache")


def _folder(environ: Mapping[str, str], platform: str, variable: str, usual: str) -> Path:
    if platform == "win32":
        local = environ.get("LOCALAPPDATA")
        return (Path(local) if local else _user_home(environ, platform) / "AppData" / "Local") / "compactd"
    if platform == "darwin":
        return _user_home(environ, platform) / "Library" / "Application Support" / "compactd"
    named = Path(environ.get(variable, ""))
    return (named if named.is_absolute() else _user_home(environ, platform) / usual) / "compactd"


def _user_home(environ: Mapping[str, str], platform: str) -> Path:
    named = environ.get("USERPROFILE" if platform == "win32" else "HOME")
    if named:
        return Path(named)
    if sys.platform != "win32":
        import os
        import pwd

        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    return Path.home()


def real_folder(folder: str | None) -> str | None:
    """Return the path of `folder` with symbolic links resolved, or None if `folder` is not an absolute path.
    Blocks.

    A relative path would mean another folder in each process.
    """
    if folder is None:
        return None
    path = Path(folder)
    try:
        return str(path.resolve()) if path.is_absolute() else None
    except (OSError, RuntimeError, ValueError):
        return None


INDEX = "index.sqlite3"


def index_file(sessions: Path) -> Path:
    """Return the path of the search index of the journals in the folder `sessions`."""
    return sessions.with_name(INDEX)


def drop_index(sessions: Path, disk: Disk = SYSTEM) -> None:
    """Delete the search index of the journals in the folder `sessions`, if there is one.

    Afterwards sync the folder above `sessions`, in which the index was, to make the deletion durable.
    """
    for ending in ("", "-wal", "-shm"):
        disk.remove(sessions.with_name(INDEX + ending))


def file_stem(session_id: str) -> str:
    """Return the name that a session's files have, without ending: a readable part of the id and a hash of
    the id.

    The id comes from a client and is never used as a path: only its characters `a-z0-9-` get into the name.
    """
    import hashlib

    slug = "-".join(re.findall(r"[a-z0-9]+", session_id.lower()))[:_SLUG_CHARS].strip("-")
    # An id from a command line may contain bytes that are not text. It must give a name too.
    digest = hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{slug}-{digest[:_DIGEST_CHARS]}"
