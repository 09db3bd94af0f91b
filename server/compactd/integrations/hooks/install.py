"""`compactd install AGENT` and `uninstall`: add compactd's hooks to an agent's settings, and remove them
again.

The positions of what was added are stored, so that uninstalling restores every byte. The settings themselves
are not stored, because they may contain keys. A file is written completely or not at all, and only if it
changes.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import json
import os
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

import compactd
from compactd._runtime.installation import stable_program
from compactd._runtime.programs import MARKS, project_root
from compactd.integrations.hooks.events import AgentName
from compactd.integrations.hooks.hook_state import hooks_folder
from compactd.integrations.hooks.settings_change import (
    Edit,
    WantedHooks,
    add_hooks,
    events_in,
    programs_in,
    repair_commands,
    upgrade_commands,
    without_hooks,
)
from compactd.integrations.hooks.settings_text import NotSettings
from compactd.storage import files
from compactd.storage.write_access import exposure

ISOLATION_S = 30.0
"""Seconds that Python may take to show whether it can import compactd with the option `-I`."""


class CannotChange(Exception):
    """The settings cannot be read or written. The message says why."""


class InstallRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an installation changed."""

    path: str
    folders: tuple[str, ...] = ()
    """The folders that were created, outermost first."""
    was_there: bool = False
    """Whether there was a settings file before."""
    digest: str = ""
    """A hash of the settings with compactd's additions; empty if `ours` and `commands` do not lead back to
    the exact previous text.
    """
    ours: tuple[tuple[int, int], ...] = ()
    """(start, end) of each range of bytes that was added."""
    commands: tuple[Edit, ...] = ()
    """compactd's older commands that were rewritten. Their positions are counted in the settings without the
    ranges in `ours`.
    """
    events: tuple[str, ...] | None = None
    """The events that compactd's hooks use and that the settings already contained; None if the settings had
    no `hooks`.
    """
    before: str | None = None
    """Written by version 0.1: the whole previous settings in base64; None if there was no file."""
    after: str = ""
    """Written by version 0.1: the settings with compactd's additions, in base64."""

    def is_of(self, data: bytes | None) -> bool:
        """Return whether `data` is what the installation wrote."""
        if data is None:
            return False
        return data == base64.b64decode(self.after) if self.after else _digest(data) == self.digest

    def original_settings(self, data: bytes) -> bytes | None:
        """Return the settings before the installation; None for no file. `is_of(data)` must be true."""
        if self.after:
            return None if self.before is None else base64.b64decode(self.before)
        return _without_hooks(data, self.ours, self.commands) if self.was_there else None

    def outline(self) -> str | None:
        """Return the previous settings as JSON for the parameter `before` of `without_hooks`; None if they
        had no hooks. Records that version 0.1 did not write give only the events, as empty lists.
        """
        if self.after:
            return None if self.before is None else base64.b64decode(self.before).decode()
        return None if self.events is None else json.dumps({"hooks": {key: [] for key in self.events}})


def _record_of(
    path: Path, folders: tuple[str, ...], before: bytes | None, after: bytes, wanted: WantedHooks
) -> InstallRecord:
    """Return the record of an installation that changes the settings from `before` to `after`. `folders`: the
    folders that the installation creates. Raise `NotSettings` and `UnicodeDecodeError`.
    """
    text = "" if before is None else before.decode()
    middle, commands = upgrade_commands(text, wanted) if text.strip("\ufeff \t\r\n") else (text, ())
    ours = _added_ranges(middle.encode(), after)
    is_exact = _without_hooks(after, ours, commands) == (before or b"")
    return InstallRecord(
        path=str(path),
        folders=folders,
        was_there=before is not None,
        digest=_digest(after) if is_exact else "",
        ours=ours,
        commands=commands,
        events=events_in(text),
    )


def _added_ranges(before: bytes, after: bytes) -> tuple[tuple[int, int], ...]:
    """Return the ranges of `after` that are not in `before`. All bytes of `before` must occur in `after` in
    the same order.
    """
    stretches: list[tuple[int, int]] = []
    at = 0
    for begin, byte in enumerate(after):
        if at < len(before) and before[at] == byte:
            at += 1
        elif stretches and stretches[-1][1] == begin:
            stretches[-1] = (stretches[-1][0], begin + 1)
        else:
            stretches.append((begin, begin + 1))
    return tuple(stretches)


def _without_hooks(data: bytes, ours: tuple[tuple[int, int], ...], commands: tuple[Edit, ...]) -> bytes:
    ends = (0, *(end for _, end in ours))
    begins = (*(begin for begin, _ in ours), len(data))
    text = b"".join(data[end:begin] for end, begin in zip(ends, begins, strict=True)).decode()
    for edit in reversed(commands):
        text = text[: edit.start] + edit.old + text[edit.end :]
    return text.encode()


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


class FileChange(Struct, frozen=True, kw_only=True):
    """A planned or finished change of a file."""

    path: Path
    """The file itself, if the settings are a link to it."""
    before: bytes | None
    """The contents before the change; None if there is no file."""
    after: bytes | None
    """The contents after the change; None if the file is removed."""
    notes: tuple[str, ...] = ()

    @property
    def is_needed(self) -> bool:
        """Whether the contents after the change differ from those before."""
        return self.before != self.after

    def diff(self) -> str:
        """Return the change as a unified diff."""
        import difflib

        old, new = (
            data.decode("utf-8", "replace") if data is not None else "" for data in (self.before, self.after)
        )
        name = str(self.path)
        lines = difflib.unified_diff(
            old.splitlines(keepends=True),
            new.splitlines(keepends=True),
            name if self.before is not None else "(no file)",
            name if self.after is not None else "(no file)",
        )
        return "".join(line if line.endswith("\n") else line + "\n" for line in lines)


def program() -> str:
    """Return the command that starts this `compactd`, quoted for a shell. See `stable_script`."""
    script = stable_script()
    if script is not None:
        return shlex.quote(str(script))
    return f"{shlex.quote(sys.executable)} {_isolation()} -m compactd"


def stable_script() -> Path | None:
    """Return the path of the script `compactd` that is likely to last longest; None if there is no script."""
    script = _script()
    return None if script is None else stable_program(script, os.environ.get("PATH"))


def _script() -> Path | None:
    """Return the script `compactd` that was called, otherwise the one next to this Python."""
    called = Path(sys.argv[0])
    ending = ".exe" if sys.platform == "win32" else ""
    beside = Path(sys.executable).with_name(f"compactd{ending}")
    for one in (called, beside):
        if one.stem == "compactd" and one.is_file() and os.access(one, os.X_OK):
            return one.absolute()
    return None


def _isolation() -> str:
    """Return the option that keeps Python from importing from the folder in which the agent runs the hooks.

    `-I` also ignores `PYTHONPATH`, whose empty entries mean that folder, and the user's own packages. If
    compactd is one of those packages, `-P` (Python 3.11) is used.
    """
    command = [sys.executable, "-I", "-c", "import compactd.__main__, msgspec; print(compactd.__file__)"]
    try:
        done = subprocess.run(command, capture_output=True, cwd=os.sep, timeout=ISOLATION_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return "-P"
    return "-I" if done.stdout.decode("utf-8", "replace").strip() == compactd.__file__ else "-P"


def exposed_program() -> str | None:
    """Return why somebody else could change the program that the hooks run; None if nobody can."""
    program = stable_script() or Path(sys.executable)
    for one in (program, program.resolve()):
        project = project_root(one.parent)
        if any((project / mark).exists() for mark in MARKS):
            return (
                f"{one} is inside the project {project}, so anyone who can change files of that project, "
                "including an agent"
            )
    return exposure(program)


def install(
    path: Path, wanted: WantedHooks, environ: Mapping[str, str], *, dry_run: bool = False
) -> FileChange:
    """Add the hooks to the settings at `path`, after storing how to undo that; with `dry_run`, write nothing.
    Return the change. Raise `CannotChange`.
    """
    place = _place(path)
    before = _read(place)
    text = _text(before, place)
    try:
        added, notes = add_hooks(text, wanted)
    except NotSettings as error:
        raise CannotChange(f"{place} cannot be changed: {error}") from None
    change = FileChange(path=place, before=before, after=added.encode(), notes=notes)
    if change.is_needed and not dry_run:
        _record_and_write(change, wanted, environ, is_repaired=False)
    return change


def repair(
    path: Path, wanted: WantedHooks, environ: Mapping[str, str], *, dry_run: bool = False
) -> FileChange:
    """Replace each program that does not exist in the hooks of the settings at `path`, and add no hooks; with
    `dry_run`, write nothing. Return the change. Raise `CannotChange`.
    """
    place = _place(path)
    before = _read(place)
    text = _text(before, place)
    try:
        after, _ = repair_commands(text, wanted, is_program) if text.strip() else (text, 0)
    except NotSettings as error:
        raise CannotChange(f"{place} cannot be changed: {error}") from None
    change = FileChange(path=place, before=before, after=None if before is None else after.encode())
    if change.is_needed and not dry_run:
        _record_and_write(change, wanted, environ, is_repaired=True)
    return change


def missing_programs(path: Path) -> tuple[str, ...]:
    """Return the programs that do not exist in the hooks of the settings at `path`. Raise `CannotChange`."""
    return tuple(one for one in installed_programs(path) if not is_program(one))


def installed_programs(path: Path) -> tuple[str, ...]:
    """Return the programs that compactd's hooks in the settings at `path` run, each once. If it is empty, no
    hooks are installed there. Raise `CannotChange`.
    """
    place = _place(path)
    try:
        return programs_in(_text(_read(place), place))
    except NotSettings as error:
        raise CannotChange(f"{place} cannot be read: {error}") from None


def is_program(path: str) -> bool:
    """Return whether a program exists: a file that can be run, or a name that is found on the PATH."""
    return shutil.which(str(Path(path).expanduser())) is not None


def _record_and_write(
    change: FileChange, wanted: WantedHooks, environ: Mapping[str, str], *, is_repaired: bool
) -> None:
    """Store how to undo the change, and carry it out. Raise `CannotChange`."""
    place, before, after = change.path, change.before, change.after
    assert after is not None
    made = [place.parent, *place.parent.parents]
    folders = tuple(str(folder) for folder in reversed(made) if not folder.exists())
    old = _record(environ, wanted.agent)
    if before is not None and old is not None and old.path == str(place) and old.is_of(before):
        before, folders = old.original_settings(before), old.folders
        is_repaired = False
    elif old is not None and old.path == str(place):
        # The user has changed the settings since an installation, whose hooks are still in them.
        is_repaired = is_repaired or bool(before and programs_in(before.decode()))
    try:
        # If the settings were changed after the installation, undoing this would restore compactd's commands.
        # Without a new record, `uninstall` removes compactd's hooks and keeps the rest.
        record = None if is_repaired else _record_of(place, folders, before, after, wanted)
    except (NotSettings, UnicodeDecodeError) as error:
        raise CannotChange(f"{place} cannot be changed: {error}") from None
    try:
        files.make_folder(hooks_folder(environ))
        if record is not None:
            data = msgspec.json.encode(record)
            files.replace_file(_record_path(environ, wanted.agent), (data,), durable=True)
        _write(change)
    except OSError as error:
        raise CannotChange(f"{place} cannot be written: {error.strerror}") from error


def uninstall(
    path: Path, agent: AgentName, environ: Mapping[str, str], *, dry_run: bool = False
) -> FileChange:
    """Remove the hooks from the settings at `path`; with `dry_run`, write nothing. If nothing else was
    changed since the installation, restore the original file. Return the change. Raise `CannotChange`.
    """
    place = _place(path)
    before = _read(place)
    record = _record(environ, agent)
    known = record if record is not None and record.path == str(place) else None
    change = FileChange(path=place, before=before, after=_without_ours(place, before, known))
    if dry_run:
        return change
    try:
        if change.is_needed:
            _write(change)
        if known is not None:
            if not place.exists():
                for folder in reversed(known.folders):
                    with suppress(OSError):
                        Path(folder).rmdir()
            _record_path(environ, agent).unlink(missing_ok=True)
    except OSError as error:
        raise CannotChange(f"{place} cannot be written: {error.strerror}") from error
    return change


def _without_ours(place: Path, before: bytes | None, known: InstallRecord | None) -> bytes | None:
    """Return the settings `before` without the hooks; None for no file. `known`: the record of the
    installation.
    """
    if before is None:
        return None
    if known is not None and known.is_of(before):
        return known.original_settings(before)
    try:
        return without_hooks(_text(before, place), known.outline() if known is not None else None).encode()
    except NotSettings as error:
        raise CannotChange(f"{place} cannot be changed: {error}") from None


def _place(path: Path) -> Path:
    """Return the file to change. A link is followed and stays a link."""
    try:
        return path.resolve()
    except (OSError, RuntimeError) as error:
        raise CannotChange(f"{path} cannot be read: it is a symbolic link to itself") from error


def _read(place: Path) -> bytes | None:
    try:
        if place.exists() and not place.is_file():
            raise CannotChange(f"{place} is not a regular file")
        return place.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CannotChange(f"{place} cannot be read: {error.strerror}") from error


def _text(data: bytes | None, place: Path) -> str:
    try:
        return "" if data is None else data.decode()
    except UnicodeDecodeError:
        raise CannotChange(f"{place} is not UTF-8 text") from None


def _write(change: FileChange) -> None:
    """Carry out a change: write the whole file or nothing, and keep its permissions. Raise `OSError`."""
    place = change.path
    if change.after is None:
        place.unlink(missing_ok=True)
        return
    if change.before is not None and not place.stat().st_mode & stat.S_IWUSR:
        # Replacing the file would still be possible, but the user who made it read-only wants it unchanged.
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    place.parent.mkdir(parents=True, exist_ok=True)
    files.replace_users_file(place, change.after)


def _record_path(environ: Mapping[str, str], agent: AgentName) -> Path:
    return hooks_folder(environ) / f"{agent}.installed"


def _record(environ: Mapping[str, str], agent: AgentName) -> InstallRecord | None:
    try:
        return msgspec.json.decode(_record_path(environ, agent).read_bytes(), type=InstallRecord)
    except (OSError, msgspec.DecodeError):
        return None
