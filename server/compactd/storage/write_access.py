"""Check if other users can change or replace a file or folder.

As OpenSSH does for `~/.ssh` (sshd_config, `StrictModes`), this checks the modes and owners of the path and of
every folder above it.
"""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path


def exposure(path: Path) -> str | None:
    """Return, as text for the user, which other user may write to `path` or to a folder above it. Return None
    if none may.

    Links are resolved. If `path` does not exist, the folders above it decide. These are fine: permission to
    read (0755), a folder with the sticky bit (like `/tmp`), the user's own group without other members,
    and root as owner. Returns None on Windows, where file modes do not show permissions.
    """
    if sys.platform == "win32":
        return None
    for each in _chain(path):
        try:
            facts = each.stat()
        except OSError:
            continue
        who = _writer(facts)
        if who is not None:
            return f"{who} may write to {each}"
    return None


def exposed_data(folder: Path) -> str | None:
    """Return a warning, with what to do, if other users may write to the data folder. Otherwise
    return None.
    """
    who = exposure(folder)
    if who is None:
        return None
    return (
        f"{who}, so others can plant sessions and hook state in the data folder {folder}. "
        "Remove that permission (chmod go-w), or set COMPACTD_HOME to a folder that only you can write."
    )


def _chain(path: Path) -> tuple[Path, ...]:
    try:
        real = path.resolve()
    except (OSError, RuntimeError):
        real = path.absolute()
    return (real, *real.parents)


def _writer(facts: os.stat_result) -> str | None:
    me = os.geteuid()
    # In a container, root often works in folders that a user of the host owns, so root accepts all owners.
    if facts.st_uid not in (0, me) and me != 0:
        return f"the user {_user_name(facts.st_uid)}"
    if facts.st_mode & stat.S_ISVTX and stat.S_ISDIR(facts.st_mode):
        return None
    if facts.st_mode & stat.S_IWOTH:
        return "every user of this machine"
    if facts.st_mode & stat.S_IWGRP and facts.st_gid != 0 and not _is_own_group(facts.st_gid):
        return f"the group {_group_name(facts.st_gid)}"
    return None


def _is_own_group(gid: int) -> bool:
    """Return true if the group contains only this user, as Linux creates one per user (`USERGROUPS_ENAB`,
    login.defs).
    """
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(gid)
    except KeyError:
        return False
    return group.gr_name == user.pw_name and not set(group.gr_mem) - {user.pw_name}


def _user_name(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _group_name(gid: int) -> str:
    import grp

    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
