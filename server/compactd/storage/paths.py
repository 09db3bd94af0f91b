"""Where things are kept on each platform, and the name of a session's file.

Linux: the XDG Base Directory Specification 0.8 (a relative path in a variable is ignored). macOS and
Windows: where platformdirs 4.14 puts them too, without its 18 ms of import.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from compactd.storage.os_files import SYSTEM, Disk

_SLUG_CHARS = 40
_DIGEST_CHARS = 16


def data_folder(environ: Mapping[str, str], platform: str = sys.platform) -> Path:
    """Where sessions are kept: `COMPACTD_HOME`, or a folder of the platform. It need not be there yet."""
    if chosen := environ.get("COMPACTD_HOME"):
        return Path(chosen).absolute()
    return _folder(environ, platform, "XDG_DATA_HOME", ".local/share")


def config_folder(environ: Mapping[str, str], platform: str = sys.platform) -> Path:
    """Where the user's `config.toml` and `models.toml` are looked for. It need not be there."""
    return _folder(environ, platform, "XDG_CONFIG_HOME", ".config")


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
    """The folder with its links resolved; None for a path that is not absolute: it would mean another folder
    in each process. Blocks."""
    if folder is None:
        return None
    path = Path(folder)
    try:
        return str(path.resolve()) if path.is_absolute() else None
    except (OSError, RuntimeError, ValueError):
        return None


INDEX = "index.sqlite3"


def index_file(sessions: Path) -> Path:
    """The index of the journals in `sessions`."""
    return sessions.with_name(INDEX)


def drop_index(sessions: Path, disk: Disk = SYSTEM) -> bool:
    """Removes it as a whole: something that it may hold must leave the disk, or it is damaged.

    False where there was none. Durable once the folder that holds it is synced.
    """
    was_there = False
    for ending in ("", "-wal", "-shm"):
        was_there |= disk.remove(sessions.with_name(INDEX + ending))
    return was_there


def file_stem(session_id: str) -> str:
    """The name, without its ending, of the files of a session: something to read, and a hash to find it.

    An id comes from a client and is never a path: no character of it but `a-z0-9-` gets into the name.
    """
    import hashlib

    words: list[str] = []
    word = ""
    for char in session_id.lower():
        if "a" <= char <= "z" or "0" <= char <= "9":
            word += char
        elif word:
            words.append(word)
            word = ""
    slug = "-".join([*words, word] if word else words)[:_SLUG_CHARS].strip("-")
    # A name on a command line may hold bytes that are no text; they must not stop us from looking it up.
    digest = hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{slug}-{digest[:_DIGEST_CHARS]}"
