"""`compactd install hermes` and `uninstall`: put the plugin for Hermes Agent into Hermes' folder, and remove
it again.

The plugin's files are in compactd's package, next to the adapter that they import. Hermes' configuration is
left alone: two commands of Hermes enable the plugin.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import compactd
from compactd.integrations.hooks.install import CannotChange, FileChange
from compactd.storage import files

NAME: Final = "hermes"
FILES: Final = ("plugin.yaml", "__init__.py")
SOURCE: Final = Path(compactd.__file__).parent / "integrations" / "frameworks" / "hermes" / "plugin"


def hermes_home(environ: Mapping[str, str]) -> Path:
    """Return Hermes' folder: `HERMES_HOME`, or `.hermes` in the home folder. Raise `KeyError` if neither is
    known.
    """
    given = environ.get("HERMES_HOME")
    return Path(given) if given else Path(environ["HOME"]) / ".hermes"


def plugin_changes(home: Path, *, remove: bool = False) -> tuple[FileChange, ...]:
    """Return the changes that put the plugin into Hermes' folder, or remove it. Raise `CannotChange`."""
    folder = home / "plugins" / "compactd"
    return tuple(
        FileChange(
            path=folder / name,
            before=_read(folder / name),
            after=None if remove else (SOURCE / name).read_bytes(),
        )
        for name in FILES
    )


def carry_out(changes: tuple[FileChange, ...]) -> None:
    """Carry out the changes that are needed. A folder that becomes empty is removed, too. Raise
    `CannotChange`.
    """
    for change in changes:
        place = change.path
        if not change.is_needed:
            continue
        try:
            if change.after is None:
                place.unlink(missing_ok=True)
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                files.replace_users_file(place, change.after)
        except OSError as error:
            raise CannotChange(f"{place} cannot be written: {error.strerror}") from error
    if changes and changes[0].after is None:
        _remove_folder(changes[0].path.parent)


def _remove_folder(folder: Path) -> None:
    # Python may have compiled the plugin.
    for compiled in (folder / "__pycache__").glob("__init__.*.pyc"):
        with suppress(OSError):
            compiled.unlink()
    for each in (folder / "__pycache__", folder):
        with suppress(OSError):
            each.rmdir()


def _read(place: Path) -> bytes | None:
    try:
        return place.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CannotChange(f"{place} cannot be read: {error.strerror}") from error
