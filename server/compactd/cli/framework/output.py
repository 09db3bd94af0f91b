"""Write output files: checks before overwriting, atomic replacement."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from compactd._runtime.programs import project_root
from compactd.cli.framework.exit_codes import NOTHING_TO_DO, USAGE, CommandError
from compactd.cli.framework.page import one_line
from compactd.storage.files import replace_users_file


def check_writable(path: str, source: Path, *, force: bool) -> Path:
    """Check that the file `path` may be written, and return its path.

    Raise `CommandError` if the file cannot be written, or if it is `source`, the file that the command reads.
    An existing file is checked by `refuse_to_overwrite`.
    """
    if not path:
        raise CommandError("cannot write: the name of the file is empty.", exit_code=USAGE)
    target = Path(path)
    try:
        is_folder, has_place = target.is_dir(), target.parent.is_dir()
        is_source = target.exists() and target.samefile(source)
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror}.", exit_code=USAGE) from error
    if is_folder:
        raise CommandError(f"cannot write {path}: it is a folder.", hint="Give a file.", exit_code=USAGE)
    refuse_links(target)
    if not has_place:
        raise CommandError(f"cannot write {path}: there is no folder {target.parent}.", exit_code=USAGE)
    if is_source:
        raise CommandError(
            f"cannot write {path}: it is the session file itself.",
            hint="Give another file: the original is never overwritten.",
            exit_code=USAGE,
        )
    refuse_to_overwrite(target, force=force)
    return target


def refuse_to_overwrite(target: Path, *, force: bool) -> None:
    """Raise `CommandError` if `target` exists, unless `force` is true or the user agrees to replace it. The
    user is asked only in a terminal.

    Only regular files are protected: a pipe or device has no contents to lose.
    """
    if force or not target.is_file():
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise CommandError(
            f"cannot write {target}: the file exists.",
            hint="Nothing was written. Name another file, or use --force to replace this one.",
            exit_code=USAGE,
        )
    sys.stderr.write(f"{one_line(str(target))} exists. Replace it? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise CommandError(f"{target} was not changed.", hint="Nothing was written.", exit_code=NOTHING_TO_DO)


def refuse_links(target: Path) -> None:
    """Raise `CommandError` if a symbolic link would make the program write somewhere other than `target`
    says.

    That is the case if `target` is a link to another folder, or if a folder above it is a link to outside the
    current project. A folder that came from somebody else may contain such links under common file names.
    Links of the system in `/dev` and `/proc` are allowed.
    """
    written = Path(os.path.abspath(target))  # noqa: PTH100 - `resolve` would follow the links
    if written.parts[1:2] in (("dev",), ("proc",)):
        return
    try:
        real, folder, project = written.resolve(), written.parent.resolve(), project_root(Path.cwd())
        leaves_folder = written.is_symlink() and folder not in real.parents
        leaves_project = project in written.parents and project not in real.parents
    except (OSError, RuntimeError) as error:
        raise CommandError(
            f"cannot write {target}: its links cannot be resolved.", exit_code=USAGE
        ) from error
    if leaves_folder or leaves_project:
        raise CommandError(
            f"cannot write {target}: it is a link to {real}, or is inside a linked folder.",
            hint="Nothing was written. If you mean that file, give its own path; otherwise remove the link.",
            exit_code=USAGE,
        )


def write_file(target: Path, data: bytes) -> None:
    """Write `data` to `target` as `write_atomically` does. Raise `CommandError` if it cannot be written."""
    try:
        write_atomically(target, data)
    except OSError as error:
        raise CommandError(
            f"cannot write {target}: {error.strerror}.", hint="Nothing was written."
        ) from error


def write_atomically(target: Path, data: bytes) -> None:
    """Write `data` to `target` completely or not at all. A new file is readable by its owner only. Raise
    `OSError` if it cannot be written.
    """
    if target.exists() and not target.is_file():
        # A pipe or a device cannot be replaced by a file.
        target.write_bytes(data)
        return
    replace_users_file(target.resolve(), data)
