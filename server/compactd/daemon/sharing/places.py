"""Where a shared daemon listens: one socket for each user, data folder and version.

`compactd attach` imports this module at its start, so it imports little.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path

from compactd import __version__
from compactd.storage.paths import config_folder, data_folder

ENDING = ".sock"
MAX_PATH_BYTES = 103
"""The longest path of a Unix socket that every system takes (macOS: 104 bytes with the final zero)."""


class Unusable(Exception):
    """A socket or its folder must not be used. The message says why, and what to do."""


def is_supported() -> bool:
    """Return whether this system has Unix sockets over which descriptors can be passed."""
    return sys.platform in ("linux", "darwin")


def socket_path(environ: Mapping[str, str]) -> Path:
    """Return the path of the socket for the user's data folder. Nothing is created."""
    return runtime_folder(environ) / f"{_key(environ)}-{__version__}{ENDING}"


def other_sockets(environ: Mapping[str, str]) -> list[Path]:
    """Return the paths of the sockets of other versions for the same data folder."""
    own = socket_path(environ)
    return sorted(path for path in own.parent.glob(f"{_key(environ)}-*{ENDING}") if path != own)


def runtime_folder(environ: Mapping[str, str]) -> Path:
    """Return the user's folder for sockets: in `XDG_RUNTIME_DIR`, or else in the system's temporary folder.
    It may not exist.
    """
    chosen = Path(environ.get("XDG_RUNTIME_DIR") or ".")
    if chosen.is_absolute() and chosen.is_dir():
        return chosen / "compactd"
    return Path(f"/tmp/compactd-{os.getuid()}")


def make_folder(folder: Path) -> None:
    """Create a folder for sockets that only this user can enter, or check the one that exists. Raises
    `Unusable`.
    """
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise Unusable(f"{folder} cannot be created ({error.strerror}). {_NAME_ANOTHER}") from None
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise Unusable(f"{folder} is not a folder of yours. {_NAME_ANOTHER}")
    if found.st_mode & 0o077:
        folder.chmod(0o700)


def check_socket(path: Path) -> bool:
    """Return whether there is a socket at `path`. Raises `Unusable` if something else is there, or a socket
    of another user.
    """
    if len(os.fsencode(path)) > MAX_PATH_BYTES:
        raise Unusable(f"{path} is too long for a socket ({MAX_PATH_BYTES} bytes). {_NAME_ANOTHER}")
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    if not stat.S_ISSOCK(found.st_mode):
        raise Unusable(f"{path} is not a socket. If nothing needs it, delete it.")
    if found.st_uid != os.getuid():
        raise Unusable(f"{path} belongs to another user. {_NAME_ANOTHER}")
    return True


_NAME_ANOTHER = "Name another place with --socket PATH."


def _key(environ: Mapping[str, str]) -> str:
    """Return a short text that stands for the data and the settings folder."""
    folders = f"{data_folder(environ)}\0{config_folder(environ)}"
    return blake2b(os.fsencode(folders), digest_size=6).hexdigest()
